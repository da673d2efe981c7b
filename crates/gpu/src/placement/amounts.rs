//! Amounts of resources by name, as nodes list and pods request them.
//!
//! The grammar of a quantity is not here: `blueproof_diagnostic::amount` reads it.

use std::collections::BTreeMap;

use blueproof_core::domain::{Bytes, Cpus};
use blueproof_diagnostic::amount::ParseAmountError;
use blueproof_queue::Quantity;

pub(super) const CPU: &str = "cpu";
pub(super) const MEMORY: &str = "memory";
pub(super) const NVIDIA_GPU: &str = "nvidia.com/gpu";
pub(super) const AMD_GPU: &str = "amd.com/gpu";
pub(super) const MIG_PREFIX: &str = "nvidia.com/mig-";
pub(super) const TPU: &str = "google.com/tpu";

/// Amounts by the name of the resource, in the units of [`Quantity`]; what is not listed is not there.
pub type ResourceList = BTreeMap<String, Quantity>;

/// Reads an amount of a resource as Kubernetes writes it (`500m`, `32Gi`, `8`), for a [`ResourceList`].
///
/// What is finer than the unit is rounded up, and what is more than can be counted is unlimited.
///
/// # Errors
///
/// Returns an error for a text that is no quantity, or a negative one, which Kubernetes refuses in a request.
///
/// ```
/// use blueproof_queue::Quantity;
/// use blueproof_gpu::placement::read_quantity;
///
/// assert_eq!(read_quantity("cpu", "1500m")?, Quantity(1500)); // thousandths of a core
/// assert_eq!(read_quantity("memory", "2Ki")?, Quantity(2048)); // bytes
/// assert_eq!(read_quantity("nvidia.com/gpu", "8")?, Quantity(8));
/// # Ok::<(), blueproof_diagnostic::amount::ParseAmountError>(())
/// ```
pub fn read_quantity(resource: &str, text: &str) -> Result<Quantity, ParseAmountError> {
    let amount = match resource {
        CPU => text.parse::<Cpus>()?.as_millis(),
        // The grammar is the same for all resources, and a byte is one of something.
        _ => text.parse::<Bytes>()?.0,
    };
    Ok(i64::try_from(amount).map_or(Quantity::UNLIMITED, Quantity))
}

pub(super) fn amount(list: &ResourceList, resource: &str) -> Quantity {
    list.get(resource).copied().unwrap_or_default()
}

pub(super) fn add(to: &mut ResourceList, more: &ResourceList) {
    for (resource, amount) in more {
        let sum = to.entry(resource.clone()).or_default();
        *sum = sum.plus(*amount);
    }
}

pub(super) fn raise(to: &mut ResourceList, least: &ResourceList) {
    for (resource, amount) in least {
        let most = to.entry(resource.clone()).or_default();
        *most = (*most).max(*amount);
    }
}
