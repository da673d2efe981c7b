//! Failures of what the notebook started: recognised by the exception of whoever noticed, named by the process' own
//! last words.

use super::{Facts, tail};
use crate::{
    exception::{Exception, ProcessFacts, UNASKED_FUTURE, UNASKED_TASK, printed},
    executor::{Silent, SilentKind},
    process::{End, signal_name},
};

/// Exceptions that say that another process failed, and nothing of why.
const NOTICED_BY: [&str; 9] = [
    "BrokenProcessPool",
    "BrokenExecutor",
    "ChildFailedError",
    "MaybeEncodingError",
    "ProcessExitedException",
    "ProcessRaisedException",
    "TerminatedWorkerError",
    "WorkerCrashedError",
    "RayActorError",
];
/// What a worker's own exception is chained to once it has been brought over to the notebook's process.
const BROUGHT_OVER_BY: [&str; 3] = ["RemoteTraceback", "_RemoteTraceback", "RemoteError"];

/// So many characters of a command are shown.
const COMMAND_AT_MOST: usize = 80;

/// What failed, in one line, and the exception that only noticed it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    /// The process' own error.
    pub(crate) line: String,
    /// What the notebook said about it.
    pub(crate) noticed: Option<String>,
}

/// Returns what failed if the chain says that it was something that the notebook had started.
pub(crate) fn find(facts: &Facts<'_>, chain: &[Exception]) -> Option<Workload> {
    let is_brought_over = |error: &Exception| BROUGHT_OVER_BY.contains(&error.name.as_str());
    if let Some(at) = chain.iter().position(is_brought_over) {
        let own = chain.get(at.checked_sub(1)?)?;
        return Some(Workload {
            line: format!("in a worker process: {}", own.line()),
            noticed: None,
        });
    }
    let noticed = chain
        .iter()
        .find(|error| error.process.is_some() || says_other_process(error))?;
    let own = match &noticed.process {
        Some(process) => Some(of_process(facts, process)),
        None => of_worker(facts, &noticed.message),
    };
    Some(Workload {
        line: own.unwrap_or_else(|| noticed.line()),
        noticed: Some(noticed.line()),
    })
}

pub(super) fn says_other_process(error: &Exception) -> bool {
    let is_named = error.bases.iter().any(|base| NOTICED_BY.contains(&base.as_str()));
    is_named || says_job_failed(&error.message) || error.message.starts_with("DataLoader worker (pid")
}

/// Returns whether the message is the Kubeflow SDK's word that a job failed.
fn says_job_failed(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["trainjob", "pytorchjob", "mpijob", "jaxjob"]
        .iter()
        .any(|kind| message.contains(kind))
        && ["failed", "error"].iter().any(|state| message.contains(state))
}

/// Says which process ended how and, where it said anything, its own last words.
fn of_process(facts: &Facts<'_>, process: &ProcessFacts) -> String {
    let captured = [&process.stderr, &process.stdout];
    let texts = captured.into_iter().flatten().map(String::as_str);
    let said = texts.chain([tail(facts)]).find_map(printed::last_error_or_line);
    let ending = format!("`{}` {}", short(&process.command), ended(process.status));
    match said {
        Some(said) => format!("{ending}: {said}"),
        None => ending,
    }
}

/// Shortens a command to what tells it from others: its first line, its program without the folders, and a sign that
/// there is more.
fn short(command: &str) -> String {
    let command = command.trim();
    let first = command.lines().next().unwrap_or_default();
    let (program, rest) = first.split_at(first.find(' ').unwrap_or(first.len()));
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut shown: String = name.chars().chain(rest.chars()).take(COMMAND_AT_MOST).collect();
    if command.lines().count() > 1 || name.len() + rest.len() > shown.len() {
        shown.push_str(" …");
    }
    shown
}

/// Says which worker of a pool ended how, and what was printed before somebody noticed.
fn of_worker(facts: &Facts<'_>, message: &str) -> Option<String> {
    let workers = facts.run.aftermath.silent.iter();
    let mut workers: Vec<&Silent> = workers
        .filter(|silent| silent.what == SilentKind::Worker)
        .collect();
    // The others may have ended because one was killed.
    workers.sort_by_key(|worker| worker.status > 0);
    let said = of_printed(facts, message);
    match (workers.first(), said) {
        (Some(worker), Some(said)) => Some(format!("{}: {said}", process(worker))),
        (Some(worker), None) => Some(process(worker)),
        (None, said) => said,
    }
}

/// Says which process ended how.
pub(super) fn process(silent: &Silent) -> String {
    let command = short(&silent.command);
    let pid = silent.pid.map(|pid| format!("pid {pid}")).unwrap_or_default();
    let what = match silent.what {
        SilentKind::Shell => format!("the shell step `{command}`"),
        SilentKind::System => format!("the shell step `{command}` (os.system)"),
        SilentKind::Folder => return format!("`{command}` did not change the folder"),
        SilentKind::Task => return UNASKED_TASK.into(),
        SilentKind::Future => return UNASKED_FUTURE.into(),
        SilentKind::Child => format!("the child process `{command}`"),
        SilentKind::Background => {
            format!("the background process `{command}`, for which nothing has waited,")
        }
        SilentKind::Worker => format!("the worker process {command} ({pid})"),
        SilentKind::Copy => format!("a copy of the kernel's process (os.fork, {pid})"),
    };
    format!("{what} {}", ended(silent.status))
}

/// A job's own words were printed before somebody noticed that it had failed, in this cell or in one before.
fn of_printed(facts: &Facts<'_>, message: &str) -> Option<String> {
    let tails = facts.finish.tails.iter().rev().map(|(_, text)| text.as_str());
    let said = tails
        .filter_map(printed::last_error)
        .find(|said| !message.contains(said.as_str()))?;
    Some(said)
}

/// Says how a process ended from the status that Python gives it.
fn ended(status: i64) -> String {
    match i32::try_from(-status) {
        Ok(signal) if signal > 0 => format!("was killed by {}", End::Killed(signal)),
        Ok(_) | Err(_) => match i32::try_from(status - 128).ok().and_then(signal_name) {
            // A shell says so of what it started; the program could also have chosen the number itself.
            Some(name) => format!("exited {status} (as a shell says {name})"),
            None => format!("exited {status}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_how_a_process_ended() {
        assert_eq!(ended(3), "exited 3");
        assert_eq!(ended(-9), "was killed by signal 9 (SIGKILL)");
        assert_eq!(ended(137), "exited 137 (as a shell says SIGKILL)");
    }

    #[test]
    fn a_command_is_shown_by_what_tells_it_from_others() {
        assert_eq!(short("sh -c 'exit 3'"), "sh -c 'exit 3'");
        assert_eq!(
            short("/opt/env/bin/python train.py --out /tmp/x"),
            "python train.py --out /tmp/x"
        );
        assert_eq!(short("echo hi\nls /nowhere\n"), "echo hi …");
        assert_eq!(short(&"é".repeat(90)), format!("{} …", "é".repeat(80)));
        assert_eq!(short(""), "");
    }

    #[test]
    fn the_words_of_the_sdk_are_known() {
        assert!(says_job_failed("TrainJob tb47aa0 is Failed"));
        assert!(!says_job_failed("TrainJob tb47aa0 is Complete"));
    }
}
