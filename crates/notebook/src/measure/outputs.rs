//! Looks for the texts that a blueprint expects some cell to print.

use std::collections::BTreeSet;

use crate::plan::Expectation;

/// Looks for texts in what cells print, in chunks cut anywhere. Keeps no more than the longest text.
#[derive(Debug, Clone, Default)]
pub struct OutputSearch {
    sought: BTreeSet<String>,
    longest: usize,
    found: BTreeSet<String>,
    end: String,
}

impl OutputSearch {
    /// Returns a search for the texts among these expectations.
    pub fn new(expectations: &[Expectation]) -> Self {
        let texts = expectations.iter().filter_map(|expectation| match expectation {
            Expectation::Output(text) => Some(text.clone()),
            Expectation::Metric { .. } | Expectation::Artifact(_) | Expectation::TrainJobs => None,
        });
        let sought: BTreeSet<String> = texts.collect();
        Self {
            longest: sought.iter().map(String::len).max().unwrap_or(0),
            sought,
            ..Self::default()
        }
    }

    /// Takes in printed text.
    pub fn text(&mut self, text: &str) {
        if self.sought.is_empty() {
            return;
        }
        self.end.push_str(text);
        let end = &self.end;
        let found = self.sought.extract_if(.., |sought| end.contains(sought.as_str()));
        self.found.extend(found);
        let cut = self.end.len().saturating_sub(self.longest);
        self.end.drain(..self.end.ceil_char_boundary(cut));
    }

    /// Notes that a cell has ended: a text is looked for within one cell.
    pub fn cell_ended(&mut self) {
        self.end.clear();
    }

    /// Returns whether some cell printed the text.
    pub fn contains(&self, text: &str) -> bool {
        text.is_empty() || self.found.contains(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_chunks_but_not_across_cells() {
        let mut search = OutputSearch::new(&[
            Expectation::Output("training é done".to_owned()),
            Expectation::Output("never".to_owned()),
        ]);
        search.text("nev");
        search.cell_ended();
        search.text("er. train");
        for c in "ing é done".chars() {
            search.text(&c.to_string());
        }

        assert!(search.contains("training é done"));
        assert!(!search.contains("never"));
        assert!(search.end.len() <= search.longest);
    }
}
