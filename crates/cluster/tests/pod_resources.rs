//! A kubelet that is asked over its socket, and what comes of it when it does not answer as it should.
#![cfg(feature = "pod-resources")]

use std::time::Duration;

use blueproof_cluster::pod_resources::{Kubelet, KubeletError, KubeletReport, Silence};
use blueproof_diagnostic::Code;
use fake_kubelet::{Allocatable, FakeKubelet, Held, Pod};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn start() -> FakeKubelet {
    FakeKubelet::start().expect("a socket")
}

fn client(kubelet: &FakeKubelet) -> Kubelet {
    Kubelet::at(kubelet.socket(), LONG)
}

fn pod(name: &str, id: &str) -> Pod {
    Pod::with("ci", name, [Held::of("nvidia.com/gpu", [id])])
}

async fn fails(client: &mut Kubelet, reason: Silence, code: Code) -> KubeletError {
    let error = client.ask().await.expect_err("it tells nothing");
    assert_eq!((error.reason, error.diagnostic.code), (reason, code), "{error:?}");
    error
}

#[tokio::test]
async fn it_tells_who_was_given_what_and_what_there_is_to_give() {
    let kubelet = start();
    let mut claiming = pod("b", "GPU-2");
    claiming.containers[0].dynamic = vec![("gpu.nvidia.com".into(), 2)];
    kubelet.lists(vec![
        pod("a", "GPU-1"),
        claiming,
        Pod::with("kube-system", "c", []),
    ]);
    kubelet.has(Allocatable::Devices(vec![Held::of(
        "nvidia.com/gpu",
        ["GPU-1", "GPU-2"],
    )]));
    let told = client(&kubelet).ask().await.expect("it answers");
    assert_eq!(told.pods, 3);
    let given = told.given.iter();
    let given = given.map(|given| {
        let device = &given.device;
        format!(
            "{}/{}/{} {} {}",
            given.namespace, given.pod, given.container, device.resource, device.id
        )
    });
    assert_eq!(
        given.collect::<Vec<_>>(),
        ["ci/a/main nvidia.com/gpu GPU-1", "ci/b/main nvidia.com/gpu GPU-2"]
    );
    assert_eq!(told.allocatable.expect("it knows the call").len(), 2);
    assert_eq!(told.dynamic["gpu.nvidia.com"], 2);
}

#[tokio::test]
async fn one_that_does_not_know_what_there_is_to_give_tells_the_rest() {
    let kubelet = start();
    kubelet.lists(vec![pod("a", "GPU-1")]);
    kubelet.has(Allocatable::Unimplemented);
    let told = client(&kubelet).ask().await.expect("it answers");
    assert_eq!((told.given.len(), told.allocatable), (1, None));
}

#[tokio::test]
async fn one_connection_is_kept() {
    let kubelet = start();
    let mut client = client(&kubelet);
    for _ in 0..5 {
        assert_eq!(client.ask().await, Ok(told_nothing()));
    }
    assert_eq!((kubelet.lists_asked(), kubelet.connections()), (5, 1));
}

fn told_nothing() -> KubeletReport {
    KubeletReport {
        allocatable: Some(Vec::new()),
        ..KubeletReport::default()
    }
}

#[tokio::test]
async fn an_answer_over_4_mib_is_read_and_one_over_16_is_not() {
    let kubelet = start();
    let long = "x".repeat(200);
    let pods = |count| (0..count).map(|n| pod(&format!("{long}-{n}"), "GPU-1")).collect();
    kubelet.lists(pods(30_000));
    let mut client = client(&kubelet);
    let told = client.ask().await.expect("it is read");
    assert_eq!(told.given.len(), 30_000);
    kubelet.lists(pods(80_000));
    fails(&mut client, Silence::TooLarge, Code::KubeletAnswer).await;
    kubelet.lists(pods(1));
    assert_eq!(client.ask().await.expect("it is read").given.len(), 1);
}

#[tokio::test]
async fn one_that_is_slow_is_not_waited_for_and_may_be_asked_again() {
    let kubelet = start();
    kubelet.lists(vec![pod("a", "GPU-1")]);
    kubelet.hangs();
    let mut hasty = Kubelet::at(kubelet.socket(), Duration::from_millis(1));
    fails(&mut hasty, Silence::Slow, Code::KubeletSlow).await;
    kubelet.goes_on();
    let mut patient = client(&kubelet);
    assert_eq!(patient.ask().await.expect("it answers").given.len(), 1);
}

#[tokio::test]
async fn one_that_went_away_is_found_when_it_is_back() {
    let mut kubelet = start();
    kubelet.lists(vec![pod("a", "GPU-1")]);
    let mut client = client(&kubelet);
    assert_eq!(client.ask().await.expect("it answers").pods, 1);
    kubelet.go_away();
    for _ in 0..2 {
        fails(&mut client, Silence::Absent, Code::KubeletSocket).await;
    }
    kubelet.come_back().expect("its socket is free");
    assert_eq!(client.ask().await.expect("it answers").pods, 1);
    // Between two questions nobody sees it go.
    kubelet.go_away();
    kubelet.come_back().expect("its socket is free");
    assert_eq!(client.ask().await.expect("it answers").pods, 1);
}

#[tokio::test]
async fn what_is_no_answer_is_told_and_the_next_one_is_read() {
    let kubelet = start();
    kubelet.talks_nonsense();
    let mut client = client(&kubelet);
    let error = fails(&mut client, Silence::Refused, Code::KubeletAnswer).await;
    assert!(!error.diagnostic.causes.is_empty(), "{error:?}");
    kubelet.talks_sense();
    assert_eq!(client.ask().await, Ok(told_nothing()));
}

#[tokio::test]
async fn a_socket_that_is_none_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("it can be written");
    for path in [folder.path().join("missing"), file] {
        let mut client = Kubelet::at(&path, LONG);
        let error = fails(&mut client, Silence::Absent, Code::KubeletSocket).await;
        let shown = path.display().to_string();
        assert!(error.diagnostic.message.contains(&shown), "{error:?}");
    }
}
