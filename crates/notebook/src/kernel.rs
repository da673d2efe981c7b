//! A Jupyter kernel: started, spoken to and ended.

mod connection;
mod lossless;
mod output;
mod start;
mod variables;
mod wire;

pub(crate) use connection::Runtime;
pub(crate) use output::Written;
pub(crate) use start::{Kernel, StartError, Starting};
pub(crate) use variables::{Variables, kernel_variables, visible_devices};
pub(crate) use wire::{Channels, Incoming, Message, Visibility, WireError};
