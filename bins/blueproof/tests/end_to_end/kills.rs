//! kill -9 at random instants, over clients, hosts, agents and kernels: nothing is lost, done twice, or left over.
//!
//! A few rounds run with the other tests. More of them, or others, by environment variables:
//! `BLUEPROOF_KILLS=300 BLUEPROOF_KILLS_SEED=7 cargo test -p blueproof --test end_to_end kills -- --nocapture`.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Checkout, Home, Running};

/// How many kills there are where nobody asks for another number.
const KILLS: usize = 9;

/// How many kills fall into one store's life.
const KILLS_A_ROUND: usize = 3;

/// The longest time before the next kill: about as long as a round takes.
const LONGEST_PAUSE: Duration = Duration::from_millis(1500);

/// A kind of process that can be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Client,
    Host,
    Agent,
    Kernel,
}

#[test]
fn kill_nine_at_random_instants_loses_nothing_doubles_nothing_and_leaves_nothing_over() {
    let (wanted, seed) = (
        variable("BLUEPROOF_KILLS", KILLS),
        variable("BLUEPROOF_KILLS_SEED", 13),
    );
    let mut random = fastrand::Rng::with_seed(seed as u64);
    let mut killed: BTreeMap<Kind, usize> = BTreeMap::new();
    while killed.values().sum::<usize>() < wanted {
        let round = Round::begin();
        for kind in round.kill_at_random(&mut random) {
            *killed.entry(kind).or_default() += 1;
        }
        round.assert_all_is_well();
    }
    println!("seed {seed}: killed {killed:?}");
}

fn variable(name: &str, otherwise: usize) -> usize {
    let given = env::var(name).ok();
    given.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// One store, and several clients that ask for runs and wait for them.
struct Round {
    home: Home,
    clients: Vec<Running>,
    _checkouts: Vec<Checkout>,
}

impl Round {
    fn begin() -> Self {
        let home = Home::new();
        fs::create_dir(home.path().join("tmp")).expect("a folder");
        let checkouts: Vec<Checkout> = (0..3).map(|_| notebook(&home)).collect();
        let typed: [&[&str]; 4] = [
            &["run", checkouts[0].typed()],
            &["run", checkouts[1].typed()],
            &["run", checkouts[2].typed(), "--detach"],
            &["wait", "r-1"],
        ];
        let clients = typed.map(|arguments| start(&home, arguments)).into();
        Self {
            home,
            clients,
            _checkouts: checkouts,
        }
    }

    /// Kills processes of this home, one or all of a kind at a time, and returns what they were.
    fn kill_at_random(&self, random: &mut fastrand::Rng) -> Vec<Kind> {
        let mut killed = Vec::new();
        for _ in 0..KILLS_A_ROUND {
            std::thread::sleep(LONGEST_PAUSE.mul_f64(random.f64()));
            let there = self.processes();
            let Some(&(kind, one)) = random.choice(&there) else {
                break;
            };
            let all_of_a_kind = random.u8(..100) < 15;
            for (_, pid) in there
                .into_iter()
                .filter(|other| (all_of_a_kind && other.0 == kind) || other.1 == one)
            {
                if kill_process(pid, Signal::KILL).is_ok() {
                    killed.push(kind);
                }
            }
        }
        killed
    }

    fn processes(&self) -> Vec<(Kind, Pid)> {
        let marker = self
            .home
            .path()
            .to_str()
            .expect("temporary folders have plain names");
        let entries = fs::read_dir("/proc").expect("Linux has /proc");
        let mut found: Vec<_> = entries
            .filter_map(|entry| process(&entry.ok()?.path(), marker))
            .collect();
        found.sort_by_key(|(kind, pid)| (*kind, pid.as_raw_nonzero()));
        found
    }

    /// Goes on as people would, and looks at what came of it.
    fn assert_all_is_well(self) {
        let told: Vec<_> = self.clients.into_iter().map(Running::end).collect();
        let home = self.home;
        let all = || home.blueproof(&["get", "runs", "-o", "json"]).json();
        for run in ids(&all()) {
            home.blueproof(&["wait", &run]);
        }
        let runs = all();
        let known = ids(&runs);
        for answer in &told[..3] {
            let printed: Vec<_> = answer
                .stdout
                .split_whitespace()
                .filter(|word| word.starts_with("r-"))
                .collect();
            assert!(
                printed.iter().all(|id| known.contains(*id)),
                "{answer:?}: {known:?}"
            );
            assert!(
                answer.code.is_none() || !printed.is_empty(),
                "it was not killed and names no run: {answer:?}"
            );
        }
        let executed = executed(&home);
        for run in runs["items"].as_array().expect("runs") {
            assert_ended_well(&home, run, &executed);
        }
        assert_events_pair(&home);
        home.until_nothing_goes_on();
        let left = fs::read_dir(home.path().join("tmp")).expect("a folder").count();
        assert_eq!(left, 0, "folders of sockets");
    }
}

/// Starts a client whose kernels have their sockets in this home.
fn start(home: &Home, arguments: &[&str]) -> Running {
    let mut command = home.command(arguments);
    command
        .env("TMPDIR", home.path().join("tmp"))
        .stdin(Stdio::null());
    Running::start(command)
}

/// Makes a notebook that writes down in which attempt it runs, leaves a process behind, and takes a moment.
fn notebook(home: &Home) -> Checkout {
    let ledger = home.path().join("ledger");
    let begin = format!(
        "import os, subprocess, time\n\
         agent = open(f'/proc/{{os.getppid()}}/cmdline').read().split('\\0')\n\
         with open({ledger:?}, 'a') as ledger:\n    ledger.write(agent[-2] + '\\n')\n\
         subprocess.Popen(['sh', '-c', 'setsid sleep 600 &'], cwd='/')"
    );
    let go_on = "for step in range(5):\n    print(step, flush=True)\n    time.sleep(0.1)";
    Checkout::new(&[&begin, go_on], "  retries: {infrastructure: 2}\n")
}

fn process(folder: &std::path::Path, marker: &str) -> Option<(Kind, Pid)> {
    let number: i32 = folder.file_name()?.to_str()?.parse().ok()?;
    let has = |file: &str| {
        let bytes = fs::read(folder.join(file)).unwrap_or_default();
        bytes
            .windows(marker.len())
            .any(|window| window == marker.as_bytes())
    };
    if !has("environ") && !has("cmdline") {
        return None;
    }
    let line = fs::read(folder.join("cmdline")).ok()?;
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    let kind = match words.get(1)?.as_ref() {
        "run" | "wait" => Kind::Client,
        "host" => Kind::Host,
        "agent" => Kind::Agent,
        _ if words.iter().any(|word| word == "ipykernel_launcher") => Kind::Kernel,
        _ => return None,
    };
    Some((kind, Pid::from_raw(number)?))
}

fn ids(runs: &Value) -> BTreeSet<String> {
    let runs = runs["items"].as_array().expect("runs").iter();
    runs.map(|run| run["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// Returns how often the notebook was executed in each attempt: `r-1.1`.
fn executed(home: &Home) -> BTreeMap<String, usize> {
    let mut executed = BTreeMap::new();
    let ledger = fs::read_to_string(home.path().join("ledger")).unwrap_or_default();
    for folder in ledger.lines().map(PathBuf::from) {
        let words: Vec<_> = folder.iter().map(|word| word.to_string_lossy()).collect();
        // Where the agent was killed just then, somebody else is the parent, and the kernel is about to be killed, too.
        let Some(attempts) = words.iter().position(|word| word == "attempts") else {
            continue;
        };
        let attempt = format!("{}.{}", words[attempts - 1], words[attempts + 1]);
        *executed.entry(attempt).or_default() += 1;
    }
    executed
}

fn assert_ended_well(home: &Home, run: &Value, executed: &BTreeMap<String, usize>) {
    assert_eq!(run["settled"], true, "{run}");
    assert_eq!(run["report"], "written", "{run}");
    let id = run["id"].as_str().expect("an id");
    let folder = home.run_folder(id);
    assert!(folder.join("report.html").is_file(), "{run}");
    for attempt in run["attempts"].as_array().expect("attempts") {
        let name = attempt["id"].as_str().expect("an id");
        assert!(!attempt["endedAt"].is_null(), "{run}");
        let times = executed.get(name).copied().unwrap_or_default();
        assert!(times <= 1, "{name} ran {times} times");
        let has_passed = attempt["outcome"]["verdict"] == "passed";
        assert!(times == 1 || !has_passed, "{name} passed, and never ran");
    }
    let works = folder
        .ancestors()
        .nth(2)
        .expect("the folder of all runs")
        .join("work");
    let left = fs::read_dir(works).expect("a folder").count();
    assert_eq!(left, 0, "working copies");
}

/// What was reserved was given back, once, and nothing was told twice.
fn assert_events_pair(home: &Home) {
    let log = home.blueproof(&["get", "events", "-o", "jsonl"]).stdout;
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).expect("an event");
        if let Some(attempt) = event["attempt"].as_str() {
            let kind = event["kind"].as_str().expect("a kind");
            *seen.entry((attempt.into(), kind.into())).or_default() += 1;
        }
    }
    let attempts: BTreeSet<_> = seen.keys().map(|(attempt, _)| attempt.clone()).collect();
    for attempt in attempts {
        for kind in ["reserved", "finished", "released"] {
            let times = seen.get(&(attempt.clone(), kind.into()));
            assert_eq!(times, Some(&1), "{kind} of {attempt} in {log}");
        }
    }
}
