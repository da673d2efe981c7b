//! Files below a folder, to which no link leads.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, open as open_path, openat, statat},
    io::Errno,
};

/// How folders on the way are opened.
const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How files are opened: a pipe is not waited for.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Opens the regular file at `path` below `root`, and follows no link on the way there.
pub(super) fn open(root: &Path, path: &Path) -> io::Result<File> {
    let (folder, name) = parent(root, path)?;
    let file = File::from(openat(&folder, &name, FILE, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(no_file())
}

/// Returns how large the regular file at `path` below `root` is.
pub(super) fn size(root: &Path, path: &Path) -> io::Result<u64> {
    let (folder, name) = parent(root, path)?;
    let found = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(no_file());
    }
    Ok(u64::try_from(found.st_size).unwrap_or(0))
}

/// Returns whether all folders on the way from `root` to `path` are there and none is a link.
pub(super) fn is_folder(root: &Path, path: &Path) -> bool {
    folder(root, path.components()).is_ok()
}

/// Returns whether an error says that there is no such file, or something that is none.
pub(super) fn is_no_file(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    let nothing = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::NXIO,
        Errno::NAMETOOLONG,
    ];
    errno.is_some_and(|errno| nothing.contains(&errno)) || error.kind() == io::ErrorKind::InvalidInput
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

/// Returns the folder that a file is in, and the file's name there.
fn parent(root: &Path, path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let mut parts = path.components();
    match parts.next_back() {
        Some(Component::Normal(name)) => Ok((folder(root, parts)?, name.to_owned())),
        Some(Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir) | None => {
            Err(no_file())
        }
    }
}

fn folder<'p>(root: &Path, parts: impl Iterator<Item = Component<'p>>) -> io::Result<OwnedFd> {
    // Where the runs of all stores are is the user's choice, and may be behind a link.
    let mut folder = open_path(root, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
    for part in parts {
        let name: &OsStr = match part {
            Component::Normal(name) => name,
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
                return Err(no_file());
            }
        };
        folder = openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}
