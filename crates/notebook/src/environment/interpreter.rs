//! Finds a Python by running it: a name on the path proves nothing, as pyenv's shims show.

use std::{
    collections::{BTreeSet, HashSet},
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
    str::FromStr,
    time::{Duration, Instant},
};

use blueproof_diagnostic::{Code, Diagnostic};
use pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;

use super::{
    Host, Patience, Unprepared,
    child::{self, Unfinished},
};

/// How long an interpreter may take to say what it is. A cold one on a slow disk takes a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

const ASK: &str = "
import importlib.metadata, importlib.util, json, platform, sys, sysconfig
try:
    pip = importlib.metadata.version('pip')
    folder = str(importlib.metadata.distribution('pip').locate_file(''))
except importlib.metadata.PackageNotFoundError:
    pip = folder = None
print(json.dumps({
    'version': platform.python_version(),
    'executable': sys.executable,
    'implementation': sys.implementation.name,
    'platform': sysconfig.get_platform(),
    'venv': importlib.util.find_spec('venv') is not None,
    'ensurepip': importlib.util.find_spec('ensurepip') is not None,
    'pip': pip,
    'pip_folder': folder,
}))
";

/// The oldest 3.x that the kernel can be installed on.
const OLDEST_MINOR: u64 = 9;

/// Which versions of Python will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PythonRequest {
    text: String,
    specifiers: VersionSpecifiers,
    /// `3.12` of `3.12` and `3.12.4`: part of the names under which such a one is usually found.
    minor: Option<String>,
}

/// An interpreter that has answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Interpreter {
    pub(super) version: String,
    pub(super) executable: PathBuf,
    pub(super) implementation: String,
    pub(super) platform: String,
    venv: bool,
    ensurepip: bool,
    pip: Option<String>,
    /// Where its pip can be imported from.
    pub(super) pip_folder: Option<PathBuf>,
}

/// Where pip comes from for a new environment of an interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipSource {
    /// The interpreter's own pip can install into another environment.
    Own,
    /// `ensurepip` puts one into the environment first, which takes seconds.
    Ensured,
}

impl PythonRequest {
    /// Returns the request that accepts what `specifiers` such as `>=3.11,<3.14` accept.
    pub(super) fn parse(text: &str) -> Result<Self, Unprepared> {
        let text = text.trim();
        let plain = text
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        let parts = text.split('.').count();
        let specifiers = match (plain, parts) {
            (true, 1 | 2) => format!("=={text}.*"),
            (true, _) => format!("=={text}"),
            // Nothing at all would accept everything; `None` is how that is asked for.
            (false, _) if text.is_empty() => "?".to_owned(),
            (false, _) => text.to_owned(),
        };
        let specifiers = VersionSpecifiers::from_str(&specifiers).map_err(|error| {
            let diagnostic = Diagnostic::error(
                Code::PythonVersion,
                format!("`{text}` is not a version of Python"),
            );
            Unprepared::config(
                diagnostic
                    .caused_by(&error)
                    .hint("write a version such as `3.12`, or bounds such as `>=3.11,<3.14`"),
            )
        })?;
        let minor = (plain && parts >= 2).then(|| text.split('.').take(2).collect::<Vec<_>>().join("."));
        Ok(Self {
            text: text.to_owned(),
            specifiers,
            minor,
        })
    }

    /// Reports a request that only versions satisfy on which no kernel of today runs.
    pub(super) fn supported(&self) -> Result<(), Unprepared> {
        let releases = (OLDEST_MINOR..40).flat_map(|minor| (0..40).map(move |patch| [3, minor, patch]));
        let mut versions = releases.map(Version::new);
        if versions.any(|version| self.specifiers.contains(&version)) {
            return Ok(());
        }
        let message = format!("no kernel runs on Python {}", self.text);
        let oldest = format!("ask for Python 3.{OLDEST_MINOR} or newer: notebooks run on nothing older");
        Err(Unprepared::config(
            Diagnostic::error(Code::PythonVersion, message).hint(oldest),
        ))
    }

    fn accepts(&self, version: &str) -> bool {
        Version::from_str(version).is_ok_and(|version| self.specifiers.contains(&version))
    }
}

impl fmt::Display for PythonRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Interpreter {
    /// Returns where pip comes from, or `None` where this one cannot make an environment with pip at all.
    pub(super) fn pip_source(&self) -> Option<PipSource> {
        if !self.venv {
            return None;
        }
        // `pip --python` came with 22.3.
        let own = self.pip.as_deref().and_then(|pip| Version::from_str(pip).ok());
        let since = Version::new([22, 3]);
        match own {
            Some(pip) if pip >= since => Some(PipSource::Own),
            _ => self.ensurepip.then_some(PipSource::Ensured),
        }
    }
}

/// Returns the first interpreter that runs, is of a wanted version and can make an environment.
pub(super) fn find(
    request: Option<&PythonRequest>,
    host: &Host,
    patience: Patience<'_>,
) -> Result<Interpreter, Unprepared> {
    let uv = host.program("uv");
    let mut tried = Vec::new();
    for candidate in candidates(request, host) {
        let found = match ask(&candidate, host, patience)? {
            Ok(found) => found,
            Err(why) => {
                tried.push(format!("{}: {why}", candidate.display()));
                continue;
            }
        };
        if let Some(request) = request
            && !request.accepts(&found.version)
        {
            tried.push(format!("{}: is Python {}", candidate.display(), found.version));
            continue;
        }
        if uv.is_none() && found.pip_source().is_none() {
            tried.push(format!(
                "{}: Python {} without `venv` or pip",
                candidate.display(),
                found.version
            ));
            continue;
        }
        return Ok(found);
    }
    if let Some(uv) = uv
        && let Some(found) = from_uv(&uv, request, host, patience, &mut tried)?
    {
        return Ok(found);
    }
    Err(none(request, tried))
}

/// Has uv find or fetch an interpreter.
fn from_uv(
    uv: &Path,
    request: Option<&PythonRequest>,
    host: &Host,
    patience: Patience<'_>,
    tried: &mut Vec<String>,
) -> Result<Option<Interpreter>, Unprepared> {
    let wanted = request.map_or("3", |request| &request.text);
    for step in ["install", "find"] {
        let mut command = host.command(uv);
        command
            .args(["python", step, "--no-config", wanted])
            .stdin(Stdio::null());
        let ended = match child::run(command, patience, &mut |_| {}) {
            Ok(ended) => ended,
            Err(Unfinished::Killed(why)) => return Err(why),
            Err(Unfinished::NotStarted(error)) => {
                tried.push(format!("{}: {error}", uv.display()));
                return Ok(None);
            }
        };
        if !ended.status.success() {
            let said = said(&ended.lines).unwrap_or_default();
            tried.push(format!("`uv python {step} {wanted}`: {said}"));
            return Ok(None);
        }
        let last = ended.lines.last().map(String::as_str).unwrap_or_default();
        if step == "find"
            && let Ok(found) = ask(Path::new(last), host, patience)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the files to try, the likeliest first, none of them twice.
fn candidates(request: Option<&PythonRequest>, host: &Host) -> Vec<PathBuf> {
    let path = host.path();
    let minor = request.and_then(|request| request.minor.as_ref());
    let mut names: Vec<OsString> = minor
        .map(|minor| format!("python{minor}").into())
        .into_iter()
        .collect();
    names.extend(["python3".into(), "python".into()]);
    if minor.is_none() {
        names.extend(versioned_names(&path));
    }
    let on_path = names
        .iter()
        .flat_map(|name| path.iter().map(move |folder| folder.join(name)));
    let mut seen = HashSet::new();
    on_path
        .chain(pyenv_versions(host))
        .filter(|file| file.is_file())
        .filter(|file| seen.insert(identity(file)))
        .collect()
}

/// Two names of one folder, such as `/bin` and `/usr/bin`, make no two interpreters.
fn identity(file: &Path) -> PathBuf {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => file.to_owned(),
    }
}

/// Returns `python3.14`, `python3.13` and so on, as far as they are there, newest first.
fn versioned_names(path: &[PathBuf]) -> Vec<OsString> {
    let mut minors = BTreeSet::new();
    for entry in path
        .iter()
        .filter_map(|folder| folder.read_dir().ok())
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let minor = name.to_str().and_then(|name| name.strip_prefix("python3."));
        minors.extend(minor.and_then(|minor| minor.parse::<u32>().ok()));
    }
    minors
        .iter()
        .rev()
        .map(|minor| format!("python3.{minor}").into())
        .collect()
}

/// Returns the interpreters that pyenv keeps but need not show, newest first.
fn pyenv_versions(host: &Host) -> Vec<PathBuf> {
    let Some(versions) = host.pyenv_root().map(|root| root.join("versions")) else {
        return Vec::new();
    };
    let entries = versions.read_dir().into_iter().flatten().flatten();
    let mut found: Vec<(Version, PathBuf)> = entries
        .filter_map(|entry| {
            let version = Version::from_str(entry.file_name().to_str()?).ok()?;
            Some((version, entry.path().join("bin/python")))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, python)| python).collect()
}

/// Runs a candidate. The inner error says in a few words why it is none.
fn ask(
    candidate: &Path,
    host: &Host,
    patience: Patience<'_>,
) -> Result<Result<Interpreter, String>, Unprepared> {
    let mut command = host.command(candidate);
    command.args(["-I", "-c", ASK]).stdin(Stdio::null());
    let soon = Instant::now() + ANSWER_WITHIN;
    let hurried = Patience {
        deadline: Some(patience.deadline.map_or(soon, |deadline| deadline.min(soon))),
        ..patience
    };
    let ended = match child::run(command, hurried, &mut |_| {}) {
        Ok(ended) => ended,
        Err(Unfinished::NotStarted(error)) => return Ok(Err(error.to_string())),
        Err(Unfinished::Killed(why)) => {
            patience.check()?;
            return match why {
                Unprepared::OutOfTime => Ok(Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs()))),
                Unprepared::Stopped | Unprepared::Failed(_) => Err(why),
            };
        }
    };
    if !ended.status.success() {
        let said = said(&ended.lines).map_or_else(String::new, |line| format!(": {line}"));
        return Ok(Err(format!("{}{said}", ended.status)));
    }
    let answer = ended
        .lines
        .iter()
        .find_map(|line| serde_json::from_str(line).ok());
    Ok(answer.ok_or_else(|| "does not answer as Python does".to_owned()))
}

/// Returns the line that says what went wrong: the first, but of a traceback the last.
fn said(lines: &[String]) -> Option<&str> {
    let first = lines.first()?;
    let line = if first.starts_with("Traceback") {
        lines.last()?
    } else {
        first
    };
    Some(line)
}

fn none(request: Option<&PythonRequest>, tried: Vec<String>) -> Unprepared {
    let mut diagnostic = match request {
        Some(request) => Diagnostic::error(
            Code::PythonVersion,
            format!("no Python {request} that can run a notebook was found"),
        ),
        None => Diagnostic::error(Code::PythonMissing, "no Python that can run a notebook was found"),
    };
    if tried.is_empty() {
        diagnostic = diagnostic.because("no file named `python3` or `python` lies in a folder of PATH");
    }
    for attempt in tried {
        diagnostic = diagnostic.because(format!("tried {attempt}"));
    }
    let package = request.and_then(|request| request.minor.as_deref()).map_or_else(
        || "python3 python3-venv".to_owned(),
        |minor| format!("python{minor} python{minor}-venv"),
    );
    Unprepared::config(
        diagnostic
            .hint(format!("install one, for example: apt install {package}"))
            .hint("or have uv on PATH, which fetches Python by itself: pip install uv")
            .hint("or ask for another version under `spec.env.python`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_no_kernel_runs_on_is_refused() {
        let supported = |text| PythonRequest::parse(text).and_then(|request| request.supported());
        for old in ["3.8", "2.7", "3.7.9", "<3.9", "4"] {
            assert!(supported(old).is_err(), "{old}");
        }
        for fine in ["3.12", "3", "3.12.4", ">=3.7", ">=3.11.3,<3.12", "<4"] {
            assert!(supported(fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn a_version_accepts_its_patch_releases_and_bounds_accept_what_lies_between() {
        let rows = [
            ("3.12", "3.12.4", true),
            ("3.12", "3.11.7", false),
            ("3.1", "3.12.4", false),
            ("3.12.1", "3.12.1", true),
            ("3.12.1", "3.12.2", false),
            ("3", "3.13.0", true),
            (">=3.11,<3.13", "3.12.9", true),
            (">=3.11,<3.13", "3.13.0", false),
            (">= 3.9", "3.14.0", true),
        ];
        for (request, version, accepted) in rows {
            let parsed = PythonRequest::parse(request).expect("the request is one");
            assert_eq!(parsed.accepts(version), accepted, "{request} and {version}");
        }
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "three", "3.x", "3.12; rm", "python3.12"] {
            assert!(PythonRequest::parse(text).is_err(), "{text}");
        }
    }
}
