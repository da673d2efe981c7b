//! A machine in virtual time, which does as it is told, and the log of it.

use std::collections::BTreeMap;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use super::{finished, request};
use crate::{
    action::Action,
    domain::{Cpus, Resources, RunRequest, Verdict},
    event::Event,
    policy::Policy,
    ports::{LoggedFact, Seq},
    scheduler::Scheduler,
};

/// How long it takes to clear an attempt away.
const CLEARING: SignedDuration = SignedDuration::from_secs(1);

/// A run that is requested in virtual time.
#[derive(Debug, Clone)]
pub struct RequestedRun {
    /// When.
    pub at: Timestamp,
    /// What for.
    pub request: RunRequest,
    /// How long each of its attempts takes.
    pub takes: SignedDuration,
}

/// A machine in virtual time.
#[derive(Debug)]
struct Machine {
    scheduler: Scheduler,
    /// What happens when; of two at one instant, the one that was known first.
    due: BTreeMap<(Timestamp, u64), Event>,
    known: u64,
    takes: BTreeMap<String, SignedDuration>,
    log: Vec<LoggedFact>,
}

/// Returns the log of a machine on which these runs are asked for, until nothing more happens.
pub fn log_of(policy: Policy, begun: Timestamp, runs: Vec<RequestedRun>) -> Vec<LoggedFact> {
    let mut machine = Machine {
        scheduler: Scheduler::new(policy.clone()),
        due: BTreeMap::new(),
        known: 0,
        takes: BTreeMap::new(),
        log: Vec::new(),
    };
    let policy = Box::new(policy);
    machine.expect(begun, Event::Configured { policy });
    for RequestedRun { at, request, takes } in runs {
        machine.takes.insert(request.key.0.clone(), takes);
        let request = Box::new(request);
        machine.expect(at, Event::Requested { request });
    }
    while machine.step() {}
    machine.log
}

/// Returns the log of a machine of two cores on which so many runs of three blueprints are asked for, now and then, by
/// the numbers that follow from a seed.
pub fn busy_log(seed: u64, begun: Timestamp, runs: usize) -> Vec<LoggedFact> {
    // Its name, the seconds that it takes in the middle, and how widely these are spread.
    const BLUEPRINTS: [(&str, f64, f64); 3] = [
        ("nano-lm", 60.0, 0.2),
        ("jax-mnist", 240.0, 0.05),
        ("small-gpt", 300.0, 0.6),
    ];
    const MEAN_PAUSE_SECONDS: f64 = 160.0;
    let mut random = Rng::with_seed(seed);
    let mut at = begun;
    let asked = (0..runs).map(|number| {
        at += seconds(-MEAN_PAUSE_SECONDS * (1.0 - random.f64()).ln());
        let (name, middle, spread) = BLUEPRINTS[random.usize(..BLUEPRINTS.len())];
        let takes = seconds(middle * (spread * normal(&mut random)).exp());
        let request = request(&format!("run-{number}"), name);
        RequestedRun { at, request, takes }
    });
    let quota = Resources {
        cpu: Cpus::cores(2),
        memory: crate::domain::Bytes(1 << 30),
        ..Resources::default()
    };
    log_of(Policy::local(quota), begun, asked.collect())
}

impl Machine {
    fn expect(&mut self, at: Timestamp, event: Event) {
        self.known += 1;
        self.due.insert((at, self.known), event);
    }

    /// Plays the next event, and returns whether there was one.
    fn step(&mut self) -> bool {
        let due = self.due.first_key_value().map(|((at, _), _)| *at);
        let wakeup = self.scheduler.next_wakeup();
        let wakeup = wakeup.filter(|at| due.is_none_or(|due| *at < due));
        let (at, event) = match wakeup {
            Some(at) => (at, Event::Tick),
            None => match self.due.pop_first() {
                Some(((at, _), event)) => (at, event),
                None => return false,
            },
        };
        let step = self.scheduler.handle(at, event);
        for fact in step.facts {
            let (seq, at) = (Seq(self.log.len() as u64 + 1), step.at);
            self.log.push(LoggedFact { seq, at, fact });
        }
        for action in step.actions {
            self.carry_out(at, action);
        }
        true
    }

    fn carry_out(&mut self, now: Timestamp, action: Action) {
        match action {
            Action::Reserve(reservation) => {
                let attempt = reservation.attempt;
                let place = "here".into();
                self.expect(now, Event::Reserved { attempt, place });
            }
            Action::Start(start) => {
                let attempt = start.attempt;
                self.expect(now, Event::Started { attempt });
                let takes = self.takes[&start.request.key.0];
                self.expect(now + takes, finished(attempt, Verdict::Passed));
            }
            Action::Observe { .. } => {}
            Action::Stop { attempt, .. } => self.expect(now, finished(attempt, Verdict::Stopped)),
            Action::Release { attempt, .. } => self.expect(now + CLEARING, Event::Released { attempt }),
            Action::Report { view, .. } => {
                let (run, attempts) = (view.id, u32::try_from(view.attempts.len()).unwrap_or(u32::MAX));
                self.expect(now, Event::Reported { run, attempts });
            }
        }
    }
}

fn seconds(seconds: f64) -> SignedDuration {
    SignedDuration::from_secs_f64(seconds)
}

/// Draws from the normal distribution (Box and Muller 1958).
fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}
