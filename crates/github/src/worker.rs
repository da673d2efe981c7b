//! Works on the deliveries that are stored.
//!
//! Those that came first come first. One that fails because GitHub or the store cannot be asked stays, and those after it are tried
//! all the same: each is a reason to look, and what counts is what a look shows. So an outage loses nothing, and one delivery that
//! never succeeds keeps no other waiting.

use std::{collections::BTreeSet, sync::Arc};

use blueproof_core::ports::{Clock, Deliveries, DeliveryState, PendingDelivery, StoreError};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};

use crate::{
    api::{ApiRetry, RepositoryId},
    intake::{Handled, Ignored, Intake, IntakeError, Pushes},
    payload::{Payload, PayloadError},
    webhook::{DeliveryId, EventName},
};

/// How many deliveries are read at once. A body has 25 MB at most, and a few kB mostly.
const AT_ONCE: usize = 64;
/// The wait after the first pass that failed; doubled for each further one.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(1);
/// The longest wait between two passes.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// How old a delivery is that is not tried any more. By then sweeps have made good what it was about.
const OLDEST: SignedDuration = SignedDuration::from_hours(24);

/// Works on the deliveries that are stored, one at a time.
pub struct DeliveryWorker {
    deliveries: Arc<dyn Deliveries>,
    clock: Arc<dyn Clock>,
    intake: Intake,
    /// The repositories that are followed, once all of them are known.
    followed: Option<BTreeSet<RepositoryId>>,
    /// How many passes failed in a row.
    n_failed: u32,
}

/// What came of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// All were worked on.
    Idle,
    /// There are more.
    More,
    /// Some are to be tried again, from this time on.
    Again {
        /// When.
        at: Timestamp,
    },
}

impl DeliveryWorker {
    /// Returns a worker on what is stored there.
    pub fn new(deliveries: Arc<dyn Deliveries>, clock: Arc<dyn Clock>, intake: Intake) -> Self {
        Self {
            deliveries,
            clock,
            intake,
            followed: None,
            n_failed: 0,
        }
    }

    /// Has deliveries about other repositories than these passed over. An App may be installed in more than are followed.
    pub fn follow(&mut self, followed: BTreeSet<RepositoryId>) {
        self.followed = Some(followed);
    }

    /// Returns whether a delivery is about a repository that is not followed.
    fn is_foreign(&self, payload: &Payload) -> bool {
        let about = payload.repository().map(|about| RepositoryId(about.id));
        let followed = self.followed.as_ref();
        about
            .zip(followed)
            .is_some_and(|(about, followed)| !followed.contains(&about))
    }

    /// Returns the intake that it works with, for sweeps.
    pub fn intake(&mut self) -> &mut Intake {
        &mut self.intake
    }

    /// Works on those that are pending, once each, and notes what came of them. It may be repeated.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub async fn pass(&mut self) -> Result<Pass, StoreError> {
        let pending = self.deliveries.pending_deliveries(AT_ONCE).await?;
        let payloads: Vec<_> = pending.iter().map(read).collect();
        let mut again = None;
        let mut n_done = 0;
        for (place, delivery) in pending.iter().enumerate() {
            let others = payloads.iter().enumerate().filter(|(other, _)| *other != place);
            let pushes = Pushes::among(others.filter_map(|(_, payload)| payload.as_ref().ok()));
            let (state, retry) = self.work_on(delivery, &payloads[place], &pushes).await;
            again = again.max(retry);
            n_done += usize::from(retry.is_none());
            self.deliveries
                .note_delivery(&delivery.id, self.clock.now(), state)
                .await?;
        }
        self.n_failed = again.map_or(0, |_| self.n_failed.saturating_add(1));
        Ok(match again {
            Some(at) => Pass::Again { at },
            None if n_done == AT_ONCE => Pass::More,
            None => Pass::Idle,
        })
    }

    /// Works on one, and returns how it stands then, and when it is to be tried again, if so.
    async fn work_on(
        &mut self,
        delivery: &PendingDelivery,
        payload: &Result<Payload, Unreadable>,
        pushes: &Pushes,
    ) -> (DeliveryState, Option<Timestamp>) {
        let payload = match payload {
            Ok(payload) => payload,
            Err(unreadable) => return (given_up(unreadable.diagnostic()), None),
        };
        if self.is_foreign(payload) {
            let outcome = in_words(&Handled::Ignored(Ignored::OtherRepository));
            return (DeliveryState::Done { outcome }, None);
        }
        // What has no name could not be stored; should that ever fail, the key of a button's wish is another one.
        let id: Option<DeliveryId> = delivery.id.parse().ok();
        let Some(id) = id else {
            return (given_up(Unreadable::Id.diagnostic()), None);
        };
        match self.intake.handle(&id, payload, pushes).await {
            Ok(handled) => {
                let outcome = in_words(&handled);
                (DeliveryState::Done { outcome }, None)
            }
            Err(error) => self.after(delivery, &error),
        }
    }

    /// Returns how a delivery stands that could not be worked on, and when it is tried again.
    fn after(&self, delivery: &PendingDelivery, error: &IntakeError) -> (DeliveryState, Option<Timestamp>) {
        let now = self.clock.now();
        let problem = error.diagnostic();
        let is_old = now.duration_since(delivery.received_at) > OLDEST;
        let at = match error.retry() {
            ApiRetry::Never => return (given_up(problem), None),
            ApiRetry::Later | ApiRetry::After(_) if is_old => return (given_up(problem), None),
            ApiRetry::Later => now.saturating_add(self.wait()).expect("a time span"),
            ApiRetry::After(at) => at,
        };
        let problem = Some(Box::new(problem));
        (DeliveryState::Pending { problem }, Some(at))
    }

    fn wait(&self) -> SignedDuration {
        FIRST_WAIT
            .saturating_mul(1 << self.n_failed.min(30))
            .min(LONGEST_WAIT)
    }
}

/// Why a delivery cannot be read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error("its event has no name of GitHub's")]
    Event,
    #[error("it has no name of GitHub's")]
    Id,
}

impl Unreadable {
    fn diagnostic(&self) -> Diagnostic {
        let message = "the delivery cannot be read";
        Diagnostic::error(Code::DeliveryUnreadable, message)
            .caused_by(self)
            .hint("`blueproof webhook replay ID` has it tried again, such as by a newer version")
    }
}

fn read(delivery: &PendingDelivery) -> Result<Payload, Unreadable> {
    let event: EventName = delivery.event.parse().map_err(|_| Unreadable::Event)?;
    Ok(Payload::parse(&event, &delivery.body)?)
}

fn given_up(problem: Diagnostic) -> DeliveryState {
    DeliveryState::GivenUp {
        problem: Box::new(problem),
    }
}

/// Returns what came of a delivery, as it is shown in a list.
fn in_words(handled: &Handled) -> String {
    match handled {
        Handled::Looked => "looked at what it is about".into(),
        Handled::Ignored(ignored) => format!("nothing to do: {}", why_ignored(*ignored)),
        Handled::Answered(answers) => {
            let told = answers.iter().map(|answer| match answer {
                Ok(()) => "done".to_owned(),
                Err(problem) => format!("not done: {problem}"),
            });
            told.collect::<Vec<_>>().join("; ")
        }
    }
}

fn why_ignored(ignored: Ignored) -> &'static str {
    match ignored {
        Ignored::Event => "events of this kind change nothing here",
        Ignored::Action => "an action of this kind changes nothing here",
        Ignored::NoCommand => "the comment has no command",
        Ignored::NotAsWritten => "the comment is not as its author wrote it, or its author is no person",
        Ignored::OtherApp => "the check run is of another App",
        Ignored::OtherRepository => "the repository is not followed",
    }
}
