//! Turns what an installer says into who has to mend what.
//!
//! pip and uv have no exit status for the reason, so their words are read. What is not recognised is passed on as
//! it came, never guessed.

use std::sync::LazyLock;

use blueproof_diagnostic::{Code, Diagnostic};
use regex::Regex;

use super::{
    Unprepared,
    cache::DISK_HINT,
    index,
    installer::Build,
    interpreter::Interpreter,
    offline,
    requirements::name_of,
    wanted::Wanted,
    wheels,
    words::{masked, reason, said, with_words},
};

/// Words of pip, uv and the systems below them, in the order in which they are looked for.
const DISK_FULL: &[&str] = &[
    "no space left on device",
    "[errno 28]",
    "os error 28",
    "disk quota exceeded",
];
/// Words of the systems below Python where something other than the disk ran out.
const EXHAUSTED: &[&str] = &[
    "too many open files",
    "cannot allocate memory",
    "can't start new thread",
    "resource temporarily unavailable",
    "memoryerror",
    "std::bad_alloc",
    "failed to map segment from shared object",
    "[errno 11]",
    "[errno 12]",
    "[errno 24]",
    "os error 11)",
    "os error 12)",
    "os error 24)",
];
const OFFLINE: &[&str] = &[
    "name or service not known",
    "temporary failure in name resolution",
    "failed to lookup address",
    "nodename nor servname",
    "network is unreachable",
    "no route to host",
    "connection refused",
    "cannot connect to proxy",
    "network was disabled",
    "network connectivity is disabled",
    "dns error",
];
const BROKEN_OFF: &[&str] = &[
    "readtimeouterror",
    "read timed out",
    "connecttimeouterror",
    "operation timed out",
    "connection reset",
    "connection broken",
    "incompleteread",
    "remotedisconnected",
    "connection aborted",
    "http status server error",
    "http error 5",
    "too many 5",
    "429 client error",
];
const CONFLICT: &[&str] = &[
    "resolutionimpossible",
    "conflicting dependencies",
    "are incompatible",
];
const BUILD: &[&str] = &[
    "failed building wheel",
    "failed to build",
    "could not build wheels",
    "metadata-generation-failed",
    "subprocess-exited-with-error",
    "the build backend returned an error",
];

/// Words where a file was larger than a sandbox may write.
const TOO_LARGE: &[&str] = &["file too large", "[errno 27]", "os error 27"];

/// Returns what a line of an installer says about how far it is, or `None` where it says nothing of interest.
pub(super) fn progress(line: &str) -> Option<String> {
    let line = line.trim();
    let (verb, rest) = line.split_once(' ')?;
    match verb {
        "Collecting" => Some(format!(
            "resolving {}",
            rest.split(" (from").next().unwrap_or(rest)
        )),
        "Downloading" => {
            let rest = rest.split(".metadata").next().unwrap_or(rest);
            Some(format!("downloading {}", rest.rsplit('/').next().unwrap_or(rest)))
        }
        "Building" => Some(format!(
            "building {}",
            rest.trim_start_matches("wheel for ").split(" (").next()?
        )),
        "Installing" => Some(format!("installing {} packages", rest.matches(',').count() + 1)),
        "Resolved" | "Prepared" | "Installed" => Some(line.to_lowercase()),
        _ => None,
    }
}

/// Returns the line that says that this machine ran out of something, the disk included, if one does.
pub(crate) fn exhausted_line(lines: &[String]) -> Option<&str> {
    said(lines, EXHAUSTED).or_else(|| said(lines, DISK_FULL))
}

/// Says that the machine, and not what it was asked to do, is what failed.
pub(crate) fn exhausted(word: &str) -> Diagnostic {
    Diagnostic::error(
        Code::HostExhausted,
        "this machine ran out of something that a Python needs",
    )
    .because(word)
    .hint("look at `free`, `df` and `ulimit -a` here; let fewer runs go at once with `blueproof quota`")
}

/// Returns why an environment could not even be made.
pub(super) fn unmade(interpreter: &Interpreter, lines: &[String]) -> Unprepared {
    if said(lines, DISK_FULL).is_some() {
        return disk_full();
    }
    if let Some(word) = said(lines, EXHAUSTED) {
        return Unprepared::infrastructure(exhausted(&masked(reason(word))));
    }
    let message = format!(
        "Python {} at `{}` cannot make an environment",
        interpreter.version,
        interpreter.executable.display()
    );
    let diagnostic = with_words(Diagnostic::error(Code::InstallFailed, message), lines);
    Unprepared::config(diagnostic.hint("install its `venv` module, for example: apt install python3-venv"))
}

/// Returns why packages could not be installed, always as an error.
pub(super) fn failed(build: &Build<'_>, wanted: &Wanted, lines: &[String]) -> Result<(), Unprepared> {
    if said(lines, DISK_FULL).is_some() {
        return Err(disk_full());
    }
    if let Some((apart, _)) = &build.apart
        && said(lines, TOO_LARGE).is_some()
    {
        return Err(apart.too_large());
    }
    if let Some(word) = said(lines, EXHAUSTED) {
        return Err(Unprepared::infrastructure(exhausted(&masked(reason(word)))));
    }
    let missing = missing_name(lines).filter(|absent| absent.exists == Exists::Nowhere);
    let unfound = missing.as_ref().map(|absent| absent.requirement.as_str());
    let itself = index::excludes_itself(lines);
    let asked = index::asked_again(build, wanted, lines, unfound.or(itself))?;
    let lines = asked.as_slice();
    if let Some(trouble) = index::trouble(lines) {
        return Err(trouble);
    }
    if let Some(word) = said(lines, OFFLINE) {
        return Err(offline::failure(build, wanted, &masked(reason(word)))?);
    }
    if let Some(word) = said(lines, BROKEN_OFF) {
        let diagnostic = Diagnostic::error(Code::PackageDownload, "the download of packages broke off");
        return Err(Unprepared::infrastructure(
            diagnostic.because(masked(reason(word))),
        ));
    }
    if let Some(ignored) = index::ignored(lines).filter(|_| unfound.or(itself).is_some()) {
        return Err(ignored);
    }
    if build.apart.is_some()
        && let Some(refused) = wheels::refused(lines)
    {
        return Err(Unprepared::config(refused));
    }
    let diagnostic = if said(lines, CONFLICT).is_some() && missing_name(lines).is_none() {
        Diagnostic::error(Code::PackageConflict, "the requirements exclude each other")
            .hint("loosen one of the versions that the resolver names")
    } else if let Some(absent) = missing_name(lines) {
        not_found(&absent, wanted)
    } else if let Some(word) = said(lines, BUILD) {
        Diagnostic::error(
            Code::PackageBuild,
            format!("a package cannot be built: {}", masked(word.trim())),
        )
        .hint("ask for a version, or a Python, that has a wheel")
    } else {
        Diagnostic::error(Code::InstallFailed, "the packages could not be installed")
    };
    Err(Unprepared::config(with_words(diagnostic, lines)))
}

/// A requirement that nothing satisfies, in the installer's words.
#[derive(Debug, PartialEq, Eq)]
struct Absent {
    requirement: String,
    exists: Exists,
}

#[derive(Debug, PartialEq, Eq)]
enum Exists {
    InOtherVersions(Option<String>),
    Nowhere,
}

fn missing_name(lines: &[String]) -> Option<Absent> {
    static PIP: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"satisfies the requirement (.+?) \(from versions: ([^)]*)\)").expect("the pattern is one")
    });
    static UV_NOWHERE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:Because |and |cause: )?([A-Za-z0-9._-]+) (?:was not found in the package registry|was not found in the provided package locations)")
            .expect("the pattern is one")
    });
    static UV_VERSION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:there (?:is|are) no versions? of|[Oo]nly the following versions of|[Oo]nly) ([A-Za-z0-9._-]+\S*)")
            .expect("the pattern is one")
    });
    // uv breaks its sentences over lines.
    let text = lines
        .iter()
        .map(|line| line.trim_matches([' ', '│', '╰', '─', '▶', '×']))
        .collect::<Vec<_>>()
        .join(" ");
    if let Some(found) = PIP.captures(&text) {
        let versions = found[2].to_owned();
        let exists = match versions.as_str() {
            "none" if !text.contains("Requires-Python") => Exists::Nowhere,
            "none" | "" => Exists::InOtherVersions(None),
            _ => Exists::InOtherVersions(Some(versions)),
        };
        // `numpy==99 (from example)` names what asked for it.
        let requirement = found[1].split(" (from").next().unwrap_or(&found[1]).to_owned();
        return Some(Absent { requirement, exists });
    }
    if let Some(found) = UV_NOWHERE.captures(&text) {
        return Some(Absent {
            requirement: found[1].to_owned(),
            exists: Exists::Nowhere,
        });
    }
    let found = UV_VERSION.captures(&text)?;
    Some(Absent {
        requirement: found[1].trim_end_matches([',', '.']).to_owned(),
        exists: Exists::InOtherVersions(None),
    })
}

fn not_found(absent: &Absent, wanted: &Wanted) -> Diagnostic {
    let name = name_of(&absent.requirement);
    let asked = wanted
        .all()
        .into_iter()
        .find(|requirement| name_of(requirement) == name);
    let asked = asked.unwrap_or(&absent.requirement);
    let diagnostic = match &absent.exists {
        Exists::Nowhere => Diagnostic::error(
            Code::PackageMissing,
            format!("no package `{asked}` is known to the index"),
        )
        .hint("check the name; a private package needs the host's pip or uv to name its index"),
        Exists::InOtherVersions(versions) => {
            let diagnostic = Diagnostic::error(Code::PackageVersion, format!("no version of `{asked}` fits"));
            match versions.as_deref().map(newest) {
                Some(newest) => diagnostic.hint(format!("versions that are there end with {newest}")),
                None => diagnostic.hint("ask for another version, or for a Python that it supports"),
            }
        }
    };
    match name_of(asked) == name && asked == absent.requirement {
        true => diagnostic,
        false => diagnostic.because(format!("`{}` is what is missing", absent.requirement)),
    }
}

fn newest(versions: &str) -> String {
    let mut last: Vec<&str> = versions.rsplit(", ").take(4).collect();
    last.reverse();
    last.join(", ")
}

fn disk_full() -> Unprepared {
    let diagnostic = Diagnostic::error(Code::EnvironmentDiskFull, "no space is left to install packages");
    Unprepared::infrastructure(diagnostic.hint(DISK_HINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(lines: &[&str]) -> Option<Absent> {
        missing_name(&lines.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn what_pip_and_uv_miss_is_read_from_their_words() {
        let nowhere = |requirement: &str| {
            Some(Absent {
                requirement: requirement.into(),
                exists: Exists::Nowhere,
            })
        };
        let pip =
            "ERROR: Could not find a version that satisfies the requirement nosuch>=1 (from versions: none)";
        assert_eq!(absent(&[pip]), nowhere("nosuch>=1"));
        let later = "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'ReadTimeoutError()'";
        assert_eq!(absent(&[pip, later]), nowhere("nosuch>=1"));
        let uv = [
            "  × No solution found when resolving dependencies:",
            "  ╰─▶ Because nosuch was not found in the package registry and you require",
            "      nosuch, we can conclude that your requirements are unsatisfiable.",
        ];
        assert_eq!(absent(&uv), nowhere("nosuch"));
        let uv = [
            "  × No solution found when resolving dependencies:",
            "  ╰─▶ Because there is no version of six==99 and you require six==99, we can",
            "      conclude that your requirements are unsatisfiable.",
        ];
        assert_eq!(
            absent(&uv),
            Some(Absent {
                requirement: "six==99".into(),
                exists: Exists::InOtherVersions(None)
            })
        );
        assert_eq!(absent(&["Successfully installed six-1.17.0"]), None);
    }

    #[test]
    fn progress_is_told_in_few_words() {
        let rows = [
            (
                "Collecting numpy>=2 (from -r x (line 1))",
                Some("resolving numpy>=2"),
            ),
            (
                "  Downloading numpy-2.3.1-cp311.whl (16.4 MB)",
                Some("downloading numpy-2.3.1-cp311.whl (16.4 MB)"),
            ),
            (
                "Installing collected packages: a, b, c",
                Some("installing 3 packages"),
            ),
            (
                "Resolved 30 packages in 12ms",
                Some("resolved 30 packages in 12ms"),
            ),
            ("[notice] something else", None),
        ];
        for (line, told) in rows {
            assert_eq!(progress(line).as_deref(), told);
        }
    }
}
