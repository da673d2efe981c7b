//! Attempts' folders.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

pub(super) use crate::files::{make, write_whole};

use crate::files::clear_away;
use blueproof_core::{
    attempt::{AttemptLayout, CACHE_TAG, CACHE_TAG_TEXT, UNFOLLOWED, remove_folder},
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

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

/// Opens a file to be locked, and makes it where there is none, or something that is no file.
pub(super) fn open_lock(path: &Path) -> io::Result<fs::File> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        clear_away(path)?;
    }
    let mut options = fs::File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.custom_flags(UNFOLLOWED).open(path)
}

/// Returns whether nothing is in a folder, or the folder is not there.
pub(super) fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Moves a folder aside, to the first name beside it that is free: `1.aside-1`.
pub(super) fn move_aside(folder: &Path) -> io::Result<()> {
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
pub(super) fn remove_work(layout: &AttemptLayout, work: &Path) {
    // An attempt that an earlier version began works in its own folder.
    let before = layout.root().join("work");
    if let Err(error) = remove_folder(work).and(remove_folder(&before)) {
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

/// Returns that an attempt's files could not be worked with, which may go better later.
pub(super) fn cannot(doing: &str, path: &Path, error: &dyn std::error::Error) -> CallError {
    let diagnostic = Diagnostic::error(
        Code::AttemptFolder,
        format!("could not {doing} an attempt's files"),
    )
    .at(SourceLocation::file(path.display().to_string()))
    .caused_by(error)
    .hint("see that the disk is not full and that the folder is yours");
    CallError::later(diagnostic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_removed_is_noted_after_what_the_agent_said() {
        let root = tempfile::tempdir().expect("a folder");
        let log = root.path().join("agent.log");
        fs::write(&log, "it said this\n").expect("a file");
        note(&log, "a file stays").expect("it is noted");
        assert_eq!(
            fs::read_to_string(log).expect("a file"),
            "it said this\na file stays\n"
        );
    }
}
