//! `blueproof whatif`.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
};

use blueproof_core::{
    diagnostic::{Code, Diagnostic, Place as FilePlace},
    ports::{LoggedEvent, Seq, Store},
    simulation::{Recorder, Recording, starved},
};
use jiff::SignedDuration;

use super::quota;
use crate::{
    cli::{Place, WhatIf},
    exit::{Exit, Problem},
    output::{self, Document},
    reading::{Reading, block_on},
    show::{
        comparison::{Column, Comparison},
        whatif::Answer,
    },
};

/// How many events are read from the store at once.
const CHUNK: usize = 4096;

pub(crate) fn whatif(arguments: &WhatIf, place: &Place) -> Result<Exit, Problem> {
    let objects = quota::read(&arguments.files)?;
    let recording = match &arguments.log {
        Some(path) => from_file(path)?,
        None => block_on(from_store(place))?,
    };
    let answer = answer(arguments, &recording, objects);
    let text = match arguments.output {
        Some(format) => output::encode(&Document::new("WhatIfReport", &answer), format.into())?,
        None => answer.to_string(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn answer(
    arguments: &WhatIf,
    recording: &Recording,
    objects: blueproof_core::queue::objects::Objects,
) -> Answer {
    let end = recording.scenario.until.unwrap_or_default();
    let from = arguments.since.map_or(SignedDuration::ZERO, |since| {
        (end - since).max(SignedDuration::ZERO)
    });
    let then = recording.scenario.play();
    let scenario = recording.under(objects);
    let now = scenario.play();
    Answer {
        comparison: Comparison {
            columns: vec![
                Column::since(from, "recorded", &recording.scenario, &then),
                Column::since(from, "policy", &scenario, &now),
            ],
        },
        same_order: then.admissions().eq(recording.admissions.iter().copied()),
        starving: starved(from, arguments.starving, &scenario, &now),
        without_queue: scenario.without_queue(),
    }
}

async fn from_store(place: &Place) -> Result<Recording, Problem> {
    let mut recorder = Recorder::default();
    if let Some(store) = Reading::open(place)?.store {
        let mut after = Seq::default();
        loop {
            let events = store.events(after, CHUNK).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            events.into_iter().for_each(|event| recorder.take_in(event));
        }
    }
    Ok(recorder.finish())
}

fn from_file(path: &Path) -> Result<Recording, Problem> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let unreadable = Diagnostic::error(Code::FileMissing, "could not read the log");
        Problem::usage(unreadable.at(FilePlace::file(&name)).caused_by(&error))
    };
    let mut recorder = Recorder::default();
    let lines = BufReader::new(fs::File::open(path).map_err(unreadable)?).lines();
    for (number, line) in lines.enumerate() {
        let line = line.map_err(unreadable)?;
        let event: LoggedEvent =
            serde_json::from_str(&line).map_err(|error| not_an_event(&name, number, &error))?;
        recorder.take_in(event);
    }
    Ok(recorder.finish())
}

fn not_an_event(file: &str, number: usize, error: &serde_json::Error) -> Problem {
    let place = FilePlace {
        line: u32::try_from(number + 1).ok(),
        ..FilePlace::file(file)
    };
    let diagnostic = Diagnostic::error(Code::BadValue, "this line is not an event of a log")
        .at(place)
        .caused_by(error);
    Problem::usage(diagnostic.hint("`blueproof schema event` prints what an event is"))
}
