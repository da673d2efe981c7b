//! What a terminal, a log or a step of a CI job may be given of a notebook's text.
//!
//! Only colour is left of control sequences, and no line is a command to whoever reads the log: GitHub Actions obeys
//! `::name::` at the start of a line and `##[name]` anywhere in it, Azure Pipelines `##vso[name]`.

use super::{Line, Lines, Style};

/// Takes in text as it comes, in chunks cut anywhere, and gives back whole lines that are safe to print.
#[derive(Default)]
pub struct Sanitiser {
    lines: Lines,
}

impl Sanitiser {
    /// Takes in more text and returns the lines that it completes, each with its line break.
    pub fn push(&mut self, text: &str) -> String {
        self.lines
            .push(text)
            .iter()
            .map(|line| safe(line) + "\n")
            .collect()
    }

    /// Returns the line that is not complete yet, such as a progress bar, without colours.
    pub fn current(&self) -> String {
        neutralised(self.lines.current().clone()).plain()
    }

    /// Returns the last line where no line break ended it, without one, and begins anew.
    pub fn finish(&mut self) -> String {
        self.lines.finish().as_ref().map(safe).unwrap_or_default()
    }
}

/// Returns a whole text as it may be printed, in colours.
pub fn sanitise(text: &str) -> String {
    let mut sanitiser = Sanitiser::default();
    let complete = sanitiser.push(text);
    complete + &sanitiser.finish()
}

/// Writes a line so that it neither needs the colours of the line before nor leaves any behind.
fn safe(line: &Line) -> String {
    let mut text = String::new();
    for run in neutralised(line.clone()).runs {
        if run.style == Style::default() {
            text.push_str(&run.text);
            continue;
        }
        text.push_str(&run.style.sequence());
        text.push_str(&run.text);
        text.push_str("\x1b[0m");
    }
    text
}

/// Returns the line with a space put into whatever reads as a command, wherever its colours change.
fn neutralised(mut line: Line) -> Line {
    for at in command_breaks(&line.plain()).into_iter().rev() {
        insert_space(&mut line, at);
    }
    line
}

/// Returns where a line must be broken so that nothing in it reads as a command, from the first place to the last.
pub(super) fn command_breaks(line: &str) -> Vec<usize> {
    let indent = line.len() - line.trim_start().len();
    let mut breaks: Vec<usize> = Vec::new();
    if line[indent..].starts_with("::") {
        breaks.push(indent + 1);
    }
    for command in ["##[", "##vso["] {
        breaks.extend(line.match_indices(command).map(|(at, _)| at + 1));
    }
    breaks.sort_unstable();
    breaks
}

fn insert_space(line: &mut Line, at: usize) {
    let mut left = at;
    for run in &mut line.runs {
        if left <= run.text.len() {
            run.text.insert(left, ' ');
            return;
        }
        left -= run.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colour_is_left_of_control_sequences() {
        let rows = [
            ("colour stays", "\x1b[1;31mred\x1b[0m!", "\x1b[1;31mred\x1b[0m!"),
            (
                "256 colours and true colour stay",
                "\x1b[38;5;9ma\x1b[48;2;1;2;3mb",
                "\x1b[38;5;9ma\x1b[0m\x1b[38;5;9;48;2;1;2;3mb\x1b[0m",
            ),
            (
                "a colour ends with its line",
                "\x1b[92mone\ntwo",
                "\x1b[92mone\x1b[0m\n\x1b[92mtwo\x1b[0m",
            ),
            (
                "concealed and blinking text is plain",
                "\x1b[8mseen\x1b[5mstill",
                "seenstill",
            ),
            (
                "titles, links and clipboards",
                "\x1b]0;title\x07a\x1b]52;c;aGk=\x1b\\b\x1b]8;;http://x\x1b\\c",
                "abc",
            ),
            (
                "cursor, screen and modes",
                "\x1b[2Ja\x1b[10;10Hb\x1b[?1049hc\x1b[6nd\x1b[20te",
                "abcde",
            ),
            (
                "device control, private messages",
                "\x1bP1$tx\x1b\\a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bX sos\x1b\\d",
                "abcd",
            ),
            ("single escapes", "\x1bca\x1b7b\x1b(0c", "abc"),
            (
                "C1 controls as characters",
                "a\u{9b}31mb\u{9d}0;t\u{9c}c",
                "a31mb0;tc",
            ),
            ("bells, nulls and deletes", "a\x07b\0c\x7fd\x0be\x0cf", "abcdef"),
            (
                "text is not reordered or hidden",
                "a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0041}f",
                "abcdef",
            ),
            (
                "progress bars show their end",
                "10%\r 50%\r100%\ndone\r\n",
                "100%\ndone\n",
            ),
            ("a sequence that never ends is dropped", "a\x1b[31", "a"),
            ("backspaces take back", "ab\x08\x08cd", "cd"),
        ];
        for (why, text, shown) in rows {
            assert_eq!(sanitise(text), shown, "{why}");
        }
    }

    #[test]
    fn no_line_is_a_workflow_command() {
        let rows = [
            ("::set-output name=a::b", ": :set-output name=a::b"),
            ("  \u{a0}::add-mask::x", "  \u{a0}: :add-mask::x"),
            ("\x1b[2K::error::x", ": :error::x"),
            (":\x1b[31m:stop-commands::x", ": \x1b[31m:stop-commands::x\x1b[0m"),
            ("\u{200b}::error::x", ": :error::x"),
            ("junk\r::error::x", ": :error::x"),
            ("say ##[error]x ##[group]", "say # #[error]x # #[group]"),
            ("##vso[task.setvariable]x", "# #vso[task.setvariable]x"),
            ("#\x1b[0m#[error]", "# #[error]"),
            ("std::vec and a ## heading", "std::vec and a ## heading"),
        ];
        for (text, shown) in rows {
            assert_eq!(
                sanitise(text).replace("\x1b[31m ", " \x1b[31m"),
                shown,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_stream_shows_what_the_whole_text_shows() {
        let text = "one\n\x1b[31mtw::o\n::error::\x1b[0m\rbar ##[x]";
        let mut stream = Sanitiser::default();
        let mut shown: String = text.chars().map(|c| stream.push(&c.to_string())).collect();
        assert_eq!(stream.current(), "bar # #[x]");
        shown += &stream.finish();

        assert_eq!(shown, sanitise(text));
    }
}
