//! The cluster in memory keeps what drivers promise on a runtime of several threads, too.

use blueproof_core::{
    domain::{Cpus, Resources, Verdict, default_objects},
    testing::{self, FakeCluster, contract},
};

fn one_core() -> Resources {
    Resources {
        cpu: Cpus::cores(1),
        memory: "1Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_decides_about_quota_keeps_the_contract_on_several_threads() {
    let cluster = FakeCluster::admitting(one_core(), default_objects(one_core()));
    let starts = [1, 2, 3]
        .map(|number| testing::start_action(number, testing::request(&format!("run-{number}"), "nano-lm")));
    contract::admission_keeps_its_promises(&cluster, &cluster, starts.each_ref()).await;
    assert_eq!(cluster.left(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_in_memory_keeps_the_contract_on_several_threads() {
    let [passing, endless, unstarted] = [1, 2, 3]
        .map(|number| testing::start_action(number, testing::request(&format!("run-{number}"), "nano-lm")));
    let cluster = FakeCluster::waiting(one_core());
    let ends = async {
        let begun = |running: &[_]| running.contains(&passing.attempt);
        cluster.until_running(begun).await;
        cluster.finish(passing.attempt, testing::outcome(Verdict::Passed));
    };
    tokio::join!(
        ends,
        contract::cluster_keeps_its_promises(&cluster, &passing, &endless, &unstarted)
    );
}
