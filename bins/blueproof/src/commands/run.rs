//! `blueproof run BLUEPRINT`: from a blueprint to a request, and with it to the end.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use blueproof_core::{
    domain::{Gpus, Priority, QueueName, RunRequest},
    ports::Command,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation, yaml::nearest};
use blueproof_host::Target;
use blueproof_notebook::blueprint::{self, Blueprint, Resolved};
use blueproof_queue::objects::Objects;

use super::{
    follow::{Verbosity, conclude, detach, follow},
    quota::unknown_queue,
};
use crate::{
    backend::{Backend, check_shares_folders},
    cli::Run,
    current_project::CurrentProject,
    exit::{Exit, Problem},
    output,
    session::{OnInterrupt, Session, local_user, new_key},
    show::{
        aside,
        looking::{Looking, Meanwhile},
    },
};

/// The queue of whoever names none.
const DEFAULT_QUEUE: &str = "local";

/// Returns the request for what was typed, with everything but its place in the queues. Blocks: every file of the
/// blueprint's folder is read.
pub(crate) fn draft(arguments: &Run) -> Result<RunRequest, Problem> {
    let resolved = resolve(arguments)?;
    let folder = resolved.checkout.clone();
    let queue = DEFAULT_QUEUE.parse().expect("it is a name");
    let _meanwhile = Meanwhile::say(format!(
        "reading every file of {}, as each run works on a copy of them: large data is better kept elsewhere",
        output::line(&folder.display().to_string())
    ));
    let request = resolved.request(new_key(), local_user(), queue, Priority::default());
    let request = request.map_err(|error| unreadable(&folder, &error))?;
    Ok(RunRequest {
        asked_from: Some(CurrentProject::of_this_process()?.folder().into()),
        ..request
    })
}

pub(crate) async fn run(session: &Session, draft: RunRequest, arguments: &Run) -> Result<Exit, Problem> {
    if let Backend::Server(client) = &session.store {
        check_shares_folders(client.address())?;
    }
    let objects = session.queues().await?;
    let request = RunRequest {
        queue: queue(&objects, arguments.queue.as_deref())?,
        priority: priority(&objects, &arguments.priority)?,
        ..draft
    };
    let target = Target::Request(request.key.clone());
    let verbosity = Verbosity::of(arguments.quiet);
    if verbosity == Verbosity::Full {
        output::note(&told_where(session));
    }
    if request.job.driver().gpu > Gpus(0) {
        session.warnings.iter().for_each(aside);
    }
    session
        .submit(Command::Run {
            request: Box::new(request),
        })
        .await?;
    if arguments.detach {
        return detach(session, &target, |_| true, arguments.output, verbosity).await;
    }
    match follow(
        session,
        &target,
        None,
        |view| view.settled,
        verbosity,
        OnInterrupt::CancelRun,
    )
    .await?
    {
        Some(view) => conclude(session, &view, arguments.output, verbosity).await,
        None => Ok(Exit::Interrupted),
    }
}

fn told_where(session: &Session) -> String {
    match session.store.file() {
        Some(store) => format!("{} · store {}", session.description, brief_path(store.path())),
        None => format!("scheduler at {}", session.store.described()),
    }
}

/// Returns a path as people write it: what lies in their home begins with `~`.
fn brief_path(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_path_buf)) {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    }
}

fn resolve(arguments: &Run) -> Result<Resolved, Problem> {
    let path = find(&arguments.blueprint)?;
    let loaded = Blueprint::load(&path)?;
    if let Some(name) = given_twice(&arguments.parameters) {
        let message = format!("the parameter `{}` is given twice", output::line(name));
        return Err(Problem::usage(
            Diagnostic::error(Code::Usage, message).hint("leave out one `-p`"),
        ));
    }
    Ok(loaded.resolve(arguments.profile.as_deref(), &arguments.parameters)?)
}

fn given_twice(parameters: &[(String, String)]) -> Option<&str> {
    let mut names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map(|pair| pair[0])
}

/// Returns the path that was typed, or that of the blueprint which is called so in this checkout.
pub(crate) fn find(typed: &str) -> Result<PathBuf, Problem> {
    let path = Path::new(typed);
    if path.exists() || typed.contains('/') || typed.ends_with(".ipynb") || typed.ends_with(".yaml") {
        return Ok(path.into());
    }
    let here = CurrentProject::of_this_process()?;
    let mut looking = Looking::begin();
    Ok(blueprint::find(here.checkout(), typed, &mut |path| {
        looking.at(path);
    })?)
}

/// Returns the LocalQueue that was named, or the one that goes without saying.
fn queue(objects: &Objects, named: Option<&str>) -> Result<QueueName, Problem> {
    let known = objects.local_queues.keys();
    let only = known.clone().next().filter(|_| known.len() == 1);
    let wanted = match (named, only) {
        (Some(named), _) => named,
        (None, Some(only)) => only,
        (None, None) => DEFAULT_QUEUE,
    };
    let found = known.clone().find(|known| *known == wanted);
    let name = found.and_then(|found| found.parse().ok());
    name.ok_or_else(|| no_such_queue(objects, wanted))
}

/// Returns what is said where there is no LocalQueue of this name.
pub(crate) fn no_such_queue(objects: &Objects, wanted: &str) -> Problem {
    let unknown = unknown_queue("LocalQueue", wanted, objects.local_queues.keys());
    Problem::usage(unknown.hint("`blueproof run BLUEPRINT --queue NAME` chooses one"))
}

/// Returns the priority that was typed: a number, or the value of the class of this name.
fn priority(objects: &Objects, typed: &str) -> Result<Priority, Problem> {
    let classes = &objects.priority_classes;
    let number = typed.parse().ok().or_else(|| classes.get(typed).copied());
    number
        .map(Priority)
        .ok_or_else(|| Problem::usage(unknown_class(typed, classes)))
}

fn unknown_class(typed: &str, classes: &BTreeMap<String, i32>) -> Diagnostic {
    let digits = typed.trim_start_matches(['-', '+']);
    if !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit()) {
        let message = format!("the priority {typed} is out of range");
        let (least, most) = (i32::MIN, i32::MAX);
        return Diagnostic::error(Code::Usage, message).hint(format!("it is from {least} to {most}"));
    }
    let message = format!("there is no WorkloadPriorityClass `{}`", output::line(typed));
    let error = Diagnostic::error(Code::NoSuchPriorityClass, message);
    let error = match nearest(typed, classes.keys().map(String::as_str)) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error,
    };
    if classes.is_empty() {
        return error.hint(
            "`blueproof quota apply -f FILE` brings some; a number such as `--priority 10` needs none",
        );
    }
    let all: Vec<String> = classes
        .iter()
        .map(|(name, value)| format!("{name} ({value})"))
        .collect();
    error.hint(format!(
        "there is {}; a number is a priority, too",
        all.join(", ")
    ))
}

fn unreadable(folder: &Path, error: &dyn std::error::Error) -> Problem {
    let diagnostic = Diagnostic::error(Code::FileMissing, "could not read the blueprint's folder");
    Problem::usage(
        diagnostic
            .at(SourceLocation::file(folder.display().to_string()))
            .caused_by(error),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_given_twice_is_found() {
        let given = |names: &[&str]| -> Vec<(String, String)> {
            names
                .iter()
                .map(|name| ((*name).to_owned(), "1".to_owned()))
                .collect()
        };
        assert_eq!(given_twice(&given(&["b", "a", "b"])), Some("b"));
        assert_eq!(given_twice(&given(&["b", "a"])), None);
    }

    #[test]
    fn a_priority_is_a_number_or_the_name_of_a_class() {
        let classes = [("high", 1000), ("7", 70)].map(|(name, value)| (name.to_owned(), value));
        let objects = Objects {
            priority_classes: classes.into(),
            ..Objects::default()
        };
        for (typed, value) in [("high", 1000), ("-3", -3), ("7", 7), ("2147483647", i32::MAX)] {
            assert_eq!(priority(&objects, typed).ok(), Some(Priority(value)), "{typed}");
        }
        for (typed, says) in [
            ("hihg", "did you mean `high`?"),
            ("urgent", "there is 7 (70), high (1000)"),
        ] {
            let problem = priority(&objects, typed).expect_err("there is none");
            let [error] = &problem.diagnostics[..] else {
                panic!("{problem:?}");
            };
            assert_eq!(error.code, Code::NoSuchPriorityClass);
            assert!(error.hints[0].starts_with(says), "{error:?}");
        }
        for typed in ["2147483648", "-99999999999"] {
            let problem = priority(&objects, typed).expect_err("it is no i32");
            let error = &problem.diagnostics[0];
            assert_eq!(error.message, format!("the priority {typed} is out of range"));
            assert_eq!(error.hints, ["it is from -2147483648 to 2147483647"]);
        }
        let bare = priority(&Objects::default(), "high").expect_err("there is none");
        assert!(bare.diagnostics[0].hints[0].contains("--priority 10"), "{bare:?}");
    }
}
