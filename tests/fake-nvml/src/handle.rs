//! The handles that callers hold: numbers that look like pointers and point nowhere.
//!
//! So a handle that was made up, or that outlived what it named, is refused instead of followed.

use nvml_wrapper_sys::bindings::{nvmlDevice_st, nvmlDevice_t};
use std::ptr;

/// Marks a number as a device's handle.
const MARK: usize = 0x4e56_0000;
/// How many bits name the MIG instance.
const MIG_BITS: u32 = 6;

/// A device, or a MIG instance of one, by index. What it names need not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle {
    pub(crate) device: usize,
    pub(crate) mig: Option<usize>,
}

impl Handle {
    /// Names a whole device.
    pub(crate) fn of(device: usize) -> Self {
        Self { device, mig: None }
    }

    /// Returns what callers get.
    pub(crate) fn raw(self) -> nvmlDevice_t {
        let mig = self.mig.map_or(0, |mig| mig + 1);
        ptr::without_provenance_mut::<nvmlDevice_st>(MARK | self.device << MIG_BITS | mig)
    }

    /// Returns what a caller's handle names; `None` if it cannot be one of ours.
    pub(crate) fn from_raw(raw: nvmlDevice_t) -> Option<Self> {
        let number = raw.addr().checked_sub(MARK).filter(|number| *number <= 0xffff)?;
        Some(Self {
            device: number >> MIG_BITS,
            mig: (number & ((1 << MIG_BITS) - 1)).checked_sub(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_what_it_named() {
        for handle in [
            Handle::of(0),
            Handle::of(15),
            Handle {
                device: 3,
                mig: Some(6),
            },
        ] {
            assert_eq!(Handle::from_raw(handle.raw()), Some(handle));
        }
    }

    #[test]
    fn a_pointer_to_something_else_is_no_handle() {
        let mut other = 0;
        assert_eq!(Handle::from_raw(ptr::null_mut()), None);
        assert_eq!(Handle::from_raw((&raw mut other).cast()), None);
    }
}
