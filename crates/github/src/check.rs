//! A run as a check run: how it stands, its title, tables, annotation and buttons.
//!
//! Pure: the same status is always the same check run, so that whoever sends it can tell whether there is anything to send. Nothing is
//! measured from now; times that pass by themselves would be a new check run every second. A figure that is not known is left out and
//! never zero. What notebooks, blueprints and clusters say is handled by `markdown`.

mod approving;
mod details;
mod figures;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod title;
mod without_run;

use std::collections::BTreeSet;

use blueproof_core::{
    domain::{AttemptId, BlueprintName, ClusterName, Failure, ProfileName, Source, Subject},
    ports::RunStatus,
    view::{AttemptView, RunView},
};

pub use without_run::{passed_with_same_content, without_run};

use crate::{
    api::{Annotation, CheckOutput},
    markdown,
};

/// How check runs are made, whatever the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSettings {
    /// Who may approve, as a role: `an approver in OWNERS`. Nobody is named.
    pub approver_role: String,
    /// How a failure that is not the blueprint's is concluded.
    pub infrastructure: InfrastructureConclusion,
    /// The clusters whose devices are simulated: their figures are no measurements.
    pub simulated_clusters: BTreeSet<ClusterName>,
}

/// How a run is concluded that failed for its infrastructure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InfrastructureConclusion {
    /// It says nothing about the pull request. A required check that is neutral lets it be merged, and a notebook can bring its
    /// own machine to fail.
    Neutral,
    /// It has not passed.
    #[default]
    Failure,
}

/// What a check run shows beside the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckContext<'a> {
    /// Our own page about the run.
    pub page: Option<&'a str>,
    /// The repository's present name, `OWNER/NAME`.
    pub repository: Option<&'a str>,
    /// The line of the head at which the run failed, where it is known.
    pub failed_line: Option<&'a FileLine>,
    /// What else the work asks for that an approver should know, each with its name.
    pub work: &'a [WorkFact],
}

/// Something that a run's work asks for: `secrets`, `HF_TOKEN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFact {
    /// What.
    pub name: String,
    /// How much of it, or which.
    pub value: String,
}

/// A line of a file of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLine {
    /// The file, relative to the root of the repository.
    pub path: String,
    /// The line, counted from one.
    pub line: u32,
}

/// What check runs are called, before the name of the blueprint.
const GPU_TESTS: &str = "GPU";
/// The most characters of an annotation's message: GitHub takes 64 KB.
const MESSAGE_AT_MOST: usize = 4_000;
/// The most characters of an annotation's title: GitHub takes 255.
const ANNOTATION_TITLE_AT_MOST: usize = 200;

impl CheckSettings {
    /// Returns the check run that shows a run.
    pub fn render(&self, status: &RunStatus, context: CheckContext<'_>) -> CheckOutput {
        let view = &status.view;
        let attempt = view.attempt_asked_for();
        CheckOutput {
            name: check_name(&view.subject),
            external_id: check_id(view).to_string(),
            details_url: context.page.map(str::to_owned),
            state: state::of(view, self.infrastructure),
            started_at: attempt.map(|attempt| attempt.reserved_at),
            title: title::of(view, self),
            summary: summary::of(status, self, context),
            text: details::of(status, context),
            annotations: annotation(view, context.failed_line).into_iter().collect(),
            actions: state::actions(view),
        }
    }

    /// Returns whether the devices of an attempt are simulated.
    fn is_simulated(&self, attempt: &AttemptView) -> bool {
        let place = attempt.place.as_ref();
        place.is_some_and(|place| self.simulated_clusters.contains(&place.cluster))
    }
}

/// Returns what a run's check run is called: what branch protection requires.
pub fn check_name(subject: &Subject) -> String {
    name_of(&subject.blueprint, subject.profile.as_ref())
}

fn name_of(blueprint: &BlueprintName, profile: Option<&ProfileName>) -> String {
    match profile {
        Some(profile) => format!("{GPU_TESTS} · {blueprint} ({profile})"),
        None => format!("{GPU_TESTS} · {blueprint}"),
    }
}

/// Returns the title of a run's check run.
pub fn run_title(view: &RunView, settings: &CheckSettings) -> String {
    title::of(view, settings)
}

/// Returns by what a run's check run is found again: the first attempt that it shows.
///
/// Attempts that the scheduler makes by itself are shown by the same check run: nobody asked for them. When somebody asks for the run to be
/// tried once more, the attempts from then on have a check run of their own, so that the conclusion of the earlier one stays as it was, as
/// GitHub keeps it for what was rerequested. The number does not depend on whether that attempt is there yet.
pub fn check_id(view: &RunView) -> AttemptId {
    let asked_at = view.asked_at();
    let earlier = view
        .attempts
        .iter()
        .filter(|attempt| attempt.reserved_at < asked_at);
    let n_earlier = match view.retried_at {
        Some(_) => earlier.count(),
        None => 0,
    };
    view.id
        .attempt(u32::try_from(n_earlier).map_or(u32::MAX, |n| n.saturating_add(1)))
}

/// Returns the line at which a run failed, as far as its failure says so: where it is a line of a notebook in the repository.
pub fn failed_line(status: &RunStatus) -> Option<FileLine> {
    let cell = status.view.failure_asked_for()?.cell.as_ref()?;
    let file = cell.file.as_ref()?;
    let folder = match &status.request.job.source {
        Source::Folder(_) => return None,
        Source::Git(git) => git.folder.to_str()?,
    };
    let parts = folder.split('/').chain(file.split('/'));
    let is_inside = !file.starts_with('/') && parts.clone().all(|part| part != "..");
    let is_plain = markdown::line(file) == *file && file.ends_with(".ipynb");
    let inside: Vec<&str> = parts.filter(|part| !matches!(*part, "" | ".")).collect();
    (is_inside && is_plain).then_some(FileLine {
        path: inside.join("/"),
        line: cell.file_line?,
    })
}

/// Returns what is said of the line at which a run failed. It is one: a run ends with its first failure.
fn annotation(view: &RunView, line: Option<&FileLine>) -> Option<Annotation> {
    let (failure, line) = (view.failure_asked_for()?, line?);
    Some(Annotation {
        path: line.path.clone(),
        start_line: line.line,
        end_line: line.line,
        message: markdown::plain(&message_of(failure), MESSAGE_AT_MOST),
        title: markdown::plain(&title::failed_where(failure), ANNOTATION_TITLE_AT_MOST),
    })
}

/// Returns what happened and what to do, in a few sentences.
fn message_of(failure: &Failure) -> String {
    let diagnostic = &failure.diagnostic;
    let hints = diagnostic.hints.iter().map(|hint| format!(". Hint: {hint}"));
    format!(
        "{}: {}{}",
        diagnostic.code,
        diagnostic.message,
        hints.collect::<String>()
    )
}
