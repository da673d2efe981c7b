//! Showing how a run goes on, whoever drives it.

use std::{convert::Infallible, future, time::Duration};

use blueproof_core::{
    domain::{AttemptId, RunState},
    ports::RecordFollower,
    view::RunView,
};
use blueproof_host::Target;
use jiff::{SignedDuration, Timestamp};

use super::Session;
use crate::{
    exit::Problem,
    show::{
        estimate, explanation,
        progress::Progress,
        stages::{Stages, Terms},
    },
};

/// How often the run's row is read and the time that it has taken is shown. Records are shown as they come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a run waits before it is told why: most do not wait at all.
const WHY_AFTER: SignedDuration = SignedDuration::from_millis(500);

/// How long an attempt has its quota before it is told when it ends.
const END_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// Shows one run.
pub(crate) struct Watch<'a> {
    session: &'a Session,
    target: &'a Target,
    stages: Stages,
    records: Option<RecordFollower>,
}

impl<'a> Watch<'a> {
    /// Returns what shows a run, without the attempts up to `earlier`, of which an earlier command told.
    pub(crate) async fn new(
        session: &'a Session,
        target: &'a Target,
        earlier: Option<AttemptId>,
    ) -> Result<Self, Problem> {
        let terms = Terms {
            approval: session.policy().gate.local,
            queues: session.queues().await?,
        };
        Ok(Self {
            session,
            target,
            stages: Stages::new(terms).after(earlier),
            records: None,
        })
    }

    /// Shows what happens, for ever. Safe to drop.
    pub(crate) async fn go_on(&mut self, progress: &mut Progress) -> Result<Infallible, Problem> {
        loop {
            self.look(progress).await?;
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                never = self.show_records(progress) => match never {},
            }
        }
    }

    /// Shows what is new.
    pub(crate) async fn look(&mut self, progress: &mut Progress) -> Result<(), Problem> {
        let Some(view) = self.target.read(&*self.session.store).await? else {
            return Ok(());
        };
        let outlook = outlook(&view, Timestamp::now());
        // The end of an attempt is known later than its last record is written: records first, then the view, and
        // what belongs to an earlier attempt never after a later one has begun.
        self.read_records().await;
        self.stages.on_view(&view, outlook.as_deref());
        self.read_records().await;
        self.stages.on_end(&view);
        progress.show(&mut self.stages, Timestamp::now());
        Ok(())
    }

    /// Shows the records of the attempt that is shown as they come, for ever. Safe to drop.
    async fn show_records(&mut self, progress: &mut Progress) -> Infallible {
        while let Some(follower) = &mut self.records
            && let Ok(records) = follower.next().await
        {
            records.iter().for_each(|record| self.stages.on_record(record));
            progress.show(&mut self.stages, Timestamp::now());
        }
        future::pending().await
    }

    async fn read_records(&mut self) {
        let Some(attempt) = self.stages.attempt() else {
            return;
        };
        if self
            .records
            .as_ref()
            .is_none_or(|records| records.attempt() != attempt)
        {
            self.records = Some(RecordFollower::new(self.session.output().clone(), attempt));
        }
        // What cannot be read now may be later; the run does not depend on being watched.
        while let Some(follower) = &mut self.records
            && let Ok(records) = follower.ready().await
            && !records.is_empty()
        {
            records.iter().for_each(|record| self.stages.on_record(record));
        }
    }
}

/// Returns what there is to say of how the run stands, as its row says: why it waits, or when it is likely to end.
fn outlook(view: &RunView, now: Timestamp) -> Option<String> {
    let asked = pause(view)?;
    if now.duration_since(asked.since) < asked.told_after {
        return None;
    }
    let row = view.outlook.as_ref()?;
    let next = row
        .estimate
        .as_ref()
        .and_then(|estimate| estimate::next(estimate, now));
    let waits = matches!(view.state, RunState::AwaitingApproval | RunState::Queued);
    let why = row.reason.as_ref().filter(|_| waits).map(|reason| {
        let (why, until) = (explanation::why(reason, now), explanation::until(reason, now));
        format!("{why}; ends when {until}")
    });
    let parts: Vec<String> = next.into_iter().chain(why).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Since when a run is in its state, and after how long there is something to say of that.
struct Pause {
    since: Timestamp,
    told_after: SignedDuration,
}

fn pause(view: &RunView) -> Option<Pause> {
    let (since, told_after) = match view.state {
        RunState::AwaitingApproval | RunState::Queued => (view.waiting_since(), WHY_AFTER),
        RunState::Reserved | RunState::Starting | RunState::Running => {
            (view.attempts.last()?.reserved_at, END_AFTER)
        }
        RunState::Ended(_) => return None,
    };
    Some(Pause { since, told_after })
}
