//! How the cells of a notebook ended.

use std::time::Duration;

use blueproof_core::attempt::CellEnd;
use serde_json::Value;

use super::{
    leave::Leaving,
    limits::Why,
    notebook::{Cell, Notebook},
    probe::{Aftermath, Silent},
};
use crate::{exception::tells_of_failure, process::End};

/// Of how many cells the last text is kept, whatever it says.
const LAST_TAILS: usize = 8;
/// Of how many before them, where it tells of a failure.
const TELLING_TAILS: usize = 20;

/// How the cells ended, and the one that they ended in.
pub(crate) struct Finish {
    /// From the first cell's start to the last one's end.
    pub(crate) took: Duration,
    /// Whether somebody asked for a stop before a cell began, so that it did not.
    pub(crate) is_stopped: bool,
    /// The cell that stopped the notebook, or `None` when every cell ran.
    pub(crate) last: Option<(Cell, CellRun)>,
    /// What failed without stopping its cell: position of the cell, and what is known of it.
    pub(crate) silent: Vec<(u32, Silent)>,
    /// The last text that each cell printed, by position, for the verdict.
    pub(crate) tails: Vec<(u32, String)>,
    /// The end of what processes wrote to their standard error by themselves, past the kernel, while the last of the cells ran.
    pub(crate) written: String,
    /// How the kernel ended, where it had not before it was asked to.
    pub(crate) leaving: Option<Leaving>,
    /// What the last cell printed in all, once the kernel was gone.
    pub(crate) parting: String,
    /// The executed notebook, with all outputs.
    pub(crate) notebook: Notebook,
    /// How many cells of code there are, and how each of them ended that has begun, by position.
    pub(crate) cells: usize,
    pub(crate) ends: Vec<(u32, CellEnd)>,
}

impl Finish {
    /// Takes in how the cell at this position ended, and the end of what it printed.
    pub(super) fn take_in(&mut self, position: u32, run: &CellRun, tail: &str) {
        // Whatever fails because we end the cell explains nothing.
        if !matches!(run.over, Some(Over::Ended(_))) {
            let silent = run.aftermath.silent.iter().cloned();
            self.silent.extend(silent.map(|silent| (position, silent)));
        }
        self.tails.push((position, tail.to_owned()));
        self.forget_tail();
        self.ends.push((position, run.end));
    }

    /// Output of an earlier cell can be the cause of a later failure, but not all of it is worth keeping: what is, is that
    /// of the last cells, and that which tells of something that failed in silence.
    fn forget_tail(&mut self) {
        let Some(at) = self.tails.len().checked_sub(LAST_TAILS + 1) else {
            return;
        };
        let (position, text) = &self.tails[at];
        let has_silent = self.silent.iter().any(|(cell, _)| cell == position);
        if at >= TELLING_TAILS || !(has_silent || tells_of_failure(text)) {
            self.tails.remove(at);
        }
    }

    /// Returns whether each cell of code has run, to its end, and as it should. Nothing else is a pass.
    pub(crate) fn accounts_for_every_cell(&self) -> bool {
        self.ends.len() == self.cells && self.ended_well() == self.cells
    }

    /// Returns how many cells have ended as they should.
    pub(crate) fn ended_well(&self) -> usize {
        self.ends.iter().filter(|(_, end)| end.is_good()).count()
    }
}

/// How one cell ended.
#[derive(Debug)]
pub(crate) struct CellRun {
    /// How.
    pub(crate) end: CellEnd,
    /// Why no further cell runs, when the reason is not an exception.
    pub(crate) over: Option<Over>,
    /// Whether its kernel was killed, because the cell did not end when it was interrupted.
    pub(crate) is_killed: bool,
    /// The error that the kernel answered with: name and value.
    pub(crate) error: Option<Value>,
    /// What the kernel told of itself afterwards.
    pub(crate) aftermath: Aftermath,
    /// The number that the kernel gave the cell.
    pub(crate) count: Option<u64>,
}

/// Why no further cell can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// The kernel ended by itself.
    Died(End),
    /// The notebook asked its kernel to end, by `exit()` or `quit()`.
    Exited,
    /// We ended the cell.
    Ended(Why),
    /// The kernel could not be spoken to.
    Lost,
    /// The kernel sent what cannot be read; why stands as the cell's error.
    Unreadable,
}
