//! Writes files so that a reader, or a crash, never meets half of one.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Puts `bytes` in the place of `file`, whose folder is made where it is not there.
///
/// The file is whole and on disk when this returns; when it fails, the old one stands. Who may read it is up to the
/// process's umask, as with any file.
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    let mut temporary = builder
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    Ok(())
}
