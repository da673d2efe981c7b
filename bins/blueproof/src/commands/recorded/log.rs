//! A log as `blueproof get events -o jsonl` writes it, read back.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use blueproof_core::ports::LoggedEvent;
use blueproof_diagnostic::{Code, Diagnostic, Place};
use serde::Deserialize;

use crate::exit::Problem;

/// The longest line that is read: thousands of queues as one event.
const LONGEST: u64 = 64 << 20;

/// Hands on all events of a file, or says in which line it is wrong.
pub(super) fn read(path: &Path, mut take: impl FnMut(LoggedEvent)) -> Result<(), Problem> {
    let file = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let unreadable = Diagnostic::error(Code::FileMissing, "could not read the log");
        Problem::usage(unreadable.at(Place::file(&file)).caused_by(&error))
    };
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?);
    for number in 1.. {
        let mut line = Vec::new();
        let read = lines.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(unreadable)? == 0 {
            return Ok(());
        }
        let event = event(number, &line).map_err(|wrong| {
            let place = Place {
                line: u32::try_from(number).ok(),
                ..Place::file(&file)
            };
            Problem::usage(wrong.at(place))
        })?;
        take(event);
    }
    Ok(())
}

/// What is known of an event of any version.
#[derive(Deserialize)]
struct Known {
    kind: String,
}

/// Reads the event of this number, which stands in the line of the same number.
fn event(number: u64, line: &[u8]) -> Result<LoggedEvent, Diagnostic> {
    let wrong = |message: &str| Diagnostic::error(Code::LogUnreadable, message);
    if !line.ends_with(b"\n") {
        return Err(wrong("the log breaks off in this line")
            .hint("copy it again: the last line ends with a line break"));
    }
    let event: LoggedEvent =
        serde_json::from_slice(line).map_err(|error| match serde_json::from_slice(line) {
            Ok(Known { kind }) => wrong(&format!("an event `{kind}` as it stands here is not known"))
                .caused_by(&error)
                .hint("the log may be of a newer blueproof: replay it with that version"),
            Err(_) => wrong("this line is not an event of a log")
                .caused_by(&error)
                .hint("`blueproof schema event` prints what an event is"),
        })?;
    if event.seq.0 == number {
        return Ok(event);
    }
    let message = format!(
        "event {} stands here, where event {number} is expected",
        event.seq.0
    );
    Err(wrong(&message)
        .hint("a log is replayed whole and in its order: `blueproof get events -o jsonl` writes it so"))
}
