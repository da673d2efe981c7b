//! The driver of this machine, with real agents and real kernels, keeps what every cluster driver promises.

use blueproof_cluster::local::{AgentCommand, LocalDriver};
use blueproof_core::{
    diagnostic::Code,
    domain::{FailureClass, Verdict},
    ports::{ClusterDriver, Observation},
    testing::{contract, start_action},
};
use blueproof_tests::{checkout, checkout::Checkout};

#[tokio::test]
async fn the_local_driver_keeps_the_contract() {
    let home = tempfile::tempdir().expect("a folder");
    let agent = AgentCommand {
        program: env!("CARGO_BIN_EXE_host").into(),
        arguments: vec!["agent".into()],
    };
    let driver = LocalDriver::new(home.path().join("runs"), checkout::environments(), agent);
    let passing = Checkout::new(&["print('done')"], "");
    let endless = Checkout::new(&["import time\ntime.sleep(600)"], "");
    let first = start_action(1, passing.request("a"));
    let second = start_action(2, endless.request("b"));
    contract::cluster_keeps_its_promises(&driver, &first, &second).await;
}

#[tokio::test]
async fn an_attempt_whose_agents_cannot_write_down_how_it_ended_is_over_all_the_same() {
    let home = tempfile::tempdir().expect("a folder");
    let begun = r#"{"at":"2026-01-01T00:00:00Z","kind":"begun","pid":1,"version":"0"}"#;
    let agent = AgentCommand {
        program: "sh".into(),
        arguments: vec![
            "-c".into(),
            format!("echo '{begun}' >> $0/log.ndjson; echo full >&2; exit 1").into(),
        ],
    };
    let driver = LocalDriver::new(home.path().join("runs"), checkout::environments(), agent);
    let checkout = Checkout::new(&["print('done')"], "");
    let start = start_action(1, checkout.request("a"));
    driver
        .reserve(start.attempt, start.job().driver)
        .await
        .expect("there is room");
    driver.start(&start).await.expect("the agent begins");

    let observed = driver.observe(start.attempt, None).await.expect("it is seen");

    let Observation::Finished(outcome) = observed else {
        panic!("{observed:?}")
    };
    let Verdict::Failed(failure) = outcome.verdict else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Infrastructure, Code::AgentLost)
    );
    assert_eq!(failure.diagnostic.causes, ["full"]);
}
