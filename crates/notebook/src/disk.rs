//! What is said of a disk that does not take an attempt's files.

use std::{
    io::{self, Write as _},
    path::Path,
};

use blueproof_core::domain::{Failure, FailureClass};
use blueproof_diagnostic::{Code, Diagnostic};

/// Says that files of the attempt could not be written.
pub(crate) fn disk_failure(error: &io::Error) -> Box<Failure> {
    let hint = match is_disk_full(error) {
        true => "free some space, or put the store on another disk".to_owned(),
        false => format!(
            "the store's folder and the one for temporary files (TMPDIR, here `{}`) must be there, and writable",
            std::env::temp_dir().display()
        ),
    };
    let diagnostic = Diagnostic::error(Code::HostDisk, "the attempt's files could not be written")
        .caused_by(error)
        .hint(hint);
    Box::new(Failure::outside_cells(FailureClass::Infrastructure, diagnostic))
}

/// So much is written to see whether a disk takes anything.
const PROBE: usize = 64 << 10;

/// Returns with what error a folder's disk takes nothing more, if it is full: who fails on such a disk often cannot say why.
pub(crate) fn full(folder: &Path) -> Option<io::Error> {
    let write = || {
        let mut file = tempfile::tempfile_in(folder)?;
        file.write_all(&[0; PROBE])?;
        file.sync_all()
    };
    write().err().filter(is_disk_full)
}

/// Returns whether the error is a lack of space.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_takes_files_or_is_not_there_is_not_full() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(full(folder.path()).is_none());
        assert!(full(&folder.path().join("missing")).is_none());
        let left = std::fs::read_dir(folder.path()).expect("it is there").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn who_cannot_write_is_told_to_free_space_only_where_there_is_none() {
        let hint = |kind: io::ErrorKind| disk_failure(&kind.into()).diagnostic.hints[0].clone();
        assert!(hint(io::ErrorKind::StorageFull).contains("free some space"));
        assert!(hint(io::ErrorKind::NotFound).contains("TMPDIR"));
    }
}
