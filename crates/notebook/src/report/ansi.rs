//! Printed text as markup: colours become classes, everything else that a terminal obeys is gone.

use super::markup::Html;
use crate::text::{Colour, Line, Style, lines};

/// The most markup that one printed output may become, at its beginning and at its end.
const HEAD_BYTES: usize = 192 * 1024;
const TAIL_BYTES: usize = 64 * 1024;

/// Returns printed text as the body of a `pre`, with what is in the middle of a very long one left out.
///
/// The markup is at most about 1.4 times the text: where colours would make it larger they are left out.
pub(super) fn printed(text: &str) -> Html {
    let lines = lines(text);
    let coloured: usize = lines
        .iter()
        .map(|line| render(line, Colours::Shown).len() + 1)
        .sum();
    let colours = if coloured * 5 > text.len() * 7 + 4096 {
        Colours::LeftOut
    } else {
        Colours::Shown
    };
    let allowed = text.len() * 7 / 5 + 4096;
    let rendered: Vec<Html> = lines.iter().map(|line| render(line, colours)).collect();
    let head = fitting(rendered.iter(), HEAD_BYTES.min(allowed * 3 / 4));
    let tail = fitting(rendered[head..].iter().rev(), TAIL_BYTES.min(allowed / 4));
    let skipped = rendered.len() - head - tail;
    let mut html = Html::default();
    let shown_at_end = &rendered[rendered.len() - tail..];
    join(&mut html, &rendered[..head]);
    if skipped > 0 {
        if head > 0 {
            html.push_text("\n");
        }
        html.push_markup(format_args!(
            "<i>… {skipped} lines are left out here; the executed notebook has them …</i>\n"
        ));
    }
    join(&mut html, shown_at_end);
    html
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colours {
    Shown,
    LeftOut,
}

fn fitting<'h>(rendered: impl Iterator<Item = &'h Html>, most: usize) -> usize {
    let mut total = 0;
    rendered
        .take_while(|line| {
            total += line.len() + 1;
            total <= most
        })
        .count()
}

fn join(html: &mut Html, rendered: &[Html]) {
    for (nth, line) in rendered.iter().enumerate() {
        if nth > 0 {
            html.push_text("\n");
        }
        html.push(line);
    }
}

fn render(line: &Line, colours: Colours) -> Html {
    let mut html = Html::default();
    for run in &line.runs {
        if colours == Colours::LeftOut || run.style == Style::default() {
            html.push_text(&run.text);
            continue;
        }
        let (classes, rgb) = look(run.style);
        html.push_markup(format_args!("<span class=\"{classes}\""));
        if !rgb.is_empty() {
            html.push_markup(format_args!(" style=\"{rgb}\""));
        }
        html.push_markup(format_args!(">"));
        html.push_text(&run.text);
        html.push_markup(format_args!("</span>"));
    }
    html
}

/// Returns the classes of named colours and of fonts, and the declarations of other colours.
fn look(style: Style) -> (String, String) {
    let flags = [
        (style.bold, "bo"),
        (style.faint, "fa"),
        (style.italic, "it"),
        (style.underline, "un"),
        (style.inverse, "inv"),
        (style.strike, "st"),
    ];
    let mut classes: Vec<String> = flags
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, class)| (*class).to_owned())
        .collect();
    let mut rgb = String::new();
    for (colour, class, property) in [
        (style.foreground, 'f', "color"),
        (style.background, 'b', "background"),
    ] {
        match colour {
            None => {}
            Some(Colour::Named(n) | Colour::Indexed(n @ 0..16)) => classes.push(format!("{class}{n}")),
            Some(Colour::Indexed(n)) => {
                let (red, green, blue) = indexed(n);
                rgb.push_str(&format!("{property}:#{red:02x}{green:02x}{blue:02x};"));
            }
            Some(Colour::Rgb(red, green, blue)) => {
                rgb.push_str(&format!("{property}:#{red:02x}{green:02x}{blue:02x};"));
            }
        }
    }
    (classes.join(" "), rgb)
}

/// Returns a colour of xterm's 256: a cube of six steps a side, then 24 greys.
fn indexed(n: u8) -> (u8, u8, u8) {
    if n >= 232 {
        let grey = 8 + (n - 232) * 10;
        return (grey, grey, grey);
    }
    let step = |part: u8| if part == 0 { 0 } else { 55 + part * 40 };
    let cube = n - 16;
    (step(cube / 36), step(cube / 6 % 6), step(cube % 6))
}
