//! `blueproof wait`, `cancel` and `retry`: what is done with a run that is known.

use std::time::Duration;

use blueproof_core::{domain::RunState, event::StopMode, ports::Command, view::RunView};

use super::follow::{conclude, follow};
use crate::{
    cli::{Cancel, Retry, Wait},
    exit::{Exit, Problem},
    output::{self, Document},
    session::{Session, Target, local_user, new_key},
};

/// Waits for runs, one after the other; the exit code is that of the first that did not pass.
pub(crate) async fn wait(session: &Session, arguments: &Wait) -> Result<Exit, Problem> {
    let waiting = async {
        let mut ended = Vec::new();
        for run in &arguments.runs {
            let run = run.resolve(&*session.store).await?.id;
            let Some(view) = follow(session, &Target::Run(run), |view| view.settled).await? else {
                return Ok(Exit::Interrupted);
            };
            if arguments.output.is_none() {
                conclude(session, &view, None)?;
            }
            ended.push(view);
        }
        match (&ended[..], arguments.output) {
            (_, None) => {}
            ([view], Some(_)) => return conclude(session, view, arguments.output),
            (views, Some(format)) => {
                let list = Document::list("RunList", "Run", views);
                output::print(&output::encode(&list, format.into())?)?;
            }
        }
        let bad = ended.iter().map(Exit::of).find(|exit| *exit != Exit::Ok);
        Ok(bad.unwrap_or(Exit::Ok))
    };
    let Some(limit) = arguments.timeout else {
        return waiting.await;
    };
    let limit = Duration::try_from(limit).unwrap_or_default();
    tokio::time::timeout(limit, waiting)
        .await
        .unwrap_or(Ok(Exit::Pending))
}

/// Asks for a run to end, and waits until it has.
pub(crate) async fn cancel(session: &Session, arguments: &Cancel) -> Result<Exit, Problem> {
    let view = arguments.run.resolve(&*session.store).await?;
    let run = view.id;
    if let RunState::Ended(ending) = view.state {
        anstream::eprintln!("{run} is already over: {ending}");
        return Ok(Exit::Ok);
    }
    session
        .submit(Command::Cancel {
            key: new_key(),
            run,
            by: local_user(),
            how: StopMode::End,
        })
        .await?;
    match follow(session, &Target::Run(run), |view| view.settled).await? {
        Some(view) => {
            conclude(session, &view, None)?;
            Ok(Exit::Ok)
        }
        None => Ok(Exit::Interrupted),
    }
}

/// Has an ended run tried once more, and stays with it.
pub(crate) async fn retry(session: &Session, arguments: &Retry) -> Result<Exit, Problem> {
    let before = arguments.run.resolve(&*session.store).await?;
    let run = before.id;
    if !matches!(before.state, RunState::Ended(_)) {
        anstream::eprintln!(
            "{run} is not over yet ({}); `blueproof wait {run}` stays with it",
            before.state
        );
        return Ok(Exit::Pending);
    }
    session
        .submit(Command::Retry {
            key: new_key(),
            run,
            by: local_user(),
        })
        .await?;
    if arguments.detach {
        session.spawn_host()?;
        output::print(&format!("{run}\n"))?;
        return Ok(Exit::Ok);
    }
    // It ended before: only an end that came after that one counts.
    let again = move |view: &RunView| view.settled && view.ended_at > before.ended_at;
    match follow(session, &Target::Run(run), again).await? {
        Some(view) => conclude(session, &view, arguments.output),
        None => Ok(Exit::Interrupted),
    }
}
