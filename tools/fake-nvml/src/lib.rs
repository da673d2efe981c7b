//! An NVIDIA driver's library without the driver: what it answers stands in a file.

mod abi;
mod answers;
mod handle;
mod installed;
mod library;
mod profiles;
mod returns;
mod scenario;
mod source;
mod steps;

pub use installed::{InstallError, Installed};
pub use profiles::{a10, h100_with_mig, h200};
pub use returns::NvmlReturn;
pub use scenario::{
    Clock, Clocks, Delay, Device, Fault, Figures, Mig, MigInstance, NvLink, Pci, PowerLimits, Process,
    ProcessKind, Scenario, Xid,
};
pub use steps::Steps;
