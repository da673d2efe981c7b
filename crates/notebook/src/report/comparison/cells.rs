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
                then: same.or(edited).and_then(took),
                now: took(cell),
            },
        }
    };
    Some(same.into_iter().map(change).collect())
}

/// Returns how long a cell took that was executed to its end. One that failed or was interrupted says nothing of that.
fn took(cell: &Cell) -> Option<SignedDuration> {
    cell.took.filter(|_| cell.end.is_some_and(|end| end.is_good()))
}

fn code(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(|cell| cell.kind == CellKind::Code)
}

#[cfg(test)]
mod tests {
    use blueproof_core::attempt::CellEnd;

    use super::*;

    fn cell(end: CellEnd) -> Cell {
        Cell {
            position: 1,
            kind: CellKind::Code,
            source: "train()".into(),
            outputs: Vec::new(),
            end: Some(end),
            took: Some(SignedDuration::from_secs(40)),
            gpu: None,
        }
    }

    #[test]
    fn only_cells_that_were_executed_to_their_end_are_compared() {
        for (then, now, compared) in [
            (CellEnd::Ok, CellEnd::RaisedAsAllowed, (true, true)),
            (CellEnd::Ok, CellEnd::Interrupted, (true, false)),
            (CellEnd::KernelDied, CellEnd::Ok, (false, true)),
        ] {
            let changes = changes(&[cell(then)], &[cell(now)]).expect("there are cells");
            let took = changes[0].took;
            assert_eq!(
                (took.then.is_some(), took.now.is_some()),
                compared,
                "{then:?} {now:?}"
            );
        }
    }
}
