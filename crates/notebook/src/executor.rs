//! Runs the cells of a notebook in a kernel, one after the other, and keeps what they show.

mod cells;
mod finish;
mod install;
mod late;
mod leave;
mod limits;
mod notebook;
mod outputs;
mod probe;
mod recorder;

use std::{collections::HashMap, path::Path};

use blueproof_core::{domain::Timeouts, ports::GpuMeter};

pub(crate) use finish::{CellRun, Finish, Over};
pub(crate) use leave::Leaving;
pub use limits::Graces;
pub(crate) use limits::{Stop, Stops, Why, deadline, until};
pub(crate) use notebook::{Cell, INJECTED_ID, Notebook};
pub use outputs::OutputLimits;
pub(crate) use probe::{Silent, SilentKind};
pub(crate) use recorder::{Belonging, Recorder};

use crate::{
    kernel::{Channels, Kernel, KernelSpec},
    plan::ShellInstall,
    process::Meter,
};

/// What the cells are run with.
pub(crate) struct Executor<'a> {
    pub(crate) kernel: &'a mut Kernel,
    pub(crate) channels: &'a mut Channels,
    pub(crate) recorder: Recorder<'a>,
    pub(crate) notebook: Notebook,
    pub(crate) meter: &'a mut Meter,
    /// Told of each cell, where the attempt has devices.
    pub(crate) gpus: Option<&'a mut dyn GpuMeter>,
    pub(crate) stops: &'a mut Stops,
    pub(crate) timeouts: &'a Timeouts,
    pub(crate) graces: Graces,
    pub(crate) shell_install: ShellInstall,
    /// How the kernel is started, where it is not Python's: it is asked nothing in Python then.
    pub(crate) kernelspec: Option<&'a KernelSpec>,
    pub(crate) save_to: &'a Path,
    /// The notebook's checkout: what lies in it is its own code.
    pub(crate) root: &'a Path,
    pub(crate) requests: HashMap<String, usize>,
    /// Where text belongs that the kernel's processes write by themselves.
    pub(crate) belonging: Belonging,
    /// Why a message that came between two cells could not be read, where one could not.
    pub(crate) unreadable: Option<String>,
}
