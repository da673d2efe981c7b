//! Why a run stands where it stands: one sentence why, and one what comes next.

use std::{collections::BTreeMap, fmt};

use blueproof_core::{
    domain::{Ending, RunId, RunState},
    estimate::Estimate,
    pending::{PendingReason, RunRemedy, UsageOrder},
    view::{Eviction, FailingCall, OutlookView, RunView},
};
use blueproof_queue::UserUsage;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    estimate,
    text::{self, blame},
};
use crate::output;

/// How old a row may be before that is said: whoever leads works rows out again every fifteen seconds, where few wait.
const OLD_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// Why a run stands where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation {
    /// The run.
    run: RunId,
    /// Where it is in the pipeline.
    state: RunState,
    /// When why it waits and its estimate were worked out; absent when they were not, or the run is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<Timestamp>,
    /// Why it waits, with all figures; absent when it does not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<PendingReason>,
    /// What would get it admitted, each by itself; it was tried on a copy of the queues.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unblocked_by: Vec<RunRemedy>,
    /// When it is likely to start and to end; absent when nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate>,
    /// That its last attempt had to give its quota back, and for whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    eviction: Option<Eviction>,
    /// What failed for it and is tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failing_calls: Vec<FailingCall>,
    /// Why it stands there, without a full stop.
    why: String,
    /// What would end that, or what can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// How it stands in its queue, for people: programs have the figures.
    #[serde(skip)]
    standing: Vec<String>,
    /// How it stands and since when, for people: programs have the times of the run.
    #[serde(skip)]
    stands: String,
}

impl Explanation {
    /// Explains a run as its row says. `others` are the runs whose end it waits for.
    pub(crate) fn of(view: &RunView, others: &BTreeMap<RunId, RunState>, now: Timestamp) -> Self {
        let outlook = view.outlook.as_deref();
        let pending = view.waits().cloned();
        let unblocked_by = outlook.map_or_else(Vec::new, |outlook| outlook.unblocked_by.clone());
        let estimate = outlook.and_then(|outlook| outlook.estimate);
        let explained = |stands: String, why: String, next: Option<String>| Self {
            run: view.id,
            as_of: outlook.map(|outlook| outlook.as_of),
            state: view.state,
            waits: pending.clone(),
            unblocked_by: unblocked_by.clone(),
            estimate,
            eviction: view.attempts.last().and_then(|attempt| attempt.eviction.clone()),
            failing_calls: view.failing_calls.clone(),
            standing: pending
                .iter()
                .flat_map(standing)
                .chain(approved_by(view).map(|command| format!("  approve {command}")))
                .chain(unblocked_by.iter().flat_map(|way| over(way, others)))
                .chain(evicted(view, now))
                .chain(view.failing_calls.iter().map(|trouble| fails(trouble, now)))
                .chain(estimate.iter().flat_map(|estimate| expected(estimate, now)))
                .chain(outlook.and_then(|outlook| old(outlook, now)))
                .collect(),
            why,
            next,
            stands,
        };
        if let Some((attempt, _)) = view.being_evicted() {
            let next = format!("it waits in its queue again when {} has stopped", attempt.id);
            let why = format!("{} has to give its quota back", attempt.id);
            return explained("is being stopped".into(), why, Some(next));
        }
        if let Some(reason) = &pending {
            let next = goes_on_when(reason, &unblocked_by, now);
            return explained(
                format!("is {}", view.state_in_words()),
                why(reason, now),
                Some(next),
            );
        }
        if let RunState::Ended(ending) = view.state {
            let when = view
                .ended_at
                .map_or_else(String::new, |at| format!(" {}", output::ago(at, now)));
            return explained(
                format!("{}{when}", verb(ending)),
                cause(view, ending),
                after(view, ending),
            );
        }
        let attempt = view.attempts.last();
        let ran = text::took(attempt, now);
        let next = "it ends when the notebook does".into();
        explained(
            format!("does not wait, it has been running for {ran}"),
            activity(view),
            Some(next),
        )
    }
}

/// Returns the command that approves what a run tests, where it waits for that.
pub(crate) fn approved_by(view: &RunView) -> Option<String> {
    let Some(PendingReason::AwaitingApproval { .. }) = view.waits() else {
        return None;
    };
    let of = view.subject.pull_request;
    let of = of.map_or_else(String::new, |number| format!(" --pull-request {number}"));
    Some(format!("blueproof approve {}{of}", view.subject.head))
}

/// Returns the reason in a word, and of one that waits in a queue what is missing, and who is ahead.
fn standing(reason: &PendingReason) -> Vec<String> {
    let mut lines = vec![format!("  reason  {}", reason.as_str())];
    let Some((_, queued)) = reason.queued() else {
        return lines;
    };
    lines.extend(
        queued
            .obstacles
            .iter()
            .map(|obstacle| format!("  missing {obstacle}")),
    );
    match queued.n_ahead {
        None => lines.push("  ahead   not counted yet: ask again in a few seconds".into()),
        Some(0) => {}
        Some(n_ahead) => lines.push(format!(
            "  ahead   {}",
            named(&queued.ahead, n_ahead, ToString::to_string)
        )),
    }
    lines.extend(queued.usage.as_ref().map(usage));
    if !queued.can_ever_fit {
        lines.push("  never   not even were nobody else there".into());
    }
    lines
}

/// Returns the first few by name, and how many more there are.
fn named<T>(first: &[T], in_all: usize, name: impl Fn(&T) -> String) -> String {
    let mut names: Vec<String> = first.iter().map(name).collect();
    if in_all > names.len() {
        names.push(format!("{} more", in_all - names.len()));
    }
    names.join(", ")
}

/// Returns what those users had lately that go before the run's own because of that, and what its own had.
fn usage(order: &UsageOrder) -> String {
    let figure = |of: &UserUsage| match of.usage {
        Some(usage) => format!("{} {}", user(of), text::figure(usage)),
        None => format!("{} with a weight of 0", user(of)),
    };
    let own = figure(&order.own);
    if order.less.is_empty() {
        return format!("  usage   {own}: nobody who waits had less");
    }
    let less = named(&order.less, order.n_less, |less| figure(&less.of));
    format!("  usage   {less}, {own}: who had least goes first")
}

fn user(of: &UserUsage) -> String {
    match &of.user {
        Some(user) => output::line(&format!("{user} in {}", of.local_queue)),
        None => of.local_queue.clone(),
    }
}

/// Returns, of those whose end is waited for, which are over already: they keep their quota until they are cleared away.
fn over(way: &RunRemedy, others: &BTreeMap<RunId, RunState>) -> Vec<String> {
    let runs = match way {
        RunRemedy::Ends { runs, .. } => runs,
        RunRemedy::Resumed { then, .. } | RunRemedy::Cancelled { then, .. } => {
            return then.iter().flat_map(|way| over(way, others)).collect();
        }
        RunRemedy::Time | RunRemedy::InTurn | RunRemedy::MoreQuota { .. } => return Vec::new(),
    };
    let states = runs.iter().filter_map(|run| Some((run, others.get(run)?)));
    let told = states.filter_map(|(run, state)| match *state {
        RunState::Ended(ending) => Some(format!(
            "  over    {run} {}, and keeps its quota until its place is cleared away",
            verb(ending)
        )),
        RunState::AwaitingApproval
        | RunState::Queued
        | RunState::Reserved
        | RunState::Starting
        | RunState::Running => None,
    });
    told.collect()
}

/// Returns for whom a run that waits again was evicted last, and why.
fn evicted(view: &RunView, now: Timestamp) -> Option<String> {
    let attempt = view.attempts.last()?;
    let eviction = attempt.eviction.as_ref()?;
    let when = output::ago(eviction.at, now);
    let is_over = matches!(view.state, RunState::Ended(_));
    (!is_over).then(|| format!("  evicted {} {when} {eviction}", attempt.id))
}

fn fails(trouble: &FailingCall, now: Timestamp) -> String {
    let told = trouble.told(&output::clock(trouble.again_at, now));
    format!("  fails   {}", output::line(&told))
}

/// Returns when a run is likely to start and to end.
fn expected(estimate: &Estimate, now: Timestamp) -> impl Iterator<Item = String> + use<> {
    let starts = estimate::starts(estimate, now).map(|starts| format!("  starts  {starts}"));
    let ends = estimate::ends(estimate, now).map(|ends| format!("  ends    {ends}"));
    starts.into_iter().chain(ends)
}

/// Says how old figures are that are not worked out again all the time, as where many wait or nobody leads.
fn old(outlook: &OutlookView, now: Timestamp) -> Option<String> {
    let is_old = outlook.age(now) > OLD_AFTER;
    is_old.then(|| {
        format!(
            "  as of   {}: others may have come and gone since",
            output::ago(outlook.as_of, now)
        )
    })
}

/// Returns the runs whose end a run is said to wait for.
pub(crate) fn awaited(view: &RunView) -> Vec<RunId> {
    fn those(way: &RunRemedy) -> Vec<RunId> {
        match way {
            RunRemedy::Ends { runs, .. } => runs.clone(),
            RunRemedy::Resumed { then, .. } | RunRemedy::Cancelled { then, .. } => {
                then.iter().flat_map(those).collect()
            }
            RunRemedy::Time | RunRemedy::InTurn | RunRemedy::MoreQuota { .. } => Vec::new(),
        }
    }
    let ways = view.outlook.iter().flat_map(|outlook| &outlook.unblocked_by);
    ways.flat_map(those).collect()
}

/// Says why a run waits, with times as the reader's clock shows them.
pub(crate) fn why(reason: &PendingReason, now: Timestamp) -> String {
    if let PendingReason::BackingOff(back_off) = reason {
        return back_off.told(&output::clock(back_off.until, now));
    }
    reason.to_string()
}

/// Says in general what ends a wait, with times as the reader's clock shows them.
pub(crate) fn until(reason: &PendingReason, now: Timestamp) -> String {
    if let PendingReason::BackingOff(back_off) = reason {
        return format!("it is tried again at {}", output::clock(back_off.until, now));
    }
    reason.unblocked_by()
}

fn goes_on_when(reason: &PendingReason, unblocked_by: &[RunRemedy], now: Timestamp) -> String {
    let mut ways: Vec<String> = unblocked_by.iter().map(ToString::to_string).collect();
    if ways.is_empty() {
        ways.push(until(reason, now));
    }
    format!("it goes on when {}", ways.join(", or when "))
}

fn cause(view: &RunView, ending: Ending) -> String {
    match &view.failure {
        Some(failure) => {
            let message = output::joined(&failure.diagnostic);
            format!("{}: {message}", blame(failure.class))
        }
        None => match view.passed_late() {
            Some(late) => format!("{}, {}", without_failure(ending), output::line(&late)),
            None => without_failure(ending).into(),
        },
    }
}

fn after(view: &RunView, ending: Ending) -> Option<String> {
    match ending {
        Ending::Passed => None,
        Ending::Superseded => Some("the newer head has a run of its own".into()),
        Ending::Failed
        | Ending::InfrastructureFailed
        | Ending::TimedOut
        | Ending::Cancelled
        | Ending::Refused => Some(format!("`blueproof describe run {}` tells more", view.id)),
    }
}

fn activity(view: &RunView) -> String {
    let Some(attempt) = view.attempts.last() else {
        return "it is about to be attempted".into();
    };
    let place = attempt
        .place_in_words(view.resources)
        .map(|place| output::line(&place));
    let place = place.map_or_else(String::new, |place| format!(" ({place})"));
    match attempt.ended_at {
        Some(_) => format!("{} is over and is being cleared away{place}", attempt.id),
        None => format!("{} runs{place}", attempt.id),
    }
}

fn verb(ending: Ending) -> &'static str {
    match ending {
        Ending::Passed => "passed",
        Ending::Failed | Ending::InfrastructureFailed => "failed",
        Ending::TimedOut => "timed out",
        Ending::Cancelled => "was cancelled",
        Ending::Refused => "was refused",
        Ending::Superseded => "was superseded",
    }
}

fn without_failure(ending: Ending) -> &'static str {
    match ending {
        Ending::Passed => "every cell ran, and everything that is expected holds",
        Ending::Cancelled => "somebody asked for its end",
        Ending::Superseded => "the pull request moved on to another head",
        Ending::Failed | Ending::InfrastructureFailed | Ending::TimedOut | Ending::Refused => {
            "nothing more is known"
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}: {}", self.run, self.stands, self.why)?;
        for line in &self.standing {
            writeln!(f, "{line}")?;
        }
        match &self.next {
            Some(next) => writeln!(f, "{next}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
