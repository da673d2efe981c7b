//! What output is asked for by.

use std::{
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use crate::domain::{AttemptId, RunId};

/// A file that is kept of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputName {
    /// The notebook with its outputs.
    ExecutedNotebook(AttemptId),
    /// What the kernel itself printed.
    KernelLog(AttemptId),
    /// A file that the blueprint declares as an artifact.
    Artifact(AttemptId, ArtifactName),
    /// The report of a run.
    Report(RunId, ReportKind),
}

/// A report of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportKind {
    /// The page.
    Html,
    /// For programs.
    Json,
    /// For whatever shows test results.
    Junit,
}

/// The name of an artifact: a path below the folder of its attempt's artifacts, and nowhere else. A notebook chooses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactName(PathBuf);

/// A path that no artifact can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no name of an artifact: it must be a path without `.` and `..` that does not begin at the root", .0.display())]
pub struct ArtifactNameError(PathBuf);

impl ArtifactName {
    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<PathBuf> for ArtifactName {
    type Error = ArtifactNameError;

    fn try_from(path: PathBuf) -> Result<Self, ArtifactNameError> {
        let parts = path.components();
        let is_below = parts.clone().all(|part| matches!(part, Component::Normal(_)));
        // Such as `a/./b` and `a//b`, which would be second names of one file.
        let is_plain = parts.collect::<PathBuf>().as_os_str() == path.as_os_str();
        let has_nul = path.as_os_str().as_bytes().contains(&0);
        if !is_below || !is_plain || has_nul || path.as_os_str().is_empty() {
            return Err(ArtifactNameError(path));
        }
        Ok(Self(path))
    }
}

impl ReportKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Html, Self::Json, Self::Junit];

    /// Returns what its file is called.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Html => "report.html",
            Self::Json => "report.json",
            Self::Junit => "junit.xml",
        }
    }
}

impl fmt::Display for OutputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExecutedNotebook(attempt) => write!(f, "executed notebook of {attempt}"),
            Self::KernelLog(attempt) => write!(f, "kernel log of {attempt}"),
            Self::Artifact(attempt, name) => write!(f, "artifact `{}` of {attempt}", name.0.display()),
            Self::Report(run, kind) => write!(f, "{} of {run}", kind.file_name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;

    #[test]
    fn a_name_that_leads_out_of_the_artifacts_folder_is_refused() {
        for path in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../log.ndjson",
            "a/../../b",
            "a/..",
            ".",
            "./a",
            "a/./b",
            "a//b",
            "a/",
            "a\0b",
        ] {
            let refused = ArtifactName::try_from(PathBuf::from(path));
            assert_eq!(refused, Err(ArtifactNameError(path.into())), "{path:?}");
        }
        for path in [&b"a"[..], b"a/b.png", b"..a", b"caf\xe9.txt", b"a b\n"] {
            let path = PathBuf::from(OsStr::from_bytes(path));
            assert_eq!(
                ArtifactName::try_from(path.clone()).expect("it is below").path(),
                path
            );
        }
    }
}
