//! Splits printed text into the lines that a terminal would show, with their colours and nothing else.
//!
//! Every escape and control sequence but colour is dropped, `\r` starts the line again, as progress bars want it, and
//! characters that reorder or hide text are left out.

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use super::Style;

/// The most characters of a line that are kept; the rest of it is left out, with a mark.
const LINE_CHARS: usize = 64 * 1024;

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Its pieces, in order; neighbours look different.
    pub runs: Vec<Run>,
    chars: usize,
}

/// A piece of a line that looks the same throughout. Its text holds no control character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it looks.
    pub style: Style,
    /// What it says.
    pub text: String,
}

/// Takes in text as it comes, in chunks cut anywhere, and gives back lines.
#[derive(Default)]
pub struct Lines {
    parser: Parser<DefaultCharAccumulator>,
    screen: Screen,
}

#[derive(Default)]
struct Screen {
    style: Style,
    line: Line,
    /// A `\r` was seen: the next character begins the line again, but a line break keeps it.
    returned: bool,
    done: Vec<Line>,
}

/// Returns the lines of a whole text.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines = Lines::default();
    let mut all = lines.push(text);
    all.extend(lines.finish());
    all
}

/// Returns a whole text as a reader sees it, without colours.
pub fn shown(text: &str) -> String {
    lines(text).iter().map(Line::plain).collect::<Vec<_>>().join("\n")
}

impl Lines {
    /// Takes in more text and returns the lines that it completes.
    pub fn push(&mut self, text: &str) -> Vec<Line> {
        for byte in text.bytes() {
            self.parser.advance(&mut self.screen, byte);
        }
        std::mem::take(&mut self.screen.done)
    }

    /// Returns the line that is not complete yet.
    pub fn current(&self) -> &Line {
        &self.screen.line
    }

    /// Returns the last line where no line break ended it, and begins anew.
    pub fn finish(&mut self) -> Option<Line> {
        self.parser = Parser::default();
        let screen = std::mem::take(&mut self.screen);
        Some(screen.line).filter(|line| !line.runs.is_empty())
    }
}

impl Line {
    /// Returns its text without colours.
    pub fn plain(&self) -> String {
        self.runs.iter().map(|run| run.text.as_str()).collect()
    }

    fn push(&mut self, style: Style, c: char) {
        self.chars += 1;
        if self.chars > LINE_CHARS {
            if self.chars == LINE_CHARS + 1 {
                self.add(Style::default(), '…');
            }
            return;
        }
        self.add(style, c);
    }

    fn add(&mut self, style: Style, c: char) {
        match self.runs.last_mut() {
            Some(run) if run.style == style => run.text.push(c),
            _ => self.runs.push(Run {
                style,
                text: c.to_string(),
            }),
        }
    }

    fn take_back(&mut self) {
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        run.text.pop();
        self.chars = self.chars.saturating_sub(1);
        if run.text.is_empty() {
            self.runs.pop();
        }
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        if c.is_control() || reorders_or_hides(c) {
            return;
        }
        if std::mem::take(&mut self.returned) {
            self.line = Line::default();
        }
        // Some readers of logs take these two for line breaks.
        let c = if matches!(c, '\u{2028}' | '\u{2029}') {
            ' '
        } else {
            c
        };
        self.line.push(self.style, c);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.returned = false;
                self.done.push(std::mem::take(&mut self.line));
            }
            b'\r' => self.returned = true,
            b'\t' => {
                for _ in 0..8 - self.line.chars % 8 {
                    self.print(' ');
                }
            }
            0x08 => self.line.take_back(),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        if action == b'm' && intermediates.is_empty() && !ignore {
            self.style.apply(params);
        }
    }
}

/// Characters that make text read otherwise than it is: bidirectional controls, invisible ones, tags.
pub(crate) fn reorders_or_hides(c: char) -> bool {
    matches!(c,
        '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cut_anywhere_give_the_lines_of_the_whole() {
        let text =
            "a\x1b[31mred\x1b[0m\r\nbar 1%\rbar 100%\n\x1b]8;;http://x\x07link\x1b]8;;\x07 é\u{9b}31m\nlast";
        let whole = lines(text);
        let mut stream = Lines::default();
        let mut pieces: Vec<Line> = text.chars().flat_map(|c| stream.push(&c.to_string())).collect();
        pieces.extend(stream.finish());

        assert_eq!(pieces, whole);
        let plain: Vec<_> = whole.iter().map(Line::plain).collect();
        assert_eq!(plain, ["ared", "bar 100%", "link é31m", "last"]);
    }

    #[test]
    fn a_line_without_end_is_cut_and_keeps_little_memory() {
        let mut stream = Lines::default();
        for _ in 0..100 {
            assert_eq!(stream.push(&"x".repeat(10_000)), []);
        }
        let line = stream.finish().expect("something was printed").plain();
        assert_eq!(line.chars().count(), LINE_CHARS + 1);
        assert!(line.ends_with('…'));
    }
}
