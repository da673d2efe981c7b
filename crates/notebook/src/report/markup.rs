//! HTML that is safe to put into the page, and the ways to make it from text that is not.

use std::fmt::{self, Write};

use crate::text::reorders_or_hides;

/// Markup for the body of an element. Whoever makes one vouches that it holds no script, address or open element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Html(String);

impl Html {
    /// Vouches for what a sanitiser let through, less what is invisible in it: a character reference such as `&#27;`
    /// stands for a control character as well.
    ///
    /// Leaving characters out makes no markup of text, because text holds no `<` at all.
    pub(super) fn vouched(markup: &str) -> Self {
        let visible = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || reorders_or_hides(*c));
        Self(markup.chars().filter(visible).collect())
    }

    /// Returns text as markup, with nothing but `<`, `>` and `&` written in another way.
    pub(super) fn text(text: &str) -> Self {
        let mut html = Self::default();
        html.push_text(text);
        html
    }

    pub(super) fn push_text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '&' => self.0.push_str("&amp;"),
                c => self.0.push(c),
            }
        }
    }

    pub(super) fn push_markup(&mut self, markup: fmt::Arguments<'_>) {
        self.0.write_fmt(markup).expect("writing to a text cannot fail");
    }

    pub(super) fn push(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many lines it has, as far as it is text.
    pub(super) fn lines(&self) -> usize {
        1 + self.0.matches('\n').count() + self.0.matches("<tr>").count()
    }

    pub(super) fn is_image(&self) -> bool {
        self.0.starts_with("<img ")
    }

    #[cfg(test)]
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// The template writes what is marked so without escaping it again.
impl askama::filters::HtmlSafe for Html {}

/// Returns source code as it is, with whatever a reader would not see made visible.
///
/// Python takes a lone `\r` for a line break, and reordered or hidden characters can make code read as it does not run.
pub(super) fn source(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match c {
            '\r' => shown.push('\n'),
            '\n' | '\t' => shown.push(c),
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            c if c.is_control() || reorders_or_hides(c) => {
                shown.extend(format!("⟨U+{:04X}⟩", u32::from(c)).chars());
            }
            c => shown.push(c),
        }
    }
    shown
}
