//! What is said of a package of a stranger's choice that has no wheel, is named by an address, or holds what it may not.

use std::sync::LazyLock;

use blueproof_diagnostic::{Code, Diagnostic};
use regex::Regex;

use super::{index::NO_SOURCES, requirements::DISPOSABLE, words::masked};

/// How pip, as it is started for strangers, says that a package names another one by its address.
const NO_ADDRESS: &str = "No address permitted for ";

/// Returns why a package is not installed without its code being run, where the installer's words say so.
pub(super) fn refused(lines: &[String]) -> Option<Diagnostic> {
    static PIP: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!("{NO_SOURCES}([A-Za-z0-9._-]+)")).expect("the pattern is one"));
    static UV: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"([A-Za-z0-9._-]+?)(?:==\S+)? has no (?:usable )?wheels").expect("the pattern is one")
    });
    static UV_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"Package `([^`]+)` .{0,40}(?:via URL|as a URL dependency)").expect("the pattern is one")
    });
    static PIP_FILES: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"For req: ([A-Za-z0-9._-]+)\S* The wheel .{1,1000}? outside the target directory";
        Regex::new(words).expect("the pattern is one")
    });
    static UV_FILES: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"Failed to install: \S+ \(([A-Za-z0-9._-]+)==\S+\) .{0,40}Scripts must not use the reserved name \S+";
        Regex::new(words).expect("the pattern is one")
    });
    // uv breaks its sentences over lines.
    let text = lines
        .iter()
        .map(|line| line.trim_matches([' ', '│', '╰', '─', '▶', '×']));
    let text = text.collect::<Vec<_>>().join(" ");
    let address = text.split_once(NO_ADDRESS).map(|(_, rest)| rest);
    let address = address.and_then(|rest| rest.split([':', ' ']).next().map(str::to_owned));
    let address = address.or_else(|| Some(UV_ADDRESS.captures(&text)?[1].to_owned()));
    if let Some(name) = address {
        let message = format!("a package asks for `{}` by an address", masked(&name));
        let why = "for a pull request packages are installed by name, from the indexes of this machine";
        let hint = "ask for another version of the package that names it";
        return Some(of_sandbox(Code::SandboxRefused, message, why, hint));
    }
    if let Some(found) = PIP_FILES.captures(&text).or_else(|| UV_FILES.captures(&text)) {
        let name = found[1].trim_end_matches('.');
        let message = format!("the wheel of `{}` has a file that it may not have", masked(name));
        let hint = "leave the package out, and tell whoever made it";
        return Some(of_sandbox(
            Code::SandboxRefused,
            message,
            &masked(&found[0]),
            hint,
        ));
    }
    let name = PIP.captures(&text).or_else(|| UV.captures(&text))?[1].to_owned();
    let message = format!("no wheel of `{}` fits this Python and machine", masked(&name));
    let why = "for a pull request nothing is built from source, because that runs the code of the package";
    let hint = "ask for a version, or a Python, that has a wheel, or put a wheel of it into the index";
    Some(of_sandbox(Code::PackageBuild, message, why, hint))
}

fn of_sandbox(code: Code, message: String, why: &str, hint: &str) -> Diagnostic {
    Diagnostic::error(code, message)
        .because(why)
        .hint(hint)
        .hint(DISPOSABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_wheel_and_what_has_an_address_are_named() {
        type Row<'a> = (&'a [&'a str], Option<(Code, &'a str)>);
        let rows: [Row<'_>; 7] = [
            (
                &["Skipping link: No sources permitted for old-thing: file:///w/old-thing-1.0.tar.gz"],
                Some((Code::PackageBuild, "`old-thing`")),
            ),
            (
                &["ERROR: No address permitted for far: https://example.org/far.whl"],
                Some((Code::SandboxRefused, "`far`")),
            ),
            (
                &[
                    "  ╰─▶ Because only old-thing==1.0 is available and old-thing==1.0 has no usable",
                    "      wheels, we can conclude that all versions of old-thing cannot be used.",
                ],
                Some((Code::PackageBuild, "`old-thing`")),
            ),
            (
                &[
                    "  ╰─▶ Package `far` was included as a URL dependency. URL dependencies must be expressed as direct requirements",
                ],
                Some((Code::SandboxRefused, "`far`")),
            ),
            (
                &[
                    "ERROR: For req: out==1.0. The wheel '/w/out.whl' has a file '/x/a.py' trying to install outside the target directory '/e'",
                ],
                Some((Code::SandboxRefused, "`out`")),
            ),
            (
                &[
                    "error: Failed to install: own-1.0-py3-none-any.whl (own==1.0)",
                    "  cause: Scripts must not use the reserved name `python`, got: `python`",
                ],
                Some((Code::SandboxRefused, "`own`")),
            ),
            (&["ERROR: No matching distribution found for x"], None),
        ];
        for (lines, expected) in rows {
            let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
            let refused = refused(&lines);
            let told = refused.as_ref().map(|refused| refused.code);
            assert_eq!(told, expected.map(|(code, _)| code), "{lines:?}");
            if let (Some(refused), Some((_, name))) = (refused, expected) {
                assert!(refused.message.contains(name), "{refused:?}");
            }
        }
    }
}
