//! `blueproof describe run RUN`.

use std::{
    fs::{self, ReadDir},
    io,
    path::Path,
    time::Duration,
};

use blueproof_core::{
    attempt::RunsFolder,
    domain::{Bytes, RunRequest},
    ports::Store,
    view::RunView,
};
use blueproof_notebook::report::{self, Report};
use jiff::Timestamp;

use crate::{
    cli::{Describe, DescribeKind, Place},
    exit::{Exit, Problem},
    output,
    reading::{self, Reading},
    select::RunSelector,
    show::description::{self, KeptFile, KeptFiles},
};

/// How many files are listed.
const MOST_FILES: usize = 40;

/// How deep files are looked for: an attempt's artifacts may lie in folders of their own, and no deeper counts.
const DEEPEST: usize = 5;

/// How long what an attempt left is read, which a notebook can make large, or its disk slow.
const ASSEMBLED_WITHIN: Duration = Duration::from_secs(20);

pub(crate) fn describe(arguments: &Describe, place: &Place) -> Result<Exit, Problem> {
    let DescribeKind::Run { run } = &arguments.kind;
    reading::block_on(describe_run(run, place))
}

async fn describe_run(run: &RunSelector, place: &Place) -> Result<Exit, Problem> {
    let reading = Reading::open(place)?;
    let store = reading.store_with(run)?;
    let view = run.resolve(store).await?;
    let kept = kept_files(&reading.kept(store).run(view.id));
    let now = Timestamp::now();
    let report = match store.request(view.id).await? {
        Some(request) => what_is_asked(&view, &request, &reading.kept(store)).await,
        None => None,
    };
    let text = description::describe(&view, &kept, report.as_ref(), now, output::width());
    output::print(&text)?;
    reading::say_who_is_left_alone(store, std::slice::from_ref(&view))?;
    Ok(Exit::Ok)
}

/// Returns what is asked for and what its attempt left; nothing of a run of which no report can be made.
async fn what_is_asked(view: &RunView, request: &RunRequest, runs: &RunsFolder) -> Option<Report> {
    let (view, request, runs) = (since_it_was_asked_for(view), request.clone(), runs.clone());
    within(ASSEMBLED_WITHIN, move || {
        report::assemble(&view, &request, None, &runs)
    })
    .await
}

/// Returns a run without attempts where none came of the last request: what those of before found says nothing of it.
fn since_it_was_asked_for(view: &RunView) -> RunView {
    let mut view = view.clone();
    if view.attempt_asked_for().is_none() {
        view.attempts.clear();
    }
    view
}

/// Makes something elsewhere; nothing where that panics or takes too long: what else is known is told all the same.
async fn within<T: Send + 'static>(limit: Duration, make: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let made = tokio::task::spawn_blocking(make);
    tokio::time::timeout(limit, made).await.ok()?.ok()
}

/// Returns what is kept in a run's folder. What cannot be read is not there.
fn kept_files(folder: &Path) -> KeptFiles {
    let mut files = Vec::new();
    add_files(
        folder,
        folder,
        DEEPEST,
        &|folder| fs::read_dir(folder),
        &mut files,
    );
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let more = files.len().saturating_sub(MOST_FILES);
    files.truncate(MOST_FILES);
    KeptFiles {
        folder: folder.display().to_string(),
        files,
        more,
    }
}

/// Adds the files below a folder. Links are not followed: they may lead anywhere. What is not there, goes away meanwhile or
/// cannot be read holds nothing, and hides nothing else.
fn add_files(
    root: &Path,
    folder: &Path,
    depth: usize,
    read: &impl Fn(&Path) -> io::Result<ReadDir>,
    files: &mut Vec<KeptFile>,
) {
    for entry in read(folder).into_iter().flatten().filter_map(Result::ok) {
        let Ok(about) = entry.metadata() else { continue };
        let path = entry.path();
        if about.is_dir() && depth > 1 {
            add_files(root, &path, depth - 1, read, files);
        }
        if about.is_file() {
            let below = path.strip_prefix(root).unwrap_or(&path);
            files.push(KeptFile {
                path: below.display().to_string(),
                size: Bytes(about.len()),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::{domain::RunId, event::Event, scheduler::Scheduler};

    use super::*;
    use crate::show::samples::{at, scheduler};

    #[test]
    fn what_an_attempt_found_is_not_told_of_a_run_that_was_asked_for_again() {
        let mut scheduler = scheduler();
        let view = |scheduler: &Scheduler| scheduler.view(RunId(1)).expect("a run of the story");
        let passed = view(&scheduler);
        assert_eq!(since_it_was_asked_for(&passed), passed);
        let again = Event::RetryRequested {
            run: RunId(1),
            by: passed.requested_by,
            key: blueproof_core::domain::RequestKey("again".into()),
        };
        scheduler.handle(at(60), again);
        let waits = view(&scheduler);
        assert_eq!(
            (waits.attempts.len(), since_it_was_asked_for(&waits).attempts),
            (1, vec![])
        );
    }

    #[tokio::test]
    async fn what_cannot_be_made_of_an_attempt_or_takes_too_long_is_left_out() {
        assert_eq!(within(ASSEMBLED_WITHIN, || 7).await, Some(7));
        assert_eq!(
            within(ASSEMBLED_WITHIN, || panic!("it is poisonous")).await,
            None::<()>
        );
        let (done, never) = std::sync::mpsc::channel::<()>();
        assert_eq!(within(Duration::ZERO, move || never.recv()).await, None);
        drop(done);
    }

    #[test]
    fn files_are_listed_in_order_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::create_dir_all(root.join("b/deep")).expect("a folder");
        for (name, size) in [("report.html", 3), ("b/log.ndjson", 5), ("b/deep/x.png", 7)] {
            fs::write(root.join(name), vec![0; size]).expect("a file");
        }
        std::os::unix::fs::symlink("/", root.join("all")).expect("a link");
        let kept = kept_files(root);
        let listed: Vec<_> = kept
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.size.0))
            .collect();
        assert_eq!(
            listed,
            [("b/deep/x.png", 7), ("b/log.ndjson", 5), ("report.html", 3)]
        );
        assert_eq!(kept.more, 0);
    }

    #[test]
    fn a_folder_that_cannot_be_read_hides_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["a", "b", "c"] {
            fs::create_dir(root.join(name)).expect("a folder");
            fs::write(root.join(name).join("file"), "").expect("a file");
        }
        let read = |folder: &Path| match folder.ends_with("b") {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => fs::read_dir(folder),
        };
        let mut files = Vec::new();
        add_files(root, root, DEEPEST, &read, &mut files);
        let mut files: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        files.sort_unstable();
        assert_eq!(files, ["a/file", "c/file"]);
    }

    #[test]
    fn more_files_than_a_person_reads_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..MOST_FILES + 2 {
            fs::write(folder.path().join(format!("{number:03}")), "").expect("a file");
        }
        let kept = kept_files(folder.path());
        assert_eq!((kept.files.len(), kept.more), (MOST_FILES, 2));
        assert_eq!(kept_files(&folder.path().join("nowhere")).files, []);
    }
}
