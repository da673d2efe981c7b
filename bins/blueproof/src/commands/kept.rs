//! `blueproof report` and `blueproof artifacts`: what is kept of a run.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use blueproof_core::{
    domain::RunId,
    ports::{AttemptOutput, OutputFile, OutputName, ReportKind, whole},
    view::{ReportView, RunView},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_notebook::report;
use serde::{Serialize, Serializer};

use crate::{
    backend::Backend,
    cli::{Artifacts, Report, ReportFormat},
    config::ProcessEnv,
    exit::{Exit, Problem},
    output::{self, Document},
    reading::Reading,
};

/// Far more than a report may have.
const LONGEST_REPORT: u64 = 1 << 30;

/// How much of a file is copied at once.
const COPIED_AT_ONCE: usize = 4 << 20;

/// Prints the report's path, or the report itself.
pub(crate) async fn report(reading: &Reading, arguments: &Report) -> Result<Exit, Problem> {
    let store = reading.store_with(&arguments.run)?;
    let run = arguments.run.resolve(&**store).await?;
    let n_attempts = run.attempts.len();
    let run = arguments.attempt.of(run)?;
    if run.attempts.len() < n_attempts {
        return report_of_earlier(store, &run, arguments).await;
    }
    let name = OutputName::Report(run.id, arguments.format.map_or(ReportKind::Html, kind));
    let output = store.output();
    let Some(found) = output.file(&name).await? else {
        return no_report(&run);
    };
    if arguments.format.is_some() {
        output::print(&text(&*output, &name).await?)?;
        return Ok(Exit::Ok);
    }
    let page = match found.location {
        Some(page) => page,
        None => fetched(reading, &*output, &found, run.id).await?,
    };
    output::print(&format!("{}\n", page.display()))?;
    if arguments.open {
        open(&page);
    }
    Ok(Exit::Ok)
}

/// Copies the page of a run that is on another machine, over an earlier copy of it, and returns where the copy is.
async fn fetched(
    reading: &Reading,
    output: &dyn AttemptOutput,
    page: &OutputFile,
    run: RunId,
) -> Result<PathBuf, Problem> {
    let reports = ProcessEnv::of_this_process()?.cache("reports")?;
    let server = reading.config.server.value.as_ref().map(ToString::to_string);
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    let folder: String = server.unwrap_or_default().chars().map(plain).collect();
    let to = reports.join(folder).join(format!("{run}.html"));
    copy(output, page, &to, Existing::Overwritten).await
}

fn kind(format: ReportFormat) -> ReportKind {
    match format {
        ReportFormat::Html => ReportKind::Html,
        ReportFormat::Json => ReportKind::Json,
        ReportFormat::Junit => ReportKind::Junit,
    }
}

/// Prints the report of an attempt that is not the last one: the report on the disk is of that.
async fn report_of_earlier(store: &Backend, run: &RunView, arguments: &Report) -> Result<Exit, Problem> {
    let Some(format) = arguments.format else {
        return Err(Problem::usage(page_of_last(run)));
    };
    let Some(request) = store.request(run.id).await? else {
        return no_report(run);
    };
    let report = report::assemble(run, &request, None, &store.output()).await;
    output::print(&report::render(&report, kind(format)))?;
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
    let run = arguments.attempt.of(arguments.run.resolve(&**store).await?)?;
    let Some(attempt) = run.attempts.last() else {
        anstream::eprintln!("{} has no attempt, and so no files", run.id);
        return Ok(Exit::Ok);
    };
    let output = store.output();
    if let Some(gone) = gone(&run, &*output).await? {
        return Err(Problem::usage(gone));
    }
    let files = match output.artifacts(attempt.id).await {
        Err(error) if error.is_missing() => Vec::new(),
        files => files?,
    };
    if files.is_empty() {
        anstream::eprintln!("{} kept no files", run.id);
    }
    let mut listed = Vec::new();
    for file in files {
        let OutputName::Artifact(_, name) = &file.name else {
            continue;
        };
        let path = match &arguments.to {
            None => file.location.clone().unwrap_or_else(|| name.path().into()),
            Some(to) => {
                let existing = match arguments.overwrite {
                    true => Existing::Overwritten,
                    false => Existing::Kept,
                };
                copy(&*output, &file, &to.join(name.path()), existing).await?
            }
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

/// Says that what was kept of a run is gone: its report was written to where nothing is.
pub(super) async fn gone(run: &RunView, output: &dyn AttemptOutput) -> Result<Option<Diagnostic>, Problem> {
    if run.report != ReportView::Written {
        return Ok(None);
    }
    let kept = output.kept(run.id, 1).await?;
    Ok(kept.files.is_empty().then(|| {
        Diagnostic::error(Code::FileMissing, format!("what was kept of {} is gone", run.id))
            .at(SourceLocation::file(kept.location))
            .hint(format!(
                "`blueproof describe run {}` says what the store knows of it",
                run.id
            ))
    }))
}

/// Reads a report. A notebook may have put something else in its place.
async fn text(output: &dyn AttemptOutput, report: &OutputName) -> Result<String, Problem> {
    let bytes = whole(output, report, LONGEST_REPORT).await?;
    String::from_utf8(bytes).map_err(|error| unusable(Path::new(&report.to_string()), &error))
}

/// What becomes of a file that is where a copy is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Kept,
    Overwritten,
}

async fn copy(
    output: &dyn AttemptOutput,
    from: &OutputFile,
    to: &Path,
    existing: Existing,
) -> Result<PathBuf, Problem> {
    let unwritable = |error: io::Error| unwritable(to, &error);
    to.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .map_err(unwritable)?;
    let copy = match existing {
        Existing::Kept => File::create_new(to),
        Existing::Overwritten => File::create(to),
    };
    let mut copy = copy.map_err(unwritable)?;
    let mut copied = 0;
    loop {
        let part = output.read(&from.name, copied, COPIED_AT_ONCE).await?;
        if part.is_empty() {
            return Ok(to.into());
        }
        copy.write_all(&part).map_err(unwritable)?;
        copied += part.len() as u64;
    }
}

/// Says that a copy cannot be written where it was to be.
fn unwritable(to: &Path, error: &io::Error) -> Problem {
    let diagnostic = Diagnostic::error(Code::FileMissing, "could not write a copy to the destination");
    let diagnostic = diagnostic
        .at(SourceLocation::file(to.display().to_string()))
        .caused_by(error);
    Problem::usage(match error.kind() == io::ErrorKind::AlreadyExists {
        true => diagnostic.hint("name another folder, or overwrite it with `--overwrite`"),
        false => diagnostic,
    })
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> Problem {
    let diagnostic = Diagnostic::error(Code::FileMissing, "could not use a file that the run kept");
    Problem::usage(
        diagnostic
            .at(SourceLocation::file(path.display().to_string()))
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
