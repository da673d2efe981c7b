//! What a cell shows, as the notebook keeps it: with updates and clearing done, and with a limit.

use serde_json::{Value, json};

use blueproof_core::{attempt::Stream, domain::Bytes};

/// The most that is kept of what one cell prints and shows, and of all cells together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Of one cell's printed text.
    pub cell_text: Bytes,
    /// Of one cell's other outputs.
    pub cell_display: Bytes,
    /// Of everything.
    pub attempt: Bytes,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            cell_text: Bytes(1 << 20),
            cell_display: Bytes(8 << 20),
            attempt: Bytes(16 << 20),
        }
    }
}

/// Outputs of one cell.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    kept: Vec<Kept>,
    clear_before_next: bool,
}

#[derive(Debug)]
struct Kept {
    output: Value,
    display: Option<String>,
}

impl Outputs {
    /// Adds printed text; text to the same stream in a row is one output.
    pub(crate) fn print(&mut self, stream: Stream, text: &str) {
        self.clear_if_due();
        let name = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        if let Some(last) = self.kept.last_mut()
            && last.output["output_type"] == "stream"
            && last.output["name"] == name
            && let Value::String(all) = &mut last.output["text"]
        {
            all.push_str(text);
            return;
        }
        let output = json!({"output_type": "stream", "name": name, "text": text});
        self.kept.push(Kept {
            output,
            display: None,
        });
    }

    /// Adds anything else.
    pub(crate) fn show(&mut self, output: Value, display: Option<String>) {
        self.clear_if_due();
        self.kept.push(Kept { output, display });
    }

    /// Replaces data and metadata wherever the display of this name stands. Returns whether it stands here.
    pub(crate) fn update(&mut self, display: &str, content: &Value) -> bool {
        let mut is_here = false;
        for kept in self
            .kept
            .iter_mut()
            .filter(|kept| kept.display.as_deref() == Some(display))
        {
            kept.output["data"] = content["data"].clone();
            kept.output["metadata"] = content["metadata"].clone();
            is_here = true;
        }
        is_here
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.clear_before_next = false;
    }

    /// Removes everything as soon as something new comes.
    pub(crate) fn clear_before_next(&mut self) {
        self.clear_before_next = true;
    }

    /// Returns the outputs as a notebook has them.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        self.kept.iter().map(|kept| kept.output.clone()).collect()
    }

    fn clear_if_due(&mut self) {
        if self.clear_before_next {
            self.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_row_is_one_output() {
        let mut outputs = Outputs::default();
        for (stream, text) in [
            (Stream::Stdout, "a"),
            (Stream::Stdout, "b"),
            (Stream::Stderr, "c"),
        ] {
            outputs.print(stream, text);
        }
        let texts: Vec<_> = outputs
            .to_json()
            .iter()
            .map(|output| output["text"].clone())
            .collect();
        assert_eq!(texts, ["ab", "c"]);
    }

    #[test]
    fn clearing_can_wait_for_what_comes_next() {
        let mut outputs = Outputs::default();
        outputs.print(Stream::Stdout, "step 1");
        outputs.clear_before_next();
        assert_eq!(outputs.to_json().len(), 1);
        outputs.print(Stream::Stdout, "step 2");
        assert_eq!(outputs.to_json()[0]["text"], "step 2");
    }

    #[test]
    fn an_update_reaches_the_display_of_its_name_only() {
        let mut outputs = Outputs::default();
        outputs.show(
            json!({"output_type": "display_data", "data": {"text/plain": "0"}}),
            Some("a".into()),
        );
        outputs.show(
            json!({"output_type": "display_data", "data": {"text/plain": "0"}}),
            None,
        );
        assert!(outputs.update("a", &json!({"data": {"text/plain": "1"}, "metadata": {}})));
        assert!(!outputs.update("b", &json!({"data": {}, "metadata": {}})));
        let shown = outputs.to_json();
        assert_eq!(shown[0]["data"]["text/plain"], "1");
        assert_eq!(shown[1]["data"]["text/plain"], "0");
    }
}
