//! Divided devices on both pages: by their instances, each once.

use super::*;

/// A divided device with two compute instances in one GPU instance, and one in another.
fn divided() -> PageInput {
    let part = |number: u32, gpu: u32, compute: u32, profile: &str| Partition {
        uuid: DeviceUuid(format!("MIG-{number}")),
        profile: Reading::Value(profile.into()),
        gpu_instance: Reading::Value(gpu),
        compute_instance: Reading::Value(compute),
        memory: Reading::Unsupported,
    };
    let whole = Device {
        is_partitioned: Reading::Value(true),
        is_virtual: Reading::Unsupported,
        partitions: vec![
            part(0, 2, 0, "1c.2g.35gb"),
            part(1, 2, 1, "1c.2g.35gb"),
            part(2, 9, 0, "1g.18gb"),
        ],
        ..device(0)
    };
    let mut read = snapshot(100, std::slice::from_ref(&whole));
    read.samples[0].readings.extend(readings([
        (Figure::MemoryUsed, 400.0 * 1_048_576.0),
        (Figure::SmActive, 0.5),
    ]));
    for (place, used) in [(0, 300.0), (1, 300.0), (2, 100.0)] {
        read.samples.push(Sample {
            device: whole.uuid.clone(),
            partition: Some(whole.partitions[place].uuid.clone()),
            readings: readings([
                (Figure::MemoryUsed, used * 1_048_576.0),
                (Figure::SmActive, 0.25),
                (Figure::TensorActive, 0.25),
            ]),
            processes: Reading::Value(Vec::new()),
            busy: Reading::Unsupported,
        });
    }
    let inventory = GpuInventory {
        devices: vec![whole],
        ..GpuInventory::default()
    };
    PageInput {
        listened_to: [device(0).uuid].into(),
        devices: Some((inventory, read)),
        ..PageInput::default()
    }
}

#[test]
fn compute_instances_of_one_gpu_instance_make_no_series_twice() {
    let seen = divided();
    for page in [
        native::render(&seen, Format::Prometheus),
        dcgm::render(&seen, &options()),
    ] {
        let samples = page.lines().filter(|line| !line.starts_with('#'));
        let series: Vec<_> = samples.filter_map(|line| line.rsplit_once(' ')).collect();
        let once: BTreeSet<_> = series.iter().map(|(series, _)| series).collect();
        assert_eq!(once.len(), series.len(), "{page}");
    }
}

#[test]
fn a_divided_device_is_told_by_its_gpu_instances_and_memory_counts_once() {
    let page = dcgm::render(&divided(), &options());
    let of = |name: &str| -> Vec<(String, f64)> {
        let start = format!("{name}{{");
        let lines = page.lines().filter(|line| line.starts_with(&start));
        let samples = lines.filter_map(|line| line.rsplit_once(' '));
        samples
            .map(|(series, value)| (series.to_owned(), value.parse().expect("a number")))
            .collect()
    };
    let used = of("DCGM_FI_DEV_FB_USED");
    assert_eq!(used.iter().map(|(_, value)| value).sum::<f64>(), 400.0);
    assert_eq!(of("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE").len(), 2);
    for name in [
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_XID_ERRORS",
    ] {
        let labels = [
            "GPU_I_PROFILE=\"2g.35gb\",GPU_I_ID=\"2\"",
            "GPU_I_PROFILE=\"1g.18gb\",GPU_I_ID=\"9\"",
        ];
        let told = of(name);
        assert_eq!(told.len(), labels.len(), "{name}: {told:?}");
        for ((series, _), labels) in told.iter().zip(labels) {
            assert!(series.contains(labels), "{labels} in {series}");
        }
    }
    assert_eq!(of("DCGM_FI_DEV_GPU_UTIL"), [], "of an instance nobody knows it");
}

#[test]
fn what_compute_instances_share_counts_once_on_our_own_page_too() {
    let page = native::render(&divided(), Format::Prometheus);
    let instance = format!("MIG-{}/2", device(0).uuid);
    for (name, shared, alone) in [
        ("memory_used_bytes", 300.0 * 1_048_576.0, 100.0 * 1_048_576.0),
        ("sm_active_ratio", 0.25, 0.25),
    ] {
        let start = format!("blueproof_gpu_{name}{{");
        let parts = page
            .lines()
            .filter(|line| line.starts_with(&start) && !line.contains("partition=\"\""));
        let parts: Vec<_> = parts
            .filter_map(|line| line.split("partition=\"").nth(1)?.split_once("\"} "))
            .map(|(part, value)| (part, value.parse::<f64>().expect("a number")))
            .collect();
        assert_eq!(parts, [(instance.as_str(), shared), ("MIG-2", alone)], "{name}");
    }
    let info = page
        .lines()
        .filter(|line| line.starts_with("blueproof_gpu_info{"));
    let of_instance = info.filter(|line| line.contains(&format!("partition=\"{instance}\"")));
    let of_instance: Vec<_> = of_instance.collect();
    assert_eq!(of_instance.len(), 1, "{page}");
    assert!(of_instance[0].contains("profile=\"2g.35gb\""), "{of_instance:?}");
}

#[test]
fn a_gpu_instance_has_an_owner_where_its_compute_instances_have_one_so_that_its_figures_can_be_joined() {
    let owner = |pod: &str, container: &str| Owners {
        pods: vec![Owner {
            namespace: "ci".into(),
            pod: pod.into(),
            container: container.into(),
            ..Owner::default()
        }],
        ..Owners::default()
    };
    let instance = format!("partition=\"MIG-{}/2\"", device(0).uuid);
    let owned = |second: Option<Owners>| {
        let mut seen = divided();
        let first = (DeviceUuid("MIG-0".into()), owner("one", "main"));
        let second = second.map(|second| (DeviceUuid("MIG-1".into()), second));
        seen.owners = [first].into_iter().chain(second).collect();
        let page = native::render(&seen, Format::Prometheus);
        let owners = page
            .lines()
            .filter(|line| line.starts_with("blueproof_gpu_owner{") && line.contains(&instance));
        let labels = owners
            .filter_map(|line| line.split_once("pod=\""))
            .map(|(_, pod)| pod);
        labels.map(str::to_owned).collect::<Vec<_>>()
    };
    let one = |container| format!("one\",container=\"{container}\",sharing=\"exclusive\"}} 1");
    assert_eq!(owned(Some(owner("one", "main"))), [one("main")]);
    assert_eq!(owned(Some(owner("one", "other"))), [one("")]);
    assert_eq!(
        owned(Some(owner("two", "main"))),
        [""; 0],
        "neither has all of it"
    );
    assert_eq!(owned(None), [""; 0], "somebody else may have the rest");
    let disputed = Owners {
        disputing: 2,
        ..Owners::default()
    };
    assert_eq!(owned(Some(disputed)), [""; 0]);
}

#[test]
fn an_instance_is_charged_to_a_pod_that_has_all_of_it() {
    let owner = |pod: &str| Owners {
        pods: vec![Owner {
            namespace: "ci".into(),
            pod: pod.into(),
            ..Owner::default()
        }],
        ..Owners::default()
    };
    let pods = |second: &str| {
        let mut seen = divided();
        for (part, pod) in [("MIG-0", "one"), ("MIG-1", second), ("MIG-2", "other")] {
            seen.owners.insert(DeviceUuid(part.into()), owner(pod));
        }
        let page = dcgm::render(&seen, &options());
        let used = page
            .lines()
            .filter(|line| line.starts_with("DCGM_FI_DEV_FB_USED{"));
        let pods = used.map(|line| {
            line.split("pod=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next())
        });
        pods.map(|pod| pod.map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(pods("one"), [Some("one".to_owned()), Some("other".to_owned())]);
    assert_eq!(pods("two"), [None, Some("other".to_owned())]);
}
