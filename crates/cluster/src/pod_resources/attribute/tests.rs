//! Who is told to have what, when a kubelet says all kinds of things.

use blueproof_core::{
    gpu::{Partition, Reading},
    testing::device,
};

use super::*;

/// Two devices, and one in two parts.
fn inventory() -> GpuInventory {
    let mut devices: Vec<_> = (0..3).map(device).collect();
    for device in &mut devices {
        device.minor = Reading::Value(device.index);
    }
    devices[2].partitions = (1..=2).map(part).collect();
    GpuInventory {
        devices,
        ..GpuInventory::default()
    }
}

fn part(number: u32) -> Partition {
    Partition {
        uuid: DeviceUuid(format!("MIG-{number}")),
        profile: Reading::Value("1g.10gb".into()),
        gpu_instance: Reading::Value(6 + number),
        compute_instance: Reading::Value(0),
        memory: Reading::Unsupported,
    }
}

fn given(pod: &str, container: &str, resource: &str, id: &str) -> DeviceAllocation {
    DeviceAllocation {
        namespace: "ci".into(),
        pod: pod.into(),
        pod_uid: None,
        container: container.into(),
        device: advertised(resource, id),
    }
}

fn advertised(resource: &str, id: &str) -> Advertised {
    Advertised {
        resource: resource.into(),
        id: id.into(),
    }
}

fn gpu(pod: &str, id: &str) -> DeviceAllocation {
    given(pod, "main", "nvidia.com/gpu", id)
}

fn of(given: impl IntoIterator<Item = DeviceAllocation>) -> Attribution {
    let told = KubeletReport {
        given: given.into_iter().collect(),
        ..KubeletReport::default()
    };
    attribute(&told, &inventory(), &Resources::default())
}

/// Returns who has what: `device pod/container`, with `*n` behind one that has n shares, with a `~` where it is shared, and `?n` where n pods claim it.
fn holders(attribution: &Attribution) -> Vec<String> {
    let lines = attribution.devices.iter().map(|(uuid, holders)| {
        let pods = holders.pods.iter().map(|pod| {
            let times = match pod.shares {
                1 => String::new(),
                shares => format!("*{shares}"),
            };
            format!(" {}/{}{times}", pod.pod, pod.container)
        });
        let mut line = format!("{uuid}{}", pods.collect::<String>());
        if holders.sharing == Sharing::Shared {
            line.push_str(" ~");
        }
        if holders.disputing > 0 {
            line.push_str(&format!(" ?{}", holders.disputing));
        }
        line
    });
    lines.collect()
}

fn counts(attribution: &Attribution) -> Vec<String> {
    let ids = attribution.ids.iter();
    ids.map(|((resource, state), count)| format!("{resource} {} {count}", state.as_str()))
        .collect()
}

#[test]
fn a_device_is_found_by_whatever_it_is_called() {
    let mig = "nvidia.com/mig-1g.10gb";
    for (resource, id, expected) in [
        ("nvidia.com/gpu", "GPU-00000001", "GPU-00000001 a/main"),
        ("nvidia.com/gpu", "nvidia1", "GPU-00000001 a/main"),
        ("nvidia.com/gpu", "GPU-00000001::3", "GPU-00000001 a/main ~"),
        (
            "nvidia.com/gpu.shared",
            "GPU-00000001::3",
            "GPU-00000001 a/main ~",
        ),
        ("nvidia.com/gpu", "nvidia1/vgpu0", "GPU-00000001 a/main ~"),
        (mig, "MIG-2", "MIG-2 a/main"),
        (mig, "MIG-GPU-00000002/8/0", "MIG-2 a/main"),
        (mig, "MIG-2::0", "MIG-2 a/main ~"),
        ("nvidia.com/gpu", "nvidia2/gi7", "MIG-1 a/main"),
        ("nvidia.com/gpu", "nvidia2/gi7/vgpu1", "MIG-1 a/main ~"),
    ] {
        let attribution = of([given("a", "main", resource, id)]);
        assert_eq!(holders(&attribution), [expected], "{id}");
        assert_eq!(counts(&attribution), [format!("{resource} matched 1")], "{id}");
    }
}

#[test]
fn what_is_not_there_or_not_ours_has_no_owner_and_is_counted() {
    let attribution = of([
        gpu("a", "GPU-ffffffff"),
        gpu("a", "nvidia7"),
        gpu("a", "nvidia2/gi9"),
        gpu("a", "whatever"),
        given("a", "main", "intel.com/gpu", "GPU-00000000"),
    ]);
    assert_eq!(holders(&attribution), [""; 0]);
    assert_eq!(
        counts(&attribution),
        ["intel.com/gpu ignored 1", "nvidia.com/gpu unmatched 4"]
    );
}

#[test]
fn other_resources_count_where_they_are_named() {
    let told = KubeletReport {
        given: ["example.com/a100", "example.com/a100-half", "example.org/gpu"]
            .into_iter()
            .zip(["GPU-00000000", "GPU-00000001", "MIG-1"])
            .map(|(resource, id)| given("a", "main", resource, id))
            .collect(),
        ..KubeletReport::default()
    };
    let resources = Resources::with(["example.com/*".into(), "example.org/gp".into()]);
    let attribution = attribute(&told, &inventory(), &resources);
    assert_eq!(
        holders(&attribution),
        ["GPU-00000000 a/main", "GPU-00000001 a/main"]
    );
}

#[test]
fn of_several_pods_that_claim_a_device_none_is_charged() {
    let attribution = of([
        gpu("ended", "GPU-00000000"),
        gpu("running", "GPU-00000000"),
        gpu("other", "GPU-00000001"),
    ]);
    assert_eq!(
        holders(&attribution),
        ["GPU-00000000 ?2", "GPU-00000001 other/main"]
    );
    assert_eq!(
        counts(&attribution),
        ["nvidia.com/gpu matched 1", "nvidia.com/gpu disputed 2"]
    );
}

#[test]
fn shares_have_an_owner_each_and_only_the_same_share_is_disputed() {
    let attribution = of([
        gpu("a", "GPU-00000000::0"),
        gpu("a", "GPU-00000000::1"),
        gpu("b", "GPU-00000000::2"),
        gpu("c", "GPU-00000000::3"),
        gpu("d", "GPU-00000000::3"),
    ]);
    assert_eq!(holders(&attribution), ["GPU-00000000 a/main*2 b/main ~ ?2"]);
    let whole_and_share = of([gpu("a", "GPU-00000000"), gpu("b", "GPU-00000000::0")]);
    assert_eq!(holders(&whole_and_share), ["GPU-00000000 ?2"]);
}

#[test]
fn containers_of_one_pod_do_not_dispute_and_no_container_is_guessed() {
    let attribution = of([
        given("a", "init", "nvidia.com/gpu", "GPU-00000000"),
        given("a", "main", "nvidia.com/gpu", "GPU-00000000"),
        given("a", "main", "nvidia.com/gpu", "GPU-00000000"),
    ]);
    assert_eq!(holders(&attribution), ["GPU-00000000 a/"]);
    assert_eq!(
        counts(&attribution),
        ["nvidia.com/gpu matched 2"],
        "what is said twice counts once"
    );
}

#[test]
fn a_kubelet_with_resources_without_end_makes_no_page_without_end() {
    let many = (0..1000).map(|number| given("a", "main", &format!("x/{number}"), "id"));
    let attribution = of(many);
    assert_eq!(attribution.ids.len(), OTHERS_BY_NAME + 1);
    assert_eq!(attribution.ids.values().sum::<u64>(), 1000);
}

#[test]
fn a_device_that_everybody_shares_is_a_mistake() {
    let share = |number| gpu(&format!("p{number}"), &format!("GPU-00000000::{number}"));
    let attribution = of((0..256).map(share));
    assert_eq!(
        attribution
            .devices
            .values()
            .map(|of| of.pods.len())
            .sum::<usize>(),
        256
    );
    let attribution = of((0..257).map(share));
    assert_eq!(holders(&attribution), ["GPU-00000000 ~ ?257"]);
}

#[test]
fn what_is_given_several_times_is_more_than_there_is() {
    let whole = ["GPU-00000000", "GPU-00000001"];
    let shares = ["GPU-00000000::0", "GPU-00000000::1", "GPU-00000001::0"];
    let parts = ["MIG-1", "MIG-2"];
    let shared_parts = ["MIG-1::0", "MIG-1::1", "MIG-2::0", "GPU-00000000"];
    let unknown = ["GPU-00000000", "GPU-ffffffff"];
    for (why, ids, expected) in [
        ("each once", &whole[..], 2),
        ("a share is one", &shares, 3),
        ("parts of one device are one", &parts, 1),
        ("a part in shares counts as often", &shared_parts, 3),
        ("what is not there is promised all the same", &unknown, 2),
    ] {
        let told = KubeletReport {
            allocatable: Some(
                ids.iter()
                    .map(|id| advertised("nvidia.com/gpu", id))
                    .chain([advertised("nvidia.com/gpu", ids[0]), advertised("cpu", "0")])
                    .collect(),
            ),
            ..KubeletReport::default()
        };
        let attribution = attribute(&told, &inventory(), &Resources::default());
        assert_eq!(attribution.advertised, Some(expected), "{why}");
    }
    assert_eq!(of([]).advertised, None, "who does not tell has not none");
}
