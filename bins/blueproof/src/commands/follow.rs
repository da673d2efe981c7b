//! Staying with a run until it is settled: shared by `run`, `wait` and `retry`.

use blueproof_core::view::RunView;

use crate::{
    exit::{Exit, Problem},
    output::{self, Document, DocumentFormat},
    session::{Session, Target, Watch},
    show::{self, progress::Progress},
};

/// Shows how a run goes on until `done` holds of it. `None` when whoever watched let go of it.
pub(crate) async fn follow(
    session: &Session,
    target: &Target,
    done: impl Fn(&RunView) -> bool,
) -> Result<Option<RunView>, Problem> {
    let mut progress = Progress::new();
    let say = progress.sayer();
    let mut watch = Watch::new(session, target);
    let view = tokio::select! {
        view = session.until(target, done) => view?,
        never = watch.go_on(&mut progress) => match never? {},
        let_go = session.heed_signals(target, &say) => {
            progress.end();
            let_go?;
            return Ok(None);
        }
    };
    watch.look(&mut progress).await?;
    progress.end();
    Ok(Some(view))
}

/// Prints how a run ended and where its report is, or the run itself where a program asks, and returns the exit code
/// that stands for it.
pub(crate) fn conclude(
    session: &Session,
    run: &RunView,
    format: Option<DocumentFormat>,
) -> Result<Exit, Problem> {
    if let Some(format) = format {
        output::print(&output::encode(&Document::new("Run", run), format.into())?)?;
        return Ok(Exit::of(run));
    }
    let mut answer = show::verdict::render(run);
    let report = session.run_folder(run.id).join("report.html");
    if report.exists() {
        answer.push_str(&format!("     file://{}\n", report.display()));
    }
    output::print(&answer)?;
    Ok(Exit::of(run))
}
