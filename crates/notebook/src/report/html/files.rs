//! The files beside the page, and the way to them.
//!
//! An address is relative, so that it holds wherever the folder is copied to. Only files that a browser shows without
//! running anything in them have one: the content of an artifact is the notebook's.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use super::words::size;
use crate::{
    report::Report,
    text::{percent, shown, url_encoded},
};

/// What browsers show as text or as an image, or save.
const HARMLESS: [&str; 37] = [
    "arrow",
    "bin",
    "bmp",
    "bz2",
    "ckpt",
    "csv",
    "feather",
    "gif",
    "gz",
    "h5",
    "hdf5",
    "ipynb",
    "jpeg",
    "jpg",
    "json",
    "jsonl",
    "log",
    "md",
    "ndjson",
    "npy",
    "npz",
    "onnx",
    "parquet",
    "pkl",
    "png",
    "pt",
    "pth",
    "safetensors",
    "tar",
    "tsv",
    "txt",
    "webp",
    "xz",
    "yaml",
    "yml",
    "zip",
    "zst",
];

pub(super) struct FileView {
    pub(super) name: String,
    /// The address, where following it does no harm.
    pub(super) address: Option<String>,
    pub(super) size: String,
}

/// Returns the files that are kept of the attempt.
pub(super) fn views(report: &Report) -> Vec<FileView> {
    let files = report.files.iter().map(|file| FileView {
        name: shown(&file.path.display().to_string()),
        address: address(&file.path),
        size: size(file.size),
    });
    let folder = report.artifacts_folder.as_deref();
    let artifacts = report.artifacts.iter().map(|artifact| FileView {
        name: shown(&artifact.path.display().to_string()),
        address: folder.and_then(|folder| address(&folder.join(&artifact.path))),
        size: size(artifact.size),
    });
    files.chain(artifacts).collect()
}

/// Returns the address of a file relative to the page; `None` where it may do harm.
fn address(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    HARMLESS.contains(&extension.as_str()).then_some(())?;
    let parts = path.components().map(|part| match part {
        Component::Normal(name) => Some(url_encoded(name.as_bytes(), percent)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    let parts: Vec<String> = parts.collect::<Option<_>>()?;
    // A first part with a colon would be a scheme.
    Some(format!("./{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn an_address_is_relative_escaped_and_of_nothing_that_a_browser_runs() {
        let rows = [
            ("attempts/1/executed.ipynb", Some("./attempts/1/executed.ipynb")),
            ("a b/50% \"<é>.csv", Some("./a%20b/50%25%20%22%3C%C3%A9%3E.csv")),
            ("javascript:x.txt", Some("./javascript%3Ax.txt")),
            ("page.html", None),
            ("drawing.SVG", None),
            ("Makefile", None),
            ("../up.txt", None),
            ("/etc/x.txt", None),
        ];
        for (path, expected) in rows {
            assert_eq!(address(Path::new(path)).as_deref(), expected, "{path}");
        }
        let unreadable = OsStr::from_bytes(b"caf\xe9.json");
        assert_eq!(address(Path::new(unreadable)).as_deref(), Some("./caf%E9.json"));
    }
}
