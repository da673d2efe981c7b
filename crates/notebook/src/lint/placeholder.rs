//! Values that a person has to fill in before the notebook can run.

use std::{collections::BTreeSet, sync::LazyLock};

use blueproof_diagnostic::{Code, Diagnostic};
use regex::Regex;

use super::Subject;
use crate::analysis::At;

/// Words by which people mark what is to be replaced.
static MARKED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix) ^\s*(todo|fixme|change[-_\ ]?me|replace[-_\ ]?me|xxx+)\b
            | ^\s*(add|insert|enter|put|replace|fill\ in|specify|set)\ (this\ |it\ )?(with\ )?(your|here)\b
            | \byour[-_\ ](own[-_\ ])?(\w+[-_\ ])?(bucket|token|key|path|project|account|name|org|secret|namespace|region|id|url|s3)\b
            | \b(my|your|example|some)-?bucket\b | \b(to-?do|changeme)\b | _add_ | ^(hf|sk)_?x{3,}",
    )
    .expect("the expression is constant")
});
/// A part in angle brackets of what is no markup: `s3://<bucket>/data`.
static BRACKETS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[^<>\s]*<[A-Za-z][\w -]*>[^\s]*$").expect("the expression is constant"));
/// A whole text in angle brackets that is no tag of HTML.
static WHOLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^<(\w*[A-Z_ -][\w -]*)>$").expect("the expression is constant"));
/// Names of things that are written without spaces.
static WORDLESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(bucket|token|_ur[il]|_loc|location|path|_role|_arn|api_?key|secret|endpoint)$")
        .expect("the expression is constant")
});

/// Returns whether `text`, given to `name`, stands for something that a person has to fill in.
pub(crate) fn is_placeholder(name: Option<&str>, text: &str) -> bool {
    if text.len() > 200 || text.contains('\n') {
        return false;
    }
    let uri = text.contains("://") && BRACKETS.is_match(text);
    let prose = text.trim().contains(' ') && name.is_some_and(|name| WORDLESS.is_match(name));
    let named = name.is_some() || text.contains("://");
    prose || (named && MARKED.is_match(text)) || uri || WHOLE.is_match(text)
}

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let analysis = &subject.analysis;
    let filled_in = analysis
        .texts
        .iter()
        .filter(|(_, name, text)| is_placeholder(name.as_deref(), text));
    let written = filled_in.map(|(at, name, text)| {
        let what = name
            .as_ref()
            .map_or(String::new(), |name| format!("`{name}` is "));
        (*at, format!("{what}a placeholder: {text:?}"), name.clone())
    });
    // `# BUCKET = "Add your S3 bucket"`, and BUCKET is read further down.
    let commented = analysis.disabled.iter().filter_map(|(at, name, _)| {
        let read = subject.absent().find(|missing| missing.name == *name)?;
        let message = format!(
            "`{name}` has a value only in a comment, and cell {} reads it",
            read.at.cell
        );
        Some((*at, message, Some(name.clone())))
    });
    let constants = subject
        .absent()
        .filter(|missing| is_constant(&missing.name) && !subject.is_disabled(&missing.name));
    let absent = constants.map(|missing| {
        let name = &missing.name;
        (
            missing.at,
            format!("`{name}` is read and never given a value"),
            Some(name.clone()),
        )
    });
    let all: Vec<(At, String, Option<String>)> = written.chain(commented).chain(absent).collect();
    all.into_iter()
        .filter(|(at, _, _)| seen.insert(*at))
        .map(|(at, message, name)| {
            let name = name.unwrap_or_else(|| "it".into());
            subject
                .warning(Code::Placeholder, at, message)
                .hint(format!("make {name} a parameter with a value that works, or read it from the environment (`spec.secrets`)"))
        })
        .collect()
}

/// Returns whether a name is written like one that people are to fill in.
pub(super) fn is_constant(name: &str) -> bool {
    name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_values() {
        for (name, text) in [
            ("BUCKET", "Add your S3 bucket"),
            ("BUCKET_NAME", "TODO: add your bucket here"),
            ("uri", "cache://<schema_name>/<table_name>"),
            ("uri", "s3://your-bucket/data"),
            ("METADATA_LOC", "Iceberg table metadata file path on s3"),
            ("HF_TOKEN", "hf_add_your_token"),
            ("x", "<YOUR_TOKEN>"),
            ("token", "changeme"),
        ] {
            assert!(is_placeholder(Some(name), text), "{text}");
        }
        for (name, text) in [
            ("MODEL", "t5-base"),
            ("uri", "hf://tatsu-lab/alpaca/data"),
            ("prompt", "Put the following into one sentence"),
            ("html", "<b>bold</b>"),
            ("tag", "<br>"),
            ("bucket", "kubeflow-examples"),
            ("path", "/workspace/model.json"),
        ] {
            assert!(!is_placeholder(Some(name), text), "{text}");
        }
        assert!(!is_placeholder(None, "Replace the tokenizer of the model"));
    }
}
