//! `blueproof simulate`.

use std::{fs, path::Path};

use blueproof_core::{
    diagnostic::{Code, Diagnostic, Place},
    queue::manifest::File,
    simulation::{self, Scenario},
};

use crate::{
    cli::{Generator, Simulate},
    exit::{Exit, Problem},
    output::{self, Document},
    show::{
        comparison::{Column, Comparison},
        transcript::transcript,
    },
};

pub(crate) fn simulate(arguments: &Simulate) -> Result<Exit, Problem> {
    let scenario = scenario(arguments)?;
    let history = scenario.play();
    if arguments.transcript {
        output::print(&transcript(&scenario, &history))?;
        return Ok(Exit::Ok);
    }
    let mut columns = vec![Column::of("given", &scenario, &history)];
    for plainer in &arguments.against {
        let plain = simulation::Yardstick::from(*plainer).applied_to(&scenario);
        columns.push(Column::of(name(*plainer), &plain, &plain.play()));
    }
    let comparison = Comparison { columns };
    let answer = match arguments.output {
        Some(format) => output::encode(&Document::new("SimulationReport", &comparison), format.into())?,
        None => comparison.to_string(),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

fn name(plainer: crate::cli::Plainer) -> &'static str {
    use crate::cli::Plainer;
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
    let file = open(path).map_err(Problem::usage)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let scenario = simulation::read(&file, |named| open(&folder.join(named)));
    scenario.map_err(Problem::from)
}

/// Reads a file with queues or a simulation.
pub(super) fn open(path: &Path) -> Result<File, Diagnostic> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Ok(File { name, text }),
        Err(error) => {
            let error =
                Diagnostic::error(Code::FileMissing, format!("could not read {name}")).caused_by(&error);
            Err(error.at(Place::file(name)))
        }
    }
}
