//! What Prometheus' own checker says of the page, from Debian's package `prometheus`.

use std::{
    io::{self, Write as _},
    process::{Command, Stdio},
};

use fake_kubelet::{Allocatable, FakeKubelet, Held, Pod};
use fake_nvml::{Installed, Scenario, a10, h100_with_mig, h200};

#[test]
fn promtool_finds_nothing_to_complain_of() {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = match promtool {
        Ok(promtool) => promtool,
        Err(error) => {
            // Not by a macro, whose words the test harness keeps to itself where a test passes.
            let _ = writeln!(
                io::stderr(),
                "NOT TESTED: the exporter's page with promtool, because of: {error}; Debian's package `prometheus` has it"
            );
            return;
        }
    };
    let library = Installed::new(&Scenario::of([a10(), h200(), h100_with_mig(7)]));
    let library = library.expect("the library was built beside this test");
    let kubelet = kubelet();
    let mut exporter = Command::new(env!("CARGO_BIN_EXE_blueproof-exporter"));
    let page = exporter
        .arg("--once")
        .arg("--pod-resources")
        .arg(kubelet.socket())
        .arg("--library")
        .arg(library.path())
        .output();
    let page = page.expect("it can be started").stdout;
    let mut stdin = promtool.stdin.take().expect("it is piped");
    stdin.write_all(&page).expect("it reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("it ends");
    for expected in [
        "blueproof_gpu_owner{",
        "blueproof_gpu_owner_disputed{",
        "blueproof_pod_resources_devices{resource=\"odd\\n\\\"resource\\\"\"",
        "blueproof_pod_resources_dynamic_devices{",
        "blueproof_gpus{kind=\"advertised\"} 2",
        "blueproof_gpu_health{",
    ] {
        assert!(String::from_utf8_lossy(&page).contains(expected), "{expected}");
    }
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

/// Returns one that gives whole devices, shares and parts, to odd names, and one of them twice.
fn kubelet() -> FakeKubelet {
    let kubelet = FakeKubelet::start().expect("a socket");
    let gpus = |ids: &[&str]| Held::of("nvidia.com/gpu", ids.iter().copied());
    let mut claiming = Pod::with("ci", "a", [gpus(&["nvidia0", "nvidia9"])]);
    claiming.containers[0].dynamic = vec![("gpu.nvidia.com".into(), 1)];
    kubelet.lists(vec![
        claiming,
        Pod::with("ci", "b", [gpus(&["nvidia0", "nvidia1::0"])]),
        Pod::with("ci", "odd \"name\"\n\\", [gpus(&["nvidia1::1", "nvidia2/gi7"])]),
        Pod::with("ci", "c", [Held::of("odd\n\"resource\"", ["x"])]),
    ]);
    kubelet.has(Allocatable::Devices(vec![gpus(&["nvidia0", "nvidia1::0"])]));
    kubelet
}
