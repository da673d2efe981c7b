//! What is said about a command that cannot be understood, and what is understood all the same.

use std::ffi::OsString;

use blueproof_diagnostic::{Code, Diagnostic, yaml::nearest};
use clap::{
    Command, CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Cli;
use crate::{exit::Problem, select::RunSelector};

/// What other programs call what is called otherwise here.
const CALLED_OTHERWISE: [(&str, &str); 22] = [
    ("abort", "cancel"),
    ("create", "init"),
    ("delete", "cancel"),
    ("exec", "run"),
    ("execute", "run"),
    ("inspect", "describe run"),
    ("kill", "cancel"),
    ("lint", "check"),
    ("list", "get runs"),
    ("log", "logs"),
    ("new", "init"),
    ("open", "report --open"),
    ("ps", "get runs"),
    ("queues", "quota get"),
    ("rerun", "retry"),
    ("show", "describe run"),
    ("start", "run"),
    ("status", "get runs"),
    ("stop", "cancel"),
    ("submit", "run"),
    ("test", "run"),
    ("validate", "check"),
];

/// Returns what was typed with the word `run` before a run, where a kind of thing was left out: `describe r-2`.
pub(super) fn with_kind_of_thing(typed: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let run = text_of(error, ContextKind::InvalidSubcommand)?;
    let at = typed.iter().position(|word| *word == *run)?;
    let before = parent(&typed[..at]);
    let names_a_run = match run.parse() {
        Ok(RunSelector::Id(_) | RunSelector::Last) => true,
        // Only runs are described: another word names a blueprint, unless it is `run` with a slip.
        Ok(RunSelector::Blueprint(_)) => {
            before.get_name() == "describe" && nearest(&run, ["run", "runs", "help"]).is_none()
        }
        Err(_) => false,
    };
    let has_runs = before.find_subcommand("run").is_some();
    // At the top `run` is no kind of thing: it starts one.
    (at > 1 && has_runs && names_a_run).then(|| {
        let mut completed = typed.to_vec();
        completed.insert(at, "run".into());
        completed
    })
}

/// Returns what is wrong with what was typed, in the way of every other error. Help and the version are no mistakes:
/// they are printed, and the process ends.
pub(super) fn problem(typed: &[OsString], error: &clap::Error) -> Problem {
    let asked_for = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asked_for {
        error.exit();
    }
    let diagnostic = if error.kind() == ErrorKind::InvalidSubcommand {
        unknown_command(typed, error)
    } else if error.kind() == ErrorKind::UnknownArgument && is_of_run(error) {
        one_blueprint(error)
    } else {
        in_our_way(&error.render().to_string())
    };
    let diagnostic = match asks_for_a_document(error) {
        true => diagnostic.hint("`blueproof get run ID -o json` writes all that is known of a run"),
        false => diagnostic,
    };
    Problem::usage(diagnostic.hint("`--help` behind a command shows all that it takes"))
}

/// Says which command may be meant, if any.
fn unknown_command(typed: &[OsString], error: &clap::Error) -> Diagnostic {
    let word = text_of(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let before = typed.iter().position(|typed| *typed == *word).unwrap_or(1);
    let parent = parent(&typed[..before]);
    let commands = parent.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = commands.map(Command::get_name).collect();
    let path = if parent.get_name() == "blueproof" {
        String::new()
    } else {
        format!(" {}", parent.get_name())
    };
    let diagnostic = Diagnostic::error(
        Code::Usage,
        format!("there is no command `blueproof{path} {word}`"),
    );
    let otherwise = CALLED_OTHERWISE.iter().find(|(other, _)| *other == word);
    let meant = match otherwise.filter(|_| path.is_empty()) {
        Some((_, ours)) => Some(*ours),
        None => nearest(&word, names.iter().copied()),
    };
    match meant {
        Some(meant) => diagnostic.hint(format!("did you mean `blueproof{path} {meant}`?")),
        None => diagnostic.hint(format!("there are: {}", names.join(", "))),
    }
}

/// Returns whether a run was to be written for programs by a command that writes for people.
fn asks_for_a_document(error: &clap::Error) -> bool {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let of_runs = ["blueproof describe run", "blueproof cancel", "blueproof logs"];
    let of_runs = usage.is_some_and(|usage| of_runs.iter().any(|command| usage.contains(command)));
    let unknown =
        text_of(error, ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    of_runs && unknown.is_some_and(|word| word.starts_with("-o") || word.starts_with("--output"))
}

fn is_of_run(error: &clap::Error) -> bool {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let is_plural = |word: &str| !word.starts_with('-') || ["--all", "-a", "-j", "--jobs"].contains(&word);
    usage.is_some_and(|usage| usage.contains("blueproof run "))
        && text_of(error, ContextKind::InvalidArg).is_some_and(|word| is_plural(&word))
}

/// Says that `run` takes one blueprint, to somebody who wants to run several.
fn one_blueprint(error: &clap::Error) -> Diagnostic {
    let word = text_of(error, ContextKind::InvalidArg).unwrap_or_default();
    let message = format!("a command runs one blueprint, and `{word}` asks for more");
    Diagnostic::error(Code::Usage, message)
        .hint("blueproof get blueprints -o name | xargs -n 1 blueproof run")
}

/// Returns the command that words before a mistake lead to.
fn parent(words: &[OsString]) -> Command {
    let mut command = Cli::command();
    for word in words.iter().skip(1) {
        let word = word.to_string_lossy();
        if let Some(below) = command.find_subcommand(word.as_ref()) {
            command = below.clone();
        }
    }
    command
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let ContextValue::String(text) = error.get(kind)? else {
        return None;
    };
    Some(text.clone())
}

/// Makes a diagnostic of clap's text: a paragraph that begins with `error:`, tips, the usage, and a farewell.
fn in_our_way(text: &str) -> Diagnostic {
    let mut paragraphs = text.split("\n\n");
    let mut lines = paragraphs.next().unwrap_or_default().lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let message = first
        .strip_prefix("error: ")
        .unwrap_or(first)
        .trim_end_matches(':');
    let mut diagnostic = Diagnostic::error(Code::Usage, message);
    for line in lines {
        let values = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        diagnostic = match values {
            Some(values) => diagnostic.hint(values),
            None => diagnostic.because(line),
        };
    }
    for paragraph in paragraphs.map(str::trim) {
        if let Some(tips) = paragraph.strip_prefix("tip: ") {
            // That an unknown flag could be a value behind `--` is true, and helps nobody.
            let tips = tips.split("tip: ").filter(|tip| !tip.starts_with("to pass '"));
            diagnostic = tips.fold(diagnostic, |said, tip| said.hint(tip.trim()));
        } else if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            diagnostic = diagnostic.hint(format!("it is used as `{}`", usage.trim()));
        }
    }
    diagnostic
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn typed(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn said(line: &str) -> Diagnostic {
        let typed = typed(line);
        let error = Cli::try_parse_from(&typed).expect_err("it is a mistake");
        problem(&typed, &error).diagnostics.remove(0)
    }

    #[test]
    fn a_run_without_the_word_for_it_is_understood() {
        for (line, completed) in [
            ("blueproof describe r-2", Some("blueproof describe run r-2")),
            ("blueproof get 2 -o json", Some("blueproof get run 2 -o json")),
            (
                "blueproof --color never describe last",
                Some("blueproof --color never describe run last"),
            ),
            ("blueproof r-2", None),
            ("blueproof quota r-2", None),
            (
                "blueproof describe my-pass",
                Some("blueproof describe run my-pass"),
            ),
            ("blueproof describe rn", None),
            ("blueproof get nonsense", None),
        ] {
            let typed_now = typed(line);
            let error = Cli::try_parse_from(&typed_now).expect_err("it is a mistake");
            assert_eq!(
                with_kind_of_thing(&typed_now, &error),
                completed.map(typed),
                "{line}"
            );
        }
    }

    #[test]
    fn who_asks_for_json_where_there_is_none_is_told_where_there_is() {
        for line in [
            "describe run 2 -o json",
            "cancel 2 --output=json",
            "logs last -ojson",
        ] {
            let said = said(&format!("blueproof {line}"));
            let named = said
                .hints
                .iter()
                .any(|hint| hint.contains("`blueproof get run ID -o json`"));
            assert!(named, "{line}: {said:?}");
        }
        assert!(
            !said("blueproof cancel 2 --now")
                .hints
                .iter()
                .any(|hint| hint.contains("json"))
        );
    }

    #[test]
    fn a_command_that_is_called_otherwise_here_is_named() {
        for (line, hint) in [
            ("blueproof test nb.ipynb", "did you mean `blueproof run`?"),
            ("blueproof gett runs", "did you mean `blueproof get`?"),
            (
                "blueproof get blueprnts",
                "did you mean `blueproof get blueprints`?",
            ),
            ("blueproof describe test", "there are: run"),
        ] {
            assert_eq!(said(line).hints[0], hint, "{line}");
        }
    }

    #[test]
    fn several_blueprints_in_one_command_are_refused_in_plain_words() {
        for (line, message) in [
            (
                "blueproof run --all",
                "a command runs one blueprint, and `--all` asks for more",
            ),
            (
                "blueproof run a b",
                "a command runs one blueprint, and `b` asks for more",
            ),
        ] {
            assert_eq!(said(line).message, message);
        }
        assert_eq!(
            said("blueproof run a --quit").message,
            "unexpected argument '--quit' found"
        );
        assert!(!format!("{:?}", said("blueproof why --all")).contains("as a value"));
    }
}
