//! Packages that cells install by themselves.

use std::rc::Rc;

use super::value::{At, Made, Traced};

/// One command that installs packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Install {
    pub(crate) at: At,
    /// The packages, as pip takes them.
    pub(crate) packages: Vec<String>,
    pub(crate) form: Form,
}

/// How a command stands in its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is run.
    Run,
    /// It stands in a comment, for people to enable.
    Comment,
}

/// Options of pip that take a value of their own.
const WITH_VALUE: [&str; 12] = [
    "-r",
    "--requirement",
    "-c",
    "--constraint",
    "-i",
    "--index-url",
    "--extra-index-url",
    "-f",
    "--find-links",
    "-t",
    "--target",
    "--python",
];

/// Returns whether a requirement always gives the same package.
pub(crate) fn is_pinned(requirement: &str) -> bool {
    let exact = requirement
        .split_once("==")
        .is_some_and(|(_, version)| !version.contains('*'));
    exact || requirement.contains("@ ") || requirement.ends_with(".whl") || is_local(requirement)
}

fn is_local(requirement: &str) -> bool {
    requirement.starts_with(['.', '/'])
}

/// Returns the installs among shell commands.
pub(super) fn of_shell(shell: &[(At, String)]) -> Vec<Install> {
    shell
        .iter()
        .flat_map(|(at, command)| of_command(*at, command, Form::Run))
        .collect()
}

/// Returns the installs in a comment that begins with `!` or `%`.
pub(super) fn of_comment(at: At, comment: &str) -> Vec<Install> {
    // What follows a second `#` is a remark on the command.
    let command = comment.split(" #").next().unwrap_or_default();
    of_command(at, command, Form::Comment)
}

/// Returns the installs among calls: `subprocess.run([sys.executable, "-m", "pip", "install", ...])`, `os.system`.
pub(super) fn of_calls(calls: &[Rc<Made>]) -> Vec<Install> {
    const RUNS: [&str; 8] = [
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "system",
        "getoutput",
        "run_line_magic",
    ];
    let runs = calls.iter().filter(|made| RUNS.contains(&made.function.as_str()));
    runs.filter_map(|made| {
        let first = made.arguments.first()?;
        let words: Vec<String> = match first.text() {
            Some(command) => split(command),
            None => first.items().iter().map(word).collect(),
        };
        packages(&words).map(|packages| Install {
            at: made.at,
            packages,
            form: Form::Run,
        })
    })
    .collect()
}

/// Returns the commands that calls hand to a shell or to the system: `os.system("...")`, `subprocess.run([...])`.
pub(crate) fn commands_of_calls(calls: &[Rc<Made>]) -> impl Iterator<Item = (At, String)> {
    calls.iter().filter_map(|made| {
        let of_system = matches!(
            made.function.as_str(),
            "run" | "call" | "check_call" | "check_output" | "Popen" | "system" | "getoutput"
        );
        let first = made.arguments.first().filter(|_| of_system)?;
        let words = || first.items().iter().map(word).collect::<Vec<_>>().join(" ");
        Some((made.at, first.text().map_or_else(words, str::to_owned)))
    })
}

fn word(item: &Traced) -> String {
    item.text().unwrap_or_default().to_owned()
}

fn of_command(at: At, command: &str, form: Form) -> Vec<Install> {
    let command = command.trim_start_matches(['!', '%']);
    let single = command.split(['&', ';', '|']).map(split);
    single
        .filter_map(|words| packages(&words).map(|packages| Install { at, packages, form }))
        .collect()
}

/// Splits a command into words, as a shell would.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (Some(_) | None, c) => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Returns the packages that a command installs; `None` where it installs none.
fn packages(words: &[String]) -> Option<Vec<String>> {
    let is_pip = |word: &String| {
        let name = word.rsplit('/').next().unwrap_or_default();
        name == "uv"
            || name
                .strip_prefix("pip")
                .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    let pip = words.iter().position(is_pip)?;
    let install = words[pip..]
        .iter()
        .position(|word| word == "install" || word == "add")?
        + pip;
    let mut packages = Vec::new();
    let mut rest = words[install + 1..].iter();
    while let Some(word) = rest.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            rest.next();
        } else if !word.starts_with('-') && !word.starts_with('>') && !word.contains('{') {
            packages.push(word.clone());
        }
    }
    Some(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_as_pip_reads_them() {
        for (command, expected) in [
            ("!pip install -q torch torchaudio", vec!["torch", "torchaudio"]),
            ("%pip install -U \"mlx>=0.28.0\"", vec!["mlx>=0.28.0"]),
            (
                "!python3 -m pip install --index-url https://x.example y==1",
                vec!["y==1"],
            ),
            ("!{sys.executable} -m pip install a", vec!["a"]),
            ("!uv pip install a[b]", vec!["a[b]"]),
            ("!cd x && pip3 install -r requirements.txt", vec![]),
        ] {
            let installs = of_command(At::default(), command, Form::Run);
            assert_eq!(installs.len(), 1, "{command}");
            assert_eq!(installs[0].packages, expected, "{command}");
        }
        for command in [
            "!kubectl get pods",
            "!pip list",
            "%time x",
            "!apt-get install make",
        ] {
            assert_eq!(of_command(At::default(), command, Form::Run), [], "{command}");
        }
    }

    #[test]
    fn only_an_exact_version_is_pinned() {
        for pinned in ["a==1.0", "a[b]==1", "./local", "a @ https://x/y.whl"] {
            assert!(is_pinned(pinned), "{pinned}");
        }
        for floating in ["a", "a>=1", "a~=1.2", "a==1.*", "git+https://x/y"] {
            assert!(!is_pinned(floating), "{floating}");
        }
    }
}
