//! Files that only their owner may read, written whole.

use std::{
    fs::{self, DirBuilder},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use blueproof_core::attempt::clear_folder_away;

/// Makes a folder that only its owner may look into: notebooks print all sorts of things.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file whole or not at all, in the place of whatever else lies there. Only its owner may read it.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    clear_away(&part)?;
    let mut options = fs::File::options();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    clear_folder_away(path)?;
    fs::rename(&part, path)
}

/// Removes whatever lies in a place; nothing is a success.
pub(crate) fn clear_away(path: &Path) -> io::Result<()> {
    clear_folder_away(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
