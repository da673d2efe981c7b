//! The experiments on a driver that answers from a scenario: what they measure there is known.

use fake_nvml::{Clock, Device, Figures, Installed, Scenario, Steps, a10};
use serde_json::json;

use super::{agreement::Tally, *};

/// A card that is half busy, and draws 100 W.
fn half_busy() -> Installed {
    let card = a10();
    let card = Device {
        figures: Figures {
            gpu_utilization_percent: Steps::constant(50.0),
            power_milliwatts: Steps::constant(100_000.0),
            ..card.figures
        },
        ..card
    };
    let scenario = Scenario {
        clock: Clock::Real,
        ..Scenario::of([card])
    };
    Installed::new(&scenario).expect("the library was built beside this test")
}

fn arguments(library: &Path, out: &Path) -> Arguments {
    Arguments {
        out: out.to_owned(),
        seconds: 1,
        exporter: "false".into(),
        library: Some(library.to_owned()),
        load: Vec::new(),
    }
}

fn measured(finding: Finding) -> (Table, Vec<String>) {
    match finding {
        Finding::Measured(table, words) => (table, words),
        Finding::NotMade(why) => panic!("{why}"),
    }
}

#[test]
fn without_a_device_nothing_is_tried_and_that_is_no_success() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let missing = folder.path().join("libnvidia-ml.so.1");
    let code = run(&arguments(&missing, &out)).expect("it says so");
    assert_eq!(code, ExitCode::FAILURE);
    assert!(!out.exists());

    let why = blind(&arguments(&missing, &out)).expect("there is no library");
    assert!(
        why.starts_with("error[BP0901]: ") && why.contains("= hint: "),
        "{why}"
    );

    let none = Installed::new(&Scenario::of([])).expect("the library was built beside this test");
    let why = blind(&arguments(&none.path(), &out));
    assert_eq!(why.as_deref(), Some("the driver knows no device"));
}

#[test]
fn every_call_is_timed_and_says_what_it_answered() {
    let (library, folder) = (half_busy(), tempfile::tempdir().expect("a folder"));
    let (table, words) =
        measured(calls::run(&arguments(&library.path(), folder.path())).expect("it answers"));
    let answered = |name: &str| {
        let row = table.rows.iter().find(|row| row[0] == name);
        row.unwrap_or_else(|| panic!("{name}"))[5].clone()
    };
    assert_eq!(answered("nvmlDeviceGetPowerUsage"), "ok");
    assert_eq!(answered("our snapshot"), "ok");
    assert_eq!(words.len(), 4);
}

#[test]
fn the_counter_of_energy_is_compared_with_the_power() {
    let (library, folder) = (half_busy(), tempfile::tempdir().expect("a folder"));
    let (table, words) =
        measured(energy::run(&arguments(&library.path(), folder.path())).expect("it answers"));
    assert!(table.rows.iter().all(|row| row[3] == "100.000"), "{table:?}");
    assert_eq!(words.len(), 1, "{words:?}");

    // 100 W, and a counter that grows each 100 ms by 5 % more than that.
    let reads: Vec<_> = (0..100)
        .map(|at| (f64::from(at) / 100.0, 100.0, f64::from(at / 10) * 10.5))
        .collect();
    let expected = "the counter grew by 84.0 J, the power comes to 80.0 J (1.050); it grows every 100 ms";
    assert_eq!(energy::compared(&reads).as_deref(), Some(expected));
    assert_eq!(energy::compared(&reads[..15]), None, "it grew once");
}

#[test]
fn each_source_of_utilization_is_written_down() {
    let (library, folder) = (half_busy(), tempfile::tempdir().expect("a folder"));
    let found = utilization::run(&arguments(&library.path(), folder.path())).expect("it answers");
    let (table, words) = measured(found);
    assert!(table.rows.iter().all(|row| row[4] == "0.5000"), "{table:?}");
    let has = |source: &str| words.iter().any(|line| line.contains(source));
    assert!(
        has(": utilization: 0.500") && has("driver's samples"),
        "{words:?}"
    );

    let path = folder.path().join("utilization.csv");
    table.write(&path).expect("it is ours");
    let text = fs::read_to_string(path).expect("it was written");
    assert!(
        text.starts_with("load,uuid,second,source,share\nas it was,GPU-"),
        "{text}"
    );
}

#[test]
fn figures_agree_within_what_the_other_program_rounds_to_and_what_moved_meanwhile() {
    let mut tally = Tally::default();
    tally.count([Some(30.0), Some(32.0)], Some(31.0), (1.0, 0.0));
    tally.count([Some(30.0), Some(30.0)], Some(31.0), (1.0, 1.0));
    tally.count([Some(0.5), Some(0.5)], Some(49.0), (0.01, 1.0));
    assert_eq!(
        tally,
        Tally {
            agree: 3,
            ..Tally::default()
        }
    );
    tally.count([Some(30.0), Some(30.0)], Some(33.0), (1.0, 1.0));
    tally.count([None, None], None, (1.0, 0.0));
    tally.count([None, Some(1.0)], Some(1.0), (1.0, 0.0));
    tally.count([Some(1.0), Some(1.0)], None, (1.0, 0.0));
    assert_eq!((tally.differ, tally.both_without), (1, 1));
    assert_eq!((tally.only_theirs, tally.only_ours), (1, 1));
    assert!((tally.most - 2.0).abs() < 1e-3, "{tally:?}");
}

#[test]
fn what_the_other_program_does_not_know_is_no_number() {
    let rows = smi::rows("GPU-1, 31, [N/A], Yes\n\nGPU-2, 5.25, No, [Not Supported]\n");
    let numbers: Vec<Vec<_>> = rows
        .iter()
        .map(|row| row[1..].iter().map(|cell| smi::number(cell)).collect())
        .collect();
    let expected = [[Some(31.0), None, Some(1.0)], [Some(5.25), Some(0.0), None]];
    assert_eq!(numbers, expected);
}

#[test]
fn a_jobs_summary_is_compared_by_what_was_seen() {
    let summary = json!({"devices": [{
        "device": "GPU-1", "allocatedSeconds": 10.0, "busySeconds": 4.0, "energyJoules": 500.0,
        "coverage": {"busy": 0.8, "energy": 1.0, "memory": 1.0},
    }]});
    let log = smi::rows("now, GPU-1, 40, 49.0\nnow, GPU-2, 0, 9.0\nnow, GPU-1, 60, 51.0\n");
    let (table, _) = measured(job::compared(&summary, &log).expect("both are whole"));
    let row = |what: &str, value: &str| ["GPU-1", what, value, value].map(str::to_owned).to_vec();
    assert_eq!(table.rows, [row("busy share", "0.500"), row("watts", "50.000")]);
}
