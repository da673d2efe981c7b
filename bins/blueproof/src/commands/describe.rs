//! `blueproof describe run RUN`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use blueproof_core::{domain::RunRequest, ports::AttemptOutput, view::RunView};
use blueproof_notebook::report::{self, Report};
use jiff::Timestamp;
use tokio::runtime::Handle;

use crate::{
    cli::{Describe, DescribeKind},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output,
    reading::{self, Reading},
    select::RunSelector,
    show::description::{self, KeptFile, KeptFiles},
};

/// How many files are listed.
const MOST_FILES: usize = 40;

/// How long what an attempt left is read, which a notebook can make large, or its disk slow.
const ASSEMBLED_WITHIN: Duration = Duration::from_secs(20);

pub(crate) fn describe(arguments: &Describe, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let DescribeKind::Run { run } = &arguments.kind;
    reading::block_on(describe_run(run, flags))
}

async fn describe_run(run: &RunSelector, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let store = reading.store_with(run)?;
    let view = run.resolve(&**store).await?;
    let output = store.output();
    let kept = kept_files(&view, &*output).await?;
    let now = Timestamp::now();
    let report = match store.request(view.id).await? {
        Some(request) => what_is_asked(&view, &request, output).await,
        None => None,
    };
    let text = description::describe(&view, &kept, report.as_ref(), now, output::width());
    output::print(&text)?;
    reading::say_who_is_left_alone(store, std::slice::from_ref(&view))?;
    Ok(Exit::Ok)
}

/// Returns what is asked for and what its attempt left; nothing of a run of which no report can be made.
async fn what_is_asked(
    view: &RunView,
    request: &RunRequest,
    output: Arc<dyn AttemptOutput>,
) -> Option<Report> {
    let (view, request, runtime) = (since_it_was_asked_for(view), request.clone(), Handle::current());
    within(ASSEMBLED_WITHIN, move || {
        runtime.block_on(report::assemble(&view, &request, None, &output))
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

/// Returns what is kept of a run. What cannot be read is not there.
async fn kept_files(view: &RunView, output: &dyn AttemptOutput) -> Result<KeptFiles, Problem> {
    let kept = output.kept(view.id, MOST_FILES).await?;
    let file = |(path, size): (PathBuf, _)| KeptFile {
        path: path.display().to_string(),
        size,
    };
    Ok(KeptFiles {
        folder: kept.location,
        files: kept.files.into_iter().map(file).collect(),
        more: kept.more,
    })
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
}
