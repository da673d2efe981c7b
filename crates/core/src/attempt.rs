//! What a cluster driver and the agent in an attempt agree on.
//!
//! The driver makes a folder with [`AttemptSpec`] in it and starts the agent. From then on the agent alone writes
//! there: it appends one [`Record`] a line to its log and never rewrites one. Whoever reads goes by offset, so the
//! agent neither knows nor cares whether a scheduler is alive.

mod layout;
mod log;
mod record;
mod spec;

pub use layout::{AttemptLayout, CACHE_TAG, CACHE_TAG_TEXT, STORE_ID, run_folder};
pub use log::{LogReader, LogWriter};
pub use record::{CellEnd, Record, RecordKind, Stage, Stream};
pub use spec::AttemptSpec;
