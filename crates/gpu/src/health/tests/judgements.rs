//! Who is at fault in an attempt, and what it leaves behind.

use std::collections::BTreeSet;

use blueproof_core::{
    domain::Bytes,
    gpu::{DeviceEvent, DeviceUuid, Figure, GpuSnapshot, Reading, Readings},
    ports::ProbeErrorKind,
};

use super::super::{
    AttemptVerdict::{self, Clean, InfrastructureFault, JobFault, Unclear},
    Blame, CheckPolicy, Facts, FlightRecord, Judgement, Reports, judge, leftovers,
};
use super::stories::*;

/// Judges an attempt on device 0, of a machine with two.
fn judged(before: Option<&GpuSnapshot>, after: &[GpuSnapshot], events: Option<&[DeviceEvent]>) -> Judgement {
    let flight = FlightRecord {
        promised: &promised(1),
        before,
        since: Facts {
            inventory: Ok(&inventory(2)),
            snapshots: after,
            reports: reports(events),
        },
    };
    judge(&CheckPolicy::default(), &flight)
}

fn after(readings: Readings, xids: &[u64]) -> Judgement {
    let events: Vec<_> = xids.iter().map(|number| xid(0, *number)).collect();
    let before = snapshot(0, [healthy(), healthy()]);
    judged(
        Some(&before),
        &[snapshot(9, [readings, healthy()])],
        Some(&events),
    )
}

type Row = (&'static str, Readings, &'static [u64]);

/// One row is one attempt with healthy readings before, these after, and these errors meanwhile.
fn all_are(expected: AttemptVerdict, rows: impl IntoIterator<Item = Row>) {
    for (why, readings, xids) in rows {
        let judgement = after(readings, xids);
        assert_eq!(judgement.verdict, expected, "{why}:\n{judgement}");
    }
}

#[test]
fn what_only_a_broken_device_does_is_the_machines_fault_whatever_the_job_did() {
    let rows: [Row; 10] = [
        ("the device needs a reset", healthy(), &[48]),
        ("its processor hangs", healthy(), &[119]),
        ("memory is broken, though contained", healthy(), &[94]),
        (
            "the program's error may follow from the device's",
            healthy(),
            &[31, 79],
        ),
        (
            "a row cannot be replaced",
            with(Figure::RowRemapFailure, 1.0),
            &[],
        ),
        ("rows broke meanwhile", with(Figure::RowRemapPending, 1.0), &[]),
        (
            "rows were replaced meanwhile",
            with(Figure::UncorrectableRemappedRows, 1.0),
            &[],
        ),
        (
            "memory broke meanwhile",
            with(Figure::UncorrectedErrors, 1.0),
            &[],
        ),
        ("the device is lost", lost(), &[]),
        ("the device is lost, and the program erred", lost(), &[31]),
    ];
    all_are(InfrastructureFault, rows);
}

#[test]
fn what_only_a_program_does_is_the_jobs_fault_where_nothing_broke() {
    let rows: [Row; 5] = [
        ("it used memory that is not its own", healthy(), &[31]),
        (
            "it raised an exception, and was cleared away",
            healthy(),
            &[13, 43, 45],
        ),
        (
            "another number, that nobody knows, excuses nothing",
            healthy(),
            &[999, 31],
        ),
        (
            "a narrow link makes no program err",
            with(Figure::PcieWidth, 8.0),
            &[31],
        ),
        (
            "what is unknown excuses nothing",
            but(Figure::PcieWidth, failed()),
            &[13],
        ),
    ];
    all_are(JobFault, rows);
}

#[test]
fn an_attempt_is_clean_only_if_all_is_well_and_known() {
    let clean: [Row; 2] = [
        ("nothing happened", healthy(), &[]),
        ("a note for the record breaks nothing", healthy(), &[92]),
    ];
    all_are(Clean, clean);
    let unclear: [Row; 4] = [
        ("nobody knows this number", healthy(), &[999]),
        (
            "a narrow link fails no job, and is not well",
            with(Figure::PcieWidth, 8.0),
            &[],
        ),
        (
            "a check that counts could not be done",
            but(Figure::UncorrectedErrors, failed()),
            &[],
        ),
        ("nothing was asked for", Readings::default(), &[]),
    ];
    all_are(Unclear, unclear);
}

#[test]
fn a_judgement_says_where_the_machine_overrules_the_job() {
    let both = after(healthy(), &[31, 79]);
    assert!(both.job_erred_too());
    assert_eq!(
        both.to_string(),
        "\
infrastructure fault
  the job erred as well; on a machine with a fault of its own that proves
  nothing
  machine   GPU-0: XID 79: it fell off the bus
  job       GPU-0: XID 31: a program used memory that is not mapped for it
"
    );
    assert!(!after(healthy(), &[79]).job_erred_too());
    assert!(!after(healthy(), &[31]).job_erred_too());
}

#[test]
fn an_error_that_nobody_knows_is_told_beside_one_that_decides() {
    let words = |xids: &'static [u64]| after(healthy(), xids).to_string();
    assert_eq!(
        words(&[79, 999]),
        concat!(
            "infrastructure fault\n",
            "  machine   GPU-0: XID 79: it fell off the bus\n",
            "  note      GPU-0: XID 999: not in our list\n",
        )
    );
}

#[test]
fn what_is_unknown_stays_in_the_judgement_whatever_the_verdict() {
    for xids in [&[][..], &[31], &[79]] {
        let judgement = after(but(Figure::PcieWidth, failed()), xids);
        let unknown: Vec<_> = judgement
            .unknown
            .iter()
            .map(|finding| line(&finding.answer))
            .collect();
        assert_eq!(unknown, ["unknown: could not read pcie width: TIMEOUT"]);
    }
}

#[test]
fn a_device_that_is_not_the_attempts_blames_nobody() {
    let before = snapshot(0, [healthy(), healthy()]);
    let now = snapshot(9, [healthy(), lost()]);
    let judgement = judged(Some(&before), &[now], Some(&[xid(1, 79), xid(1, 31)]));
    assert_eq!(judgement.verdict, Clean, "{judgement}");
}

#[test]
fn a_device_that_is_gone_afterwards_was_lost() {
    let before = snapshot(0, [healthy()]);
    let judgement = judged(Some(&before), &[snapshot(9, [])], Some(&[]));
    assert_eq!(judgement.verdict, InfrastructureFault);
}

#[test]
fn what_stood_before_the_attempt_did_not_break_in_it() {
    let worn = || with(Figure::UncorrectedErrors, 3.0);
    let before = snapshot(0, [worn()]);
    let judgement = judged(Some(&before), &[snapshot(9, [worn()])], Some(&[]));
    assert_eq!(judgement.verdict, Unclear);
    let blames: Vec<_> = judgement.evidence.iter().map(|evidence| evidence.blame).collect();
    assert_eq!(blames, [Blame::Nobody]);
}

#[test]
fn an_attempt_of_which_something_was_not_watched_is_not_clean() {
    let before = snapshot(0, [healthy()]);
    let now = [snapshot(9, [healthy()])];
    let reloaded = snapshot(0, [with(Figure::UncorrectedErrors, 3.0)]);
    let rows = [
        ("all was watched", judged(Some(&before), &now, Some(&[])), Clean),
        ("nobody read before", judged(None, &now, Some(&[])), Unclear),
        (
            "nobody read after",
            judged(Some(&before), &[], Some(&[])),
            Unclear,
        ),
        ("nobody listened", judged(Some(&before), &now, None), Unclear),
        (
            "the driver was loaded anew",
            judged(Some(&reloaded), &now, Some(&[])),
            Unclear,
        ),
    ];
    for (why, judgement, expected) in rows {
        assert_eq!(judgement.verdict, expected, "{why}:\n{judgement}");
    }
}

#[test]
fn an_attempt_without_devices_or_without_checks_that_count_is_not_clean() {
    let before = snapshot(0, [healthy()]);
    let now = [snapshot(9, [healthy()])];
    let since = Facts {
        inventory: Ok(&inventory(1)),
        snapshots: &now,
        reports: Reports::of_all(&[]),
    };
    let verdict = |policy: &CheckPolicy, promised: &BTreeSet<DeviceUuid>| {
        let before = Some(&before);
        judge(
            policy,
            &FlightRecord {
                promised,
                before,
                since,
            },
        )
        .verdict
    };
    let nothing_counts = CheckPolicy {
        counting: BTreeSet::new(),
        ..CheckPolicy::default()
    };
    assert_eq!(verdict(&CheckPolicy::default(), &promised(1)), Clean);
    assert_eq!(verdict(&CheckPolicy::default(), &promised(0)), Unclear);
    assert_eq!(verdict(&nothing_counts, &promised(1)), Unclear);
    assert_eq!(
        verdict(&CheckPolicy::default(), &[gpu(7)].into()),
        InfrastructureFault
    );
}

#[test]
fn a_driver_that_went_away_under_a_job_is_the_machines_fault() {
    let verdict = |blind| {
        let flight = FlightRecord {
            promised: &promised(1),
            before: None,
            since: Facts {
                inventory: Err(blind),
                snapshots: &[],
                reports: Reports::NONE,
            },
        };
        judge(&CheckPolicy::default(), &flight).verdict
    };
    assert_eq!(verdict(ProbeErrorKind::DriverNotLoaded), InfrastructureFault);
    assert_eq!(verdict(ProbeErrorKind::DriverError), Unclear);
}

#[test]
fn a_part_of_a_device_is_judged_by_the_whole_and_its_own_leftovers() {
    let part = DeviceUuid("MIG-a".to_owned());
    let other = DeviceUuid("MIG-b".to_owned());
    let parted = |seconds, ours: Vec<_>, others: Vec<_>| {
        let mut taken = snapshot(seconds, [healthy()]);
        for (partition, processes) in [(&part, ours), (&other, others)] {
            let mut sample = sample(gpu(0), with(Figure::MemoryUsed, 0.0));
            sample.partition = Some(partition.clone());
            sample.processes = Reading::Value(processes);
            taken.samples.push(sample);
        }
        taken
    };
    let before = parted(0, vec![], vec![]);
    let verdict = |now: GpuSnapshot, events: &[DeviceEvent]| {
        let flight = FlightRecord {
            promised: &[part.clone()].into(),
            before: Some(&before),
            since: Facts {
                inventory: Ok(&inventory(1)),
                snapshots: &[now],
                reports: Reports::of_all(events),
            },
        };
        judge(&CheckPolicy::default(), &flight).verdict
    };
    assert_eq!(verdict(parted(9, vec![], vec![process(8, 100)]), &[]), Clean);
    assert_eq!(verdict(parted(9, vec![process(8, 100)], vec![]), &[]), Unclear);
    assert_eq!(
        verdict(parted(9, vec![], vec![]), &[xid(0, 79)]),
        InfrastructureFault
    );
}

#[test]
fn what_one_tenant_leaves_to_the_next_is_told() {
    let used = |mebibytes: f64| with(Figure::MemoryUsed, mebibytes * 1048576.0);
    let mut before = snapshot(0, [used(500.0)]);
    before.samples[0].processes = Reading::Value(vec![process(7, 300)]);
    let mut now = snapshot(9, [used(900.0)]);
    now.samples[0].processes = Reading::Value(vec![process(7, 300), process(12, 400)]);

    let left = leftovers(&promised(1), Some(&before), Some(&now), Bytes(64 << 20));

    assert!(!left.is_clean());
    assert_eq!(
        left.to_string(),
        concat!(
            "  left      GPU-0: process 12 with 400 MiB\n",
            "  left      GPU-0: 900 MiB in use, and 500 MiB before\n",
        )
    );
}

#[test]
fn memory_that_the_driver_needs_for_itself_is_no_leftover() {
    let before = snapshot(0, [with(Figure::MemoryUsed, 0.0)]);
    let left = |bytes: u64| {
        let now = snapshot(9, [with(Figure::MemoryUsed, bytes as f64)]);
        leftovers(&promised(1), Some(&before), Some(&now), Bytes(64 << 20))
    };
    assert!(left(64 << 20).is_clean());
    assert!(!left((64 << 20) + 1).is_clean());
}

#[test]
fn leftovers_that_cannot_be_seen_are_not_clean() {
    let here = snapshot(0, [healthy()]);
    let mut silent = snapshot(9, [but(Figure::MemoryUsed, failed())]);
    silent.samples[0].processes = Reading::Unsupported;
    let words = |before: Option<&GpuSnapshot>, now: Option<&GpuSnapshot>| {
        let left = leftovers(&promised(1), before, now, Bytes(0));
        assert!(!left.is_clean());
        left.unseen
            .into_iter()
            .map(|unseen| unseen.words)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(Some(&here), Some(&silent)),
        [
            "the driver does not tell who uses it",
            "memory in use: could not read memory used: TIMEOUT"
        ]
    );
    assert_eq!(
        words(None, Some(&here)),
        ["how much memory was in use before is not known"]
    );
    assert_eq!(words(Some(&here), None), ["nothing was read of it afterwards"]);
}

#[test]
fn whoever_is_there_before_the_first_tenant_is_left_over() {
    let mut now = snapshot(0, [healthy()]);
    now.samples[0].processes = Reading::Value(vec![process(7, 300)]);
    let left = leftovers(&promised(1), None, Some(&now), Bytes(0));
    assert_eq!(
        left.processes
            .iter()
            .map(|process| process.pid)
            .collect::<Vec<_>>(),
        [7]
    );
}
