//! Requirements as pip writes them, one to a line: which lines are one, and of which package.

use std::str::FromStr;

use blueproof_diagnostic::{Code, Diagnostic};
use pep440_rs::VersionSpecifiers;

use super::Unprepared;

/// Returns a package's name as indexes compare it: `Scikit_Learn` is `scikit-learn`.
pub(super) fn normalised(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

/// Returns the normalised name of the package that a requirement is about.
pub(super) fn name_of(requirement: &str) -> String {
    normalised(name_and_rest(requirement).0)
}

/// Returns the requirement on a line, or `None` for a blank or a comment. The error says why it is refused.
pub(super) fn parse(line: &str) -> Result<Option<String>, &'static str> {
    let line = match line.trim() {
        comment if comment.starts_with('#') => "",
        line => line.split(" #").next().unwrap_or(line).trim(),
    };
    if line.is_empty() {
        return Ok(None);
    }
    if line.chars().any(char::is_control) {
        return Err("it holds a control character");
    }
    if line.starts_with('-') {
        return Err("options of pip have no place here");
    }
    let (name, rest) = name_and_rest(line);
    if !name
        .bytes()
        .next_back()
        .is_some_and(|last| last.is_ascii_alphanumeric())
    {
        return Err("it does not begin with the name of a package");
    }
    let after_extras = match rest.strip_prefix('[') {
        Some(extras) => extras
            .split_once(']')
            .ok_or("its `[` is never closed")?
            .1
            .trim_start(),
        None => rest,
    };
    let local =
        |url: &str| !(url.starts_with("https://") || url.starts_with("http://") || url.starts_with("git+"));
    match after_extras.chars().next() {
        None => {}
        Some('=' | '<' | '>' | '!' | '~' | ';' | '(') => {
            if let Some(why) = wrong_version(after_extras) {
                return Err(why);
            }
        }
        Some('@') if local(after_extras[1..].trim()) => {
            return Err("only packages from `https:` and `git+` can be kept");
        }
        Some('@') => {}
        Some(_) => return Err("what follows the name is no version, extra or marker"),
    }
    Ok(Some(line.to_owned()))
}

/// Reports a requirement that names a package by anything but its name, versions, extras and markers.
pub(crate) fn checked_by_name(line: &str) -> Result<(), Box<Diagnostic>> {
    checked(line)?;
    if is_by_name(line.trim()) {
        return Ok(());
    }
    let message = format!("`{}` is not a name of a package", line.trim().escape_debug());
    let diagnostic = Diagnostic::error(Code::SandboxRefused, message)
        .because("for a pull request packages are installed by name, from the indexes of this machine: what lies at an address can be anything, and to build it runs its code")
        .hint("ask for a name and a version, such as `name==1.0`, of a package that has a wheel")
        .hint(DISPOSABLE);
    Err(Box::new(diagnostic))
}

/// What to do where a package is not installed for a stranger.
pub(super) const DISPOSABLE: &str =
    "or run it on a machine where nothing needs protection (`local.isolation: disposable`)";

fn is_by_name(requirement: &str) -> bool {
    let (_, rest) = name_and_rest(requirement);
    let extras = rest.strip_prefix('[').and_then(|extras| extras.split_once(']'));
    let after_extras = extras.map_or(rest, |(_, after)| after.trim_start());
    !after_extras.starts_with('@')
}

/// Reports a requirement that no environment can be made of.
pub(crate) fn checked(line: &str) -> Result<(), Box<Diagnostic>> {
    let why = match parse(line) {
        Ok(None) if line.trim().is_empty() => "it is empty",
        Ok(_) => return Ok(()),
        Err(why) => why,
    };
    Err(super::of_config(refused(line, why)))
}

/// Returns what is wrong with the version and the marker of a requirement: `>=1,<2 ; python_version < "3.12"`.
fn wrong_version(rest: &str) -> Option<&'static str> {
    let (versions, marker) = match rest.split_once(';') {
        Some((versions, marker)) => (versions, Some(marker.trim())),
        None => (rest, None),
    };
    let versions = versions.trim();
    let inner = versions
        .strip_prefix('(')
        .map_or(Some(versions), |rest| rest.strip_suffix(')'));
    let Some(inner) = inner else {
        return Some("its `(` is never closed");
    };
    // `===` compares texts, which need be no versions.
    if !inner.is_empty() && !inner.starts_with("===") && VersionSpecifiers::from_str(inner).is_err() {
        return Some("what follows the name is no version");
    }
    let compares = |marker: &str| marker.contains(['=', '<', '>']) || marker.contains(" in ");
    marker
        .is_some_and(|marker| !compares(marker))
        .then_some("what follows its `;` compares nothing")
}

/// Returns the diagnostic for a requirement that is not one.
pub(super) fn refused(line: &str, why: &str) -> Unprepared {
    let line = line.escape_debug();
    Unprepared::config(
        Diagnostic::error(Code::Requirement, format!("`{line}` is not a requirement: {why}"))
            .hint("write requirements as `numpy`, `numpy>=2,<3` or `name @ https://host/name.whl`"),
    )
}

fn name_and_rest(requirement: &str) -> (&str, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = requirement.find(|c| !is_name(c)).unwrap_or(requirement.len());
    let (name, rest) = requirement.split_at(end);
    (name, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_names_versions_extras_markers_and_remote_packages() {
        for line in [
            "numpy",
            "numpy>=2,<3",
            "jax[cuda12] ~= 0.5",
            "kubeflow==0.5.0 ; python_version < '3.13'",
            "thing @ https://example.org/thing-1.0-py3-none-any.whl",
            "thing@git+https://example.org/thing@v1",
        ] {
            assert_eq!(parse(line), Ok(Some(line.to_owned())));
        }
        assert_eq!(parse("numpy  # the arrays"), Ok(Some("numpy".to_owned())));
        assert_eq!(parse("  # nothing"), Ok(None));
    }

    #[test]
    fn an_address_is_no_name_and_is_told_with_the_requirement() {
        for line in ["numpy", "jax[cuda12] ~= 0.5", "a ; python_version < '3.13'"] {
            assert_eq!(checked_by_name(line), Ok(()), "{line}");
        }
        for line in [
            "thing @ https://example.org/thing-1.0-py3-none-any.whl",
            "thing[a]@git+https://example.org/thing@v1",
            "thing @ file:///secret/thing.whl",
            "./thing",
            "-e .",
            "-r other.txt",
            "--index-url=https://example.org",
            "thing\n--index-url=https://example.org",
        ] {
            let refused = checked_by_name(line).unwrap_err();
            let told = refused.message.contains(&line.escape_debug().to_string());
            assert!(told, "{line}: {refused:?}");
        }
    }

    #[test]
    fn options_paths_and_nonsense_are_refused() {
        for line in [
            "--index-url=https://example.org",
            "-e .",
            "./local",
            "/abs/path.whl",
            "thing @ file:///etc/passwd",
            "numpy\n--pre",
            "numpy 2",
            "[extra]",
            "jax[cuda",
            "numpy==",
            "numpy>>2",
            "numpy>=2<3",
            "numpy>=two",
            "numpy (>=2",
            "numpy; python",
            "numpy-",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
