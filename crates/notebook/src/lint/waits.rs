//! How a notebook waits for its TrainJobs.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::Aim;

/// Pulling an image alone takes longer on a node that has not got it.
const SHORTEST_SECONDS: f64 = 120.0;

/// Waits for Running, which hang where Kueue admits TrainJobs.
pub(super) fn for_running(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let waits = subject
        .analysis
        .waits
        .iter()
        .filter(|wait| wait.aim == Aim::Running);
    waits
        .map(|wait| {
            subject
                .warning(
                    Code::WaitsForRunning,
                    wait.at,
                    "it waits until the TrainJob is Running",
                )
                .because("a TrainJob that Kueue has admitted is never told to be Running (kubeflow/sdk#803)")
                .hint(
                    "follow its logs instead: client.get_job_logs(name, follow=True), then wait for Complete",
                )
        })
        .collect()
}

/// Waits for the end that may be shorter than the work.
pub(super) fn too_short(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let ends = subject.analysis.waits.iter().filter(|wait| wait.aim == Aim::End);
    ends.filter_map(|wait| {
        let seconds = wait.seconds.filter(|seconds| *seconds < SHORTEST_SECONDS)?;
        let message = format!("it waits only {seconds} s for the TrainJob to complete");
        let warning = subject.warning(Code::ShortWait, wait.at, message);
        Some(warning.hint("wait longer: timeout=1200; the limits of the blueprint end a run that hangs"))
    })
    .collect()
}
