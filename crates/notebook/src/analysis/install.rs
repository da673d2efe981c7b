//! Packages that cells install by themselves.

use super::{
    Analysis,
    shell::{self, Command},
    value::At,
};

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

/// Returns the installs that cells run, by themselves or through calls: `subprocess.run([sys.executable, "-m", "pip", ...])`.
pub(super) fn of_survey(analysis: &Analysis) -> Vec<Install> {
    let all = shell::of_lines(analysis).chain(shell::of_calls(analysis));
    all.flat_map(|(at, outside)| of_commands(at, &outside.commands(), Form::Run))
        .collect()
}

/// Returns the installs in a comment that begins with `!` or `%`.
pub(super) fn of_comment(at: At, comment: &str) -> Vec<Install> {
    of_commands(at, &shell::of_line(comment).commands(), Form::Comment)
}

fn of_commands(at: At, commands: &[Command], form: Form) -> Vec<Install> {
    let packages = commands.iter().filter_map(|command| packages(&command.words));
    packages.map(|packages| Install { at, packages, form }).collect()
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
        } else if !word.starts_with('-') && !word.contains('{') {
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
            (
                "!pip install 'a; python_version > \"3\"' b>=2 > log 2>&1  # c",
                vec!["a; python_version > \"3\"", "b>=2"],
            ),
            ("!cd x && pip3 install -r requirements.txt", vec![]),
        ] {
            let installs = of_comment(At::default(), command);
            assert_eq!(installs.len(), 1, "{command}");
            assert_eq!(installs[0].packages, expected, "{command}");
        }
        for command in [
            "!kubectl get pods",
            "!pip list",
            "%time x",
            "!apt-get install make",
        ] {
            assert_eq!(of_comment(At::default(), command), [], "{command}");
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
