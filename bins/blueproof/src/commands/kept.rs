//! `blueproof report` and `blueproof artifacts`: what is kept of a run.

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use blueproof_core::{
    attempt::{RunsFolder, open_regular, read_regular},
    ports::Store,
    sqlite::SqliteStore,
    view::{ReportView, RunView},
};
use blueproof_diagnostic::{Code, Diagnostic, Place};
use blueproof_notebook::report;
use serde::{Serialize, Serializer};

use crate::{
    cli::{Artifacts, Report, ReportFormat},
    exit::{Exit, Problem},
    output::{self, Document},
    reading::Reading,
};

/// Far more than a report may have.
const LONGEST_REPORT: u64 = 1 << 30;

/// Prints the report's path, or the report itself.
pub(crate) async fn report(reading: &Reading, arguments: &Report) -> Result<Exit, Problem> {
    let store = reading.store_with(&arguments.run)?;
    let run = arguments.run.resolve(store).await?;
    let n_attempts = run.attempts.len();
    let run = arguments.attempt.of(run)?;
    if run.attempts.len() < n_attempts {
        return report_of_earlier(reading, store, &run, arguments).await;
    }
    let file = match arguments.format {
        None | Some(ReportFormat::Html) => "report.html",
        Some(ReportFormat::Json) => "report.json",
        Some(ReportFormat::Junit) => "junit.xml",
    };
    let path = reading.kept(store).run(run.id).join(file);
    if !path.exists() {
        return no_report(&run);
    }
    match arguments.format {
        None => {
            output::print(&format!("{}\n", path.display()))?;
            if arguments.open {
                open(&path);
            }
        }
        Some(_) => output::print(&text(&path).map_err(|error| unreadable(&path, &error))?)?,
    }
    Ok(Exit::Ok)
}

/// Prints the report of an attempt that is not the last one: the report on the disk is of that.
async fn report_of_earlier(
    reading: &Reading,
    store: &SqliteStore,
    run: &RunView,
    arguments: &Report,
) -> Result<Exit, Problem> {
    let write = match arguments.format {
        Some(ReportFormat::Html) => report::to_html,
        Some(ReportFormat::Json) => report::to_json,
        Some(ReportFormat::Junit) => report::to_junit,
        None => return Err(Problem::usage(page_of_last(run))),
    };
    let Some(request) = store.request(run.id).await? else {
        return no_report(run);
    };
    let report = report::assemble(run, &request, None, &reading.kept(store));
    output::print(&write(&report))?;
    Ok(Exit::Ok)
}

fn page_of_last(run: &RunView) -> Diagnostic {
    let Some(attempt) = run.attempts.last() else {
        return Diagnostic::error(Code::NoSuchRun, format!("{} has no attempt", run.id));
    };
    let message = format!(
        "the page of {} is of its last attempt, and so is its path",
        run.id
    );
    Diagnostic::error(Code::Usage, message).hint(format!(
        "`blueproof report {} --attempt {} --format html` prints the page of this one",
        run.id, attempt.id.number
    ))
}

/// Opens a page as a desktop does. Where there is none, its path stands on stdout already.
fn open(page: &Path) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let has_desktop = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty()));
    if !has_desktop {
        output::note("there is no desktop here to open it on");
        return;
    }
    let mut command = Command::new(program);
    command
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        output::note(&format!("`{program}` could not open it: {error}"));
    }
}

fn no_report(run: &RunView) -> Result<Exit, Problem> {
    if run.report == ReportView::NotDue || run.report == ReportView::Due {
        anstream::eprintln!(
            "{} has no report yet ({}); `blueproof wait {0}` waits for it",
            run.id,
            run.state
        );
        return Ok(Exit::Pending);
    }
    let gone = Diagnostic::error(Code::FileMissing, format!("the report of {} is gone", run.id));
    Err(Problem::usage(gone.hint(format!(
        "`blueproof describe run {}` says what is known of it",
        run.id
    ))))
}

/// Lists the files that an attempt kept, the last one unless another is named, or copies them.
pub(crate) async fn artifacts(reading: &Reading, arguments: &Artifacts) -> Result<Exit, Problem> {
    let store = reading.store_with(&arguments.run)?;
    let run = arguments.attempt.of(arguments.run.resolve(store).await?)?;
    let Some(attempt) = run.attempts.last() else {
        anstream::eprintln!("{} has no attempt, and so no files", run.id);
        return Ok(Exit::Ok);
    };
    let folder = reading.kept(store).attempt(attempt.id).artifacts();
    if let Some(gone) = gone(&run, &reading.kept(store)) {
        return Err(Problem::usage(gone));
    }
    let files = files(&folder).map_err(|error| unreadable(&folder, &error))?;
    if files.is_empty() {
        anstream::eprintln!("{} kept no files", run.id);
    }
    let mut listed = Vec::new();
    for file in files {
        let kept = folder.join(&file);
        let path = match &arguments.to {
            None => kept,
            Some(to) => copy(&kept, &to.join(&file))?,
        };
        match arguments.output {
            None => output::print(&format!("{}\n", escaped(&path)))?,
            Some(_) => listed.push(Artifact { path }),
        }
    }
    if let Some(format) = arguments.output {
        let list = Document::<Artifact>::list("ArtifactList", "Artifact", listed);
        output::print(&output::encode(&list, format.into())?)?;
    }
    Ok(Exit::Ok)
}

/// A file that an attempt kept, or a copy of it.
#[derive(Serialize)]
struct Artifact {
    #[serde(serialize_with = "lossy")]
    path: PathBuf,
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Returns a path as one line in which nothing is hidden: a notebook chooses the names.
fn escaped(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => shown.push_str("\\\\"),
                '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
                c => shown.push_str(&output::line(c.encode_utf8(&mut [0; 4]))),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Says that what was kept of a run is gone: its report was written into the folder that is not there.
pub(super) fn gone(run: &RunView, runs: &RunsFolder) -> Option<Diagnostic> {
    let folder = runs.run(run.id);
    let is_gone = run.report == ReportView::Written && !folder.exists();
    is_gone.then(|| {
        Diagnostic::error(Code::FileMissing, format!("what was kept of {} is gone", run.id))
            .at(Place::file(folder.display().to_string()))
            .hint(format!(
                "`blueproof describe run {}` says what the store knows of it",
                run.id
            ))
    })
}

/// Reads a report. A notebook may have put something else in its place.
fn text(path: &Path) -> io::Result<String> {
    let bytes = read_regular(path, LONGEST_REPORT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn copy(from: &Path, to: &Path) -> Result<PathBuf, Problem> {
    let mut kept = open_regular(from).map_err(|error| unreadable(from, &error))?;
    let made = to.parent().map_or(Ok(()), fs::create_dir_all);
    let copied = made.and_then(|()| io::copy(&mut kept, &mut fs::File::create(to)?));
    copied.map_err(|error| unreadable(to, &error))?;
    Ok(to.into())
}

/// Returns the regular files below a folder, relative to it, in order; a folder that is not there has none.
fn files(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    let diagnostic = Diagnostic::error(Code::FileMissing, "could not use a file that the run kept");
    Problem::usage(
        diagnostic
            .at(Place::file(path.display().to_string()))
            .caused_by(error),
    )
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_name_is_one_line_in_which_nothing_is_hidden() {
        for (name, shown) in [
            (&b"out/a b.png"[..], "out/a b.png"),
            ("out/é".as_bytes(), "out/é"),
            (b"out/a\n/etc/passwd", r"out/a\n/etc/passwd"),
            ("a\u{202e}gnp.b".as_bytes(), r"a\u{202e}gnp.b"),
            (b"a\x1b[31mb\r\t", r"a\u{1b}[31mb\r\t"),
            (b"a\\n\xff", r"a\\n\xff"),
        ] {
            assert_eq!(escaped(Path::new(OsStr::from_bytes(name))), shown);
        }
    }
}
