//! GPUs given to the notebook's own kernel, which only creates TrainJobs.

use std::collections::BTreeSet;

use blueproof_core::domain::Gpus;
use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::Backend;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let jobs = &subject.analysis.jobs;
    let Some(first) = jobs.iter().find(|job| job.backend == Backend::Cluster) else {
        return Vec::new();
    };
    if jobs.iter().any(|job| job.backend == Backend::Process) {
        return Vec::new();
    }
    let holding = profiles_with_gpus(subject);
    let Some(profile) = holding.first() else {
        return Vec::new();
    };
    let under = profile.map_or(String::new(), |profile| format!(" under the profile `{profile}`"));
    let message = format!(
        "the driver holds GPUs{under}, while cell {} creates a TrainJob that needs them",
        first.made.at.cell
    );
    vec![
        Diagnostic::warning(Code::DriverHoldsGpus, message)
            .at(subject.loaded.place_of(&["spec", "driver", "gpu"]))
            .hint(
                "set `spec.driver.gpu` to 0, and the GPUs of the TrainJob under `spec.workload.perNode.gpu`",
            ),
    ]
}

/// Returns the profiles under which the kernel has GPUs; `None` is the blueprint without one.
pub(super) fn profiles_with_gpus<'a>(subject: &Subject<'a>) -> BTreeSet<Option<&'a str>> {
    let profiles = std::iter::once(None).chain(subject.loaded.profiles().map(Some));
    let has_some = |profile: &Option<&str>| {
        let resolved = subject.loaded.resolve(*profile, &[]);
        resolved.is_ok_and(|resolved| resolved.driver().gpu > Gpus(0))
    };
    profiles.filter(has_some).collect()
}
