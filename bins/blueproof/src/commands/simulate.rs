//! `blueproof simulate`.

use std::path::Path;

use blueproof_simulation::{Baseline, History, Scenario, Written};
use jiff::SignedDuration;

use super::{
    endless, policy,
    quota::{self, read_file},
};
use crate::{
    cli::{Generator, Plainer, Simulate},
    exit::{Exit, Problem},
    output::{self, Document},
    show::{
        self,
        chart::chart,
        comparison::{Comparison, Play},
        pace::Pace,
        transcript::transcript,
    },
};

pub(crate) fn simulate(arguments: &Simulate) -> Result<Exit, Problem> {
    let scenario = scenario(arguments)?;
    if arguments.transcript {
        let history = play("given", &scenario, arguments);
        output::print(&transcript(&scenario, &history))?;
        let play = Play {
            name: "given".into(),
            scenario,
            history,
        };
        return endless::refuse(&[play]);
    }
    let plainer = plainer(arguments);
    let taken: Vec<&str> = plainer.iter().copied().map(name).chain(["given"]).collect();
    let mut plays = vec![Play::of("given", scenario.clone(), arguments)];
    for (name, path) in policy::names(&arguments.policies, &taken)
        .into_iter()
        .zip(&arguments.policies)
    {
        let objects = quota::read(std::slice::from_ref(path))?;
        plays.push(Play::of(&name, scenario.under(objects), arguments));
    }
    for plainer in plainer {
        let plain = Baseline::from(plainer).applied_to(&scenario);
        plays.push(Play::of(name(plainer), plain, arguments));
    }
    let comparison = Comparison::of(SignedDuration::ZERO, &plays);
    let answer = match arguments.output {
        Some(format) => output::encode(&Document::new("SimulationReport", &comparison), format.into())?,
        None if arguments.chart => format!("{comparison}\n{}", chart(&comparison)),
        None => comparison.to_string(),
    };
    output::print(&answer)?;
    endless::refuse(&plays)
}

/// Returns the plainer queues to measure beside: those that were asked for, or two where there is nothing else.
fn plainer(arguments: &Simulate) -> Vec<Plainer> {
    match &arguments.against {
        Some(asked) => asked.clone(),
        None if arguments.policies.is_empty() => vec![Plainer::Fifo, Plainer::BestEffort],
        None => Vec::new(),
    }
}

impl Play {
    fn of(name: &str, scenario: Scenario, arguments: &Simulate) -> Self {
        let history = play(name, &scenario, arguments);
        let name = name.to_owned();
        Self {
            name,
            scenario,
            history,
        }
    }
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
        (None, Some(Generator::KueueBaseline)) => Ok(blueproof_simulation::kueue_baseline()),
        (None, None) => unreachable!("one of the two is required"),
    }
}

fn read(path: &Path) -> Result<Scenario, Problem> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let open = |named: &str| read_file(&folder.join(named)).map_err(|problem| problem.diagnostics);
    let Written { scenario, warnings } = blueproof_simulation::read(&read_file(path)?, open)?;
    warnings.iter().for_each(show::aside);
    Ok(scenario)
}
