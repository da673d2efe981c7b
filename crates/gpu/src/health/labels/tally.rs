//! What one check found of one thing so far, and which of it stands.

use jiff::{SignedDuration, Timestamp};

use super::super::{LabelPolicy, Severity, Streak};

/// What a finding says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// All is well.
    Ok {
        /// Whether once is enough.
        at_once: bool,
    },
    /// The card cannot tell, and what asks the same of its age is ok.
    Covered,
    /// Something is wrong.
    Problem {
        /// How bad it is.
        severity: Severity,
        /// Whether once is enough.
        at_once: bool,
        /// What was seen.
        evidence: String,
    },
    /// Nothing.
    Unknown,
}

/// What is taken for true.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stands {
    #[default]
    Unknown,
    Ok,
    Problem(Severity),
}

/// What one check found of one thing so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) stands: Stands,
    /// What was seen of the last problem.
    pub(super) evidence: String,
    /// The problem that was found last, unless it was ok since.
    latest: Option<Severity>,
    seen_at: Option<Timestamp>,
    well: Run,
    warn: Run,
    evict: Run,
}

/// How often something was found, and since when.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    times: u32,
    since: Option<Timestamp>,
}

impl Run {
    fn add(&mut self, now: Timestamp) {
        self.times = self.times.saturating_add(1);
        self.since.get_or_insert(now);
    }

    fn is_enough(&self, now: Timestamp, streak: Streak) -> bool {
        let lasted = self
            .since
            .is_some_and(|since| now.duration_since(since) >= streak.lasting);
        lasted && self.times >= streak.times
    }
}

impl Tally {
    /// Returns whether all that it knows is from before a time.
    pub(super) fn is_before(&self, now: Timestamp) -> bool {
        self.seen_at.is_none_or(|seen| seen < now)
    }

    /// Takes in a finding. One that is not newer than the last changes nothing, but for a problem that is told only once.
    pub(super) fn take_in(&mut self, now: Timestamp, found: Found, policy: &LabelPolicy) {
        let is_old = !self.is_before(now);
        let is_told_once = matches!(found, Found::Problem { at_once: true, .. });
        if is_old && !is_told_once {
            return;
        }
        self.seen_at = self.seen_at.max(Some(now));
        match found {
            Found::Ok { at_once } => self.on_ok(now, at_once, policy),
            // That a card cannot tell any more does not mend what it told.
            Found::Covered if self.has_problem() => self.on_unknown(),
            Found::Covered => self.on_ok(now, false, policy),
            Found::Unknown => self.on_unknown(),
            Found::Problem {
                severity,
                at_once,
                evidence,
            } => {
                self.on_problem(now, severity, policy);
                if at_once {
                    self.raise(severity);
                }
                self.evidence = evidence;
            }
        }
    }

    fn on_ok(&mut self, now: Timestamp, at_once: bool, policy: &LabelPolicy) {
        self.latest = None;
        self.well.add(now);
        if at_once || self.well.is_enough(now, policy.ok) {
            self.stands = Stands::Ok;
            // Only now: problems that come back before it was well for long enough add up, else a device that is broken
            // every other time would pass for ever.
            (self.warn, self.evict) = (Run::default(), Run::default());
        }
    }

    fn on_unknown(&mut self) {
        self.well = Run::default();
        if self.stands == Stands::Ok {
            self.stands = Stands::Unknown;
        }
    }

    fn on_problem(&mut self, now: Timestamp, severity: Severity, policy: &LabelPolicy) {
        self.latest = Some(severity);
        self.well = Run::default();
        self.warn.add(now);
        if self.warn.is_enough(now, policy.problem) {
            self.raise(Severity::Warn);
        }
        if severity == Severity::Evict {
            self.evict.add(now);
            if self.evict.is_enough(now, policy.evict) {
                self.raise(Severity::Evict);
            }
        }
    }

    /// Makes a problem stand that is no smaller than this. It becomes smaller only by being well.
    fn raise(&mut self, severity: Severity) {
        self.stands = match self.stands {
            Stands::Problem(stands) => Stands::Problem(stands.max(severity)),
            Stands::Ok | Stands::Unknown => Stands::Problem(severity),
        };
    }

    /// Stops believing that all is well where nobody looked for too long.
    pub(super) fn age(&mut self, now: Timestamp, ok_holds: SignedDuration) {
        let is_stale = self
            .seen_at
            .is_some_and(|seen| now.duration_since(seen) > ok_holds);
        if is_stale {
            self.on_unknown();
        }
    }

    /// Takes back that a node is to be emptied for this. What was found last and is less bad stands; else it is unknown
    /// until it is found well.
    pub(super) fn lift(&mut self) {
        if self.stands == Stands::Problem(Severity::Evict) {
            *self = Self {
                stands: self.latest.map_or(Stands::Unknown, Stands::Problem),
                evidence: std::mem::take(&mut self.evidence),
                latest: self.latest,
                seen_at: self.seen_at,
                ..Self::default()
            };
        }
    }

    /// Returns whether a problem stands, or was seen and not yet cleared up.
    fn has_problem(&self) -> bool {
        matches!(self.stands, Stands::Problem(_)) || self.warn.times > 0
    }

    /// Returns whether it was last found so broken that a node is to be emptied for it.
    pub(super) fn still_evicts(&self) -> bool {
        self.latest == Some(Severity::Evict)
    }

    /// Returns whether a problem was found last, whether or not it stands.
    pub(super) fn was_bad(&self) -> bool {
        self.latest.is_some()
    }
}
