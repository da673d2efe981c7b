//! Attempts' folders.

use std::{
    fs::{self, DirBuilder},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use blueproof_core::attempt::{AttemptLayout, CACHE_TAG, CACHE_TAG_TEXT, UNFOLLOWED, clear_folder_away};

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

/// Removes the folder that an attempt worked in. What cannot be removed, such as another user's file, keeps nobody from the
/// quota: the agent's log says of it why, and `describe run` lists it.
pub(super) fn remove_work(layout: &AttemptLayout) {
    if let Err(error) = remove(&layout.work()) {
        // Where not even that can be written, the files themselves are all that tells.
        let _ = note(
            &layout.agent_log(),
            &format!("the attempt's folder was not removed whole: {error}"),
        );
    }
}

fn note(log: &Path, line: &str) -> io::Result<()> {
    let mut options = fs::File::options();
    let mut log = options
        .append(true)
        .create(true)
        .custom_flags(UNFOLLOWED)
        .open(log)?;
    writeln!(log, "{line}")
}

/// Removes a folder and all in it that can be removed, or what lies in its place; nothing is a success. The first thing that
/// cannot be removed is the error.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(folder),
        // What a link leads to is nobody's here.
        Err(error) if !is_folder(folder) => Err(refused(folder, &error)),
        Err(_) => remove_what_goes(folder, &|file| fs::remove_file(file)),
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_dir())
}

/// Removes each thing by itself, so that one that refuses keeps no other.
fn remove_what_goes(folder: &Path, remove_file: &impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    // A notebook may have taken our rights away from what it made. What that did not help against, is told below.
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    let entries = fs::read_dir(folder).map_err(|error| refused(folder, &error))?;
    let mut removed = Ok(());
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let this = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_what_goes(&path, remove_file)
        } else {
            remove_file(&path).map_err(|error| refused(&path, &error))
        };
        removed = removed.and(this);
    }
    removed?;
    fs::remove_dir(folder).map_err(|error| refused(folder, &error))
}

fn refused(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_refuses_to_be_removed_keeps_nothing_else_and_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("work");
        fs::create_dir_all(folder.join("a/mine")).expect("folders");
        fs::create_dir_all(folder.join("z")).expect("folders");
        for file in ["a/roots", "a/mine/large", "z/large"] {
            fs::write(folder.join(file), "").expect("a file");
        }
        let refuses = |file: &Path| match file.ends_with("roots") {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => fs::remove_file(file),
        };
        let error = remove_what_goes(&folder, &refuses).expect_err("one file stays");
        let roots = folder.join("a/roots");
        assert_eq!(
            error.to_string(),
            format!("{}: permission denied", roots.display())
        );
        assert!(roots.exists() && !folder.join("a/mine").exists() && !folder.join("z").exists());
        std::os::unix::fs::symlink(&folder, root.path().join("link")).expect("a link");
        assert!(is_folder(&folder) && !is_folder(&root.path().join("link")));
        let log = root.path().join("agent.log");
        note(&log, &error.to_string()).expect("it is noted");
        assert_eq!(fs::read_to_string(log).expect("a file"), format!("{error}\n"));
    }
}
