//! `blueproof whatif`.

mod log;

use std::path::Path;

use blueproof_core::{
    diagnostic::{Code, Diagnostic, Place as FilePlace},
    queue::objects::Objects,
    simulation::{Recorder, Recording, Scenario, starved},
};
use jiff::SignedDuration;

use super::quota;
use crate::{
    cli::{Place, WhatIf},
    exit::{Exit, Problem},
    output::{self, Document},
    reading::{self, Reading, block_on},
    show::{
        comparison::{Column, Comparison},
        pace::Pace,
        whatif::Answer,
    },
};

pub(crate) fn whatif(arguments: &WhatIf, place: &Place) -> Result<Exit, Problem> {
    let objects = quota::read(&arguments.files)?;
    let recording = match &arguments.log {
        Some(path) => from_file(path)?,
        None => block_on(from_store(place))?,
    };
    if recording.scenario.jobs.is_empty() {
        return Err(nothing_to_replay(arguments));
    }
    let answer = answer(arguments, &recording, objects);
    let text = match arguments.output {
        Some(format) => output::encode(&Document::new("WhatIfReport", &answer), format.into())?,
        None => answer.to_string(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn nothing_to_replay(arguments: &WhatIf) -> Problem {
    let nothing = Diagnostic::error(
        Code::LogUnreadable,
        "nothing to replay: no run ever asked for quota",
    );
    Problem::usage(match &arguments.log {
        Some(path) => nothing.at(FilePlace::file(path.display().to_string())),
        None => nothing.hint("`blueproof run BLUEPRINT` makes the first run"),
    })
}

fn answer(arguments: &WhatIf, recording: &Recording, objects: Objects) -> Answer {
    let end = recording.scenario.until.unwrap_or_default();
    let from = arguments.since.map_or(SignedDuration::ZERO, |since| {
        (end - since).max(SignedDuration::ZERO)
    });
    let play = |scenario: &Scenario| scenario.play_watched(&mut Pace::new("admissions replayed"));
    let then = play(&recording.scenario);
    let scenario = recording.under(objects);
    let now = play(&scenario);
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
    let (mut recorder, mut pace) = (Recorder::default(), Pace::new("events read"));
    if let Some(store) = Reading::open(place)?.store {
        reading::events(&store, |events| {
            pace.add(events.len() as u64);
            events.into_iter().for_each(|event| recorder.take_in(event));
            Ok(())
        })
        .await?;
    }
    Ok(recorder.finish())
}

fn from_file(path: &Path) -> Result<Recording, Problem> {
    let (mut recorder, mut pace) = (Recorder::default(), Pace::new("events read"));
    log::read(path, |event| {
        pace.add(1);
        recorder.take_in(event);
    })?;
    Ok(recorder.finish())
}
