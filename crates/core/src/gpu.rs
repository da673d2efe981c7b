//! What accelerators there are, and what was read of them, whoever made them.
//!
//! A [`crate::ports::GpuProbe`] reads; these are the words in which it answers. A figure that a card cannot give is
//! [`Reading::Unsupported`], one that could not be read now is [`Reading::Failed`], and neither is ever zero. Units are
//! those of the International System: hertz, watts, joules, bytes, seconds, and shares between 0 and 1.

mod device;
mod figure;
mod reading;
mod snapshot;

pub use crate::domain::DeviceUuid;
pub use device::{Device, GpuInventory, Partition, Vendor};
pub use figure::{Figure, FigureKind, Readings};
pub use reading::{Fault, FaultKind, Reading};
pub use snapshot::{BusySample, DeviceEvent, GpuProcess, GpuSnapshot, Sample};
