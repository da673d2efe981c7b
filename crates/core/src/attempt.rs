//! What a cluster driver and the agent in an attempt agree on.
//!
//! The driver makes a folder with [`AttemptSpec`] in it, starts the agent and gives it its [`Orders`]. From then on the agent
//! alone writes there: it appends one [`Record`] a line to its log and never rewrites one. Whoever reads goes by offset, so the
//! agent neither knows nor cares whether a scheduler is alive. A notebook can reach the folder, too; each line is signed, so
//! that what it writes there is seen to be its own.

mod cgroup;
mod layout;
mod log;
mod orders;
mod process;
mod record;
mod regular;
mod removal;
mod runs;
mod signature;
mod spec;

pub use cgroup::Cgroup;
pub use layout::{AttemptLayout, CACHE_TAG, CACHE_TAG_TEXT, STORE_ID, run_folder};
pub use log::{Disturbance, LogCursor, LogError, LogReader, LogWriter, NoCursor};
pub use orders::{Errand, Orders};
pub use process::{Presence, ProcessName};
pub use record::{AttemptStage, CellEnd, Checked, KeptFile, Machine, Record, RecordKind, Stream};
pub use regular::{UNFOLLOWED, clear_folder_away, open_regular, read_regular};
pub use removal::{remove_folder, unescaped};
pub use runs::{RunsFolder, StoreIdentity};
use signature::Chain;
pub use signature::LogKey;
pub use spec::{AttemptSpec, SandboxMode};
