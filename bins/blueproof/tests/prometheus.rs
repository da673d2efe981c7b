//! What Prometheus makes of the page: its own checker and a server of it, from Debian's package `prometheus`.

mod told;

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use real_prometheus::{Job, Page, Server, Setup, program};

/// What is not tested where there is no Prometheus.
const WHAT: &str = "metrics with Prometheus' own code";

/// Returns the page of the story that the unit tests know.
async fn page(home: &Path, format: &str) -> String {
    let path = home.join("blueproof.db");
    if !path.exists() {
        drop(told::store(&path).await);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_blueproof"));
    command.args(["metrics", "-o", format]).env_clear();
    command.env("HOME", home).env("BLUEPROOF_STORE", path);
    let output = command.output().expect("it starts");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn promtool_finds_nothing_to_complain_of() {
    let Some(mut promtool) = program("promtool", WHAT) else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut child = promtool
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let page = page(home.path(), "prometheus").await;
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(page.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said), "");
    assert!(output.status.success());
}

#[tokio::test]
async fn prometheus_reads_the_same_from_both_formats() {
    let Some(prometheus) = program("prometheus", WHAT) else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let text = page(home.path(), "prometheus").await;
    let text = Page::serve("text/plain; version=0.0.4", move || text.clone());
    let open = page(home.path(), "openmetrics").await;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let open = Page::serve(content_type, move || open.clone());
    let job = |name, page: &Page| Job::new(name, page.address(), "/metrics");
    let setup = Setup {
        jobs: vec![job("text", &text), job("open", &open)],
        ..Setup::default()
    };
    let server = Server::start(prometheus, home.path(), &setup);
    for page in [&text, &open] {
        // When it comes for the second time it has stored the first.
        page.wait();
        page.wait();
    }
    let quantile = "histogram_quantile(0.5,kueue_admission_wait_time_seconds_bucket)";
    for (query, expected) in [
        ("up", "1"),
        ("kueue_admitted_workloads_total", "3"),
        ("kueue_cluster_queue_resource_usage{resource='cpu'}", "2"),
        ("kueue_cluster_queue_lending_limit{resource='cpu'}", "+Inf"),
        (quantile, "0.5"),
        ("blueproof_runs_total{verdict='failed'}", "1"),
        ("blueproof_run_seconds_sum{blueprint='nano-lm'}", "120"),
    ] {
        let expected = ["open", "text"].map(|job| (job.to_owned(), expected.to_owned()));
        assert_eq!(by_job(&server, query), expected, "{query}");
    }
}

/// Returns the job and the value of each series that a query gives, in the order of the jobs.
fn by_job(server: &Server, query: &str) -> Vec<(String, String)> {
    let word = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let mut values: Vec<_> = server
        .ask(query)
        .iter()
        .map(|series| (word(&series["metric"]["job"]), word(&series["value"][1])))
        .collect();
    values.sort();
    values
}
