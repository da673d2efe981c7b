//! Which devices nobody should be given.

use std::collections::BTreeMap;

use blueproof_core::gpu::{DeviceUuid, GpuInventory};

use super::{Findings, Severity};

/// Returns the devices of which a check says that whoever works there has to leave, and their parts, each with what was
/// found.
///
/// What is only a warning, such as a row of memory that waits to be replaced, makes no device unfit.
pub fn unfit(findings: &Findings, inventory: &GpuInventory) -> BTreeMap<DeviceUuid, String> {
    let bad = findings
        .problems()
        .filter(|(_, severity)| *severity == Severity::Evict);
    let mut unfit = BTreeMap::new();
    for (finding, _) in bad {
        let Some(device) = &finding.device else { continue };
        let words = format!("{}: {}", finding.check, finding.answer);
        let parts = inventory
            .device(device)
            .into_iter()
            .flat_map(|listed| listed.partitions.iter().map(|part| &part.uuid));
        for unit in std::iter::once(device).chain(parts) {
            unfit.entry(unit.clone()).or_insert_with(|| words.clone());
        }
    }
    unfit
}
