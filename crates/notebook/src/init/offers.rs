//! What a notebook leaves behind, offered as remarks: files that it writes and figures that it prints.

use super::{Draft, scalar};
use crate::analysis::{Analysis, Made, Traced};

/// Functions that write the file which is among their arguments.
const WRITERS: [&str; 16] = [
    "to_csv",
    "to_json",
    "to_parquet",
    "to_excel",
    "to_pickle",
    "to_html",
    "to_feather",
    "savefig",
    "save",
    "savez",
    "savetxt",
    "write_html",
    "write_image",
    "imwrite",
    "save_model",
    "dump",
];

pub(super) fn write(draft: &mut Draft, analysis: &Analysis) {
    let mut files: Vec<&str> = Vec::new();
    for made in analysis.calls.iter().filter(|made| writes(made)) {
        if let Some(file) = file(made).filter(|file| !files.contains(file)) {
            files.push(file);
            let cell = made.at.cell;
            draft.remark(
                1,
                format!("cell {cell} writes a file: artifacts: [{}]", scalar(file)),
            );
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (at, words) in &analysis.printed {
        let name = words.replace([' ', '.', '/', '-'], "_");
        if names.contains(&name) {
            continue;
        }
        let metric = format!(
            "metrics: [{{name: {name}, from: {{regex: '{}'}}}}]",
            pattern(words)
        );
        names.push(name);
        draft.remark(1, format!("cell {} prints a figure: {metric}", at.cell));
    }
}

/// Returns a regular expression for the figure behind these words, and behind no longer name that ends with them: `loss` is
/// found neither in `val_loss: 0.1` nor in `val loss: 0.1`.
///
/// It has no quotation mark in it. `nan` is a value, so that a run which ends with it is not judged by an earlier one.
fn pattern(words: &str) -> String {
    // Before the name is the line's begin, a mark such as `,`, or the end of another figure and a space. A regular expression
    // that takes linear time cannot look behind, so what is there is a part of it.
    let before = r"(?:^|[^\w\s./-]|[^\pL_\s]\s)\s*";
    let words: Vec<String> = words.split(' ').map(regex::escape).collect();
    let words = words.join(r"\s+");
    // Digits in groups of three come first: of `1,234` the other would read 1.
    let grouped = r"[0-9]{1,3}(?:[,_][0-9]{3})+\b(?:\.[0-9]+)?";
    format!(r"{before}{words}\s*[:=]\s*([-+]?(?:nan|inf|{grouped})|[-+0-9.eE]+)")
}

fn writes(made: &Made) -> bool {
    let mode = made.argument("mode", 1).and_then(Traced::text);
    let opened = made.function == "open" && mode.is_some_and(|mode| mode.contains(['w', 'a', 'x']));
    opened || WRITERS.contains(&made.function.as_str())
}

/// Returns the file, where it lies in the notebook's folder.
fn file(made: &Made) -> Option<&str> {
    let mut texts = made.arguments.iter().filter_map(Traced::text);
    texts.find(|text| {
        let outside = text.contains("://") || text.starts_with(['/', '~', '.']);
        text.contains('.') && !outside && !text.chars().any(char::is_control)
    })
}
