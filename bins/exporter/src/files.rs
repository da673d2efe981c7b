//! Files of ours.

use std::{fs, io, path::Path};

use blueproof_core::diagnostic::{Code, Diagnostic};

/// Writes a file whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
    // Hidden, since whoever reads all files of the folder must not take it for one.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.part"));
    let written = fs::write(&part, content).and_then(|()| fs::rename(&part, path));
    written.map_err(|error| cannot("write", path, &error))
}

/// Returns why something could not be done with a file.
pub(crate) fn cannot(doing: &str, path: &Path, error: &io::Error) -> Diagnostic {
    let message = format!("could not {doing} `{}`", path.display());
    Diagnostic::error(Code::Unwritable, message)
        .because(error.to_string())
        .hint("name a file in a folder that you may write to, on a disk that is not full")
}
