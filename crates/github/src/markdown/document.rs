//! A document that never exceeds its limit, and of which no block is cut in two.

use crate::api::CheckOutput;

/// What stands at the end where something is missing.
const CUT: &str = "_Not all of it fits here: what follows was left out._";

/// Markdown made of blocks, at most [`CheckOutput::TEXT_AT_MOST`] characters.
///
/// A block that has no room is left out, and so is each after it: half of one could open what it should be in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    text: String,
    n_characters: usize,
    is_full: bool,
}

impl Document {
    /// Adds a block below an empty line. An empty one adds nothing.
    pub(crate) fn push(&mut self, block: &str) {
        if block.is_empty() || self.is_full {
            return;
        }
        let between = if self.text.is_empty() { "" } else { "\n\n" };
        let longer = self.n_characters + between.len() + block.chars().count();
        // Room for the note is kept at all times.
        let room = CheckOutput::TEXT_AT_MOST - CUT.len() - "\n\n".len();
        let (added, longer) = match longer <= room {
            true => (block, longer),
            false => (CUT, self.n_characters + between.len() + CUT.len()),
        };
        self.is_full = longer > room || added == CUT;
        self.text.push_str(between);
        self.text.push_str(added);
        self.n_characters = longer;
    }

    /// Returns the Markdown.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_drops_whole_blocks_and_says_so() {
        let mut document = Document::default();
        let block = "ü".repeat(30_000);
        for _ in 0..4 {
            document.push(&block);
        }
        let text = document.finish();
        assert!(text.chars().count() <= CheckOutput::TEXT_AT_MOST);
        assert_eq!(text, format!("{block}\n\n{block}\n\n{CUT}"));
    }
}
