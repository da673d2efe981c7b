//! What reporters are told: of each run the newest status, each reporter at its own pace.
//!
//! There is a task for each reporter and run that it has to be told of. The newest status lies before it, so that changes
//! which come while a call is under way become one, and a reporter that fails or hangs holds up no other.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    domain::{RunId, RunState},
    ports::{CallError, Clock, Interest, Reporter, RunStatus},
};

/// How long a call may take. What is under way for longer is dropped, and made again.
const ANSWERS_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// How long a reporter that failed is left alone at first, and at most.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);
const AGAIN_AFTER_AT_MOST: SignedDuration = SignedDuration::from_mins(5);

/// Tells reporters of runs.
#[derive(Clone)]
pub(super) struct Reports {
    reporters: Vec<Arc<dyn Reporter>>,
    clock: Arc<dyn Clock>,
    desks: Arc<Mutex<BTreeMap<(usize, RunId), Desk>>>,
}

/// What lies before one reporter about one run.
struct Desk {
    newest: watch::Sender<Letter>,
    answers: watch::Receiver<Answered>,
    task: JoinHandle<()>,
}

/// A status to be told, by its number among those that one reporter was to be told of one run.
#[derive(Clone)]
struct Letter {
    number: u64,
    status: Arc<RunStatus>,
}

/// What came of the last call.
#[derive(Clone)]
struct Answered {
    number: u64,
    result: Result<(), CallError>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reports {
    pub(super) fn new(reporters: Vec<Arc<dyn Reporter>>, clock: Arc<dyn Clock>) -> Self {
        Self {
            reporters,
            clock,
            desks: Arc::default(),
        }
    }

    /// Returns whether any reporter is told of each change.
    pub(super) fn are_wanted(&self) -> bool {
        self.reporters
            .iter()
            .any(|of| of.interest() == Interest::EveryChange)
    }

    /// Has those reporters told of a status that are told of each change. Returns at once.
    pub(super) fn tell(&self, status: RunStatus) {
        let status = Arc::new(status);
        for number in 0..self.reporters.len() {
            if self.reporters[number].interest() == Interest::EveryChange {
                self.put(number, Arc::clone(&status));
            }
        }
    }

    /// Has each reporter told of how a run ended, and returns once each has acknowledged it or failed: the first failure, which
    /// names its reporter.
    pub(super) async fn tell_end(&self, status: RunStatus) -> Result<(), CallError> {
        let (run, status) = (status.view.id, Arc::new(status));
        let reporters = 0..self.reporters.len();
        let told: Vec<_> = reporters
            .map(|number| self.put(number, Arc::clone(&status)))
            .collect();
        let mut failed = None;
        for (reporter, (number, mut answers)) in self.reporters.iter().zip(told) {
            let answered = answers.wait_for(|answered| answered.number >= number).await;
            // Where its task is gone the engine is, too.
            let result = answered.map_or(Ok(()), |answered| answered.result.clone());
            if let Err(error) = result {
                failed = failed.or(Some(named(reporter.name(), error, self.reporters.len())));
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
                desks.retain(|(_, of), desk| *of != run || desk.newest.borrow().status != status);
                Ok(())
            }
        }
    }

    /// Lays a status before a reporter, and returns its number and where the answer comes.
    fn put(&self, reporter: usize, status: Arc<RunStatus>) -> (u64, watch::Receiver<Answered>) {
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let of = (reporter, status.view.id);
        if let Some(desk) = desks.get(&of) {
            let number = desk.newest.borrow().number + 1;
            desk.newest.send_replace(Letter { number, status });
            return (number, desk.answers.clone());
        }
        let (newest, letters) = watch::channel(Letter { number: 1, status });
        let nothing = Answered {
            number: 0,
            result: Ok(()),
        };
        let (answer, answers) = watch::channel(nothing);
        let (to, clock) = (Arc::clone(&self.reporters[reporter]), Arc::clone(&self.clock));
        let task = tokio::spawn(serve(to, clock, letters, answer));
        let desk = Desk {
            newest,
            answers: answers.clone(),
            task,
        };
        desks.insert(of, desk);
        (1, answers)
    }
}

/// Tells a reporter of the newest status of a run, again and again.
async fn serve(
    reporter: Arc<dyn Reporter>,
    clock: Arc<dyn Clock>,
    mut letters: watch::Receiver<Letter>,
    answer: watch::Sender<Answered>,
) {
    let mut wait = AGAIN_AFTER;
    loop {
        let Letter { number, status } = letters.borrow_and_update().clone();
        let limit = later(clock.now(), ANSWERS_WITHIN);
        let result = tokio::select! {
            biased;
            result = reporter.report(&status) => result,
            () = clock.sleep_until(limit) => Err(silent(reporter.name())),
        };
        let is_ended = matches!(status.view.state, RunState::Ended(_));
        let again_at = result.is_err().then(|| later(clock.now(), wait));
        wait = match again_at {
            Some(_) => (wait + wait).min(AGAIN_AFTER_AT_MOST),
            None => AGAIN_AFTER,
        };
        answer.send_replace(Answered { number, result });
        // Whether an end is told again is decided by whoever counts how often that failed.
        let again_at = again_at.filter(|_| !is_ended);
        tokio::select! {
            changed = letters.changed() => if changed.is_err() { return },
            () = sleep(&*clock, again_at) => {}
        }
    }
}

async fn sleep(clock: &dyn Clock, until: Option<Timestamp>) {
    match until {
        Some(until) => clock.sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn later(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.saturating_add(span).expect("a time span")
}

fn silent(reporter: &str) -> CallError {
    let message = format!("the reporter `{reporter}` did not answer within {ANSWERS_WITHIN:#}");
    CallError::later(Diagnostic::error(Code::ReportUnwritten, message))
}

/// Names the reporter that failed, where there are several.
fn named(reporter: &str, error: CallError, among: usize) -> CallError {
    if among < 2 {
        return error;
    }
    let mut error = error;
    error.diagnostic.message = format!("`{reporter}`: {}", error.diagnostic.message);
    error
}
