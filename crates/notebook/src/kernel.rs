//! A Jupyter kernel: started, spoken to and ended.

mod connection;
mod lossless;
mod output;
mod spec;
mod start;
mod variables;
mod wire;

pub(crate) use connection::{Runtime, Transport};
pub(crate) use output::Written;
pub(crate) use spec::{InterruptMode, KernelSpec, KernelSpecs, prefix_of};
pub(crate) use start::{Kernel, StartError, Starting, python_command};
pub(crate) use variables::{Variables, kernel_variables, visible_devices};
pub(crate) use wire::{Channels, Incoming, Message, Visibility, WireError};
