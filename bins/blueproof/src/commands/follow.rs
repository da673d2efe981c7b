//! Staying with a run until it is settled, or leaving it to itself: shared by `run`, `wait` and `retry`.

use std::slice;

use blueproof_core::{domain::AttemptId, view::RunView};
use blueproof_host::Target;
use jiff::Timestamp;

use crate::{
    exit::{Exit, Problem},
    output::{self, Document, DocumentFormat},
    reading,
    session::{OnInterrupt, Session, Watch},
    show::{
        self,
        progress::Progress,
        runs::{Listed, RunArtifacts},
    },
};

/// How much is said of a run while it goes on, and when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Each stage, the verdict, and where the report is.
    Full,
    /// The verdict alone.
    VerdictOnly,
}

impl Verbosity {
    /// Returns what `--quiet` asks for.
    pub(crate) fn of(quiet: bool) -> Self {
        if quiet {
            Verbosity::VerdictOnly
        } else {
            Verbosity::Full
        }
    }
}

/// Shows how a run goes on after the attempt `earlier`, if there was one, until `done` holds of it. `None` when whoever
/// watched let go of it.
pub(crate) async fn follow(
    session: &Session,
    target: &Target,
    earlier: Option<AttemptId>,
    done: impl Fn(&RunView) -> bool,
    verbosity: Verbosity,
    on_interrupt: OnInterrupt,
) -> Result<Option<RunView>, Problem> {
    if verbosity == Verbosity::VerdictOnly {
        return wait_in_silence(session, target, done, on_interrupt).await;
    }
    show::github::begin_group("how the run goes on");
    let followed = follow_in_group(session, target, earlier, done, on_interrupt).await;
    show::github::end_group();
    followed
}

async fn wait_in_silence(
    session: &Session,
    target: &Target,
    done: impl Fn(&RunView) -> bool,
    on_interrupt: OnInterrupt,
) -> Result<Option<RunView>, Problem> {
    let say = Progress::new().speaker();
    tokio::select! {
        view = session.until(target, done) => view.map(Some),
        never = session.look_after_the_driver(&say) => match never {},
        let_go = session.heed_signals(target, on_interrupt, &say) => let_go.map(|()| None),
    }
}

async fn follow_in_group(
    session: &Session,
    target: &Target,
    earlier: Option<AttemptId>,
    done: impl Fn(&RunView) -> bool,
    on_interrupt: OnInterrupt,
) -> Result<Option<RunView>, Problem> {
    let mut progress = Progress::new();
    let say = progress.speaker();
    let mut watch = Watch::new(session, target, earlier).await?;
    let view = tokio::select! {
        view = session.until(target, done) => view?,
        never = watch.go_on(&mut progress) => match never? {},
        never = session.look_after_the_driver(&say) => match never {},
        let_go = session.heed_signals(target, on_interrupt, &say) => {
            progress.end();
            let_go?;
            return Ok(None);
        }
    };
    watch.look(&mut progress).await?;
    progress.end();
    Ok(Some(view))
}

/// Leaves a run to a process of its own, and prints it as soon as `taken_up` holds of it.
pub(crate) async fn detach(
    session: &Session,
    target: &Target,
    taken_up: impl Fn(&RunView) -> bool,
    format: Option<DocumentFormat>,
    verbosity: Verbosity,
) -> Result<Exit, Problem> {
    session.spawn_host()?;
    let view = session.until_others(target, taken_up).await?;
    match format {
        Some(format) => print_documents(session, slice::from_ref(&view), format).await?,
        None => output::print(&format!("{}\n", view.id))?,
    }
    if verbosity == Verbosity::Full {
        anstream::eprintln!(
            "`blueproof wait {0}` waits for it, `blueproof logs -f {0}` shows what it prints",
            view.id
        );
    }
    Ok(Exit::Ok)
}

/// Prints how a run ended and where its report is, or the run itself where a program asks, and returns the exit code
/// that stands for it.
pub(crate) async fn conclude(
    session: &Session,
    run: &RunView,
    format: Option<DocumentFormat>,
    verbosity: Verbosity,
) -> Result<Exit, Problem> {
    let kept = reading::kept(&*session.store, &session.output(), run).await?;
    let mut answer = show::verdict::render(run);
    if let Some(comparison) = kept.as_ref().and_then(RunArtifacts::comparison) {
        answer.push_str(&show::since::render(run, comparison, Timestamp::now()));
    }
    show::github::tell(run, &*session.output(), &answer).await;
    if let Some(format) = format {
        print_documents(session, slice::from_ref(run), format).await?;
        return Ok(Exit::of(run));
    }
    if verbosity == Verbosity::VerdictOnly {
        output::print(&show::verdict::render(run))?;
        return Ok(Exit::of(run));
    }
    if let Some(report) = kept.as_ref().and_then(RunArtifacts::report_file) {
        answer.push_str(&format!("     file://{}\n", report.display()));
    }
    output::print(&answer)?;
    Ok(Exit::of(run))
}

/// Prints one run, or several as a list, as `blueproof get runs` does.
pub(crate) async fn print_documents(
    session: &Session,
    runs: &[RunView],
    format: DocumentFormat,
) -> Result<(), Problem> {
    let mut listed = Vec::new();
    for run in runs {
        let kept = reading::kept(&*session.store, &session.output(), run).await?;
        listed.push(Listed::of(run).with(kept));
    }
    let text = match <[_; 1]>::try_from(listed) {
        Ok([run]) => output::encode(&Document::new("Run", run), format.into())?,
        Err(runs) => output::encode(&Document::list("RunList", "Run", runs), format.into())?,
    };
    output::print(&text)
}
