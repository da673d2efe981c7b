//! TrainJobs whose end nobody awaits.

use std::rc::Rc;

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::{Aim, Job};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let jobs = subject
        .analysis
        .jobs
        .iter()
        .filter(|job| !is_awaited(subject, job));
    jobs.map(|job| {
        subject
            .warning(
                Code::NoCompletionWait,
                job.made.at,
                "nothing waits for this TrainJob to complete",
            )
            .hint("client.wait_for_job_status(name=job_name, timeout=1200) in a later cell")
    })
    .collect()
}

/// A wait for something unknown may be one for any TrainJob.
fn is_awaited(subject: &Subject<'_>, job: &Job) -> bool {
    let after = subject
        .analysis
        .waits
        .iter()
        .filter(|wait| wait.aim == Aim::End && wait.from >= job.made.from);
    let mut awaited = after.map(|wait| wait.job.as_ref().is_none_or(|known| Rc::ptr_eq(known, &job.made)));
    let by_hand = |command: &String| {
        command.contains("kubectl wait") && (command.contains("Complete") || command.contains("complete"))
    };
    awaited.any(|it| it) || subject.analysis.shell.iter().any(|(_, command)| by_hand(command))
}
