//! Commands that change the machine that they run on.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::shell::{self, Command};

/// Package managers of systems, which need the rights of an administrator.
const MANAGERS: [&str; 13] = [
    "apt",
    "apt-get",
    "aptitude",
    "yum",
    "dnf",
    "apk",
    "pacman",
    "zypper",
    "brew",
    "snap",
    "conda",
    "mamba",
    "micromamba",
];

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// How many shells may stand in each other.
const DEEPEST: u32 = 4;

type Finding = (String, &'static str);

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let analysis = &subject.analysis;
    let all = shell::of_lines(analysis).chain(shell::of_calls(analysis));
    all.filter_map(|(at, outside)| {
        let (message, hint) = find(&outside.commands(), 0)?;
        Some(subject.warning(Code::MachineCommand, at, message).hint(hint))
    })
    .collect()
}

/// Returns the first of some commands that changes the machine.
fn find(commands: &[Command], depth: u32) -> Option<Finding> {
    commands.iter().find_map(|command| {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match inner(&words) {
            Some(line) if depth < DEEPEST => find(&shell::commands(&line), depth + 1),
            Some(_) | None => judge(&words),
        }
    })
}

/// Returns the line that a shell is given: `x` of `bash -c x`.
fn inner(words: &[&str]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    if *first == "eval" {
        return Some(rest.join(" "));
    }
    let is_shell = SHELLS.contains(&first.rsplit('/').next().unwrap_or_default());
    let takes = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let at = rest.iter().position(takes).filter(|_| is_shell)?;
    Some(rest[at + 1..].join(" "))
}

fn judge(words: &[&str]) -> Option<Finding> {
    let (first, rest) = words.split_first()?;
    let name = first.rsplit('/').next().unwrap_or_default();
    if name == "sudo" || name == "su" {
        let message = format!("`{name}` asks for the rights of an administrator");
        return Some((message, "have what it does done on the machine, before the run"));
    }
    let changes = ["install", "remove", "purge", "update", "upgrade", "add", "create"];
    if MANAGERS.contains(&name) && rest.iter().any(|word| changes.contains(word)) {
        let message = format!("`{name}` changes what is installed on the machine");
        return Some((
            message,
            "have it on the machine before the run, or as a Python package under `spec.env.requirements`",
        ));
    }
    let flag = |short: [char; 2], long: &str| {
        rest.iter().any(|word| {
            *word == long || (word.starts_with('-') && !word.starts_with("--") && word.contains(short))
        })
    };
    if name == "rm" && flag(['r', 'R'], "--recursive") && flag(['f', 'F'], "--force") {
        let message = "`rm -rf` removes folders whole and asks nobody".to_owned();
        return Some((
            message,
            "leave it out: a run has a working copy of its own, which is removed",
        ));
    }
    None
}
