//! Which cell of one notebook is which of another, and how long both took.

use std::collections::{BTreeMap, VecDeque};

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::Change;
use crate::{ipynb::CellKind, report::Cell};

/// A code cell beside the same cell of an earlier attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CellChange {
    /// Its position in the notebook now.
    pub cell: u32,
    /// What became of it since then.
    pub edit: CellEdit,
    /// How long it took.
    pub took: Change<SignedDuration>,
}

/// What became of a cell's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CellEdit {
    /// It is what it was.
    Same,
    /// It is another, in the same place.
    Edited,
    /// There was no such cell.
    Added,
}

/// Returns the code cells of `now`, each beside its own of `then`; `None` where there are none to compare.
///
/// Cells with the same text are the same, wherever they stand; of those that are left, the ones in the same place are.
pub(super) fn changes(then: &[Cell], now: &[Cell]) -> Option<Vec<CellChange>> {
    if then.is_empty() || now.is_empty() {
        return None;
    }
    let mut by_text: BTreeMap<&str, VecDeque<&Cell>> = BTreeMap::new();
    for cell in code(then) {
        by_text.entry(&cell.source).or_default().push_back(cell);
    }
    let same: Vec<(&Cell, Option<&Cell>)> = code(now)
        .map(|cell| {
            let before = by_text
                .get_mut(cell.source.as_str())
                .and_then(VecDeque::pop_front);
            (cell, before)
        })
        .collect();
    let left: BTreeMap<u32, &Cell> = by_text
        .into_values()
        .flatten()
        .map(|cell| (cell.position, cell))
        .collect();
    let change = |(cell, same): (&Cell, Option<&Cell>)| {
        let edited = left.get(&cell.position).copied();
        CellChange {
            cell: cell.position,
            edit: match (same, edited) {
                (Some(_), _) => CellEdit::Same,
                (None, Some(_)) => CellEdit::Edited,
                (None, None) => CellEdit::Added,
            },
            took: Change {
                then: same.or(edited).and_then(|before| before.took),
                now: cell.took,
            },
        }
    };
    Some(same.into_iter().map(change).collect())
}

fn code(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(|cell| cell.kind == CellKind::Code)
}
