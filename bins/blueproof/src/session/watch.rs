//! Showing how a run goes on, whoever drives it.

use std::{convert::Infallible, time::Duration};

use blueproof_core::{
    attempt::LogReader,
    domain::{AttemptId, RunState},
    engine,
    ports::Store,
    view::RunView,
};
use jiff::Timestamp;

use super::{Session, Target};
use crate::{
    exit::Problem,
    show::{progress::Progress, stages::Stages},
};

/// How often it is looked for news.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a run waits before it is worked out why: most do not wait at all.
const ASK_WHY_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_millis(500);

/// Shows one run.
pub(crate) struct Watch<'a> {
    session: &'a Session,
    target: &'a Target,
    stages: Stages,
    reading: Option<(AttemptId, LogReader, u64)>,
    why: Option<Why>,
}

/// Why the run waits, as it was last worked out.
struct Why {
    state: RunState,
    at: Timestamp,
    text: Option<String>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(session: &'a Session, target: &'a Target) -> Self {
        let stages = Stages::new(session.policy.quota);
        Self {
            session,
            target,
            stages,
            reading: None,
            why: None,
        }
    }

    /// Shows what happens, for ever. Safe to drop.
    pub(crate) async fn go_on(&mut self, progress: &mut Progress) -> Result<Infallible, Problem> {
        loop {
            self.look(progress).await?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Shows what is new.
    pub(crate) async fn look(&mut self, progress: &mut Progress) -> Result<(), Problem> {
        let Some(view) = self.target.read(&*self.session.store).await? else {
            return Ok(());
        };
        let why = self.why(&view).await?;
        // The end of an attempt is known later than its last record is written: records first, then the view, and
        // what belongs to an earlier attempt never after a later one has begun.
        self.read_records().await;
        self.stages.on_view(&view, why.as_deref());
        self.read_records().await;
        self.stages.on_end(&view);
        progress.show(&mut self.stages, Timestamp::now());
        Ok(())
    }

    async fn read_records(&mut self) {
        let Some(attempt) = self.stages.attempt() else {
            return;
        };
        if self
            .reading
            .as_ref()
            .is_none_or(|(reading, ..)| *reading != attempt)
        {
            let log = self.session.driver.layout(attempt).log();
            self.reading = Some((attempt, LogReader::open(log), 0));
        }
        let Some((_, reader, offset)) = &mut self.reading else {
            return;
        };
        // What cannot be read now may be later; the run does not depend on being watched.
        let Ok((records, next)) = reader.read_from(*offset) else {
            return;
        };
        *offset = next;
        for record in &records {
            self.stages.on_record(record);
        }
    }

    async fn why(&mut self, view: &RunView) -> Result<Option<String>, Problem> {
        if !matches!(view.state, RunState::AwaitingApproval | RunState::Queued) {
            self.why = None;
            return Ok(None);
        }
        let now = Timestamp::now();
        let known = self.why.get_or_insert(Why {
            state: view.state,
            at: now,
            text: None,
        });
        if known.state != view.state {
            *known = Why {
                state: view.state,
                at: now,
                text: None,
            };
        }
        if now.duration_since(known.at) >= ASK_WHY_AFTER {
            let (scheduler, _) = engine::replay(&*self.session.store as &dyn Store).await?;
            known.at = now;
            known.text = scheduler
                .why(view.id)
                .map(|why| format!("{why}; ends when {}", why.unblocked_by()));
        }
        Ok(known.text.clone())
    }
}
