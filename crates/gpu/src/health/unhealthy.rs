//! Which devices are unhealthy, so that no attempt should be given them.

use std::collections::BTreeMap;

use blueproof_core::gpu::{DeviceUuid, GpuInventory};

use super::{Findings, Severity};

/// Returns the devices for which a check demands that their attempt is evicted, and their MIG instances, each with what the
/// check found.
///
/// What is only a warning, such as a row of memory that waits to be replaced, makes no device unhealthy.
pub fn unhealthy_devices(findings: &Findings, inventory: &GpuInventory) -> BTreeMap<DeviceUuid, String> {
    let bad = findings
        .problems()
        .filter(|(_, severity)| *severity == Severity::Evict);
    let mut unhealthy = BTreeMap::new();
    for (finding, _) in bad {
        let Some(device) = &finding.device else { continue };
        let words = format!("{}: {}", finding.check, finding.answer);
        let parts = inventory
            .device(device)
            .into_iter()
            .flat_map(|listed| listed.partitions.iter().map(|part| &part.uuid));
        for unit in std::iter::once(device).chain(parts) {
            unhealthy.entry(unit.clone()).or_insert_with(|| words.clone());
        }
    }
    unhealthy
}
