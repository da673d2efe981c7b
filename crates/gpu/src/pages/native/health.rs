//! How devices fare, and how many there are of which kind.

use blueproof_core::{gpu::GpuInventory, metrics::Exposition};

use super::{DEVICES, HEALTH, count};
use crate::{
    health::{Answer, CheckId, CheckPolicy, Finding, Health},
    pages::PageInput,
};

/// Writes how many devices there are, how many of them never said who they are, how many the kubelet has to give, and how
/// many are well. What is not known is left
/// out: where one device may be well or not, so is the count of those that are.
pub(super) fn counts(inventory: &GpuInventory, seen: &PageInput, page: &mut Exposition) {
    let told = seen.attribution.as_ref().and_then(|of| of.told.as_ref());
    let counts = [
        ("physical", Some(inventory.counted() as u64)),
        ("unidentified", Some(inventory.unidentified.into())),
        ("advertised", told.and_then(|told| told.advertised)),
        ("healthy", healthy(seen)),
    ];
    page.family(&DEVICES);
    for (kind, number) in counts {
        if let Some(number) = number {
            page.sample(&DEVICES, &[("kind", kind)], count(number));
        }
    }
}

fn healthy(seen: &PageInput) -> Option<u64> {
    let (inventory, _) = seen.devices.as_ref()?;
    let findings = seen.health.as_ref()?;
    if inventory.unidentified > 0 {
        return None;
    }
    let counting = CheckPolicy::default().counting;
    let mut healthy = 0;
    for device in &inventory.devices {
        match findings.health_of(&device.uuid, &counting) {
            Health::Ok => healthy += 1,
            Health::Problem => {}
            Health::Unknown => return None,
        }
    }
    Some(healthy)
}

/// Writes what each check found of each device. Those that are not done here are left out, and those that are for cards of
/// another age.
pub(super) fn checks(seen: &PageInput, page: &mut Exposition) {
    let Some(findings) = &seen.health else { return };
    let mut found = findings
        .0
        .iter()
        .filter(|finding| !finding.answer.is_not_done_here())
        .filter(|finding| !findings.is_covered(finding.check, finding.device.as_ref()))
        .filter_map(|finding| Some((finding, finding.device.as_ref()?)))
        .peekable();
    if found.peek().is_some() {
        page.family(&HEALTH);
    }
    for (Finding { check, answer, .. }, device) in found {
        let labels = [
            ("uuid", device.0.as_str()),
            ("check", &label(*check)),
            ("state", state(answer)),
        ];
        page.sample(&HEALTH, &labels, 1.0);
    }
}

/// Returns a check's name as a label's value: "PCIe width" is `pcie_width`.
fn label(check: CheckId) -> String {
    check.name().to_ascii_lowercase().replace(' ', "_")
}

fn state(answer: &Answer) -> &'static str {
    match answer {
        Answer::Ok { .. } => "ok",
        Answer::Problem { .. } => "problem",
        Answer::Unknown { .. } => "unknown",
    }
}
