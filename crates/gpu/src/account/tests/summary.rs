//! What people and programs read of a job.

use blueproof_core::{
    figures::RunUsage,
    gpu::{Device, GpuInventory, Partition, Vendor},
};

use super::*;
use crate::health::AttemptVerdict;

fn inventory(model: &str) -> GpuInventory {
    let part = Partition {
        uuid: device("MIG-1"),
        profile: Reading::Value("1g.10gb".into()),
        gpu_instance: Reading::Unsupported,
        compute_instance: Reading::Unsupported,
        memory: Reading::Unsupported,
    };
    GpuInventory {
        devices: vec![Device {
            uuid: device(GPU),
            index: 0,
            vendor: Vendor::Nvidia,
            model: model.into(),
            pci_bus_id: Reading::Unsupported,
            minor: Reading::Unsupported,
            serial: Reading::Unsupported,
            memory: Reading::Unsupported,
            is_partitioned: Reading::Unsupported,
            is_virtual: Reading::Unsupported,
            partitions: vec![part],
            unread_partitions: None,
        }],
        ..GpuInventory::default()
    }
}

/// Returns the summary of a job that had a device for two seconds.
fn job() -> JobSummary {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[]).joules(0.0)]);
    told.hold(0.0, "r-41.2");
    for (seconds, share) in [(1.0, 0.5), (2.0, 1.0)] {
        let used = sample().figure(Figure::MemoryUsed, 12_884_901_888.0);
        let used = used.busy(&[(seconds, share)]);
        told.read(seconds, [used.joules(seconds * 150.0)]);
    }
    told.report(2.0, 31);
    told.release(2.0, "r-41.2");
    let used = RunUsage {
        cpu_seconds: Some(1.0),
        allocated_cpu_seconds: Some(8.0),
        queue_seconds: Some(75.0),
        ..RunUsage::default()
    };
    let usage_record = told.0.usage_record(&named("r-41.2")).expect("it held something");
    let witnessed = Witnessed {
        listened_to: [device(GPU)].into(),
        ..Witnessed::default()
    };
    JobSummary::new(&usage_record, &inventory("NVIDIA A10"), &used, witnessed)
}

#[test]
fn a_job_is_a_small_table() {
    insta::assert_snapshot!(job().to_markdown(), @r"
    ### GPU use of <code>r-41&#46;2</code>

    | device | allocated | busy | peak | peak memory | energy | errors | seen |
    |---|--:|--:|--:|--:|--:|---|--:|
    | 0: <code>NVIDIA A10</code> | 2.0 s | 1.5 s | 100 % | 12.0 GiB | 300 J | XID 31 | 100 % |

    Average GPU 75 % · average CPU 12 % · queued 1 min 15 s · took –

    Peak memory is all that was used on the device, not only by this job's processes.
    ");
}

#[test]
fn a_job_is_json_with_a_version() {
    let json = serde_json::to_string_pretty(&job()).expect("it is plain data");
    insta::assert_snapshot!(json, @r#"
    {
      "schemaVersion": 2,
      "holder": "r-41.2",
      "from": "1970-01-01T00:00:00Z",
      "until": "1970-01-01T00:00:02Z",
      "allocatedGpuSeconds": 2.0,
      "busyGpuSeconds": 1.5,
      "energyJoules": 300.0,
      "figures": {
        "averageCpu": 0.125,
        "averageGpu": 0.75,
        "peakGpu": 1.0,
        "peakGpuMemoryBytes": 12884901888,
        "averageQueueSeconds": 75.0
      },
      "devices": [
        {
          "device": "GPU-1",
          "index": 0,
          "model": "NVIDIA A10",
          "shared": false,
          "allocatedSeconds": 2.0,
          "busySeconds": 1.5,
          "busySource": "means",
          "energyJoules": 300.0,
          "peakUtilization": 1.0,
          "peakMemoryBytes": 12884901888,
          "peakMemoryOf": "device",
          "xids": {
            "31": 1
          },
          "listenedTo": true,
          "reloads": 0,
          "coverage": {
            "busy": 1.0,
            "energy": 1.0,
            "memory": 1.0,
            "ignoredSnapshots": 0,
            "lateEdges": 0
          }
        }
      ]
    }
    "#);
    assert_eq!(
        serde_json::from_str::<JobSummary>(&json).expect("it was written so"),
        job()
    );
}

#[test]
fn of_what_nobody_saw_the_table_says_that_it_is_not_known() {
    let mut told = Told::new();
    told.hold(0.0, "r-41.2");
    told.0.hold(at(0.0), &named("r-41.2"), &[device("MIG-1")]);
    told.0.hold(at(0.0), &named("r-41.3"), &[device("MIG-1")]);
    told.read(3700.0, [lost()]);
    told.release(3700.0, "r-41.2");
    let usage_record = told.0.usage_record(&named("r-41.2")).expect("it held something");
    let job = JobSummary::new(
        &usage_record,
        &inventory("NVIDIA A100"),
        &RunUsage::default(),
        Witnessed::default(),
    );
    insta::assert_snapshot!(job.to_markdown(), @r"
    ### GPU use of <code>r-41&#46;2</code>

    | device | allocated | busy | peak | peak memory | energy | errors | seen |
    |---|--:|--:|--:|--:|--:|---|--:|
    | 0: <code>NVIDIA A100</code> | 1 h 01 min | – | – | – | – | – | 0 % |
    | 0: <code>NVIDIA A100</code> <code>1g&#46;10gb</code>, shared | 30 min 50 s | – | – | – | – | – | 0 % |
    | all | 1 h 32 min | – | – | – | – |  |  |

    Average GPU – · average CPU – · queued – · took –

    Not all of the time it was seen how busy a device was, nor how full its memory was, nor what it drew. What was not seen is in no figure: they are of the rest.

    Not all drivers could be listened to all the time: there may have been errors that were not told.

    Shared devices: seconds and joules are this job's share. What a device draws at rest is charged to nobody.
    ");
}

#[test]
fn a_job_without_devices_has_no_table() {
    let mut job = job();
    job.devices.clear();
    assert_eq!(
        job.to_markdown(),
        "### GPU use of <code>r-41&#46;2</code>\n\nIt had no GPU.\n"
    );
}

#[test]
fn a_job_of_whose_devices_nothing_is_known_had_none_for_all_we_know_and_nothing_says_so() {
    let usage_record = UsageRecord {
        holder: named("r-41.2"),
        from: at(0.0),
        until: Some(at(2.0)),
        devices: Vec::new(),
    };
    let witnessed = Witnessed {
        devices_unknown: Some("could not use the NVIDIA driver".into()),
        ..Witnessed::default()
    };
    let job = JobSummary::new(
        &usage_record,
        &GpuInventory::default(),
        &RunUsage::default(),
        witnessed,
    );
    assert_eq!(job.allocated_gpu_seconds, None);
    assert_eq!(
        job.to_markdown(),
        "### GPU use of <code>r-41&#46;2</code>\n\nIt is not known which GPUs it had: \
         <code>could not use the NVIDIA driver</code>.\n"
    );
}

#[test]
fn errors_are_none_only_where_the_driver_was_listened_to_and_the_device_answered() {
    let cell = |listened_to, silence| {
        let mut job = job();
        let device = &mut job.devices[0];
        (device.listened_to, device.silence) = (listened_to, silence);
        device.xids.clear();
        let text = job.to_markdown();
        let row = text.lines().find(|line| line.starts_with("| 0:")).expect("a row");
        let cell = row.split(" | ").nth(6).expect("a cell");
        cell.to_owned()
    };
    assert_eq!(cell(true, None), "none");
    assert_eq!(cell(false, None), "–");
    assert_eq!(cell(true, Some(Silence::Lost)), "it was lost");
    assert_eq!(cell(false, Some(Silence::Hung)), "it did not answer");
}

#[test]
fn what_was_not_seen_is_named_and_nothing_else() {
    let mut job = job();
    job.devices[0].coverage.memory = Some(0.5);
    let text = job.to_markdown();
    assert!(text.contains(" | 100 % |\n"), "{text}");
    assert!(
        text.contains("it was seen how full its memory was. What"),
        "{text}"
    );
    job.devices[0].coverage.memory = Some(1.0);
    assert!(!job.to_markdown().contains("Not all of the time"));
}

#[test]
fn names_from_outside_are_only_text() {
    for (hostile, shown) in [
        ("a|b\n\n# c", "a&#124;b\u{fffd}\u{fffd}&#35; c"),
        ("</code><img src=x>", "&#60;&#47;code&#62;&#60;img src&#61;x&#62;"),
        (
            "`@kubeflow/admins` #1 :+1:",
            "&#96;&#64;kubeflow&#47;admins&#96; &#35;1 &#58;&#43;1&#58;",
        ),
        (
            "[x](http://a.b) www.a.b",
            "&#91;x&#93;&#40;http&#58;&#47;&#47;a&#46;b&#41; www&#46;a&#46;b",
        ),
        (
            "&lt; **b** _i_ \\",
            "&#38;lt&#59; &#42;&#42;b&#42;&#42; &#95;i&#95; &#92;",
        ),
        ("\u{202e}\u{200b}\u{e0041}A10", "\u{fffd}\u{fffd}\u{fffd}A10"),
    ] {
        let mut job = job();
        job.devices[0].model = Some(hostile.into());
        job.holder = named(hostile);
        let text = job.to_markdown();
        assert!(
            text.starts_with(&format!("### GPU use of <code>{shown}</code>\n")),
            "{text}"
        );
        assert!(
            text.contains(&format!("\n| 0: <code>{shown}</code> | 2.0 s | ")),
            "{text}"
        );
    }
}

#[test]
fn a_name_without_end_is_cut() {
    let mut job = job();
    job.devices[0].model = Some("x".repeat(100_000));
    assert!(
        job.to_markdown()
            .contains(&format!("<code>{}…</code>", "x".repeat(80)))
    );
}

#[test]
fn a_job_whose_watch_ended_early_lasts_until_its_end_and_nothing_is_known_of_the_rest() {
    let mut summary = job();
    summary.until = None;
    summary.seen_until = Some(at(2.0));
    summary.verdict = Some(AttemptVerdict::Clean);
    summary.devices[0].xids.clear();
    summary.cut_short(Some(at(8.0)));
    assert_eq!(summary.until, Some(at(8.0)));
    assert_eq!(summary.verdict, Some(AttemptVerdict::Unclear));
    let told = summary.to_markdown();
    for part in [
        "| 8.0 s | 1.5 s | 100 % | 12.0 GiB | 300 J | – | 25 % |",
        "took 8.0 s",
        "**The watch ended early.** Whoever watched was killed: what came after 1970-01-01T00:00:02Z nobody saw.",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
}
