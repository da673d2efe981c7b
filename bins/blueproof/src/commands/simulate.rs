//! `blueproof simulate`.

use std::path::Path;

use blueproof_core::simulation::{self, History, Scenario, Written, Yardstick};

use super::quota::read_file;
use crate::{
    cli::{Generator, Plainer, Simulate},
    exit::{Exit, Problem},
    output::{self, Document},
    show::{
        self,
        comparison::{Column, Comparison},
        pace::Pace,
        transcript::transcript,
    },
};

pub(crate) fn simulate(arguments: &Simulate) -> Result<Exit, Problem> {
    let scenario = scenario(arguments)?;
    let history = play("given", &scenario, arguments);
    if arguments.transcript {
        output::print(&transcript(&scenario, &history))?;
        return Ok(Exit::Ok);
    }
    let mut columns = vec![Column::of("given", &scenario, &history)];
    for plainer in &arguments.against {
        let plain = Yardstick::from(*plainer).applied_to(&scenario);
        let name = name(*plainer);
        columns.push(Column::of(name, &plain, &play(name, &plain, arguments)));
    }
    let comparison = Comparison { columns };
    let answer = match arguments.output {
        Some(format) => output::encode(&Document::new("SimulationReport", &comparison), format.into())?,
        None => comparison.to_string(),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

fn play(name: &str, scenario: &Scenario, arguments: &Simulate) -> History {
    let mut pace = Pace::new("admissions");
    let history = scenario.play_watched(&mut pace);
    let timing = pace.timing();
    if arguments.timing {
        output::note(&format!("{name}: {timing}"));
    }
    history
}

fn name(plainer: Plainer) -> &'static str {
    match plainer {
        Plainer::Fifo => "fifo",
        Plainer::BestEffort => "best-effort",
        Plainer::NoPreemption => "no-preemption",
    }
}

fn scenario(arguments: &Simulate) -> Result<Scenario, Problem> {
    match (&arguments.file, arguments.generator) {
        (Some(path), _) => read(path),
        (None, Some(Generator::KueueBaseline)) => Ok(simulation::kueue_baseline()),
        (None, None) => unreachable!("one of the two is required"),
    }
}

fn read(path: &Path) -> Result<Scenario, Problem> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let open = |named: &str| read_file(&folder.join(named)).map_err(|problem| problem.diagnostics);
    let Written { scenario, warnings } = simulation::read(&read_file(path)?, open)?;
    warnings.iter().for_each(show::aside);
    Ok(scenario)
}
