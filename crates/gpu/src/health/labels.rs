//! What a node is to be labelled, by all that was found of it so far.
//!
//! The labels are Autopilot's, which AppWrapper and MLBatch act upon within one event of a watch: each change moves work.
//! So nothing changes on one finding alone, but for what a driver reports once. Nothing is written here: the changes are
//! returned, and whoever writes them to the node may do so twice without harm.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::gpu::DeviceUuid;
use jiff::Timestamp;

use super::{Answer, CheckId, Findings, Health, LabelPolicy, Scope, Severity};
use tally::{Found, Stands, Tally};

mod tally;

/// Autopilot's label, as AppWrapper and MLBatch read it: `PASS`, `WARN`, `TESTING`, `EVICT` or empty.
pub const AUTOPILOT_LABEL: &str = "autopilot.ibm.com/gpuhealth";

/// Our own label, of three states: `ok`, `problem` or `unknown`.
pub const OWN_LABEL: &str = "blueproof.dev/gpu-health";

/// The labels of one node.
#[derive(Debug, Clone)]
pub struct Labels {
    policy: LabelPolicy,
    tallies: BTreeMap<Place, Tally>,
    /// Why the node is to be emptied, until that is lifted.
    evicted: Option<String>,
    /// Whether a problem stood when this program began, nobody knows of which check.
    inherited: bool,
    testing_since: Option<Timestamp>,
    shown: BTreeMap<&'static str, String>,
}

/// What a check is done of: the machine, or a device.
type Place = (Option<DeviceUuid>, CheckId);

/// A label that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelChange {
    /// Which: [`AUTOPILOT_LABEL`] or [`OWN_LABEL`].
    pub key: &'static str,
    /// Its new value, which may be empty.
    pub value: &'static str,
    /// Why, in words.
    pub why: String,
}

/// Whether a test that needs the whole machine is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Testing {
    /// It began.
    Began,
    /// It is over, whatever came of it.
    Ended,
}

/// Somebody with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person(String);

impl Person {
    /// Returns somebody with a name, or `None` if it is blank.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim();
        (!name.is_empty()).then(|| Self(name.to_owned()))
    }
}

impl Labels {
    /// Returns the labels of a node of which nothing is known.
    pub fn new(policy: LabelPolicy) -> Self {
        Self {
            policy,
            tallies: BTreeMap::new(),
            evicted: None,
            inherited: false,
            testing_since: None,
            shown: BTreeMap::new(),
        }
    }

    /// Takes over a node with the labels that it has, so that a restart of this program clears nothing.
    pub fn resume(policy: LabelPolicy, now: Timestamp, labels: &BTreeMap<String, String>) -> Self {
        let mut resumed = Self::new(policy);
        for key in [AUTOPILOT_LABEL, OWN_LABEL] {
            if let Some(value) = labels.get(key) {
                resumed.shown.insert(key, value.clone());
            }
        }
        match labels.get(AUTOPILOT_LABEL).map(String::as_str) {
            Some("EVICT") => resumed.evicted = Some("the node was labelled so before".to_owned()),
            Some("WARN") => resumed.inherited = true,
            Some("TESTING") => resumed.testing_since = Some(now),
            Some(_) | None => {}
        }
        resumed.inherited |= labels.get(OWN_LABEL).is_some_and(|value| value == "problem");
        resumed
    }

    /// Takes in what was found, and returns which labels change. Findings of some checks only say nothing of the others,
    /// and findings that were taken in before, or come late, change nothing, but for an error that a driver reports once.
    ///
    /// A pass of the long diagnosis is a finding of [`CheckId::DcgmLevel3`], from whoever did it.
    pub fn next(&mut self, now: Timestamp, findings: &Findings) -> Vec<LabelChange> {
        if self.is_news(now, CheckId::DeviceCount) {
            self.forget_gone(findings);
        }
        let tested = findings.of(CheckId::DcgmLevel3, None);
        let tested =
            tested.filter(|answer| !answer.is_not_done_here() && self.is_news(now, CheckId::DcgmLevel3));
        for finding in &findings.0 {
            let place = (finding.device.clone(), finding.check);
            let Some(found) = found(findings, &place, &finding.answer) else {
                continue;
            };
            let tally = self.tallies.entry(place).or_default();
            tally.take_in(now, found, &self.policy);
        }
        for tally in self.tallies.values_mut() {
            tally.age(now, self.policy.ok_holds);
        }
        if tested.is_some() || self.is_tested_too_long(now) {
            self.testing_since = None;
        }
        if tested.is_some_and(Answer::is_ok) {
            self.lift_eviction();
        }
        self.settle_eviction();
        self.inherited &= self.known() != Health::Ok;
        self.changes()
    }

    /// Notes that a test of the whole machine began or is over, and returns which labels change.
    pub fn testing(&mut self, now: Timestamp, testing: Testing) -> Vec<LabelChange> {
        self.testing_since = match testing {
            Testing::Began => self.testing_since.or(Some(now)),
            Testing::Ended => None,
        };
        self.changes()
    }

    /// Forgets all that was found, for somebody who takes the responsibility, and returns which labels change. The node
    /// is unknown then, and has to be found ok to pass.
    pub fn clear(&mut self, by: &Person) -> Vec<LabelChange> {
        self.tallies.clear();
        self.evicted = None;
        self.inherited = false;
        let mut changes = self.changes();
        for change in &mut changes {
            change.why = format!("cleared by {}", by.0);
        }
        changes
    }

    /// Returns how the node fares, as its labels have it.
    pub fn health(&self) -> Health {
        if self.evicted.is_some() || self.inherited {
            return Health::Problem;
        }
        self.known()
    }

    /// Returns how the node fares by what this program was told.
    fn known(&self) -> Health {
        if self.worst().is_some() {
            return Health::Problem;
        }
        let devices = self.devices();
        let is_ok = |place: Place| {
            let tally = self.tallies.get(&place);
            tally.is_some_and(|tally| tally.stands == Stands::Ok)
        };
        let is_ok_everywhere = |check: &CheckId| match check.scope() {
            Scope::Machine => is_ok((None, *check)),
            Scope::Device => devices.iter().all(|device| is_ok((Some(device.clone()), *check))),
        };
        let counting = &self.policy.counting;
        let is_known = !counting.is_empty() && !devices.is_empty() && counting.iter().all(is_ok_everywhere);
        // A problem that was seen once does not end "ok", and nothing begins to be ok with one.
        let was_ok = self.shown.get(OWN_LABEL).is_some_and(|shown| shown == "ok");
        let is_ok = is_known && (was_ok || !self.tallies.values().any(Tally::was_bad));
        if is_ok { Health::Ok } else { Health::Unknown }
    }

    fn devices(&self) -> BTreeSet<DeviceUuid> {
        self.tallies
            .keys()
            .filter_map(|(device, _)| device.clone())
            .collect()
    }

    /// Returns the worst problem that stands.
    fn worst(&self) -> Option<(Severity, String)> {
        let problems = self
            .tallies
            .iter()
            .filter_map(|(place, tally)| match tally.stands {
                Stands::Problem(severity) => Some((severity, words(place, tally))),
                Stands::Ok | Stands::Unknown => None,
            });
        // Of equals the first, so that the reason does not change with every finding.
        problems.reduce(|worst, next| if next.0 > worst.0 { next } else { worst })
    }

    /// Forgets devices that were taken away, once the count is right without them. Their problems stay: a device that fell
    /// off the bus is not well for being gone.
    fn forget_gone(&mut self, findings: &Findings) {
        let count = findings.of(CheckId::DeviceCount, None);
        if !count.is_some_and(Answer::is_ok) {
            return;
        }
        let there: BTreeSet<DeviceUuid> = findings.devices().into_iter().cloned().collect();
        self.tallies.retain(|place, tally| {
            let is_gone = place.0.as_ref().is_some_and(|device| !there.contains(device));
            !is_gone || matches!(tally.stands, Stands::Problem(_))
        });
    }

    /// Returns whether a test takes too long: nobody may wait for one that died.
    fn is_tested_too_long(&self, now: Timestamp) -> bool {
        let since = self.testing_since;
        since.is_some_and(|since| now.duration_since(since) > self.policy.testing_at_most)
    }

    /// Lifts that the node is to be emptied, unless a light check still sees the reason.
    fn lift_eviction(&mut self) {
        let still_seen = self.tallies.values().any(Tally::still_evicts);
        if !still_seen && self.evicted.take().is_some() {
            for tally in self.tallies.values_mut() {
                tally.lift();
            }
        }
    }

    /// Empties the node where a problem stands that is bad enough.
    fn settle_eviction(&mut self) {
        if let Some((Severity::Evict, why)) = self.worst() {
            self.evicted.get_or_insert(why);
        }
    }

    /// Returns whether a check of the machine is heard of for the first time at this time, and nothing later was.
    fn is_news(&self, now: Timestamp, check: CheckId) -> bool {
        let tally = self.tallies.get(&(None, check));
        tally.is_none_or(|tally| tally.is_before(now))
    }

    fn changes(&mut self) -> Vec<LabelChange> {
        let worst = self.worst();
        let health = self.health();
        let (autopilot, why) = if let Some(why) = &self.evicted {
            ("EVICT", why.clone())
        } else if self.testing_since.is_some() {
            ("TESTING", "a test needs the whole machine".to_owned())
        } else if let Some((_, why)) = worst {
            ("WARN", why)
        } else {
            match health {
                Health::Ok => ("PASS", "every check that counts is ok".to_owned()),
                Health::Problem => ("WARN", "the node was labelled so before".to_owned()),
                Health::Unknown => ("", "not every check that counts could tell".to_owned()),
            }
        };
        let own = match health {
            Health::Ok => "ok",
            Health::Problem => "problem",
            Health::Unknown => "unknown",
        };
        let wanted = [(AUTOPILOT_LABEL, autopilot), (OWN_LABEL, own)];
        let news = wanted.into_iter().filter_map(|(key, value)| {
            let old = self.shown.insert(key, value.to_owned());
            (old.as_deref() != Some(value)).then(|| LabelChange {
                key,
                value,
                why: why.clone(),
            })
        });
        news.collect()
    }
}

/// Returns what a finding says for its place, if it says anything.
fn found(findings: &Findings, place: &Place, answer: &Answer) -> Option<Found> {
    if answer.is_not_done_here() {
        return None;
    }
    let (device, check) = place;
    // What happens once is told once; and a test that needs the whole machine is not done again to be sure.
    let at_once = matches!(check, CheckId::Xids | CheckId::DcgmLevel3);
    Some(match answer {
        Answer::Ok { .. } => Found::Ok {
            at_once: *check == CheckId::DcgmLevel3,
        },
        Answer::Problem { severity, evidence } => Found::Problem {
            severity: *severity,
            at_once,
            evidence: evidence.clone(),
        },
        Answer::Unknown { .. } if findings.is_covered(*check, device.as_ref()) => Found::Covered,
        Answer::Unknown { .. } => Found::Unknown,
    })
}

fn words((device, check): &Place, tally: &Tally) -> String {
    match device {
        Some(device) => format!("{device}: {check}: {}", tally.evidence),
        None => format!("{check}: {}", tally.evidence),
    }
}
