//! Which user of the machine a sandbox's processes are.
//!
//! A user namespace alone is not enough where the agent is root: what is root outside stays the owner of root's files, and may
//! write settings of the machine such as `/proc/sys/kernel/core_pattern`. There each sandbox is a user that nothing else is.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{MetadataExt, lchown},
    path::Path,
};

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

/// The users that systemd hands out for services without one (`DynamicUser`): no package and no person has one of these, and
/// containers with 65,536 users have them, too.
const FIRST_USER: u32 = 61_184;
const N_USERS: u32 = 65_519 - FIRST_USER + 1;

/// A user and a group, of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Identity(pub(super) u32);

impl Identity {
    /// Chooses a user that nothing runs as, where this process is root; `None` where it is not, and can be no other user.
    /// `seed` tells attempts apart that choose at the same time.
    pub(crate) fn choose(seed: u128) -> Option<Self> {
        rustix::process::getuid().is_root().then(|| {
            let taken = owners();
            let first = u32::try_from(seed % u128::from(N_USERS)).unwrap_or_default();
            let nth = |offset: u32| FIRST_USER + (first + offset) % N_USERS;
            let free = (0..N_USERS).map(nth).find(|user| !taken.contains(user));
            Self(free.unwrap_or(nth(0)))
        })
    }

    /// Gives it a folder and all in it. No link is followed.
    ///
    /// # Errors
    ///
    /// When that is not permitted, or the folder cannot be read.
    pub(crate) fn own(self, folder: &Path) -> io::Result<()> {
        for entry in WalkDir::new(folder) {
            lchown(entry?.path(), Some(self.0), Some(self.0))?;
        }
        Ok(())
    }
}

/// Returns the users that processes run as.
fn owners() -> BTreeSet<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .iter()
                .all(u8::is_ascii_digit)
        })
        .filter_map(|entry| Some(entry.metadata().ok()?.uid()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sandboxes_are_two_users_and_neither_is_one_of_the_machines() {
        let is_root = rustix::process::getuid().is_root();
        let chosen = [0, 1, u128::MAX].map(Identity::choose);
        assert_eq!(chosen.map(|identity| identity.is_some()), [is_root; 3]);
        if is_root {
            assert_ne!(chosen[0], chosen[1]);
            assert!(
                chosen
                    .iter()
                    .flatten()
                    .all(|identity| (FIRST_USER..65_520).contains(&identity.0))
            );
        }
    }
}
