//! What is said of secrets that a notebook let out.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::Path,
};

use blueproof_core::attempt::{KeptFile, open_regular};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use crate::{
    agent::SecretValues,
    plan::Secret,
    text::{Redactor, tokens},
};

/// How much of one file is looked through, and how much of all of them.
const MOST_OF_FILE: u64 = 8 << 20;
const MOST_OF_ALL: u64 = 64 << 20;

/// Says which secrets are too short to be taken out.
pub(super) fn too_short<'s>(
    secrets: &'s [Secret],
    values: &'s dyn SecretValues,
) -> impl Iterator<Item = Diagnostic> + 's {
    let told = |secret: &Secret| secret.too_short(&values.value(&secret.name)?);
    secrets.iter().filter_map(told)
}

/// Says that cells have shown what is shaped like a token, and that it was taken out.
pub(super) fn shown(tokens: &BTreeMap<&'static str, BTreeSet<u32>>) -> Vec<Diagnostic> {
    let told = tokens.iter().map(|(name, cells)| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("cell {cell}")).collect();
        let place = cells.join(", ");
        let message = format!("{place} showed what looks like {name}; it is kept as ***");
        Diagnostic::warning(Code::SecretShown, message)
            .at(SourceLocation::file(place))
            .hint("do not print it; if it is real, take it back where it was issued, and read the next one from the environment (spec.secrets)")
    });
    told.collect()
}

/// Says which of the kept files hold secrets. Of large ones only the beginning is looked at.
pub(super) fn in_files(redactor: &Redactor, folder: &Path, files: &[KeptFile]) -> Vec<Diagnostic> {
    let mut left = MOST_OF_ALL;
    let mut told = Vec::new();
    for file in files {
        let Some(text) = beginning(&folder.join(&file.path), left.min(MOST_OF_FILE)) else {
            continue;
        };
        left = left.saturating_sub(text.len() as u64);
        let path = file.path.display();
        for what in found(redactor, &text) {
            let message = format!("the artifact `{path}` holds {what}; it is kept as it is");
            told.push(
                Diagnostic::warning(Code::SecretShown, message)
                    .at(SourceLocation::file(path.to_string()))
                    .hint("whoever may read the artifact has it: write the file without it, and take it back where it was issued"),
            );
        }
    }
    told
}

fn found(redactor: &Redactor, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if redactor.is_known_in(text) {
        found.push("the value of a secret (spec.secrets)".to_owned());
    }
    let shaped: BTreeSet<&str> = tokens(text).into_iter().map(|token| token.name).collect();
    found.extend(shaped.into_iter().map(|name| format!("what looks like {name}")));
    found
}

fn beginning(path: &Path, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
