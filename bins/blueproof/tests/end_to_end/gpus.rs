//! A machine with GPUs: who gets which, and what is told of their use. The driver's library answers from a scenario.

use std::{
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use fake_nvml::{Clock, Device, Figures, Installed, Scenario, Steps, Xid, a10};
use serde_json::Value;

use crate::common::{Answer, Checkout, Home};

const ASKS_FOR_ONE: &str = "  driver: {gpu: 1}\n";
const SEEN: &str = "import os; print('sees', os.environ['CUDA_VISIBLE_DEVICES'])";

/// A card that is half busy, and draws 100 W.
fn busy() -> Device {
    let idle = a10();
    Device {
        figures: Figures {
            gpu_utilization_percent: Steps::constant(50.0),
            power_milliwatts: Steps::constant(100_000.0),
            memory_used_bytes: Steps::constant(f64::from(3_u32 << 30)),
            ..idle.figures
        },
        processes: Vec::new(),
        ..idle
    }
}

/// A driver with such cards, whose time is ours.
fn driver(cards: usize) -> Installed {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let scenario = Scenario {
        clock: Clock::Real,
        starts_at_unix_seconds: now.as_secs(),
        ..Scenario::of(vec![busy(); cards])
    };
    Installed::new(&scenario).expect("the library was built beside this test")
}

fn on(driver: &Installed, home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env("LD_LIBRARY_PATH", driver.folder());
    command.env_remove("CUDA_VISIBLE_DEVICES");
    command
}

fn run(mut command: Command) -> Answer {
    command.output().expect("it starts").into()
}

fn used(home: &Home) -> Value {
    home.last()["attempts"][0]["outcome"]["usage"]["gpu"].clone()
}

#[test]
fn a_run_is_told_what_it_made_of_its_gpu_and_each_cell_too() {
    let (driver, home) = (driver(2), Home::new());
    let works = "import time; time.sleep(2)";
    let checkout = Checkout::new(&[SEEN, works], ASKS_FOR_ONE);
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(
        answer.stderr.contains(" · 2 gpu (NVIDIA A10)"),
        "{}",
        answer.stderr
    );
    assert!(answer.stdout.contains(" · gpu 50 % busy"), "{}", answer.stdout);

    let used = used(&home);
    let figure = |name: &str| used[name].as_f64().unwrap_or_else(|| panic!("{name}: {used}"));
    assert_eq!(used["devices"], 1);
    let (allocated, seen, busy) = (
        figure("allocatedSeconds"),
        figure("seenSeconds"),
        figure("busySeconds"),
    );
    assert!(allocated >= 2.0, "{used}");
    assert!(seen > 1.0 && seen <= allocated + 0.001, "{used}");
    assert!((busy / seen - 0.5).abs() < 0.01, "{used}");
    assert!((figure("joules") / allocated - 100.0).abs() < 20.0, "{used}");
    assert_eq!(used["peakMemory"], "3Gi");

    let report = home.run_folder("r-1").join("report.json");
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("JSON");
    let of_run = |name: &str| {
        report["figures"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {report}"))
    };
    assert!((of_run("averageGpu") - busy / seen).abs() < 1e-9, "{used}");
    assert!((of_run("peakGpu") - 0.5).abs() < 1e-9, "{used}");
    assert!((0.0..=1.0).contains(&of_run("averageCpu")), "{report}");
    assert!(of_run("averageBuildSeconds") >= 2.0 && of_run("averageQueueSeconds") >= 0.0);
    let of_cells = report["cells"].as_array().expect("cells");
    let allocated: Vec<f64> = of_cells
        .iter()
        .filter_map(|cell| cell["gpu"]["allocatedSeconds"].as_f64())
        .collect();
    assert_eq!(allocated.len(), 2, "{report}");
    assert!(allocated[1] >= 2.0, "{allocated:?}");
}

#[test]
fn a_run_that_asks_for_none_sees_none() {
    let (driver, home) = (driver(1), Home::new());
    let checkout = Checkout::new(&[SEEN], "");
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(!answer.stdout.contains("gpu"), "{}", answer.stdout);
    assert_eq!(used(&home), Value::Null);
    let logs = home.blueproof(&["logs", "last"]);
    assert!(logs.stdout.contains("sees \n"), "{}", logs.stdout);
}

#[test]
fn two_at_a_time_never_share_a_gpu_and_a_third_one_waits() {
    let (driver, home) = (driver(2), Home::new());
    let checkout = Checkout::new(&[SEEN, "import time; time.sleep(0.5)"], ASKS_FOR_ONE);
    for _ in 0..3 {
        let asked = run(on(&driver, &home, &["run", checkout.typed(), "--detach"]));
        assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    }
    let seen = |run: &str| {
        let waited = home.blueproof(&["wait", run]);
        assert_eq!(waited.code, Some(0), "{}", waited.stderr);
        home.blueproof(&["logs", run]).stdout
    };
    let seen: Vec<_> = ["r-1", "r-2", "r-3"].map(seen).into();
    assert_ne!(seen[0], seen[1], "those two ran at the same time");
    assert!(seen.iter().all(|seen| seen.contains("sees GPU-")), "{seen:?}");
}

#[test]
fn more_gpus_than_there_are_are_refused_before_anything_runs() {
    let (driver, home) = (driver(1), Home::new());
    let checkout = Checkout::new(&[SEEN], "  driver: {gpu: 2}\n");
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_ne!(answer.code, Some(0));
    assert!(answer.stderr.contains("gpu"), "{}", answer.stderr);
    assert_eq!(used(&home), Value::Null);
}

#[test]
fn a_device_that_breaks_under_a_run_takes_the_blame() {
    let home = Home::new();
    let mut broken = busy();
    // It falls off the bus while the notebook runs, which then fails with something else.
    broken.xids = vec![Xid {
        at: 2.0,
        code: 79,
        mig: None,
    }];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let scenario = Scenario {
        clock: Clock::Real,
        starts_at_unix_seconds: now.as_secs(),
        ..Scenario::of([broken])
    };
    let driver = Installed::new(&scenario).expect("the library was built beside this test");
    let fails = "import time; time.sleep(4); raise RuntimeError('CUDA error: unspecified launch failure')";
    let checkout = Checkout::new(&[fails], ASKS_FOR_ONE);
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.stdout.contains("BP0646"), "{}", answer.stdout);
    assert!(answer.stdout.contains("XID 79"), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("the notebook: RuntimeError"),
        "{}",
        answer.stdout
    );
}
