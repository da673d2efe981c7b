//! Writes files so that a reader, or a crash, never meets half of one, and so that it is known what was written.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use blueproof_core::{attempt::clear_folder_away, domain::Bytes};
use sha2::{Digest, Sha256};

/// Knows the length and the SHA-256 of what it writes on.
pub(crate) struct Digesting<W> {
    inner: W,
    size: u64,
    hash: Sha256,
}

impl<W: Write> Digesting<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            size: 0,
            hash: Sha256::new(),
        }
    }

    /// Returns what it wrote to, and the length and digest of what it wrote.
    pub(crate) fn finish(self) -> (W, Bytes, String) {
        (self.inner, Bytes(self.size), hexadecimal(&self.hash.finalize()))
    }
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the SHA-256 of `bytes`, in hexadecimal digits.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns bytes in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

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
    // A notebook can have put a folder in its place.
    clear_folder_away(file)?;
    temporary.persist(file)?;
    Ok(())
}
