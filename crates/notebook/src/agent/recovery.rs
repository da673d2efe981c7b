//! Finishing an attempt whose agent was killed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use blueproof_core::{
    attempt::{AttemptLayout, LogWriter, Record, RecordKind},
    diagnostic::{Code, Diagnostic},
    domain::{Failure, FailureClass, Outcome, Verdict},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::process::end_left;

/// What an agent writes down before it starts anything, so that it can be ended without it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Started {
    /// The value of the variable that marks every process of the attempt.
    pub(crate) marker: String,
    /// The folder with the kernel's sockets.
    pub(crate) sockets: Option<PathBuf>,
}

impl Started {
    /// Writes it where the next agent finds it.
    pub(crate) fn save(&self, layout: &AttemptLayout) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(layout.root())?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(layout.started())?;
        Ok(())
    }

    fn load(layout: &AttemptLayout) -> Option<Self> {
        serde_json::from_slice(&fs::read(layout.started()).ok()?).ok()
    }
}

/// Ends what an earlier agent left, and appends how the attempt ended. The notebook is not run again.
pub(crate) fn finish(layout: &AttemptLayout, log: &mut LogWriter) -> io::Result<()> {
    let mut diagnostic = Diagnostic::error(
        Code::AgentLost,
        "the agent was killed before the attempt was over",
    );
    if let Some(started) = Started::load(layout) {
        let work = layout.work();
        let left = end_left(&started.marker, &work.canonicalize().unwrap_or(work));
        if left > 0 {
            diagnostic = diagnostic.because(format!("{left} of its processes could not be ended"));
        }
        started.sockets.as_deref().map(remove_sockets);
    }
    remove_folder(&layout.work());
    let diagnostic = diagnostic.hint("retry it: a killed agent says nothing about the notebook");
    let failure = Failure::outside_cells(FailureClass::Infrastructure, diagnostic);
    log.append(&Record {
        at: Timestamp::now(),
        kind: RecordKind::Finished {
            outcome: Box::new(Outcome {
                verdict: Verdict::Failed(Box::new(failure)),
                usage: None,
                metrics: Default::default(),
            }),
        },
    })?;
    log.sync()?;
    let _ = fs::remove_file(layout.started());
    Ok(())
}

/// Removes a folder and what is in it, also where a notebook took away its own right to write there.
pub(crate) fn remove_folder(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
                .map(|e| e.path()),
        );
    }
    let _ = fs::remove_dir_all(path);
}

fn remove_sockets(folder: &Path) {
    // The file that names it lies where a notebook could have written to.
    let is_ours = folder
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"bp-"));
    if is_ours && fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        remove_folder(folder);
    }
}
