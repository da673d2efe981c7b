//! `blueproof quota apply`: the wish that other queues hold, and what that changes.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use blueproof_core::{
    domain::{QueueName, RunId, RunState},
    ports::Command,
    scheduler::Scheduler,
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_queue::{
    manifest::{self, File, Manifest},
    objects::Objects,
};

use super::beyond::beyond;
use crate::{
    cli::QuotaApply,
    config::{Config, ConfigFlags, ProcessEnv},
    exit::{Exit, Problem},
    output,
    reading::{self, Reading, block_on},
    session::{Session, local_user, new_key, policy_here},
    show::{self, changes},
};

/// The largest file that is read: thousands of queues as a cluster exports them.
const LARGEST: u64 = 64 << 20;

pub(super) fn apply(arguments: &QuotaApply, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let wanted = read(&arguments.files)?;
    block_on(async {
        let now = Reading::open(flags)?.scheduler().await?;
        let changes = changes::between(now.objects(), &wanted);
        let config = Config::load(flags, &ProcessEnv::of_this_process()?)?;
        let machine = policy_here(&config).await?.quota;
        beyond(&wanted, machine).iter().for_each(show::aside);
        warn_of_lost_runs(&now, &wanted);
        if changes.is_empty() {
            output::note("nothing changes: these queues hold already");
            return Ok(Exit::Ok);
        }
        if arguments.dry_run {
            output::print(&changes::difference(&changes))?;
            return Ok(Exit::Ok);
        }
        leave(wanted, &config).await?;
        output::print(&changes::summary(&changes))?;
        Ok(Exit::Ok)
    })
}

/// Reads the files, and says what in them is likely not meant.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Objects, Problem> {
    let files: Result<Vec<File>, Problem> = paths.iter().map(|path| read_file(path)).collect();
    let Manifest {
        objects,
        warnings,
        empty,
    } = manifest::read(files?)?;
    if !empty.is_empty() {
        return Err(empty
            .iter()
            .map(|file| without_objects(file))
            .collect::<Vec<_>>()
            .into());
    }
    warnings.iter().for_each(show::aside);
    Ok(objects)
}

/// Returns why a file without objects is refused. What is in no file goes, so that it would take queues away.
fn without_objects(file: &str) -> Diagnostic {
    let error = Diagnostic::error(Code::NoQueueObjects, "there are no objects in this file");
    error
        .at(SourceLocation::file(file))
        .because("the queues of these files would hold from then on, and no others")
        .hint("see that what wrote it was not interrupted; `blueproof quota get -o yaml` prints the queues that hold")
}

/// Reads a file with queues, or one beside them; `-` is standard input.
pub(crate) fn read_file(path: &Path) -> Result<File, Problem> {
    let name = path.display().to_string();
    let failed = |code, message: &str| Diagnostic::error(code, message).at(SourceLocation::file(&name));
    let unreadable = |error: std::io::Error| {
        let unreadable = failed(Code::FileMissing, "could not read the file").caused_by(&error);
        Problem::usage(unreadable.hint("look at its path and its rights"))
    };
    // A pipe such as `<(…)` is read, too; what never ends is not.
    let file: Box<dyn io::Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        Some(_) | None => Box::new(fs::File::open(path).map_err(unreadable)?),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        let large = failed(Code::FileTooLarge, "the file has more than 64 MiB");
        return Err(Problem::usage(
            large.hint("queues take much less: is it the right file?"),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let not_text = failed(Code::YamlSyntax, "this file is not text in UTF-8").caused_by(&error);
        Problem::usage(not_text.hint("save it as UTF-8"))
    })?;
    Ok(File { name, text })
}

/// Leaves the wish, and waits until whoever drives has taken it up; where nobody does, that is us.
async fn leave(objects: Objects, config: &Config) -> Result<(), Problem> {
    let session = Session::open(config).await?;
    let key = new_key();
    let wish = Command::ApplyQuota {
        key: key.clone(),
        objects: Box::new(objects),
        by: local_user(),
    };
    session.submit(wish).await?;
    session.until_taken_up(&key).await?;
    let runs = session.runs().await?;
    Ok(reading::say_who_is_left_alone(&session.store, &runs)?)
}

/// Warns of runs that wait in a LocalQueue which will not be there.
fn warn_of_lost_runs(now: &Scheduler, wanted: &Objects) {
    let mut then = now.queues().clone();
    then.set_objects(wanted.clone());
    let waits =
        |view: &RunView| view.state == RunState::Queued && then.local_queue(view.queue.as_str()).is_none();
    let mut lost: BTreeMap<QueueName, Vec<RunId>> = BTreeMap::new();
    for view in now.runs().filter(waits) {
        lost.entry(view.queue).or_default().push(view.id);
    }
    for (queue, runs) in lost {
        let (who, remedy) = match runs[..] {
            [run] => (
                format!("{run} waits"),
                format!("it waits until there is one again; `blueproof cancel {run}` ends it"),
            ),
            _ => (
                format!("{} runs wait", runs.len()),
                "they wait until there is one again; `blueproof get runs --status queued` lists them"
                    .to_owned(),
            ),
        };
        let message = format!("{who} in the LocalQueue `{queue}`, which is not among these");
        show::aside(&Diagnostic::warning(Code::NoSuchQueue, message).hint(remedy));
    }
}
