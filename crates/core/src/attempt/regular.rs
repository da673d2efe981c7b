//! Opening files that lie where a notebook can write.
//!
//! A pipe in the place of a file would keep its reader waiting for ever, a link would lead it elsewhere, and a sparse file of
//! a terabyte costs nothing to make.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

use super::remove_folder;

/// How files are opened there, to be read or written: no link is followed, and nothing is waited for.
pub const UNFOLLOWED: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// Opens a file to be read, if it is a regular one. No link is followed at its end, and nothing is waited for.
///
/// # Errors
///
/// When it is not there, cannot be opened, or is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(UNFOLLOWED)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is no regular file",
    ))
}

/// Removes a folder that lies where a file is to be put: nothing can be moved over it. Anything else stays.
///
/// # Errors
///
/// When it cannot be removed.
pub fn clear_folder_away(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| there.is_dir()) {
        return remove_folder(path);
    }
    Ok(())
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
///
/// As [`open_regular`], and when it is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        ));
    }
    Ok(bytes)
}
