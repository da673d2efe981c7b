//! What comes in, and what is done when deciding about it fails.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use crate::{
    domain::{AttemptId, ClusterName, Placement, RunRequest, Timeouts},
    event::Event,
    ports::{Answer, AttemptNews, Command, CommandId, LeftCommand, News},
    scheduler::{Scheduler, Step},
};

/// The most bytes that are kept of what a cluster says.
const MOST_SAID: usize = 2_000;

/// Decides about one input.
pub(super) type Handle = fn(&mut Scheduler, Timestamp, Event) -> Step;

/// An input that is to be decided about, and the command that it was, if it was one.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    pub(super) input: Event,
    pub(super) command: Option<CommandId>,
}

/// Deciding about one of several inputs ended in a panic.
pub(super) struct Panicked {
    /// Which of them.
    pub(super) at: usize,
    /// What it said.
    pub(super) message: String,
}

/// What came of several inputs.
#[derive(Default)]
pub(super) struct Handled {
    pub(super) steps: Vec<Step>,
    pub(super) taken: Vec<(CommandId, Answer)>,
}

impl From<Event> for Incoming {
    fn from(input: Event) -> Self {
        Self { input, command: None }
    }
}

impl Incoming {
    fn of_command(id: CommandId, command: Command) -> Self {
        Self {
            input: command.into(),
            command: Some(id),
        }
    }
}

/// Tells commands that are to be decided about from those that cannot be read, which are quarantined, and from those that
/// contradict themselves, which are refused.
pub(super) fn sort(left: Vec<LeftCommand>) -> (Vec<Incoming>, Vec<(CommandId, Answer)>) {
    let (mut incoming, mut answered) = (Vec::new(), Vec::new());
    for (id, command) in left {
        match command {
            Err(problem) => answered.push((id, Answer::Quarantined(problem))),
            Ok(command) => match refusal(&command) {
                Some(refusal) => answered.push((id, Answer::Refused(Box::new(refusal)))),
                None => incoming.push(Incoming::of_command(id, command)),
            },
        }
    }
    (incoming, answered)
}

/// Returns why a run is refused that can never be.
fn refusal(command: &Command) -> Option<Diagnostic> {
    let Command::Run { request } = command else {
        return None;
    };
    of_another_head(request).or_else(|| without_end(request))
}

/// Says of limits of time that nobody can add up that they are none.
fn without_end(request: &RunRequest) -> Option<Diagnostic> {
    if request.job.timeouts.are_valid() {
        return None;
    }
    let years = Timeouts::LONGEST.as_hours() / (365 * 24);
    let message = format!("a limit of time of the run is negative, or longer than {years} years");
    Some(Diagnostic::error(Code::BadValue, message).hint("leave out a limit that is to be none"))
}

/// Says of a source that it cannot hold the head that would be approved.
fn of_another_head(request: &RunRequest) -> Option<Diagnostic> {
    let (head, source) = (&request.subject.head, &request.job.source);
    if source.may_be_of(head) {
        return None;
    }
    let message = format!("asks for a run of {head}, and its source is {source}");
    let diagnostic = Diagnostic::error(Code::HeadChanged, message);
    Some(
        diagnostic
            .because("a commit comes from its repository, and what a folder has is a snapshot")
            .hint("ask for the commit that is to be approved, with its repository as the source"),
    )
}

/// Decides about inputs, one after the other. After a panic the scheduler is in a state that nothing is known of.
pub(super) fn handle_all(
    scheduler: &mut Scheduler,
    handle: Handle,
    now: Timestamp,
    inputs: &[Incoming],
) -> Result<Handled, Panicked> {
    let mut handled = Handled::default();
    for (at, Incoming { input, command }) in inputs.iter().enumerate() {
        // Whoever calls this makes another scheduler of the log where it fails, so that none is seen half changed.
        let step = catch_unwind(AssertUnwindSafe(|| handle(scheduler, now, input.clone())));
        let step = step.map_err(|panic| Panicked {
            at,
            message: message_of(&*panic),
        })?;
        let answer = step
            .refusal()
            .map_or(Answer::Taken, |refusal| Answer::Refused(Box::new(refusal)));
        handled.taken.extend(command.map(|id| (id, answer)));
        handled.steps.push(step);
    }
    Ok(handled)
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it does not say why".into())
}

/// Says of an input that deciding about it failed, and that it is quarantined.
pub(super) fn quarantined(input: &Event, message: &str) -> Diagnostic {
    let told = format!("deciding about `{}` failed, and it was quarantined", input.kind());
    report_it(Diagnostic::error(Code::CommandQuarantined, told).because(message))
}

/// Says that nothing can be decided any more.
pub(super) fn cannot_decide(message: &str) -> Diagnostic {
    let told = "deciding about what is due fails each time, so that nothing more is decided";
    report_it(Diagnostic::error(Code::DecidingFailed, told).because(message))
}

fn report_it(diagnostic: Diagnostic) -> Diagnostic {
    diagnostic
        .hint("this is a mistake in blueproof: please report it, with `blueproof get events -o jsonl`")
        .hint("attempts that run go on by themselves")
}

/// Returns the input that news of a cluster are. What it says of an attempt that is on another cluster is about something else
/// that has the same name there, and what it has as before is no news.
pub(super) fn of_news(scheduler: &Scheduler, cluster: ClusterName, news: News) -> Option<Incoming> {
    let event = match news {
        News::Inventory(inventory) => {
            let is_known = scheduler.inventory(&cluster) == Some(&*inventory);
            (!is_known).then(|| Event::InventoryChanged {
                cluster,
                inventory: Box::new(Arc::unwrap_or_clone(inventory)),
            })
        }
        News::Attempt { attempt, news } => {
            let is_there = scheduler.cluster_of(attempt).is_none_or(|of| of == cluster);
            is_there.then(|| event_of(cluster, attempt, news))
        }
    };
    event.map(Incoming::from)
}

/// Returns the beginning of what a cluster says: it is kept in the log.
fn shortened(mut said: String) -> String {
    if said.len() > MOST_SAID {
        said.truncate(said.floor_char_boundary(MOST_SAID));
        said.push('…');
    }
    said
}

fn event_of(cluster: ClusterName, attempt: AttemptId, news: AttemptNews) -> Event {
    match news {
        AttemptNews::Pending { reason, message } => Event::Pending {
            attempt,
            reason: shortened(reason),
            message: shortened(message),
        },
        AttemptNews::Reserved(place) => Event::Reserved {
            attempt,
            place: Placement { cluster, ..place },
        },
        AttemptNews::Running => Event::Started { attempt },
        AttemptNews::Finished { outcome, ended_at } => Event::Finished {
            attempt,
            outcome,
            ended_at,
        },
        AttemptNews::Evicted { reason, message } => Event::Evicted {
            attempt,
            reason,
            message: shortened(message),
        },
        AttemptNews::Lost { message } => Event::Lost {
            attempt,
            message: shortened(message),
        },
        AttemptNews::Released => Event::Released { attempt },
        AttemptNews::Failed { call, error } => {
            let error = Box::new(error);
            Event::CallFailed { call, error }
        }
    }
}
