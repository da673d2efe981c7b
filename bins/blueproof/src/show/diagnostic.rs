//! Diagnostics in the manner of rustc: code, place with its line, causes, hints.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use blueproof_diagnostic::{Diagnostic, Severity, SourceLocation};

use crate::output;

const BOLD: Style = Style::new().bold();
const DIM: Style = AnsiColor::Blue.on_default().bold();

/// Returns a diagnostic as people read it, colour included. Words of a notebook in it are made harmless.
pub(crate) fn render(diagnostic: &Diagnostic) -> String {
    let (word, colour) = match diagnostic.severity {
        Severity::Error => ("error", AnsiColor::Red.on_default().bold()),
        Severity::Warning => ("warning", AnsiColor::Yellow.on_default().bold()),
    };
    let (head, items) = diagnostic.listed();
    let mut text = format!(
        "{colour}{word}[{}]{colour:#}{BOLD}: {}{BOLD:#}\n",
        diagnostic.code,
        output::line(head)
    );
    for item in items {
        let _ = writeln!(text, "   - {BOLD}{}{BOLD:#}", output::line(item));
    }
    if let Some(place) = &diagnostic.place {
        add_place(&mut text, place);
    }
    for cause in &diagnostic.causes {
        add_note(&mut text, "caused by", cause);
    }
    for hint in &diagnostic.hints {
        add_note(&mut text, "hint", hint);
    }
    text
}

fn add_place(text: &mut String, place: &SourceLocation) {
    let _ = writeln!(text, "  {DIM}-->{DIM:#} {}", output::line(&place.to_string()));
    let (Some(line), Some(source)) = (place.line, &place.source) else {
        return;
    };
    let source = output::block(source);
    let number = line.to_string();
    let gap = " ".repeat(number.len());
    let _ = writeln!(text, " {DIM}{gap} |{DIM:#}\n {DIM}{number} |{DIM:#} {source}");
    if let Some(column) = place.column {
        let before: String = source
            .chars()
            .take(column.saturating_sub(1) as usize)
            .map(blank)
            .collect();
        let _ = writeln!(text, " {DIM}{gap} |{DIM:#} {before}{DIM}^{DIM:#}");
    }
}

/// Keeps tabs, so that what is marked stands below what is meant.
fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

fn add_note(text: &mut String, label: &str, note: &str) {
    let note = output::block(note);
    let mut lines = note.lines();
    let _ = writeln!(
        text,
        "   {DIM}={DIM:#} {BOLD}{label}{BOLD:#}: {}",
        lines.next().unwrap_or_default()
    );
    for line in lines {
        let _ = writeln!(text, "     {line}");
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use blueproof_diagnostic::Code;

    use super::*;

    #[test]
    fn what_a_message_lists_stands_in_lines_of_its_own_and_nothing_else_does() {
        let shown = |message: &str| {
            let diagnostic = Diagnostic::error(Code::MetricOutOfBounds, message);
            strip_str(&render(&diagnostic)).to_string()
        };
        let listed = shown("2 expectations do not hold:\n- loss 5 > 0.4\n- no \u{1b}[2Jcell printed it");
        let lines: Vec<_> = listed.lines().collect();
        assert!(lines[0].ends_with("]: 2 expectations do not hold:"), "{listed}");
        assert_eq!(lines[1], "   - loss 5 > 0.4");
        assert!(
            lines[2].starts_with("   - no ") && !listed.contains('\u{1b}'),
            "{listed:?}"
        );
        assert_eq!(shown("one\ntwo").lines().count(), 1);
    }
}
