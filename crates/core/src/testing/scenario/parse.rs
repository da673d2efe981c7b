//! The words of stories.

mod gate;

use std::collections::BTreeSet;

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::objects::Admission;
use jiff::{SignedDuration, Timestamp};

pub(super) use gate::approval_of;

use super::run_id;
use crate::{
    domain::{
        Actor, AttemptId, Bytes, Cpus, Failure, FailureClass, Head, PodSets, Priority, Repository,
        RequestKey, Resources, RunId, Verdict,
    },
    event::{Call, Event, StopMode},
    policy::{GatePolicy, LocalApproval, Policy},
    ports::CallError,
    testing::{ask_for_commit, outcome, request},
};

/// One line of a story.
pub(super) enum Line {
    Happens {
        at: Timestamp,
        step: Step,
        expected: String,
    },
    Is {
        run: RunId,
        state: String,
    },
    Waits {
        run: RunId,
        reason: String,
    },
    Struggles {
        run: RunId,
        with: String,
    },
    Refused {
        reason: String,
    },
}

/// Something that happens; some of it can only be completed by whoever knows the runs.
pub(super) enum Step {
    Event(Box<Event>),
    Policy {
        policy: Box<Policy>,
        admission: Admission,
    },
    Approve {
        run: RunId,
        words: Vec<String>,
    },
    Report(RunId),
}

/// Reads one line; an empty one and a comment are `None`.
pub(super) fn line(text: &str) -> Result<Option<Line>, String> {
    let text = text.split('#').next().unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (happens, expected) = text.split_once("=>").unwrap_or((text, ""));
    let words: Vec<&str> = happens.split_whitespace().collect();
    if let Some(at) = time(words[0]) {
        let step = step(&words[1..])?;
        return Ok(Some(Line::Happens {
            at,
            step,
            expected: expected.trim().into(),
        }));
    }
    if let Some(reason) = text.strip_prefix("refused:") {
        return Ok(Some(Line::Refused {
            reason: reason.trim().into(),
        }));
    }
    let run = run_id(words[0])?;
    if let Some((_, reason)) = text.split_once("waits:") {
        return Ok(Some(Line::Waits {
            run,
            reason: reason.trim().into(),
        }));
    }
    if let Some((_, with)) = text.split_once("struggles:") {
        return Ok(Some(Line::Struggles {
            run,
            with: with.trim().into(),
        }));
    }
    match words[1..].split_first() {
        Some((&"is", state)) => Ok(Some(Line::Is {
            run,
            state: state.join(" "),
        })),
        _ => Err("after a run comes `is STATE`, `waits: TEXT` or `struggles: TEXT`".into()),
    }
}

pub(super) fn stop_word(how: StopMode) -> &'static str {
    match how {
        StopMode::Interrupt => "interrupt",
        StopMode::Terminate => "terminate",
    }
}

/// Reads `MM:SS`.
fn time(word: &str) -> Option<Timestamp> {
    let (minutes, seconds) = word.split_once(':')?;
    let seconds = minutes.parse::<i64>().ok()? * 60 + seconds.parse::<i64>().ok()?;
    Timestamp::from_second(seconds).ok()
}

fn finished(attempt: AttemptId, ended: &str) -> Result<Event, String> {
    Ok(Event::Finished {
        attempt,
        outcome: Box::new(outcome(verdict(ended)?)),
        ended_at: None,
    })
}

fn step(words: &[&str]) -> Result<Step, String> {
    let (verb, rest) = words.split_first().ok_or("nothing happens")?;
    let subject = rest.first().copied().unwrap_or_default();
    let options = Options(rest.get(1..).unwrap_or_default());
    if let Some(event) = gate::event(verb, rest)? {
        return Ok(Step::Event(Box::new(event)));
    }
    if let Some(event) = of_cluster(verb, rest)? {
        return Ok(Step::Event(Box::new(event)));
    }
    let event = match *verb {
        "policy" => {
            let admission = match Options(rest).word("admission") {
                Some("external") => Admission::External,
                Some(other) => return Err(format!("`{other}` is no admission")),
                None => Admission::Embedded,
            };
            let policy = Box::new(policy(&Options(rest))?);
            return Ok(Step::Policy { policy, admission });
        }
        "run" => Event::Requested {
            request: Box::new(requested(subject, &options)?),
        },
        "approve" => {
            return Ok(Step::Approve {
                run: run_id(subject)?,
                words: rest.iter().map(|word| (*word).to_owned()).collect(),
            });
        }
        "cancel" => cancel(run_id(subject)?, rest),
        "retry" => {
            let key = RequestKey(options.word("key").unwrap_or("again").into());
            Event::RetryRequested {
                key,
                run: run_id(subject)?,
                by: actor("ada"),
            }
        }
        "reported" => return Ok(Step::Report(run_id(subject)?)),
        "tick" => Event::Tick,
        how @ ("failing" | "blocked") => failed(how, subject, &rest[1..])?,
        ended => finished(attempt(subject)?, ended)?,
    };
    Ok(Step::Event(Box::new(event)))
}

/// Reads what a cluster tells of an attempt; anything else is `None`.
fn of_cluster(verb: &str, rest: &[&str]) -> Result<Option<Event>, String> {
    let subject = rest.first().copied().unwrap_or_default();
    Ok(Some(match verb {
        "pending" => Event::Pending {
            attempt: attempt(subject)?,
            reason: rest.get(1).ok_or("pending ATTEMPT REASON")?.to_string(),
            message: "the story says so".into(),
        },
        "placed" => Event::Reserved {
            attempt: attempt(subject)?,
            place: "here".into(),
        },
        "evicted" => Event::Evicted {
            attempt: attempt(subject)?,
            reason: (*rest.get(1).ok_or("evicted ATTEMPT REASON")?).into(),
            message: "the story says so".into(),
        },
        "missing" => Event::Lost {
            attempt: attempt(subject)?,
            message: "the story says so".into(),
        },
        "started" => Event::Started {
            attempt: attempt(subject)?,
        },
        "released" => Event::Released {
            attempt: attempt(subject)?,
        },
        _ => return Ok(None),
    }))
}

fn cancel(run: RunId, words: &[&str]) -> Event {
    let how = if words.contains(&"interrupt") {
        StopMode::Interrupt
    } else {
        StopMode::Terminate
    };
    let (by, via) = (actor("ada"), None);
    Event::CancelRequested { run, by, how, via }
}

fn policy(options: &Options<'_>) -> Result<Policy, String> {
    let mut policy = Policy::local(resources(options)?.unwrap_or_default());
    let approver = options.word("approver").map(actor);
    let local = if approver.is_some() {
        LocalApproval::Required
    } else {
        LocalApproval::Own
    };
    policy.gate = GatePolicy {
        digest: options.word("digest").unwrap_or("story").into(),
        local,
        approvers: BTreeSet::from_iter(approver),
    };
    Ok(policy)
}

fn requested(key: &str, options: &Options<'_>) -> Result<crate::domain::RunRequest, String> {
    let mut request = request(key, options.word("blueprint").unwrap_or("nano-lm"));
    if let Some(asked) = resources(options)? {
        request.job.pod_sets = PodSets::of_amounts(asked, Resources::default());
    }
    if let Some(number) = options.number("pr")? {
        request.subject.repository = repository();
        request.subject.pull_request = Some(number);
        request.subject.base = gate::base(options)?;
        request.requested_by = actor(options.word("asked-by").unwrap_or("bob"));
        request.author = options.word("author").map(actor);
    }
    if let Some(profile) = options.word("profile") {
        let profile = profile.parse();
        request.subject.profile = Some(profile.map_err(|error| format!("{error}"))?);
    }
    if let Some(text) = options.word("head") {
        ask_for_commit(&mut request, commit(text));
    }
    let priority = options.number("priority")?.unwrap_or(0);
    request.priority = Priority(i32::try_from(priority).map_err(|error| error.to_string())?);
    request.retries.infrastructure =
        u32::try_from(options.number("retries")?.unwrap_or(0)).map_err(|e| e.to_string())?;
    let minutes = |name| {
        Ok::<_, String>(
            options
                .number(name)?
                .map(|minutes| SignedDuration::from_mins(minutes as i64)),
        )
    };
    request.job.timeouts.queue = minutes("queue-minutes")?;
    request.job.timeouts.startup = minutes("startup-minutes")?;
    request.job.timeouts.run = minutes("run-minutes")?;
    Ok(request)
}

fn resources(options: &Options<'_>) -> Result<Option<Resources>, String> {
    let cores = options.number("cpu")?;
    let cores = cores
        .map(|cores| u32::try_from(cores).map_err(|error| error.to_string()))
        .transpose()?;
    Ok(cores.map(|cores| Resources {
        cpu: Cpus::cores(cores),
        memory: Bytes(u64::from(cores) << 30),
        ..Resources::default()
    }))
}

fn failed(how: &str, call: &str, about: &[&str]) -> Result<Event, String> {
    let about = about.first().copied().unwrap_or_default();
    let call = match call {
        "reserve" => Call::Reserve(attempt(about)?),
        "start" => Call::Start(attempt(about)?),
        "observe" => Call::Observe(attempt(about)?),
        "release" => Call::Release(attempt(about)?),
        "report" => Call::Report(run_id(about)?),
        other => return Err(format!("`{other}` is no call")),
    };
    let told = Diagnostic::error(Code::AttemptLost, "the story says so");
    let error = match how {
        "blocked" => CallError::when_free(told),
        _ => CallError::later(told),
    };
    Ok(Event::CallFailed {
        call,
        error: Box::new(error),
    })
}

fn verdict(word: &str) -> Result<Verdict, String> {
    let (class, code) = match word {
        "passed" => return Ok(Verdict::Passed),
        "stopped" => return Ok(Verdict::Stopped),
        "failed" => (FailureClass::Notebook, Code::CellRaised),
        "lost" => (FailureClass::Infrastructure, Code::AttemptLost),
        other => return Err(format!("`{other}` does not happen")),
    };
    let diagnostic = Diagnostic::error(code, "the story says so");
    Ok(Verdict::Failed(Box::new(Failure {
        class,
        diagnostic,
        cell: None,
    })))
}

fn attempt(text: &str) -> Result<AttemptId, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Returns a commit whose digits begin with those of the story.
fn commit(text: &str) -> String {
    format!("{text:0<40}")
}

fn head(text: &str) -> Head {
    Head::Commit(commit(text))
}

fn repository() -> Repository {
    Repository::GitHub(1)
}

/// Returns a GitHub user. An id may stand after the login, as in `ada:7`; without one there is one for each login.
fn actor(name: &str) -> Actor {
    let (login, id) = match name.split_once(':') {
        Some((login, id)) => (login, id.parse().ok()),
        None => (name, None),
    };
    Actor::GitHub {
        id: id.unwrap_or_else(|| name.bytes().map(u64::from).sum()),
        login: login.into(),
    }
}

/// Words in pairs: a name and its value.
struct Options<'a>(&'a [&'a str]);

impl<'a> Options<'a> {
    fn word(&self, name: &str) -> Option<&'a str> {
        self.0.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1])
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        self.word(name)
            .map(|word| {
                word.parse()
                    .map_err(|_| format!("`{name}` needs a number, not `{word}`"))
            })
            .transpose()
    }
}
