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

/// Words after which a shell takes another command.
const LEADING: [&str; 14] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "command", "nohup", "env",
];
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// Magics that hand their line to a shell, or do what the command of that name does.
const MAGICS: [&str; 5] = ["%conda", "%mamba", "%rm", "%sx", "%system"];
/// How many shells may stand in each other.
const DEEPEST: u32 = 4;

type Finding = (String, &'static str);

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let is_command = |command: &str| {
        let first = command.split_whitespace().next().unwrap_or_default();
        !command.starts_with('%') || MAGICS.contains(&first)
    };
    let shell = subject.survey.shell.iter();
    let shell = shell
        .filter(|(_, command)| is_command(command))
        .map(|(at, command)| {
            let command = command.trim_start_matches(['!', '%']);
            let given = command.strip_prefix("sx ").or(command.strip_prefix("system "));
            (*at, given.unwrap_or(command).to_owned())
        });
    let all = shell.chain(commands_of_calls(&subject.survey.calls));
    all.filter_map(|(at, command)| told(subject, at, &command))
        .collect()
}

fn told(subject: &Subject<'_>, at: At, command: &str) -> Option<Diagnostic> {
    let (message, hint) = find(command, 0)?;
    Some(subject.warning(Code::MachineCommand, at, message).hint(hint))
}

/// Returns the first of a line's commands that changes the machine.
fn find(line: &str, depth: u32) -> Option<Finding> {
    commands(line).iter().find_map(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_leading = |word: &&&str| {
            let name = word.split('=').next().unwrap_or_default();
            let assigns = word.contains('=') && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            assigns || LEADING.contains(*word)
        };
        let words = &words[words.iter().take_while(is_leading).count()..];
        match inner(words) {
            Some(line) if depth < DEEPEST => find(&line, depth + 1),
            Some(_) | None => judge(words),
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

/// Splits a line into commands and those into words, as a shell would.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        let ends = quote.is_none() && (c.is_whitespace() || "&;|()`".contains(c));
        match (quote, c) {
            _ if ends => {
                let last = commands.last_mut().filter(|_| !word.is_empty());
                if let Some(last) = last {
                    last.push(std::mem::take(&mut word));
                }
                if c == '\n' || !c.is_whitespace() {
                    commands.push(Vec::new());
                }
            }
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if word.is_empty() => break,
            (Some(_) | None, c) => word.push(c),
        }
    }
    if let Some(last) = commands.last_mut().filter(|_| !word.is_empty()) {
        last.push(word);
    }
    commands
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
