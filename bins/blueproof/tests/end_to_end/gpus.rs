//! A machine with GPUs: who gets which, and what is told of their use. The driver's library answers from a scenario.

use std::{
    fs,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use fake_nvml::{Clock, Delay, Device, Fault, Figures, Installed, NvmlReturn, Scenario, Steps, Xid, a10};
use serde_json::Value;

use crate::common::{Answer, Checkout, Held, Home, eventually};

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

/// Returns a driver, and a home whose machine has it.
fn at(driver: Installed) -> (Installed, Home) {
    let home = Home::with(vec![("LD_LIBRARY_PATH", driver.folder().into())]);
    (driver, home)
}

fn on(driver: &Installed, home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env("LD_LIBRARY_PATH", driver.folder());
    command
}

fn run(mut command: Command) -> Answer {
    command.output().expect("it starts").into()
}

/// Returns how a card is called.
fn uuid(card: usize) -> String {
    Scenario::of(vec![busy(); card + 1]).devices[card].uuid.clone()
}

fn used(home: &Home) -> Value {
    home.last()["attempts"][0]["outcome"]["usage"]["gpu"].clone()
}

#[test]
fn a_run_is_told_what_it_made_of_its_gpu_and_each_cell_too() {
    let (driver, home) = at(driver(2));
    let works = "import time; time.sleep(2)";
    let checkout = Checkout::new(&[SEEN, works], ASKS_FOR_ONE);
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    assert!(
        // What machine a scheduler has, its own log tells.
        !home.is_local() || answer.stderr.contains(" · 2 gpu (NVIDIA A10)"),
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
    let (driver, home) = at(driver(1));
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
    let (driver, home) = at(driver(2));
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

/// Two GPUs, whatever the machine has.
const QUOTA_OF_TWO: &str = "\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: any
      resources:
      - {name: cpu, nominalQuota: 4}
      - {name: memory, nominalQuota: 64Gi}
      - {name: nvidia.com/gpu, nominalQuota: 2}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
";

#[test]
fn whoever_was_promised_a_gpu_that_another_has_waits_until_that_one_ends() {
    let (driver, home) = at(driver(1));
    fs::write(home.path().join("quota.yaml"), QUOTA_OF_TWO).expect("a file");
    let applied = run(on(&driver, &home, &["quota", "apply", "-f", "quota.yaml"]));
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let first = Held::asking(&home, "first", ASKS_FOR_ONE);
    let second = Checkout::new(&[SEEN], ASKS_FOR_ONE);
    let ask = |typed| run(on(&driver, &home, &["run", typed, "--queue", "team", "--detach"]));
    assert_eq!(ask(first.typed()).code, Some(0));
    home.until_printed("r-1", "first waits");
    assert_eq!(ask(second.typed()).code, Some(0));
    let waits = "making a place for r-2.1 waits for others, and is tried again when one ends";
    eventually("r-2 waits for r-1", || {
        home.blueproof(&["why", "r-2"])
            .stdout
            .contains(waits)
            .then_some(())
    });
    let told = home.blueproof(&["describe", "run", "r-2"]).stdout;
    assert!(
        told.contains(&format!("caused by: r-1.1 has {}", uuid(0))),
        "{told}"
    );
    first.let_go();
    assert_eq!(home.blueproof(&["wait", "r-2"]).code, Some(0));
    assert_eq!(home.last()["attempts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn more_gpus_than_there_are_are_refused_before_anything_runs() {
    let (driver, home) = at(driver(1));
    let checkout = Checkout::new(&[SEEN], "  driver: {gpu: 2}\n");
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_ne!(answer.code, Some(0));
    let said = answer.stderr.contains("gpu");
    assert!(said || !home.is_local(), "what there is: {}", answer.stderr);
    assert_eq!(used(&home), Value::Null);
}

#[test]
fn a_driver_that_has_to_be_loaded_first_is_waited_for_and_that_is_said() {
    let mut scenario = Scenario::of([a10()]);
    scenario.delays = vec![Delay::always("nvmlInit_v2", None, 1500)];
    let driver = Installed::new(&scenario).expect("the library was built beside this test");
    let home = Home::local("whoever waits for the driver says so, and a scheduler has done that before");
    let checkout = Checkout::new(&[SEEN], "");
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let (before, after) = answer.stderr.split_once('\n').expect("lines");
    assert!(before.contains("waiting for the GPU driver"), "{}", answer.stderr);
    assert!(after.contains(" · 1 gpu (NVIDIA A10)"), "{}", answer.stderr);
}

/// A driver of whose cards the first one falls off the bus after two seconds.
fn driver_with_one_that_breaks(cards: usize) -> Installed {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let mut scenario = Scenario {
        clock: Clock::Real,
        starts_at_unix_seconds: now.as_secs(),
        ..Scenario::of(vec![busy(); cards])
    };
    scenario.devices[0].xids = vec![Xid {
        at: 2.0,
        code: 79,
        mig: None,
    }];
    Installed::new(&scenario).expect("the library was built beside this test")
}

/// Fails with something else where it is on the first card, once that has broken.
const FAILS_ON_THE_FIRST: &str = "import os, time
if os.environ['CUDA_VISIBLE_DEVICES'].endswith('0'):
    time.sleep(4)
    raise RuntimeError('CUDA error: unspecified launch failure')";

#[test]
fn a_device_that_breaks_under_a_run_takes_the_blame() {
    let (driver, home) = at(driver_with_one_that_breaks(1));
    let checkout = Checkout::new(&[FAILS_ON_THE_FIRST], ASKS_FOR_ONE);
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.stdout.contains("XID 79"), "{}", answer.stdout);
    let attempts = home.last()["attempts"].clone();
    let broken = attempts[0]["outcome"].to_string();
    assert!(
        broken.contains("BP0646") && broken.contains("the notebook: RuntimeError"),
        "{broken}"
    );
    let retried = attempts[1]["outcome"].to_string();
    assert!(
        retried.contains("BP0649") && retried.contains("it failed under r-1.1 at "),
        "{retried}"
    );
    // What the machine has is in the log as it was before, and with what is broken by now.
    let events = home.blueproof(&["get", "events", "-o", "jsonl"]).stdout;
    let inventories: Vec<&str> = events
        .lines()
        .filter(|line| line.contains("inventoryChanged"))
        .collect();
    let unhealthy = inventories
        .iter()
        .position(|line| line.contains("\"unhealthy\":\""));
    assert!(unhealthy.is_some_and(|at| at > 0), "{inventories:?}");
}

#[test]
fn whoever_comes_after_is_given_another_device_than_the_one_that_broke() {
    let (driver, home) = at(driver_with_one_that_breaks(2));
    let checkout = Checkout::new(&[FAILS_ON_THE_FIRST, SEEN], ASKS_FOR_ONE);
    let retried = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert_eq!(home.last()["attempts"].as_array().map(Vec::len), Some(2));

    let checkout = Checkout::new(&[SEEN], ASKS_FOR_ONE);
    let next = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(
        !home.is_local() || next.stderr.contains("2 gpu (NVIDIA A10), 1 unhealthy"),
        "{}",
        next.stderr
    );
    assert!(
        !home.is_local() || next.stderr.contains("it failed under r-1.1 at "),
        "{}",
        next.stderr
    );
    let others = format!("sees {}\n", uuid(1));
    for run in ["r-1", "r-2"] {
        let log = home.blueproof(&["logs", run]).stdout;
        assert!(log.ends_with(&others), "{run}: {log}");
    }
}

#[test]
fn a_device_that_is_lost_is_given_to_nobody() {
    let home = Home::local("what is wrong with a device is told by whoever opens the machine");
    let scenario = Scenario {
        faults: vec![Fault::always(
            "nvmlDeviceGetTemperature",
            Some(0),
            NvmlReturn::GpuIsLost,
        )],
        ..Scenario::of([busy(), busy()])
    };
    let driver = Installed::new(&scenario).expect("the library was built beside this test");
    let checkout = Checkout::new(&[SEEN], ASKS_FOR_ONE);
    let answer = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.stderr.contains("BP0649"), "{}", answer.stderr);
    let log = home.blueproof(&["logs", "r-1"]).stdout;
    assert!(log.ends_with(&format!("sees {}\n", uuid(1))), "{log}");

    let checkout = Checkout::new(&[SEEN], "  driver: {gpu: 2}\n");
    let refused = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("is given to no attempt"),
        "{}",
        refused.stderr
    );
}

const EIGHT: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: box}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: local}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: box
      resources:
      - {name: cpu, nominalQuota: 1}
      - {name: memory, nominalQuota: 1Gi}
      - {name: nvidia.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: local, namespace: default}
spec: {clusterQueue: local}
";

#[test]
fn quota_of_gpus_that_are_not_there_is_remarked_and_a_run_that_is_promised_one_does_not_pass() {
    let (driver, home) = at(driver(0));
    let file = home.path().join("queues.yaml");
    std::fs::write(&file, EIGHT).expect("a file");
    let applied = run(on(
        &driver,
        &home,
        &["quota", "apply", "-f", file.to_str().expect("a plain name")],
    ));
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let remark = "warning[BP0822]: these queues have a quota of 8 nvidia.com/gpu, and this machine has 0";
    assert!(applied.stderr.contains(remark), "{applied:?}");

    let checkout = Checkout::new(&["print('it runs')"], "  driver: {gpu: 1}\n");
    let ran = run(on(&driver, &home, &["run", checkout.typed()]));
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("promised GPUs: 1; this machine has: 0"),
        "{ran:?}"
    );
}
