//! Asks both sides about random scenarios, and shows where they differ, as small as it can be.
//!
//! The oracle decides on one core while ours makes the scenarios and decides on the other. What is found is looked at
//! again, by an oracle that takes more care: whatever hangs on the order of Go's maps is no difference.

use std::{
    collections::BTreeMap,
    fmt, panic,
    path::PathBuf,
    str::FromStr,
    sync::mpsc::{self, Receiver, SyncSender},
    thread,
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::{
    generate::{self, Kind},
    on_purpose,
    oracle::{Answers, Oracle, Questions},
    progress::Progress,
    scenario::{Answer, Scenario, line},
    shrink::shrink,
};

/// How often the oracle decides a scenario, and how often one in which the two sides differ.
const REPEAT: u32 = 2;
const REPEAT_WITH_CARE: u32 = 20;

/// So many differences are made small and shown; the others are only counted.
const SHOWN: usize = 5;

/// Why scenarios are not compared that go round for ever.
const UNSETTLED: &str = "unsettled";

/// How many scenarios may wait for their answers.
const AHEAD: usize = 256;

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many scenarios.
    #[arg(long, default_value_t = 1000)]
    cases: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Scenarios of this kind only: cycle, fair-cycle, script, fair-script, linger, usage or edits; `all` is all by turns.
    #[arg(long, default_value = "all")]
    kind: Kinds,
    /// Kueue's own code.
    #[arg(long, value_name = "PATH", default_value = "target/tools/kueue-oracle")]
    oracle: PathBuf,
}

/// Kinds of scenarios, by turns.
#[derive(Debug, Clone)]
struct Kinds(Vec<Kind>);

impl FromStr for Kinds {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if word == "all" {
            return Ok(Self(Kind::value_variants().to_vec()));
        }
        Kind::from_str(word, false).map(|kind| Self(vec![kind]))
    }
}

/// What came of a comparison.
#[derive(Debug, Default)]
struct Found {
    compared: usize,
    differing: Vec<(u64, Scenario)>,
    /// Why scenarios were not compared, and how many.
    left_out: BTreeMap<&'static str, usize>,
}

/// How the two sides compare.
enum Compared {
    Same,
    /// On both sides it goes round for ever: so far they are the same, and nobody knows what comes later.
    Unsettled,
    Different(Box<[Answer; 2]>),
    LeftOut(&'static str),
}

/// Compares, prints each difference, and returns whether there is none.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let mut found = compare_all(arguments)?;
    let mut careful = Oracle::start(&arguments.oracle, REPEAT_WITH_CARE)?;
    let mut differing = 0;
    for (number, scenario) in std::mem::take(&mut found.differing) {
        match compare(&mut careful, &scenario)? {
            Compared::Different(_) => differing += 1,
            Compared::Same => {
                found.leave_out("unstable");
                continue;
            }
            Compared::Unsettled => {
                found.leave_out(UNSETTLED);
                continue;
            }
            Compared::LeftOut(why) => {
                found.leave_out(why);
                continue;
            }
        }
        if differing <= SHOWN {
            println!("case {number} of seed {}, made smaller:", arguments.seed);
            show(&mut careful, &scenario)?;
        }
    }
    found.compared -= found.left_out.values().sum::<usize>();
    println!(
        "{}",
        Summary {
            found: &found,
            differing
        }
    );
    Ok(differing == 0)
}

/// Streams the scenarios through the oracle.
fn compare_all(arguments: &Arguments) -> Result<Found> {
    let oracle = Oracle::start(&arguments.oracle, REPEAT)?;
    let (sender, receiver) = mpsc::sync_channel(AHEAD);
    let (questions, answers, _process) = oracle.split();
    thread::scope(|scope| {
        let asking = scope.spawn(move || ask_all(arguments, questions, &sender));
        let found = collect(&receiver, answers, arguments.cases);
        drop(receiver);
        asking.join().expect("asking does not panic")?;
        found
    })
}

fn ask_all(
    arguments: &Arguments,
    mut questions: Questions,
    sender: &SyncSender<(u64, Scenario)>,
) -> Result<()> {
    for (number, kind) in (0..arguments.cases).zip(arguments.kind.0.iter().cycle()) {
        let scenario = generate::scenario(*kind, arguments.seed, number);
        questions.put(&scenario)?;
        if sender.send((number, scenario)).is_err() {
            break; // Whoever reads the answers has given up, and says why.
        }
    }
    Ok(())
}

fn collect(receiver: &Receiver<(u64, Scenario)>, mut answers: Answers, cases: u64) -> Result<Found> {
    let (mut found, mut progress) = (Found::default(), Progress::new());
    for (number, scenario) in receiver {
        found.compared += 1;
        progress.tell(|| format!("{} of {cases} compared", found.compared));
        match against(&scenario, answers.next()?)? {
            Compared::Same => {}
            Compared::Different(_) => found.differing.push((number, scenario)),
            Compared::Unsettled => found.leave_out(UNSETTLED),
            Compared::LeftOut(why) => found.leave_out(why),
        }
    }
    Ok(found)
}

impl Found {
    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }
}

/// Compares with care: a difference that is on purpose is none.
fn compare(oracle: &mut Oracle, scenario: &Scenario) -> Result<Compared> {
    let theirs = oracle.ask(scenario)?;
    let compared = against(scenario, theirs)?;
    if !matches!(compared, Compared::Different(_)) {
        return Ok(compared);
    }
    let mut alike = |scenario: &Scenario| {
        let theirs = oracle.ask(scenario)?;
        Ok(matches!(
            against(scenario, theirs)?,
            Compared::Same | Compared::Unsettled
        ))
    };
    let known = on_purpose::explain(scenario, &mut alike)?;
    Ok(known.map_or(compared, |known| Compared::LeftOut(known.name)))
}

/// Compares what Kueue made of a scenario with what our queue does.
fn against(scenario: &Scenario, theirs: Answer) -> Result<Compared> {
    match &theirs {
        Answer::Unstable { .. } => return Ok(Compared::LeftOut("unstable")),
        Answer::IdleDependent { .. } => return Ok(Compared::LeftOut("hanging on idle cycles")),
        Answer::Refused { error } if error.starts_with("panic") => {
            return Ok(Compared::LeftOut("a panic of Kueue's"));
        }
        Answer::Refused { .. } => return Ok(Compared::LeftOut("refused")),
        Answer::Unsettled { .. } | Answer::Steps { .. } | Answer::Cycle(_) => {}
    }
    let ours = panic::catch_unwind(|| scenario.decide()).unwrap_or_else(|problem| {
        println!("our queue panics:\n  {}", scenario.line());
        panic::resume_unwind(problem)
    });
    let ours = ours.with_context(|| scenario.line())?;
    if ours != theirs {
        return Ok(Compared::Different(Box::new([theirs, ours])));
    }
    let is_unsettled = matches!(ours, Answer::Unsettled { .. });
    Ok(if is_unsettled {
        Compared::Unsettled
    } else {
        Compared::Same
    })
}

/// Makes a scenario small and prints it with both answers.
fn show(oracle: &mut Oracle, scenario: &Scenario) -> Result<()> {
    // A scenario that the oracle cannot answer, or ours not decide, is not the one that is looked for.
    let (mut tries, mut progress) = (0_u64, Progress::new());
    let differs = |scenario: &Scenario| {
        tries += 1;
        progress.tell(|| format!("{tries} cuts tried"));
        matches!(compare(oracle, scenario), Ok(Compared::Different(_)))
    };
    let smallest = shrink(scenario, differs);
    println!("  {}", smallest.line());
    if let Compared::Different(sides) = compare(oracle, &smallest)? {
        let [theirs, ours] = *sides;
        for (theirs, ours) in theirs.parts().zip(ours.parts()) {
            if theirs != ours {
                println!("  theirs: {theirs}\n  ours:   {ours}\n");
                break;
            }
        }
    }
    Ok(())
}

impl Answer {
    /// Returns it as lines, one for each step.
    fn parts(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Self::Steps { steps } => Box::new(steps.iter().map(line)),
            Self::Unstable { .. }
            | Self::IdleDependent { .. }
            | Self::Unsettled { .. }
            | Self::Refused { .. }
            | Self::Cycle(_) => Box::new(std::iter::once(line(self))),
        }
    }
}

/// The last line.
struct Summary<'a> {
    found: &'a Found,
    differing: usize,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out: usize = self.found.left_out.values().sum();
        let compared = self.found.compared;
        write!(
            f,
            "{compared} compared, {} differ, {left_out} left out",
            self.differing
        )?;
        let whys = self
            .found
            .left_out
            .iter()
            .map(|(why, count)| format!("{count} {why}"));
        let whys: Vec<_> = whys.collect();
        if whys.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", whys.join(", "))
    }
}
