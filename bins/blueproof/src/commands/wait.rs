//! `blueproof wait`, `cancel` and `retry`: what is done with a run that is known.

use std::time::Duration;

use blueproof_core::{
    domain::{Ending, RunId, RunState},
    event::StopMode,
    ports::Command,
    view::RunView,
};
use blueproof_host::Target;
use jiff::Timestamp;

use super::{
    follow::{Verbosity, conclude, detach, follow, print_documents},
    run::no_such_queue,
};
use crate::{
    cli::{Cancel, Retry, Wait},
    exit::{Exit, Problem},
    output::{self, DocumentFormat},
    select::{RunSelector, described},
    session::{OnInterrupt, Session, local_user, new_key},
};

/// Waits for runs, one after the other; the exit code is that of the first that did not pass.
pub(crate) async fn wait(session: &Session, arguments: &Wait) -> Result<Exit, Problem> {
    let mut runs = Vec::new();
    for run in &arguments.runs {
        runs.push(run.resolve(&*session.store).await?.id);
    }
    let waiting = settled(session, &runs, arguments.output, Verbosity::of(arguments.quiet));
    let ended = match arguments.timeout.map(Duration::try_from) {
        None => waiting.await?,
        Some(limit) => match tokio::time::timeout(limit.unwrap_or_default(), waiting).await {
            Ok(ended) => ended?,
            Err(_) => return time_out(session, &runs, arguments.output).await,
        },
    };
    let Some(ended) = ended else {
        return Ok(Exit::Interrupted);
    };
    if let Some(format) = arguments.output {
        print_documents(session, &ended, format).await?;
    }
    let bad = ended.iter().map(Exit::of).find(|exit| *exit != Exit::Ok);
    Ok(bad.unwrap_or(Exit::Ok))
}

/// Follows runs until all are settled; where no program asks, each one's verdict is printed as it comes. `None` when
/// whoever watched let go of one.
async fn settled(
    session: &Session,
    runs: &[RunId],
    format: Option<DocumentFormat>,
    verbosity: Verbosity,
) -> Result<Option<Vec<RunView>>, Problem> {
    let mut ended = Vec::new();
    for run in runs {
        let Some(view) = follow(
            session,
            &Target::Run(*run),
            None,
            |view| view.settled,
            verbosity,
            OnInterrupt::StopWaiting,
        )
        .await?
        else {
            return Ok(None);
        };
        if format.is_none() {
            conclude(session, &view, None, verbosity).await?;
        }
        ended.push(view);
    }
    Ok(Some(ended))
}

/// Says how the runs stand for which there is no more time.
async fn time_out(
    session: &Session,
    runs: &[RunId],
    format: Option<DocumentFormat>,
) -> Result<Exit, Problem> {
    let mut views = Vec::new();
    for run in runs {
        views.extend(session.store.run(*run).await?);
    }
    for view in views.iter().filter(|view| !view.settled) {
        output::note(&format!("{} is not over yet ({})", view.id, view.state));
    }
    if let Some(format) = format {
        print_documents(session, &views, format).await?;
    }
    Ok(Exit::Pending)
}

/// Asks for runs to end, and waits until they have. Where one is named that is not known, none is ended.
pub(crate) async fn cancel(session: &Session, arguments: &Cancel) -> Result<Exit, Problem> {
    let mut named = Vec::new();
    for selector in &arguments.runs {
        named.push((selector, selector.resolve_to_change(&*session.store).await?));
    }
    let mut ending = Vec::new();
    for (selector, view) in named {
        if let RunState::Ended(already) = view.state {
            say_over(session, selector, view.id, already).await?;
            continue;
        }
        output::note(&format!("ends {}", asked(&view)));
        session
            .submit(Command::Cancel {
                key: new_key(),
                run: view.id,
                by: local_user(),
                how: StopMode::Terminate,
            })
            .await?;
        ending.push(view.id);
    }
    match settled(session, &ending, None, Verbosity::Full).await? {
        Some(_) => Ok(Exit::Ok),
        None => Ok(Exit::Interrupted),
    }
}

async fn say_over(session: &Session, named: &RunSelector, run: RunId, ending: Ending) -> Result<(), Problem> {
    anstream::eprintln!("{run} is already over: {ending}");
    match named {
        RunSelector::Blueprint(_) => tell_who_goes_on(session, named).await,
        RunSelector::Id(_) | RunSelector::Last => Ok(()),
    }
}

/// Says of the runs of a blueprint that go on how each is ended.
async fn tell_who_goes_on(session: &Session, named: &RunSelector) -> Result<(), Problem> {
    let runs = session.runs().await?;
    let of_name = runs.iter().filter(|run| named.may_be(run));
    for run in of_name.filter(|run| !matches!(run.state, RunState::Ended(_))) {
        let told = asked(run);
        output::note(&format!("{told}, goes on: `blueproof cancel {}` ends it", run.id));
    }
    Ok(())
}

/// Has an ended run tried once more, and stays with it.
pub(crate) async fn retry(session: &Session, arguments: &Retry) -> Result<Exit, Problem> {
    let before = arguments.run.resolve_to_change(&*session.store).await?;
    let run = before.id;
    if !matches!(before.state, RunState::Ended(_)) {
        anstream::eprintln!(
            "{run} is not over yet ({}); `blueproof wait {run}` stays with it",
            before.state
        );
        return Ok(Exit::Pending);
    }
    let objects = session.queues().await?;
    if !objects.local_queues.contains_key(before.queue.as_str()) {
        return Err(no_such_queue(&objects, before.queue.as_str()));
    }
    let earlier = before.attempts.last().map(|attempt| attempt.id);
    let verbosity = Verbosity::of(arguments.quiet);
    if verbosity == Verbosity::Full {
        output::note(&format!("tries {} once more", asked(&before)));
    }
    let key = new_key();
    let command = Command::Retry {
        key: key.clone(),
        run,
        by: local_user(),
    };
    session.submit(command).await?;
    session.until_taken_up(&key).await?;
    let target = Target::Run(run);
    if arguments.detach {
        let again = move |view: &RunView| view.ended_at != before.ended_at;
        return detach(session, &target, again, arguments.output, verbosity).await;
    }
    // It ended before: only an end that came after that one counts.
    let again = move |view: &RunView| view.settled && view.ended_at > before.ended_at;
    match follow(
        session,
        &target,
        earlier,
        again,
        verbosity,
        OnInterrupt::CancelRun,
    )
    .await?
    {
        Some(view) => conclude(session, &view, arguments.output, verbosity).await,
        None => Ok(Exit::Interrupted),
    }
}

/// Returns which run it is, in words: what it tests, where, and who asked for it when.
fn asked(view: &RunView) -> String {
    let by = output::line(&view.requested_by.to_string());
    let when = output::ago(view.requested_at, Timestamp::now());
    format!("{}, asked for by {by} {when}", described(view))
}
