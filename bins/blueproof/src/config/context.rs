//! Schedulers and stores with a name, as kubectl has them: those that are known, and the current one.

use std::{fs, io::Write as _, path::Path};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use serde::Serialize;

use super::{Key, file};
use crate::exit::Problem;

/// A scheduler or a store with a name, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Context {
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
}

/// Says that there is no context of a name.
pub(super) fn unknown(name: &str, known: &[Context]) -> Diagnostic {
    let message = format!("no context exists with the name `{name}`");
    let known: Vec<_> = known.iter().map(|context| context.name.as_str()).collect();
    Diagnostic::error(Code::ConfigValue, message).hint(match known.as_slice() {
        [] => {
            "give one in `contexts` of your configuration file: `blueproof schema config` says how".to_owned()
        }
        known => format!("those that there are: {}", known.join(", ")),
    })
}

/// Makes a context the current one of a file, which is made where there is none. All else in it stays as it stands.
pub(super) fn use_context(path: &Path, name: &str, known: &[Context]) -> Result<(), Problem> {
    if !known.iter().any(|context| context.name == name) {
        return Err(Problem::usage(unknown(name, known)));
    }
    let shown = path.display().to_string();
    let failed = |error: std::io::Error| {
        let diagnostic = Diagnostic::error(
            Code::ConfigUnwritable,
            "the current context cannot be written down",
        );
        let diagnostic = diagnostic
            .at(SourceLocation::file(shown.clone()))
            .caused_by(&error);
        Problem::usage(diagnostic.hint("see that you may write the file and its folder"))
    };
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "apiVersion: blueproof.dev/v1alpha1\nkind: Config\n".to_owned()
        }
        Err(error) => return Err(failed(error)),
    };
    let after = with_current(&before, name);
    let read = file::parse(&shown, &after)?;
    let is_current = read
        .settings
        .get(&Key::CurrentContext)
        .is_some_and(|set| set.text == name);
    if !is_current {
        let message = "the file is written in a way in which its current context cannot be changed";
        let diagnostic = Diagnostic::error(Code::ConfigUnwritable, message).at(SourceLocation::file(shown));
        return Err(Problem::usage(diagnostic.hint(format!(
            "write `currentContext: {name}` into it, on a line of its own"
        ))));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(after.as_bytes()).map_err(failed)?;
    if let Ok(kept) = fs::metadata(&path) {
        file.as_file()
            .set_permissions(kept.permissions())
            .map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns a file's text with another current context, on the line on which it stood, or at the end.
fn with_current(text: &str, name: &str) -> String {
    let line = format!("currentContext: {}", quoted(name));
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter_mut().find(|line| line.starts_with("currentContext:")) {
        Some(old) => *old = &line,
        None => lines.push(&line),
    }
    lines.join("\n") + "\n"
}

/// Returns a name as YAML takes it for a text.
fn quoted(name: &str) -> String {
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    match is_plain && name.starts_with(|c: char| c.is_ascii_alphabetic()) && !WORDS.contains(&name) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "''")),
    }
}

/// Words that YAML takes for something else.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "apiVersion: blueproof.dev/v1alpha1\nkind: Config\n# mine\ncontexts:\n  a: {store: a.db}\n  it's: {store: b.db}\n";

    #[test]
    fn the_current_context_is_changed_in_its_place_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("below/config.yaml");
        let known = ["a", "it's"].map(|name| Context {
            name: name.into(),
            server: None,
            token_file: None,
            store: Some("a.db".into()),
        });
        use_context(&path, "a", &known).expect("it is written");
        let made = fs::read_to_string(&path).expect("a file");
        assert_eq!(
            made,
            "apiVersion: blueproof.dev/v1alpha1\nkind: Config\ncurrentContext: a\n"
        );
        fs::write(&path, FILE).expect("a file");
        use_context(&path, "it's", &known).expect("it is written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, format!("{FILE}currentContext: 'it''s'\n"));
        use_context(&path, "a", &known).expect("it is written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, format!("{FILE}currentContext: a\n"));
        use_context(&path, "b", &known).expect_err("there is none of that name");
        fs::write(&path, "{apiVersion: blueproof.dev/v1alpha1, kind: Config}\n").expect("a file");
        use_context(&path, "a", &known).expect_err("a line more is no part of it");
        let kept = fs::read_to_string(&path).expect("a file");
        assert_eq!(kept, "{apiVersion: blueproof.dev/v1alpha1, kind: Config}\n");
    }
}
