//! How people name a run: `r-41`, `41`, `last` for the newest of the project that they stand in, or a blueprint for its
//! newest there.

use std::{collections::BTreeSet, fmt, path::Path, str::FromStr};

use blueproof_core::{
    domain::{AttemptId, BlueprintName, Head, RunId},
    ports::{Removal, StoreClient, StoreError},
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic, yaml::nearest};

use crate::{current_project::CurrentProject, exit::Problem, output};

/// A run as somebody names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunSelector {
    Id(RunId),
    /// The newest run of the project of the current folder: the one that was asked for last, be it to be tried once more.
    Last,
    /// The newest run of this blueprint, of this project.
    Blueprint(BlueprintName),
}

/// Content as somebody names it: by what it is, or by a run of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentSelector {
    Head(Head),
    Run(RunId),
}

/// A text that names no content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "content is named by the 40 digits of a commit, by `snapshot:` and 64 digits, or by a run, such as r-41; fewer digits could be another commit's"
)]
pub(crate) struct ContentSelectorError;

impl FromStr for ContentSelector {
    type Err = ContentSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let head = || text.parse().map(Self::Head);
        text.parse()
            .map(Self::Run)
            .or_else(|_| head())
            .map_err(|_| ContentSelectorError)
    }
}

/// A text that names no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("`{0}` is an attempt; its run is {run}", run = .0.run)]
    Attempt(AttemptId),
    #[error(
        "runs are named like r-41 or 41; `last` is the newest of this project, and a blueprint's name stands for its newest"
    )]
    Unknown,
}

impl RunSelector {
    /// Returns the run that is meant, as it stands in the store. Where `last` is of no project, it is the newest of all,
    /// and that is said.
    pub(crate) async fn resolve(&self, store: &dyn StoreClient) -> Result<RunView, Problem> {
        let meant = self.meant(store).await?;
        if let Meant::NewestOfAll(run) = &meant {
            output::note(&format!(
                "`{self}` is {}, the newest run of all: the current folder is of no project",
                described(run)
            ));
        }
        Ok(meant.run())
    }

    /// Returns the run that is meant, to be ended or tried once more. Where `last` is of no project, none is meant: it may
    /// be somebody else's.
    pub(crate) async fn resolve_to_change(&self, store: &dyn StoreClient) -> Result<RunView, Problem> {
        match self.meant(store).await? {
            Meant::One(run) => Ok(run),
            Meant::NewestOfAll(run) => Err(Problem::usage(
                Diagnostic::error(
                    Code::NoSuchRun,
                    format!(
                        "`{self}` is the newest run of a project, and the current folder is of no project"
                    ),
                )
                .hint(format!(
                    "the newest run of all is {}; name it by its id",
                    described(&run)
                )),
            )),
        }
    }

    async fn meant(&self, store: &dyn StoreClient) -> Result<Meant, Problem> {
        match self {
            RunSelector::Last | RunSelector::Blueprint(_) => self.newest(store).await,
            RunSelector::Id(id) => match store.run(*id).await? {
                Some(run) => Ok(Meant::One(run)),
                None => Err(Problem::usage(self.missing(store).await?)),
            },
        }
    }

    /// Returns the run of this project that was asked for last, be it to be tried once more.
    async fn newest(&self, store: &dyn StoreClient) -> Result<Meant, Problem> {
        let here = CurrentProject::of_this_process()?;
        // Any run may have been tried once more, so all are looked at.
        let mut runs = store.runs(i64::MAX as usize).await?;
        runs.sort_by_key(|run| (run.retried_at.unwrap_or(run.requested_at), run.id));
        let newest = runs.last().cloned();
        let blueprints: BTreeSet<String> = runs.iter().map(|run| run.subject.blueprint.to_string()).collect();
        runs.retain(|run| self.may_be(run));
        if let Some(run) = runs.iter().rfind(|run| here.has(run)) {
            return Ok(Meant::One(run.clone()));
        }
        match (runs.pop(), here.project()) {
            (Some(run), None) => Ok(Meant::NewestOfAll(run)),
            (Some(run), Some(project)) => Err(Problem::usage(self.none_here(project, &run))),
            (None, _) => {
                let unknown = self.unknown(newest.as_ref());
                let known = blueprints.iter().map(String::as_str).chain(["last"]);
                Err(Problem::usage(match nearest(&self.to_string(), known) {
                    Some(meant) if newest.is_some() => unknown.hint(format!("did you mean `{meant}`?")),
                    _ => unknown,
                }))
            }
        }
    }

    /// Returns whether a run is named by this, whichever project it is of.
    pub(crate) fn may_be(&self, run: &RunView) -> bool {
        match self {
            RunSelector::Id(id) => run.id == *id,
            RunSelector::Last => true,
            RunSelector::Blueprint(name) => run.subject.blueprint == *name,
        }
    }

    fn none_here(&self, project: &Path, elsewhere: &RunView) -> Diagnostic {
        let of = match self {
            RunSelector::Blueprint(name) => format!("of `{name}` in the project"),
            RunSelector::Id(_) | RunSelector::Last => "of the project".into(),
        };
        let message = format!("there is no run {of} {} yet", project.display());
        let newest = format!(
            "the newest run elsewhere is {}; name it by its id",
            described(elsewhere)
        );
        let error = Diagnostic::error(Code::NoSuchRun, output::line(&message)).hint(newest);
        error.hint("`blueproof get runs` lists the runs of all projects")
    }

    /// Returns what is said when the run is not there: it was never asked for, was removed, or is lost.
    pub(crate) async fn missing(&self, store: &dyn StoreClient) -> Result<Diagnostic, StoreError> {
        let newest = store.runs(1).await?.pop();
        match (self, &newest) {
            (RunSelector::Id(run), Some(newest)) if *run < newest.id => {
                Ok(gone(*run, store.removal(*run).await?))
            }
            _ => Ok(self.unknown(newest.as_ref())),
        }
    }

    /// Returns what is said when the run is not known; `newest` is the newest that is.
    pub(crate) fn unknown(&self, newest: Option<&RunView>) -> Diagnostic {
        let Some(newest) = newest else {
            return Diagnostic::error(Code::NoSuchRun, "there are no runs yet")
                .hint("`blueproof run BLUEPRINT` makes the first")
                .hint("runs of another store are found with `--store FILE`");
        };
        let message = match self {
            RunSelector::Blueprint(name) => format!("there is no run of `{name}`"),
            RunSelector::Id(_) | RunSelector::Last => format!("there is no run {self}"),
        };
        Diagnostic::error(Code::NoSuchRun, message).hint(format!(
            "the newest is {}, of {}; `blueproof get runs` lists those that are there",
            newest.id, newest.subject.blueprint
        ))
    }
}

/// Returns what is said of a run that was asked for and has no row.
fn gone(run: RunId, removal: Removal) -> Diagnostic {
    let error = |message: String| Diagnostic::error(Code::NoSuchRun, message);
    let gone = match removal {
        Removal::Pruned => error(format!("{run} is not kept any more"))
            .because("it was removed beyond the limits of a retention"),
        Removal::NotPruned => error(format!("the row of {run} is missing from the store"))
            .because("nothing removed it: the store is damaged")
            .hint("`blueproof store check` tells what else is missing, `blueproof store repair` writes it again"),
        Removal::Unknown => error(format!("{run} is not there any more"))
            .because("it was removed beyond the limits of a retention, or its row was lost")
            .hint("`blueproof store check`, where the store is, tells whether it was lost"),
    };
    gone.hint("`blueproof get events` has what became of it")
}

/// What a selector comes to.
enum Meant {
    One(RunView),
    /// The newest run of the store, where the current folder is of no project.
    NewestOfAll(RunView),
}

impl Meant {
    fn run(self) -> RunView {
        match self {
            Meant::One(run) | Meant::NewestOfAll(run) => run,
        }
    }
}

/// Returns the run with its blueprint and folder, in words.
pub(crate) fn described(run: &RunView) -> String {
    let project = output::line(&run.subject.repository.to_string());
    format!("{} of {}, in {project}", run.id, run.subject.blueprint)
}

impl FromStr for RunSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "last" {
            return Ok(RunSelector::Last);
        }
        let with_prefix = format!("r-{text}");
        if let Ok(id) = text.parse().or_else(|_| with_prefix.parse()) {
            return Ok(RunSelector::Id(id));
        }
        match text.parse::<AttemptId>().or_else(|_| with_prefix.parse()) {
            Ok(attempt) => Err(SelectorError::Attempt(attempt)),
            Err(_) => match text.parse() {
                Ok(name) => Ok(RunSelector::Blueprint(name)),
                Err(_) => Err(SelectorError::Unknown),
            },
        }
    }
}

impl fmt::Display for RunSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunSelector::Id(id) => id.fmt(f),
            RunSelector::Last => f.write_str("last"),
            RunSelector::Blueprint(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_as_people_type_them() {
        let run = Ok(RunSelector::Id(RunId(41)));
        for (text, selector) in [
            ("r-41", run.clone()),
            ("41", run),
            ("last", Ok(RunSelector::Last)),
            ("r-41.2", Err(SelectorError::Attempt(RunId(41).attempt(2)))),
            ("41.2", Err(SelectorError::Attempt(RunId(41).attempt(2)))),
            (
                "nano-lm",
                Ok(RunSelector::Blueprint("nano-lm".parse().expect("a name"))),
            ),
            ("", Err(SelectorError::Unknown)),
            ("r-", Err(SelectorError::Unknown)),
            ("-1", Err(SelectorError::Unknown)),
            ("LAST", Err(SelectorError::Unknown)),
        ] {
            assert_eq!(text.parse(), selector, "{text}");
        }
    }
}
