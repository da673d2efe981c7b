//! Attempts' folders.

use std::{
    fs::{self, DirBuilder},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use blueproof_core::attempt::{CACHE_TAG, CACHE_TAG_TEXT, UNFOLLOWED, clear_folder_away};

/// Makes a folder that only its owner may look into: notebooks print all sorts of things.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes the folder of all runs, and marks it as no part of whatever checkout it may lie in.
pub(super) fn tag(runs: &Path) -> io::Result<()> {
    make(runs)?;
    let tag = runs.join(CACHE_TAG);
    if tag.exists() {
        Ok(())
    } else {
        write_whole(&tag, CACHE_TAG_TEXT.as_bytes())
    }
}

/// Writes a file whole or not at all, in the place of whatever else lies there.
pub(super) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    clear_away(&part)?;
    let mut file = fs::File::create_new(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    clear_folder_away(path)?;
    fs::rename(&part, path)
}

/// Opens a file to be locked, and makes it where there is none, or something that is no file.
pub(super) fn open_lock(path: &Path) -> io::Result<fs::File> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        clear_away(path)?;
    }
    let mut options = fs::File::options();
    options.create(true).truncate(false).write(true);
    options.custom_flags(UNFOLLOWED).open(path)
}

/// Removes whatever lies in a place; nothing is a success.
fn clear_away(path: &Path) -> io::Result<()> {
    clear_folder_away(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns whether nothing is in a folder, or the folder is not there.
pub(super) fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Moves a folder aside, to the first name beside it that is free: `1.aside-1`.
pub(super) fn set_aside(folder: &Path) -> io::Result<()> {
    let beside = |number: u32| {
        let mut name = folder.as_os_str().to_owned();
        name.push(format!(".aside-{number}"));
        PathBuf::from(name)
    };
    let free = (1..).map(beside).find(|path| fs::symlink_metadata(path).is_err());
    fs::rename(folder, free.expect("some number is free"))
}

/// Removes a folder and all in it, or what lies in its place; nothing is a success.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(folder),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // A notebook may have taken our rights away from what it made.
            make_removable(folder)?;
            fs::remove_dir_all(folder)
        }
        other => other,
    }
}

fn make_removable(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_removable(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_a_notebook_locked_up_is_removed_all_the_same() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("work");
        fs::create_dir_all(folder.join("locked/deep")).expect("folders");
        fs::set_permissions(folder.join("locked"), fs::Permissions::from_mode(0o0)).expect("rights");
        remove(&folder).expect("it goes");
        assert!(!folder.exists());
        remove(&folder).expect("and may be gone already");
        fs::write(&folder, "").expect("a file");
        remove(&folder).expect("a file in its place goes, too");
        assert!(!folder.exists());
    }
}
