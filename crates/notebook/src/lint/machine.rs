//! Commands that change the machine that they run on.

use blueproof_core::diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::survey::{At, commands_of_calls};

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

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let shell = subject
        .survey
        .shell
        .iter()
        .filter(|(_, command)| {
            !command.starts_with('%') || command.starts_with("%conda") || command.starts_with("%mamba")
        })
        .map(|(at, command)| (*at, command.trim_start_matches(['!', '%']).to_owned()));
    let all = shell.chain(commands_of_calls(&subject.survey.calls));
    all.filter_map(|(at, command)| told(subject, at, &command))
        .collect()
}

fn told(subject: &Subject<'_>, at: At, command: &str) -> Option<Diagnostic> {
    let mut single = command.split(['&', ';', '|']);
    let (message, hint) =
        single.find_map(|command| judge(&command.split_whitespace().collect::<Vec<_>>()))?;
    Some(subject.warning(Code::MachineCommand, at, message).hint(hint))
}

fn judge(words: &[&str]) -> Option<(String, &'static str)> {
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
