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

pub(crate) use cells::Executor;
pub(crate) use finish::{CellRun, Finish, Over};
pub(crate) use leave::Leaving;
pub use limits::Graces;
pub(crate) use limits::{Stop, Stops, Why, deadline, until};
pub(crate) use notebook::{Cell, INJECTED_ID, Notebook};
pub use outputs::OutputLimits;
pub(crate) use probe::{Silent, SilentKind};
pub(crate) use recorder::{Belonging, Recorder};
