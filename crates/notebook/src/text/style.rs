//! How a piece of text looks: what Select Graphic Rendition can say, less what hides or blinks.

use anstyle_parse::Params;

/// How a piece of text looks. The default is as the reader has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// The colour of the text.
    pub foreground: Option<Colour>,
    /// The colour behind it.
    pub background: Option<Colour>,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it is faint.
    pub faint: bool,
    /// Whether it is slanted.
    pub italic: bool,
    /// Whether it is underlined.
    pub underline: bool,
    /// Whether the colours are exchanged.
    pub inverse: bool,
    /// Whether it is struck through.
    pub strike: bool,
}

/// A colour of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Colour {
    /// One of the sixteen that the reader's theme defines: black, red, green, yellow, blue, magenta, cyan, white,
    /// and the same again, bright.
    Named(u8),
    /// One of 256, of which the first sixteen are the named ones.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

impl Style {
    /// Takes in one sequence. What it does not know, conceals or blinks is passed over.
    pub(super) fn apply(&mut self, params: &Params) {
        // A colour's parts are sub-parameters (`38:5:9`) or, as most write it, parameters (`38;5;9`).
        let flat: Vec<u16> = params.iter().flatten().copied().collect();
        let mut rest = flat.as_slice();
        if rest.is_empty() {
            *self = Self::default();
        }
        while let [code, after @ ..] = rest {
            rest = after;
            match code {
                38 | 48 => {
                    let Some((colour, after)) = extended(rest) else {
                        return;
                    };
                    rest = after;
                    let place = if *code == 38 {
                        &mut self.foreground
                    } else {
                        &mut self.background
                    };
                    *place = Some(colour);
                }
                code => self.apply_one(*code),
            }
        }
    }

    fn apply_one(&mut self, code: u16) {
        let named = |base: u16| u8::try_from(code - base).ok().map(Colour::Named);
        match code {
            0 => *self = Self::default(),
            1 => self.bold = true,
            2 => self.faint = true,
            3 => self.italic = true,
            4 => self.underline = true,
            7 => self.inverse = true,
            9 => self.strike = true,
            22 => (self.bold, self.faint) = (false, false),
            23 => self.italic = false,
            24 => self.underline = false,
            27 => self.inverse = false,
            29 => self.strike = false,
            30..=37 => self.foreground = named(30),
            39 => self.foreground = None,
            40..=47 => self.background = named(40),
            49 => self.background = None,
            90..=97 => self.foreground = named(82),
            100..=107 => self.background = named(92),
            _ => {}
        }
    }

    /// Returns the sequence that makes a terminal, which shows its default, look like this.
    pub(super) fn sequence(self) -> String {
        let flags = [
            (self.bold, 1),
            (self.faint, 2),
            (self.italic, 3),
            (self.underline, 4),
            (self.inverse, 7),
            (self.strike, 9),
        ];
        let mut codes: Vec<String> = flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, code)| code.to_string())
            .collect();
        codes.extend(self.foreground.map(|colour| colour.codes(30)));
        codes.extend(self.background.map(|colour| colour.codes(40)));
        format!("\x1b[{}m", codes.join(";"))
    }
}

impl Colour {
    fn codes(self, base: u16) -> String {
        match self {
            Self::Named(n @ 0..=7) => (base + u16::from(n)).to_string(),
            Self::Named(n) => (base + 52 + u16::from(n)).to_string(),
            Self::Indexed(n) => format!("{};5;{n}", base + 8),
            Self::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
        }
    }
}

fn extended(rest: &[u16]) -> Option<(Colour, &[u16])> {
    let byte = |n: u16| u8::try_from(n).ok();
    match rest {
        [5, n, rest @ ..] => Some((Colour::Indexed(byte(*n)?), rest)),
        [2, red, green, blue, rest @ ..] => {
            Some((Colour::Rgb(byte(*red)?, byte(*green)?, byte(*blue)?), rest))
        }
        _ => None,
    }
}
