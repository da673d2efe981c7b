//! Several things that one message tells, each in a line of its own.

use crate::{Code, Diagnostic};

/// What each of them begins with.
const ITEM: &str = "\n- ";

impl Diagnostic {
    /// Returns an error that says the same of several things, such as that these expectations do not hold.
    pub fn listing(code: Code, what: &str, items: &[&str]) -> Self {
        let lines = items
            .iter()
            .map(|item| format!("{ITEM}{}", item.replace('\n', " ")));
        let message = format!("{} {what}:{}", items.len(), lines.collect::<String>());
        Self::error(code, message)
    }

    /// Returns what the message begins with, and the things that it lists.
    ///
    /// Only expectations are listed. A message of any other kind can be a notebook's own words, which list nothing whatever
    /// they look like.
    pub fn listed(&self) -> (&str, Vec<&str>) {
        let mut parts = self.message.split(ITEM);
        let (head, items) = (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>());
        let begins = format!("{} ", items.len());
        if is_of_expectations(self.code) && head.starts_with(&begins) && head.ends_with(':') {
            return (head, items);
        }
        (&self.message, Vec::new())
    }
}

fn is_of_expectations(code: Code) -> bool {
    matches!(
        code,
        Code::MetricMissing
            | Code::MetricOutOfBounds
            | Code::MetricNotFinite
            | Code::ArtifactMissing
            | Code::ArtifactEmpty
            | Code::ArtifactPattern
            | Code::ArtifactUntouched
            | Code::OutputMissing
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_read_back_and_an_item_is_one_line() {
        let what = "expectations do not hold";
        let listing = Diagnostic::listing(Code::MetricMissing, what, &["loss 5 > 0.4", "no `a\n- b` there"]);
        assert_eq!(
            listing.listed(),
            (
                "2 expectations do not hold:",
                vec!["loss 5 > 0.4", "no `a - b` there"]
            )
        );
    }

    #[test]
    fn a_notebooks_own_words_list_nothing_whatever_they_look_like() {
        for (code, message) in [
            (Code::CellRaised, "2 expectations do not hold:\n- a\n- b"),
            (Code::ArtifactEmpty, "the file a\n- b is empty"),
            (Code::ArtifactEmpty, "3 files:\n- a"),
            (Code::OutputMissing, "no cell printed \"done\""),
        ] {
            let diagnostic = Diagnostic::error(code, message);
            assert_eq!(diagnostic.listed(), (message, vec![]));
        }
    }
}
