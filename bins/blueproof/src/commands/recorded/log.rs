//! A log as `blueproof get events -o jsonl` writes it, read back.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use blueproof_core::{
    event::Event,
    ports::{LoggedFact, Seq},
    scheduler::Scheduler,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use jiff::Timestamp;
use serde::Deserialize;

use crate::exit::Problem;

/// The longest line that is read: thousands of queues as one event.
const LONGEST: u64 = 64 << 20;

/// Hands on all facts of a file, or says in which line it is wrong.
pub(super) fn read(path: &Path, mut take: impl FnMut(&LoggedFact)) -> Result<(), Problem> {
    let file = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let unreadable = Diagnostic::error(Code::FileMissing, "could not read the log");
        Problem::usage(unreadable.at(SourceLocation::file(&file)).caused_by(&error))
    };
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut first_log = FirstLog::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = lines.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(unreadable)? == 0 {
            return Ok(());
        }
        let line = parse(number, &line).map_err(|wrong| {
            let place = SourceLocation {
                line: u32::try_from(number).ok(),
                ..SourceLocation::file(&file)
            };
            Problem::usage(wrong.at(place))
        })?;
        match line {
            Line::Fact(fact) => take(&fact),
            Line::Input(input) => first_log.decide(input).iter().for_each(&mut take),
        }
    }
    Ok(())
}

/// A line of a log.
enum Line {
    Fact(Box<LoggedFact>),
    /// Of a log of version 1, which has what came in and not what was decided.
    Input(Box<LoggedInput>),
}

#[derive(Deserialize)]
struct LoggedInput {
    seq: Seq,
    at: Timestamp,
    #[serde(flatten)]
    input: Event,
}

/// A log of version 1, of which it is decided once more what came of its inputs.
struct FirstLog {
    scheduler: Scheduler,
    last: Seq,
}

impl FirstLog {
    fn new() -> Self {
        Self {
            scheduler: Scheduler::of_first_log(),
            last: Seq::default(),
        }
    }

    fn decide(&mut self, logged: Box<LoggedInput>) -> Vec<LoggedFact> {
        let LoggedInput { at, input, .. } = *logged;
        let step = self.scheduler.handle(at, input);
        let numbered = step.facts.into_iter().map(|fact| {
            self.last.0 += 1;
            let (seq, at) = (self.last, step.at);
            LoggedFact { seq, at, fact }
        });
        numbered.collect()
    }
}

impl Line {
    fn seq(&self) -> Seq {
        match self {
            Line::Fact(fact) => fact.seq,
            Line::Input(input) => input.seq,
        }
    }
}

/// What is known of a fact of any version.
#[derive(Deserialize)]
struct Known {
    #[serde(alias = "input", alias = "decision")]
    fact: KnownKind,
}

#[derive(Deserialize)]
struct KnownKind {
    kind: String,
}

/// Reads the fact of this number, which stands in the line of the same number.
fn parse(number: u64, line: &[u8]) -> Result<Line, Diagnostic> {
    let wrong = |message: &str| Diagnostic::error(Code::LogUnreadable, message);
    if !line.ends_with(b"\n") {
        return Err(wrong("the log breaks off in this line")
            .hint("copy it again: the last line ends with a line break"));
    }
    let parsed = parse_line(line).map_err(|error| match kind_of(line) {
        Some(kind) => wrong(&format!("an event `{kind}` as it stands here is not known"))
            .caused_by(&error)
            .hint("the log may be of a newer blueproof: replay it with that version"),
        None => wrong("this line is not an event of a log")
            .caused_by(&error)
            .hint("`blueproof schema event` prints what an event is"),
    })?;
    let seq = parsed.seq().0;
    if seq == number {
        return Ok(parsed);
    }
    let message = format!("event {seq} stands here, where event {number} is expected");
    Err(wrong(&message)
        .hint("a log is replayed whole and in its order: `blueproof get events -o jsonl` writes it so"))
}

/// Reads a line, and says what is wrong with it as a fact, unless it is none.
fn parse_line(line: &[u8]) -> Result<Line, serde_json::Error> {
    let is_input = serde_json::from_slice::<KnownKind>(line).is_ok();
    if is_input {
        return serde_json::from_slice(line).map(Line::Input);
    }
    serde_json::from_slice(line).map(Line::Fact)
}

fn kind_of(line: &[u8]) -> Option<String> {
    let fact = serde_json::from_slice::<Known>(line).map(|known| known.fact.kind);
    fact.or_else(|_| serde_json::from_slice::<KnownKind>(line).map(|known| known.kind))
        .ok()
}
