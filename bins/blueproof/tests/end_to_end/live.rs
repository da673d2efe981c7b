//! The line that moves, in a terminal: within its width, and gone when the run is over.

use std::{fs, path::Path};

use unicode_width::UnicodeWidthStr;

use crate::common::{Checkout, Home, Terminal};

const COLUMNS: u16 = 80;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Returns a cell that prints longer lines than a terminal has columns, in characters that are two columns wide, with
/// what moves a cursor, until a file is there.
fn talkative(until: &Path) -> String {
    format!(
        "import itertools, os, time\nfor nth in itertools.count():\n    \
         print(f'\\x1b[2Astep {{nth}}', '全角' * 60, end='\\r' if nth % 2 else '\\n', flush=True)\n    \
         time.sleep(0.1)\n    if os.path.exists({until:?}): break"
    )
}

/// Returns what stood in each line of the terminal, one state after the other.
fn states(written: &str) -> Vec<Vec<String>> {
    let lines = written.split("\r\n");
    let states = |line: &str| {
        line.replace("\u{1b}[2K", "\r")
            .split('\r')
            .map(uncoloured)
            .collect()
    };
    lines.map(states).collect()
}

/// Leaves colours out. Whatever else a terminal obeys stays.
fn uncoloured(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.map(|end| part.split_at(end)) {
            Some((_, rest)) if rest.starts_with('m') => plain.push_str(&rest[1..]),
            Some(_) | None => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain
}

#[test]
fn the_line_that_moves_fits_and_is_gone_at_the_end() {
    let home = Home::new();
    let seen = home.path().join("seen");
    let checkout = Checkout::new(&[&talkative(&seen)], "");
    let command = home.command(&["run", checkout.typed()]);

    let terminal = Terminal::start(command, COLUMNS).expect("a terminal");
    let let_end = || fs::write(&seen, "").expect("a file");
    let (code, written) = terminal.end_once_seen(&["cell 1, 0 of 1 done", "全角"], let_end);

    assert_eq!(code, Some(0), "{written}");
    let lines = states(&written);
    let moving: Vec<&String> = lines
        .iter()
        .flatten()
        .filter(|state| state.contains(SPINNER))
        .collect();
    assert!(
        moving.iter().any(|state| state.contains("cell 1, 0 of 1 done")),
        "{written:?}"
    );
    assert!(moving.iter().any(|state| state.contains("全角")), "{written:?}");
    for state in moving {
        assert!(state.width() <= COLUMNS.into(), "{state:?}");
        assert!(!state.contains(char::is_control), "{state:?}");
    }
    for line in &lines {
        let left = line.iter().rfind(|state| !state.is_empty());
        let is_cleared = line.last().is_some_and(String::is_empty);
        assert!(
            is_cleared || left.is_none_or(|left| !left.contains(SPINNER)),
            "{line:?}"
        );
    }
    let shown: Vec<&String> = lines.iter().filter_map(|line| line.last()).collect();
    assert!(
        shown.iter().any(|line| line.starts_with("PASS story r-1")),
        "{shown:?}"
    );
}
