//! What is said of a disk that does not take an attempt's files.

use std::io;

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
    fn who_cannot_write_is_told_to_free_space_only_where_there_is_none() {
        let hint = |kind: io::ErrorKind| disk_failure(&kind.into()).diagnostic.hints[0].clone();
        assert!(hint(io::ErrorKind::StorageFull).contains("free some space"));
        assert!(hint(io::ErrorKind::NotFound).contains("TMPDIR"));
    }
}
