//! `blueproof whatif`.

use blueproof_core::{
    queue::objects::Objects,
    simulation::{Recorder, Recording, Scenario, starved},
};
use jiff::SignedDuration;

use super::{quota, recorded};
use crate::{
    cli::{Place, WhatIf},
    exit::{Exit, Problem},
    output::{self, Document},
    show::{
        comparison::{Column, Comparison},
        pace::Pace,
        whatif::Answer,
    },
};

pub(crate) fn whatif(arguments: &WhatIf, place: &Place) -> Result<Exit, Problem> {
    let objects = quota::read(&arguments.files)?;
    let (log, mut recorder) = (arguments.log.as_deref(), Recorder::default());
    recorded::events(log, place, |event| recorder.take_in(event))?;
    let recording = recorder.finish();
    if recording.scenario.jobs.is_empty() {
        return Err(recorded::nothing_to_replay(log));
    }
    let answer = answer(arguments, &recording, objects);
    let text = match arguments.output {
        Some(format) => output::encode(&Document::new("WhatIfReport", &answer), format.into())?,
        None => answer.to_string(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
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
