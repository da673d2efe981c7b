//! `blueproof whatif`.

use blueproof_queue::objects::Objects;
use blueproof_simulation::{Recorder, Recording, Scenario, starved};
use jiff::SignedDuration;

use super::{endless, policy, quota, recorded};
use crate::{
    cli::WhatIf,
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document},
    show::{
        chart::chart,
        comparison::{Comparison, Play},
        pace::Pace,
        whatif::{Answer, PolicyRemarks},
    },
};

pub(crate) fn whatif(arguments: &WhatIf, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let objects = quota::read(&arguments.files)?;
    let (log, mut recorder) = (arguments.log.as_deref(), Recorder::default());
    recorded::facts(log, flags, |fact| recorder.take_in(fact))?;
    let recording = recorder.finish();
    if recording.scenario.jobs.is_empty() {
        return Err(recorded::nothing_to_replay(log));
    }
    let mut policies = vec![objects];
    for path in &arguments.policies {
        policies.push(quota::read(std::slice::from_ref(path))?);
    }
    let plays = plays(&recording, policies, arguments);
    let answer = answer(arguments, &recording, &plays);
    let text = match arguments.output {
        Some(format) => output::encode(&Document::new("WhatIfReport", &answer), format.into())?,
        None if arguments.chart => format!("{answer}\n{}", chart(&answer.comparison)),
        None => answer.to_string(),
    };
    output::print(&text)?;
    endless::refuse(&plays)
}

/// Returns what came of the recorded queues, and of others.
fn plays(recording: &Recording, policies: Vec<Objects>, arguments: &WhatIf) -> Vec<Play> {
    let play = |name: String, scenario: Scenario| {
        let history = scenario.play_watched(&mut Pace::new("admissions replayed"));
        Play {
            name,
            scenario,
            history,
        }
    };
    let mut plays = vec![play("recorded".into(), recording.scenario.clone())];
    let names = ["policy".to_owned()]
        .into_iter()
        .chain(policy::names(&arguments.policies, &["recorded", "policy"]));
    for (name, objects) in names.zip(policies) {
        plays.push(play(name, recording.under(objects)));
    }
    plays
}

fn answer(arguments: &WhatIf, recording: &Recording, plays: &[Play]) -> Answer {
    let end = recording.scenario.until.unwrap_or_default();
    let from = arguments.since.map_or(SignedDuration::ZERO, |since| {
        (end - since).max(SignedDuration::ZERO)
    });
    let (recorded, policies) = plays.split_first().expect("the recorded queues are the first");
    let remarks = policies.iter().map(|play| PolicyRemarks {
        name: play.name.clone(),
        starving: starved(from, arguments.starving, &play.scenario, &play.history),
        without_queue: play.scenario.without_queue(),
    });
    Answer {
        same_order: recorded
            .history
            .admissions()
            .eq(recording.admissions.iter().copied()),
        policies: remarks.collect(),
        comparison: Comparison::of(from, plays),
    }
}
