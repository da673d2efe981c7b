//! What a notebook leaves behind, offered as remarks: files that it writes and figures that it prints.

use super::{Draft, scalar};
use crate::survey::{Made, Survey, Traced};

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

pub(super) fn write(draft: &mut Draft, survey: &Survey) {
    let mut files: Vec<&str> = Vec::new();
    for made in survey.calls.iter().filter(|made| writes(made)) {
        if let Some(file) = file(made).filter(|file| !files.contains(file)) {
            files.push(file);
            let cell = made.at.cell;
            draft.remark(
                1,
                format!("cell {cell} writes a file: artifacts: [{}]", scalar(file)),
            );
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for (at, name) in &survey.printed {
        if names.contains(&name.as_str()) {
            continue;
        }
        names.push(name);
        let regex = scalar(&format!("{name}[:=] *([-+0-9.eE]+)"));
        let metric = format!("metrics: [{{name: {name}, from: {{regex: {regex}}}}}]");
        draft.remark(1, format!("cell {} prints a figure: {metric}", at.cell));
    }
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
