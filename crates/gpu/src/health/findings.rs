//! What all checks found, and what it comes to.

use std::collections::BTreeSet;

use blueproof_core::gpu::DeviceUuid;
use serde::{Deserialize, Serialize};

use super::{Answer, CheckId, Health, Scope, Severity};

/// What all checks found. Its text is for a terminal of 80 columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Findings(pub Vec<Finding>);

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The check.
    pub check: CheckId,
    /// The device, if the check is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceUuid>,
    /// What it found.
    pub answer: Answer,
}

impl Findings {
    /// Returns what a check found of the machine, or of a device; the first answer, if there are several.
    pub fn of(&self, check: CheckId, device: Option<&DeviceUuid>) -> Option<&Answer> {
        let mut all = self.0.iter();
        let found = all.find(|finding| finding.check == check && finding.device.as_ref() == device);
        found.map(|finding| &finding.answer)
    }

    /// Returns the devices of which anything was found.
    pub fn devices(&self) -> BTreeSet<&DeviceUuid> {
        self.0
            .iter()
            .filter_map(|finding| finding.device.as_ref())
            .collect()
    }

    /// Returns the problems, in the order of checks.
    pub fn problems(&self) -> impl Iterator<Item = (&Finding, Severity)> {
        let all = self.0.iter();
        all.filter_map(|finding| Some((finding, finding.answer.severity()?)))
    }

    /// Returns how bad the worst problem is.
    pub fn worst(&self) -> Option<Severity> {
        self.problems().map(|(_, severity)| severity).max()
    }

    /// Returns how the machine fares. It is ok only if every check that counts was done and is ok, of each of its devices,
    /// of which there must be one. A problem is one whether or not its check counts.
    pub fn health(&self, counting: &BTreeSet<CheckId>) -> Health {
        if self.worst().is_some() {
            return Health::Problem;
        }
        let is_known = !counting.is_empty() && !self.devices().is_empty() && self.open(counting).is_empty();
        if is_known { Health::Ok } else { Health::Unknown }
    }

    /// Returns how a device fares by itself, whatever becomes of the others. A problem is one whether or not its check counts.
    pub fn health_of(&self, device: &DeviceUuid, counting: &BTreeSet<CheckId>) -> Health {
        let is_of_it = |of: Option<&DeviceUuid>| of == Some(device);
        if self
            .problems()
            .any(|(finding, _)| is_of_it(finding.device.as_ref()))
        {
            return Health::Problem;
        }
        let is_known = self.devices().contains(device) && !counting.is_empty();
        let open = self.open(counting);
        match is_known && !open.iter().any(|(_, of)| is_of_it(*of)) {
            true => Health::Ok,
            false => Health::Unknown,
        }
    }

    /// Returns what keeps the machine from being ok though it is no problem: checks that count, and did not answer.
    pub fn open(&self, counting: &BTreeSet<CheckId>) -> Vec<(CheckId, Option<&DeviceUuid>)> {
        let places = counting.iter().flat_map(|check| {
            let devices: Vec<_> = match check.scope() {
                Scope::Machine => vec![None],
                Scope::Device => self.devices().into_iter().map(Some).collect(),
            };
            devices.into_iter().map(|device| (*check, device))
        });
        places
            .filter(|(check, device)| !self.is_settled(*check, *device))
            .collect()
    }

    /// Returns whether a check answered with a problem, or is ok, or need not answer.
    fn is_settled(&self, check: CheckId, device: Option<&DeviceUuid>) -> bool {
        self.of(check, device).is_some_and(Answer::is_known) || self.is_covered(check, device)
    }

    /// Returns whether a card cannot answer a check because it is of another age, and answers that of its own.
    pub fn is_covered(&self, check: CheckId, device: Option<&DeviceUuid>) -> bool {
        let is_not_told = self.of(check, device).is_some_and(Answer::is_not_told);
        let substitute = check.substitute().and_then(|other| self.of(other, device));
        is_not_told && substitute.is_some_and(Answer::is_known)
    }
}
