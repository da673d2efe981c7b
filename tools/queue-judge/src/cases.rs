//! Runs case files: each case against our queue, each difference with what was expected and what came.

use std::{collections::BTreeMap, fmt, fs, path::Path};

use anyhow::{Context, Result};
use blueproof_queue::{Quantity, Queues};

use crate::{
    decide::{self, Fair, Victims},
    format::{
        Availability, ByQueue, CycleCase, Entry, File, FlavorChoice, PartialAdmission, PodSetEntry,
        SetsOutcome, Setup, Share, Shares, Step, StepOutcome, Targets, known,
    },
    retry,
    world::{self, Names},
};

/// How many cases held.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failures: Vec<Failure>,
}

/// A case that did not come out as expected.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) case: String,
    pub(crate) what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// So many values may a case file have: tens of thousands of cases. Whoever runs one wrote it.
const MOST_NODES: usize = 50_000_000;

/// Reads a case file.
pub(crate) fn read(path: &Path) -> Result<File> {
    let text = fs::read_to_string(path).with_context(|| format!("could not read `{}`", path.display()))?;
    parse(&text).with_context(|| format!("`{}` is not a case file", path.display()))
}

/// Reads cases, of which nothing is passed over.
fn parse(text: &str) -> Result<File> {
    let options = || {
        serde_saphyr::options! {
            strict_booleans: true,
            budget: serde_saphyr::budget! {
                max_nodes: MOST_NODES,
                max_events: MOST_NODES,
                max_total_scalar_bytes: MOST_NODES,
            },
        }
    };
    known::check(&serde_saphyr::from_str_with_options(text, options())?)?;
    Ok(serde_saphyr::from_str_with_options(text, options())?)
}

/// Runs every case of a file.
pub(crate) fn run(file: &File) -> Tally {
    let mut tally = Tally::default();
    for case in &file.availability {
        tally.note(&case.id, availability(case));
    }
    for case in &file.shares {
        tally.note(&case.id, shares(case));
    }
    for case in file.classical_targets.iter().chain(&file.hierarchical_targets) {
        tally.note(&case.id, targets(case, &file.fixtures, Fair::No));
    }
    for case in &file.fair_targets {
        tally.note(&case.id, targets(case, &file.fixtures, Fair::Yes));
    }
    for case in &file.cycles {
        tally.note(&case.id, cycle(case, &file.cycle_fixtures, Fair::No));
    }
    for case in &file.fair_cycles {
        tally.note(&case.id, cycle(case, &file.cycle_fixtures, Fair::Yes));
    }
    for case in &file.partial_admission {
        tally.note(&case.id, partial_admission(case));
    }
    for case in &file.scripts {
        tally.note(&case.id, script(case, Victims::Leave));
    }
    for case in &file.linger_scripts {
        tally.note(&case.id, script(case, Victims::Linger));
    }
    for case in &file.retry_machine {
        tally.note(&case.id, retry::run(case));
    }
    tally
}

impl Tally {
    fn note(&mut self, case: &str, differences: Result<Vec<String>>) {
        let differences = differences.unwrap_or_else(|error| vec![format!("{error:#}")]);
        if differences.is_empty() {
            self.passed += 1;
            return;
        }
        let case = case.to_owned();
        let failures = differences.into_iter().map(|what| Failure {
            case: case.clone(),
            what,
        });
        self.failures.extend(failures);
    }

    /// Adds another file's.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
    }

    /// Returns how many cases failed.
    pub(crate) fn failed(&self) -> usize {
        let mut cases: Vec<_> = self.failures.iter().map(|failure| &failure.case).collect();
        cases.dedup();
        cases.len()
    }
}

/// Compares, and says what differs.
pub(crate) fn differ<T: PartialEq + fmt::Debug>(
    what: impl fmt::Display,
    expected: &T,
    actual: &T,
) -> Option<String> {
    (expected != actual).then(|| format!("{what}: expected {expected:?}, got {actual:?}"))
}

/// Returns a setup on top of the fixture that it names.
fn resolve(fixture: Option<&str>, fixtures: &BTreeMap<String, Setup>, setup: &Setup) -> Result<Setup> {
    let Some(name) = fixture else {
        return Ok(setup.clone());
    };
    let mut whole = fixtures
        .get(name)
        .with_context(|| format!("there is no fixture `{name}`"))?
        .clone();
    whole.cohorts.extend(setup.cohorts.clone());
    whole.queues.extend(setup.queues.clone());
    Ok(whole)
}

/// Lets somebody in each queue use so much.
fn used(setup: &Setup, fair: Fair, usages: &[&ByQueue<f64>]) -> Result<Queues> {
    let mut queues = Queues::new(world::objects(setup, fair.rules(&[])?)?);
    let uses: Vec<_> = usages
        .iter()
        .flat_map(|usage| usage.iter())
        .flat_map(|(queue, amounts)| amounts.iter().map(move |(of, amount)| (queue, of, *amount)))
        .collect();
    let names = Names::new((0..uses.len()).map(|number| format!("user-{number:03}")));
    for (number, (queue, of, amount)) in uses.into_iter().enumerate() {
        let (flavor, resource) = world::flavor_resource(of)?;
        let amounts = BTreeMap::from([(resource.to_owned(), amount)]);
        let entry = Entry {
            n: format!("user-{number:03}"),
            f: Some(FlavorChoice::One(flavor.to_owned())),
            amounts,
            ..Entry::default()
        };
        world::restore(&mut queues, &names, queue, &entry)?;
    }
    Ok(queues)
}

fn availability(case: &Availability) -> Result<Vec<String>> {
    let queues = used(&case.setup, Fair::No, &[&case.usage])?;
    let mut found = amounts("available", &case.available, |queue, f, r| {
        queues.available(queue, f, r).ok()
    })?;
    found.extend(amounts("potential", &case.potential, |queue, f, r| {
        queues.potential(queue, f, r).ok()
    })?);
    Ok(found)
}

fn amounts(
    what: &str,
    expected: &ByQueue<f64>,
    actual: impl Fn(&str, &str, &str) -> Option<Quantity>,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (queue, amounts) in expected {
        for (of, amount) in amounts {
            let (flavor, resource) = world::flavor_resource(of)?;
            let expected = Some(world::quantity(resource, *amount));
            found.extend(differ(
                format_args!("{what} {queue} {of}"),
                &expected,
                &actual(queue, flavor, resource),
            ));
        }
    }
    Ok(found)
}

fn shares(case: &Shares) -> Result<Vec<String>> {
    let queues = used(&case.setup, Fair::Yes, &[&case.usage, &case.request])?;
    let mut found = Vec::new();
    for (node, expected) in &case.share {
        let share = queues
            .weighted_share(node)
            .ok()
            .or_else(|| queues.cohort_share(node));
        let share = share.with_context(|| format!("there is no `{node}`"))?;
        let expected = match expected {
            Share::Number(number) if *number == i64::MAX.unsigned_abs() => Share::Word("max".into()),
            other @ (Share::Number(_) | Share::Word(_)) => other.clone(),
        };
        found.extend(differ(
            format_args!("share {node}"),
            &expected,
            &decide::share(share),
        ));
    }
    if let Some(dominant) = &case.dominant {
        let actual = case
            .usage
            .keys()
            .find_map(|queue| queues.dominant_resource(queue).ok().flatten());
        found.extend(differ("dominant", &Some(dominant.as_str()), &actual));
    }
    Ok(found)
}

fn targets(case: &Targets, fixtures: &BTreeMap<String, Setup>, fair: Fair) -> Result<Vec<String>> {
    const NEWCOMER: &str = "~newcomer";
    let setup = resolve(case.fixture.as_deref(), fixtures, &case.setup)?;
    let running = case.running.values().flatten().map(|entry| entry.n.clone());
    let names = Names::new(running.chain([NEWCOMER.to_owned()]));
    let mut queues = Queues::new(world::objects(&setup, fair.rules(&case.strategies)?)?);
    for (queue, entries) in &case.running {
        for entry in entries {
            world::restore(&mut queues, &names, queue, entry)?;
        }
    }
    let incoming = Entry {
        n: NEWCOMER.into(),
        ..case.incoming.clone()
    };
    let queue = incoming.q.as_deref().context("who comes names a queue")?;
    let workload = world::workload(&names, queue, &incoming, world::at(incoming.c))?;
    let usage = usage(&incoming)?;
    let usage: Vec<_> = usage
        .iter()
        .map(|(f, r, amount)| (f.as_str(), r.as_str(), *amount))
        .collect();
    let mut contested = Vec::new();
    for of in &incoming.contested {
        contested.push(world::flavor_resource(of)?);
    }
    if contested.is_empty() {
        contested = usage.iter().map(|(f, r, _)| (*f, *r)).collect();
    }
    let victims = queues.victims(&workload, &usage, &contested)?;
    let actual = victims
        .iter()
        .map(|victim| {
            (
                names.name(victim.workload).to_owned(),
                decide::letter(victim.reason).to_owned(),
            )
        })
        .collect();
    Ok(differ("preempt", &case.preempt, &actual).into_iter().collect())
}

/// Returns what a newcomer uses, by flavor and resource.
fn usage(entry: &Entry) -> Result<Vec<(String, String, Quantity)>> {
    let mut usage = Vec::new();
    for (of, amount) in &entry.r#use {
        let (flavor, resource) = world::flavor_resource(of)?;
        usage.push((
            flavor.to_owned(),
            resource.to_owned(),
            world::quantity(resource, *amount),
        ));
    }
    if usage.is_empty() {
        for (resource, amount) in &entry.amounts {
            let flavor = entry
                .f
                .as_ref()
                .and_then(|choice| choice.of(resource))
                .unwrap_or("default");
            usage.push((
                flavor.to_owned(),
                resource.clone(),
                world::quantity(resource, *amount),
            ));
        }
    }
    Ok(usage)
}

fn cycle(case: &CycleCase, fixtures: &BTreeMap<String, Setup>, fair: Fair) -> Result<Vec<String>> {
    let setup = resolve(case.fixture.as_deref(), fixtures, &case.setup)?;
    let actual = decide::cycle(case, &setup, fair)?;
    let expected = &case.outcome;
    let mut admitted = actual.admit.clone();
    for (name, flavors) in &mut admitted {
        if let Some(asked) = expected.admit.get(name) {
            flavors.retain(|resource, _| asked.contains_key(resource));
        }
    }
    let found = [
        differ("admit", &expected.admit, &admitted),
        differ("preempt", &expected.preempt, &actual.preempt),
        differ("wait", &expected.wait, &actual.wait),
    ];
    Ok(found.into_iter().flatten().collect())
}

fn partial_admission(case: &PartialAdmission) -> Result<Vec<String>> {
    const QUEUE: &str = "q";
    let setup = Setup {
        queues: BTreeMap::from([(QUEUE.to_owned(), case.queue.clone())]),
        ..Setup::default()
    };
    let pending = pending(case)?;
    let names = Names::new(case.running.iter().chain([&pending]).map(|entry| entry.n.clone()));
    let mut queues = Queues::new(world::objects(&setup, None)?);
    for entry in &case.running {
        world::restore(&mut queues, &names, QUEUE, entry)?;
    }
    queues.submit(&world::workload(&names, QUEUE, &pending, world::at(0))?)?;
    let now = queues.cycle(world::at(1000));
    let counts = |cycle: &blueproof_queue::Cycle| -> Vec<u32> {
        cycle
            .admitted
            .iter()
            .flat_map(|admission| &admission.pod_sets)
            .map(|set| set.count)
            .collect()
    };
    let mut preempted = BTreeMap::new();
    for victim in &now.preempted {
        preempted.insert(
            names.name(victim.workload).to_owned(),
            decide::letter(victim.reason).to_owned(),
        );
        queues.remove(victim.workload);
    }
    let then = queues.cycle(world::at(1001));
    let found = [
        differ("admit_counts", &case.admit_counts, &counts(&now)),
        differ("preempt", &case.preempt, &preempted),
        differ("then_counts", &case.then_counts, &counts(&then)),
    ];
    Ok(found.into_iter().flatten().collect())
}

fn pending(case: &PartialAdmission) -> Result<Entry> {
    let sets = case.pending.sets.iter().map(|set| {
        let [count, amount, min] = set.as_slice() else {
            anyhow::bail!("a set is [pods, per-pod request, minimum pods]");
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they count pods"
        )]
        let (count, min) = (*count as u32, *min as u32);
        Ok(PodSetEntry {
            count,
            min: Some(min),
            amounts: BTreeMap::from([(case.pending.resource.clone(), *amount)]),
            ..PodSetEntry::default()
        })
    });
    Ok(Entry {
        n: case.pending.n.clone(),
        p: case.pending.p,
        sets: sets.collect::<Result<_>>()?,
        ..Entry::default()
    })
}

fn script(case: &crate::format::Script, victims: Victims) -> Result<Vec<String>> {
    let Some(outcomes) = decide::script(case, victims)? else {
        return Ok(vec!["it does not settle".into()]);
    };
    let mut found = Vec::new();
    for (number, (step, actual)) in case.steps.iter().zip(&outcomes).enumerate() {
        found.extend(step_differences(step, actual).map(|what| format!("step {}: {what}", number + 1)));
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Compares what a step says; where it says who runs, nobody was preempted, or leaves, whom it does not name.
fn step_differences<'a>(step: &'a Step, actual: &'a StepOutcome) -> impl Iterator<Item = String> + 'a {
    let mut expected = step.outcome.clone();
    if let Some(running) = &mut expected.running {
        running.sort_unstable();
        expected.preempted.get_or_insert_default();
        expected.leaving.get_or_insert_default();
    }
    for names in [&mut expected.waiting, &mut expected.leaving]
        .into_iter()
        .flatten()
    {
        names.sort_unstable();
    }
    let counted = |counts: &BTreeMap<String, usize>| {
        let actual = actual.running_count.iter().flatten();
        actual
            .filter(|(queue, _)| counts.contains_key(*queue))
            .map(|(queue, n)| (queue.clone(), *n))
            .collect()
    };
    let shares = expected.shares.as_ref().map(|shares| {
        let queues = actual.shares.iter().flatten().map(|(queue, _)| queue);
        queues
            .map(|queue| {
                (
                    queue.clone(),
                    shares.get(queue).cloned().unwrap_or(Share::Number(0)),
                )
            })
            .collect()
    });
    let flavors = expected
        .admitted
        .as_ref()
        .map(|admitted| chosen(admitted, actual));
    let available = expected.available.as_ref().map(|asked| {
        let of_queue = |(queue, places): (&String, &BTreeMap<String, f64>)| {
            let mut actual = actual.available.as_ref()?.get(queue)?.clone();
            actual.retain(|place, _| places.contains_key(place));
            Some((queue.clone(), actual))
        };
        asked.iter().filter_map(of_queue).collect()
    });
    let found = [
        ask("running", &expected.running, &actual.running),
        ask("waiting", &expected.waiting, &actual.waiting),
        ask("leaving", &expected.leaving, &actual.leaving),
        ask("preempted", &expected.preempted, &actual.preempted),
        ask("admitted", &expected.admitted, &flavors),
        ask("shares", &shares, &actual.shares),
        ask("available", &expected.available, &available),
        ask_sets(&expected.sets, &actual.sets),
        ask(
            "running_count",
            &expected.running_count,
            &expected.running_count.as_ref().map(counted),
        ),
    ];
    found.into_iter().flatten()
}

/// Returns the flavors that came for what was expected.
fn chosen(
    expected: &BTreeMap<String, BTreeMap<String, String>>,
    actual: &StepOutcome,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let admitted = actual.admitted.iter().flatten();
    let asked = admitted.filter_map(|(name, flavors)| {
        let asked = expected.get(name)?;
        let flavors = flavors
            .iter()
            .filter(|(resource, _)| asked.contains_key(*resource));
        Some((
            name.clone(),
            flavors.map(|(r, f)| (r.clone(), f.clone())).collect(),
        ))
    });
    asked.collect()
}

fn ask_sets(expected: &SetsOutcome, actual: &SetsOutcome) -> Option<String> {
    if expected.counts.is_empty() {
        return None;
    }
    differ("sets", expected, actual)
}

fn ask<T: PartialEq + fmt::Debug>(what: &str, expected: &Option<T>, actual: &Option<T>) -> Option<String> {
    expected.as_ref()?;
    differ(what, expected, actual)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str =
        "availability: [{id: a, queues: {q: {groups: [{f: {cpu: 2}}]}}, available: {q: {f/cpu: 2}}}]";

    #[test]
    fn a_case_that_is_not_read_in_full_is_refused() {
        let refused = |text: &str| {
            let error = parse(text).expect_err(text);
            format!("{error:#}")
        };
        assert!(run(&parse(CASE).expect("it is one")).failures.is_empty());
        for (text, says) in [
            (CASE.replace("id: a,", "id: a, usge: {},"), "`usge` is not known"),
            (CASE.replace("availability", "cycles"), "`available` is not known"),
            (
                CASE.replace("availability", "scripts"),
                "`available` is not known",
            ),
            (CASE.replace("availability", "availabilty"), "availabilty"),
            (
                CASE.replace(", available: {q: {f/cpu: 2}}", ""),
                "expects nothing",
            ),
            ("cycles: [{}]".into(), "it says no `id`"),
            (
                "cycles: [{id: a, fair: true, pending: {}}]".into(),
                "`fair` is not known",
            ),
            ("scripts: [{id: a, queues: {}, steps: []}]".into(), "no `steps`"),
            (
                "scripts: [{id: a, queues: {}, steps: [{runing: [a]}]}]".into(),
                "step 1: the key `runing`",
            ),
            (
                "scripts: [{id: a, queues: {}, steps: [{running: [a]}]}]".into(),
                "it says 0 of submit",
            ),
            (
                "scripts: [{id: a, queues: {}, steps: [{submit: [a]}]}]".into(),
                "expects nothing",
            ),
        ] {
            let told = refused(&text);
            assert!(told.contains(says), "`{says}`: {told}");
        }
    }

    #[test]
    fn a_file_may_have_as_many_cases_as_anybody_writes() {
        let one = CASE.trim_start_matches("availability: [").trim_end_matches(']');
        let all = format!("availability: [{}]", [one; 20_000].join(", "));
        assert_eq!(run(&parse(&all).expect("they are cases")).passed, 20_000);
    }

    #[test]
    fn our_queue_decides_every_case_as_kueue_does() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let mut tally = Tally::default();
        for file in fs::read_dir(folder).expect("the cases are there") {
            let file = read(&file.expect("it can be listed").path()).expect("a case file");
            tally.add(run(&file));
        }
        let failures: Vec<_> = tally.failures.iter().map(ToString::to_string).collect();
        assert_eq!(failures, Vec::<String>::new());
        assert!(tally.passed > 1000, "only {} cases ran", tally.passed);
    }
}
