//! Names of files that are kept, as text: `r-41/report.html`, `r-41.2/executed.ipynb`, `r-41.2/artifacts/figures/loss.png`.
//!
//! A notebook chooses the names of artifacts, and they need not be text: what would not survive is percent-encoded, as in a
//! URL.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::PathBuf,
};

use blueproof_core::ports::{ArtifactName, OutputName, ReportKind};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

/// What is encoded besides bytes that are not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

const EXECUTED: &str = "executed.ipynb";
const KERNEL_LOG: &str = "kernel.log";
const ARTIFACTS: &str = "artifacts/";

pub(crate) fn to_text(name: &OutputName) -> String {
    match name {
        OutputName::ExecutedNotebook(attempt) => format!("{attempt}/{EXECUTED}"),
        OutputName::KernelLog(attempt) => format!("{attempt}/{KERNEL_LOG}"),
        OutputName::Artifact(attempt, name) => {
            let path = percent_encode(name.path().as_os_str().as_bytes(), ENCODED);
            format!("{attempt}/{ARTIFACTS}{path}")
        }
        OutputName::Report(run, kind) => format!("{run}/{}", kind.file_name()),
    }
}

/// Returns the name that a text stands for; `None` where it stands for none.
pub(crate) fn from_text(text: &str) -> Option<OutputName> {
    let (of, file) = text.split_once('/')?;
    if let Ok(run) = of.parse() {
        let kind = ReportKind::ALL
            .into_iter()
            .find(|kind| kind.file_name() == file)?;
        return Some(OutputName::Report(run, kind));
    }
    let attempt = of.parse().ok()?;
    match file {
        EXECUTED => Some(OutputName::ExecutedNotebook(attempt)),
        KERNEL_LOG => Some(OutputName::KernelLog(attempt)),
        file => {
            let bytes: Vec<u8> = percent_decode_str(file.strip_prefix(ARTIFACTS)?).collect();
            let path = PathBuf::from(OsString::from_vec(bytes));
            Some(OutputName::Artifact(attempt, ArtifactName::try_from(path).ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::RunId;

    use super::*;

    #[test]
    fn every_name_comes_back_and_what_is_none_is_refused() {
        let attempt = RunId(41).attempt(2);
        let artifact = |bytes: &[u8]| {
            let name = ArtifactName::try_from(PathBuf::from(OsString::from_vec(bytes.to_vec())));
            OutputName::Artifact(attempt, name.expect("a name"))
        };
        let reports = ReportKind::ALL.map(|kind| OutputName::Report(RunId(41), kind));
        let mut names = vec![
            OutputName::ExecutedNotebook(attempt),
            OutputName::KernelLog(attempt),
        ];
        names.extend(reports);
        names.extend([&b"loss.png"[..], b"a b/c%20d", b"\xff\n", "é".as_bytes()].map(artifact));
        for name in names {
            let text = to_text(&name);
            assert_eq!(from_text(&text), Some(name), "{text}");
        }
        for text in [
            "",
            "r-41",
            "r-41/spec.json",
            "r-41.2/log.ndjson",
            "r-41.2/artifacts/../log.ndjson",
            "r-41.2/artifacts/%2e%2e/x",
        ] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }
}
