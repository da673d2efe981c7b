//! Which processes are whose.

use std::collections::BTreeMap;

use super::Holder;

/// Which processes are whose. The claims of whoever released its devices hold until they are read once more.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    owners: BTreeMap<u32, Holder>,
    released: Vec<(i64, Holder)>,
}

impl Claims {
    /// Notes all processes of a holder. Numbers are used again: the last who says so has one.
    pub(super) fn replace(&mut self, holder: &Holder, pids: impl IntoIterator<Item = u32>) {
        self.owners.retain(|_, owner| owner != holder);
        self.released.retain(|(_, released)| released != holder);
        self.owners
            .extend(pids.into_iter().map(|pid| (pid, holder.clone())));
    }

    pub(super) fn owner(&self, pid: u32) -> Option<&Holder> {
        self.owners.get(&pid)
    }

    pub(super) fn release(&mut self, at: i64, holder: &Holder) {
        if self.owners.values().any(|owner| owner == holder) {
            self.released.push((at, holder.clone()));
        }
    }

    /// Moves the times by so much.
    pub(super) fn move_by(&mut self, by: i64) {
        for (at, _) in &mut self.released {
            *at += by;
        }
    }

    /// Drops the claims of those who had released their devices when they were read.
    pub(super) fn drop_released(&mut self, read_at: i64) {
        if self.released.is_empty() {
            return;
        }
        let (gone, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.released)
            .into_iter()
            .partition(|(at, _)| *at <= read_at);
        self.released = stay;
        self.owners
            .retain(|_, owner| !gone.iter().any(|(_, holder)| holder == owner));
    }
}
