//! Who has which device, told by a kubelet that does all kinds of things.

use std::time::Instant;

use fake_kubelet::{Allocatable, FakeKubelet, Held, Pod};
use fake_nvml::{Installed, Scenario, a10, h100_with_mig};

use super::program::{LONG, Server, install, lines, once, text};

fn kubelet() -> FakeKubelet {
    FakeKubelet::start().expect("a socket")
}

fn serve(kubelet: &FakeKubelet, library: &Installed, wait: &str) -> Server {
    let socket = kubelet.socket();
    let socket = socket.to_str().expect("it is text");
    Server::start(&["--wait", wait, "--pod-resources", socket], library)
}

/// Returns the UUIDs of devices or parts, as the page without a kubelet has them.
fn uuids(library: &Installed, label: &str) -> Vec<String> {
    let page = text(&once(library, &[]).stdout);
    let infos = lines(&page, "blueproof_gpu_info{");
    let values = infos.iter().filter_map(|line| {
        let (_, rest) = line.split_once(&format!("{label}=\""))?;
        rest.split('"').next().map(str::to_owned)
    });
    values.filter(|value| !value.is_empty()).collect()
}

fn gpu(pod: &str, id: &str) -> Pod {
    Pod::with("ci", pod, [Held::of("nvidia.com/gpu", [id])])
}

#[test]
fn both_pages_say_who_has_a_device_and_ours_how_that_is_known() {
    let library = install(&Scenario::of([a10(), h100_with_mig(1)]));
    let (devices, parts) = (uuids(&library, "uuid"), uuids(&library, "partition"));
    let kubelet = kubelet();
    let mig = Held::of("nvidia.com/mig-1g.10gb", [parts[0].as_str()]);
    kubelet.lists(vec![
        gpu("r-1", &devices[0]),
        Pod::with("ci", "r-2", [mig, Held::of("example.com/nic", ["eth1"])]),
        gpu("elsewhere", "GPU-00000000-dead"),
    ]);
    let server = serve(&kubelet, &library, "60000");
    let page = server.get("/metrics", &[]).text();
    let (device, part) = (&devices[0], &parts[0]);
    let divided = devices.last().expect("there are two");
    assert_eq!(
        lines(&page, "blueproof_gpu_owner{"),
        [
            format!(
                "blueproof_gpu_owner{{uuid=\"{device}\",partition=\"\",namespace=\"ci\",pod=\"r-1\",\
                 container=\"main\",sharing=\"exclusive\"}} 1"
            ),
            format!(
                "blueproof_gpu_owner{{uuid=\"{divided}\",partition=\"{part}\",namespace=\"ci\",pod=\"r-2\",\
                 container=\"main\",sharing=\"exclusive\"}} 1"
            ),
        ]
    );
    let told = lines(&page, "blueproof_pod_resources");
    let (ages, told): (Vec<_>, Vec<_>) = told.into_iter().partition(|line| line.contains("_age_seconds "));
    assert_eq!(ages.len(), 1, "{ages:?}");
    assert_eq!(
        told,
        [
            "blueproof_pod_resources_up 1",
            "blueproof_pod_resources_failures_total 0",
            "blueproof_pod_resources_pods 3",
            "blueproof_pod_resources_devices{resource=\"example.com/nic\",state=\"ignored\"} 1",
            "blueproof_pod_resources_devices{resource=\"nvidia.com/gpu\",state=\"matched\"} 1",
            "blueproof_pod_resources_devices{resource=\"nvidia.com/gpu\",state=\"unmatched\"} 1",
            "blueproof_pod_resources_devices{resource=\"nvidia.com/mig-1g.10gb\",state=\"matched\"} 1",
        ]
    );
    let dcgm = server.get("/metrics/dcgm", &[]).text();
    let used = lines(&dcgm, "DCGM_FI_DEV_FB_USED{gpu=\"0\"");
    assert!(
        used[0].contains("container=\"main\",namespace=\"ci\",pod=\"r-1\""),
        "{used:?}"
    );
}

#[test]
fn a_shared_device_has_several_owners_and_a_disputed_one_none() {
    let library = install(&Scenario::of([a10(), a10()]));
    let devices = uuids(&library, "uuid");
    let kubelet = kubelet();
    let (first, second) = (format!("{}::0", devices[0]), format!("{}::1", devices[0]));
    kubelet.lists(vec![
        gpu("a", &first),
        gpu("b", &second),
        gpu("ended", &devices[1]),
        gpu("running", &devices[1]),
    ]);
    kubelet.has(Allocatable::Unimplemented);
    let server = serve(&kubelet, &library, "60000");
    let page = server.get("/metrics", &[]).text();
    let owners = lines(&page, "blueproof_gpu_owner{");
    assert_eq!(owners.len(), 2, "{owners:?}");
    assert!(
        owners.iter().all(|line| line.contains("sharing=\"shared\"")),
        "{owners:?}"
    );
    let disputed = format!(
        "blueproof_gpu_owner_disputed{{uuid=\"{}\",partition=\"\"}} 2",
        devices[1]
    );
    assert_eq!(lines(&page, "blueproof_gpu_owner_disputed"), [disputed]);
    let dcgm = server.get("/metrics/dcgm", &[]).text();
    assert!(!dcgm.contains("pod="), "neither can be charged to one");
}

#[test]
fn pods_have_uids_where_the_checkpoint_of_the_kubelet_says_them() {
    let library = install(&Scenario::of([a10(), a10()]));
    let devices = uuids(&library, "uuid");
    let kubelet = kubelet();
    kubelet.lists(vec![gpu("a", &devices[0]), gpu("b", &devices[1])]);
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoint = folder.path().join("kubelet_internal_checkpoint");
    let (socket, file) = (kubelet.socket(), checkpoint.to_str().expect("it is text"));
    let arguments = [
        "--kubernetes-enable-pod-uid",
        "-k",
        "--wait",
        "60000",
        "--pod-resources",
    ];
    let socket = [socket.to_str().expect("it is text"), "--kubelet-checkpoint", file];
    let mut server = Server::start(&[&arguments[..], &socket].concat(), &library);
    let used = |server: &Server| lines(&server.get("/metrics", &[]).text(), "DCGM_FI_DEV_FB_USED{");
    for line in used(&server) {
        assert!(line.contains(",pod=\"") && !line.contains("pod_uid"), "{line}");
    }

    let entry = format!(
        r#"{{"PodUID":"5b1c","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{{"0":["{}"]}},"AllocResp":""}}"#,
        devices[0]
    );
    let text =
        format!(r#"{{"Data":{{"PodDeviceEntries":[{entry}],"RegisteredDevices":{{}}}},"Checksum":7}}"#);
    std::fs::write(&checkpoint, text).expect("a file");
    let used = used(&server);
    assert!(used[0].contains(",pod=\"a\",pod_uid=\"5b1c\"}"), "{used:?}");
    assert!(
        used[1].contains(",pod=\"b\"}"),
        "the checkpoint knows no such pod: {used:?}"
    );
    let log = server.log_until("pods have their UIDs again");
    assert_eq!(log.matches("BP0922").count(), 1, "{log}");
}

#[test]
fn a_pod_that_asked_for_two_devices_and_got_one_twice_is_told_of() {
    let library = install(&Scenario::of([a10(), a10()]));
    let devices = uuids(&library, "uuid");
    let kubelet = kubelet();
    let shares = [format!("{}::0", devices[0]), format!("{}::1", devices[0])];
    let twice = Held::of("nvidia.com/gpu", shares.each_ref().map(String::as_str));
    kubelet.lists(vec![Pod::with("ci", "twice", [twice]), gpu("once", &devices[1])]);
    let server = serve(&kubelet, &library, "60000");
    let page = server.get("/metrics", &[]).text();
    let expected = format!(
        "blueproof_gpu_owner_shares{{uuid=\"{}\",partition=\"\",namespace=\"ci\",pod=\"twice\"}} 2",
        devices[0]
    );
    assert_eq!(lines(&page, "blueproof_gpu_owner_shares"), [expected]);
    assert_eq!(lines(&page, "blueproof_gpu_owner{").len(), 2, "{page}");
}

#[test]
fn while_the_kubelet_hangs_devices_are_told_without_owners_and_the_log_says_so_once() {
    let library = install(&Scenario::of([a10()]));
    let devices = uuids(&library, "uuid");
    let kubelet = kubelet();
    kubelet.lists(vec![gpu("a", &devices[0])]);
    let mut server = serve(&kubelet, &library, "2000");
    let page = || server.get("/metrics", &[]).text();
    let is_owned = |page: String| page.contains("blueproof_gpu_owner{");
    assert!(std::iter::repeat_with(page).take(30).any(is_owned));

    kubelet.hangs();
    let is_silent = |page: &String| page.contains("blueproof_pod_resources_silent{reason=\"slow\"} 1\n");
    let still = page();
    assert!(
        is_owned(still.clone()) || is_silent(&still),
        "what was told holds a while: {still}"
    );
    let began = Instant::now();
    let mut pages = std::iter::repeat_with(page);
    pages.find(|page| {
        assert!(began.elapsed() < LONG, "{page}");
        is_silent(page)
    });
    for _ in 0..2 {
        let page = page();
        assert_eq!(lines(&page, "blueproof_gpu_owner{"), [""; 0]);
        assert!(page.contains("blueproof_gpu_collection_cached 0\n"), "{page}");
        assert!(page.contains("blueproof_gpu_power_watts{"), "{page}");
        assert!(
            page.contains("blueproof_pod_resources_silent{reason=\"slow\"} 1\n"),
            "{page}"
        );
    }
    kubelet.goes_on();
    assert!(std::iter::repeat_with(page).take(30).any(is_owned));
    let log = server.log_until("the kubelet tells again");
    assert_eq!(log.matches("error[BP0912]").count(), 1, "{log}");
}

#[test]
fn a_kubelet_that_went_away_or_talks_nonsense_is_told_of_and_found_again() {
    let library = install(&Scenario::of([a10()]));
    let devices = uuids(&library, "uuid");
    let mut kubelet = kubelet();
    kubelet.lists(vec![gpu("odd \"name\"\n\\", &devices[0])]);
    let mut server = serve(&kubelet, &library, "60000");
    let page = |server: &Server| server.get("/metrics", &[]).text();
    let is_owned = |page: &str| page.contains("pod=\"odd \\\"name\\\"\\n\\\\\"");
    assert!(is_owned(&page(&server)));

    kubelet.go_away();
    for _ in 0..2 {
        let page = page(&server);
        assert!(
            page.contains("blueproof_pod_resources_silent{reason=\"absent\"} 1\n"),
            "{page}"
        );
        assert!(!page.contains("blueproof_gpu_owner"), "{page}");
    }
    kubelet.come_back().expect("its socket is free");
    assert!(is_owned(&page(&server)));

    kubelet.talks_nonsense();
    let nonsense = page(&server);
    assert!(
        nonsense.contains("blueproof_pod_resources_silent{reason=\"refused\"} 1\n"),
        "{nonsense}"
    );
    assert!(
        nonsense.contains("blueproof_pod_resources_failures_total 3\n"),
        "{nonsense}"
    );
    kubelet.talks_sense();
    assert!(is_owned(&page(&server)));
    let log = server.log_until("the kubelet tells again") + &server.log_until("the kubelet tells again");
    assert_eq!(log.matches("error[BP0911]").count(), 1, "{log}");
    assert_eq!(log.matches("error[BP0913]").count(), 1, "{log}");
}

#[test]
fn where_no_device_can_be_read_nothing_is_said_of_what_the_kubelet_gave() {
    let library = install(&Scenario::of([]));
    let kubelet = kubelet();
    kubelet.lists(vec![gpu("a", "GPU-1")]);
    let socket = kubelet.socket();
    let output = once(
        &library,
        &["--pod-resources", socket.to_str().expect("it is text")],
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let page = text(&output.stdout);
    assert!(page.contains("blueproof_pod_resources_up 1\n"), "{page}");
    assert!(!page.contains("blueproof_gpu_owner"), "{page}");
}
