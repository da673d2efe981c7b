//! What Prometheus' own checker says of the page, from Debian's package `prometheus`.

use std::{
    io::{self, Write as _},
    process::{Command, Stdio},
};

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
    let mut exporter = Command::new(env!("CARGO_BIN_EXE_blueproof-exporter"));
    let page = exporter
        .arg("--once")
        .arg("--library")
        .arg(library.path())
        .output();
    let page = page.expect("it can be started").stdout;
    let mut stdin = promtool.stdin.take().expect("it is piped");
    stdin.write_all(&page).expect("it reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}
