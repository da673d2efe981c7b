//! The driver of this machine, with real agents and real kernels, keeps what every cluster driver promises.

use blueproof_cluster::local::{AgentCommand, LocalDriver};
use blueproof_core::testing::{contract, start_action};
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
