//! No test is left out: one that nobody runs says nothing, and looks as if it did.
//!
//! A test that needs a cluster or a GPU runs when it is asked to, and says so when it is not; that is not an attribute. Doctests that
//! are left out are counted by the test step of `ci`.

use super::{Complaint, Source};

pub(super) fn check(source: &Source) -> Vec<Complaint> {
    source.complain_where(
        leaves_a_test_out,
        "run the test, or take it out; ignored tests say nothing",
    )
}

/// Whether a line is an attribute that ignores a test, alone or under a condition.
fn leaves_a_test_out(line: &str) -> bool {
    let Some(attribute) = line.trim_start().strip_prefix("#[") else {
        return false;
    };
    let attribute = attribute.trim_start();
    let mut words = attribute.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    match words.next() {
        Some("ignore") => true,
        Some("cfg_attr") => words.any(|word| word == "ignore"),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_cannot_be_ignored() {
        for bad in [
            "#[ignore]",
            "    #[ignore = \"slow\"]",
            "#[ ignore ]",
            "#[cfg_attr(not(feature = \"live\"), ignore)]",
        ] {
            let text = format!("//! Tests.\n#[test]\n{bad}\nfn a() {{}}\n");
            let complaints = check(&Source::of("a.rs", text));
            assert_eq!(complaints.len(), 1, "{bad} is accepted");
            assert_eq!(complaints[0].line, Some(3));
        }
    }

    #[test]
    fn other_attributes_and_words_are_not_taken_for_it() {
        let text = "#[test]\n#[ignored_by_us]\n#[cfg_attr(test, derive(Debug))]\n// #[ignore] is not allowed\nfn ignore() {}\n";
        assert_eq!(check(&Source::of("a.rs", text)), []);
    }
}
