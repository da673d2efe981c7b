//! Packages that the notebook or its TrainJobs install.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::{Form, is_pinned};

/// Cells that install packages into the environment that they run in.
pub(super) fn in_cells(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let run = subject.analysis.installs_by(Form::Run);
    run.map(|install| {
        let what = match install.packages.as_slice() {
            [] => "packages".to_owned(),
            some => some.join(", "),
        };
        subject
            .warning(Code::ShellInstall, install.at, format!("it installs {what}"))
            .hint("list them under `spec.env.requirements`; cells that the environment already satisfies are left out")
    })
    .collect()
}

/// Packages without an exact version, in cells and in the pods of TrainJobs.
pub(super) fn unpinned(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let run = subject.analysis.installs_by(Form::Run);
    let in_cells = run.map(|install| (install.at, install.packages.clone()));
    let in_pods = subject.analysis.jobs.iter().filter_map(|job| {
        let first = job.packages.first()?;
        let names = job
            .packages
            .iter()
            .filter_map(|package| package.text().map(str::to_owned));
        Some((first.at, names.collect()))
    });
    let all = in_cells.chain(in_pods);
    all.filter_map(|(at, packages)| {
        let floating: Vec<String> = packages
            .into_iter()
            .filter(|package| !is_pinned(package))
            .collect();
        let first = floating.first()?;
        let example = first
            .split(['=', '<', '>', '~', '!', ';', ' '])
            .next()
            .unwrap_or(first);
        Some(
            subject
                .warning(
                    Code::UnpinnedInstall,
                    at,
                    format!("no exact version: {}", floating.join(", ")),
                )
                .hint(format!(
                    "write the version that it was tested with: {example}==1.2.3"
                )),
        )
    })
    .collect()
}
