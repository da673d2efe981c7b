//! What Prometheus makes of the page: its own checker and a server of it, from Debian's package `prometheus`.

mod told;

use std::{
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

/// Longer than a scrape takes on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Returns a program of Prometheus', or says that it is not there.
fn program(name: &str) -> Option<Command> {
    let is_there = |folder: &Path| folder.join(name).is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| is_there(&folder)) {
        return Some(Command::new(name));
    }
    // Not by a macro, whose words the test harness keeps to itself where a test passes.
    let _ = writeln!(
        io::stderr(),
        "NOT TESTED: metrics with Prometheus' own code, because `{name}` is not here; Debian's package `prometheus` has it"
    );
    None
}

#[tokio::test]
async fn promtool_finds_nothing_to_complain_of() {
    let Some(mut promtool) = program("promtool") else {
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
    let Some(prometheus) = program("prometheus") else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let text = Target::serve("text/plain; version=0.0.4", page(home.path(), "prometheus").await);
    let open = Target::serve(
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        page(home.path(), "openmetrics").await,
    );
    let server = Server::start(prometheus, home.path(), &[("text", &text), ("open", &open)]);
    for target in [&text, &open] {
        // When it comes for the second time it has stored the first.
        for _ in 0..2 {
            target.scraped.recv_timeout(PATIENCE).expect("it scrapes");
        }
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
        assert_eq!(server.ask(query), expected, "{query}");
    }
}

/// A page on a loopback port.
struct Target {
    port: u16,
    /// Gets a word each time that somebody was served.
    scraped: Receiver<()>,
}

impl Target {
    fn serve(content_type: &'static str, page: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let (served, scraped) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                // Whoever goes away meanwhile comes again, and whoever waits for them has their patience.
                if stream
                    .and_then(|stream| answer(stream, content_type, &page))
                    .is_ok()
                    && served.send(()).is_err()
                {
                    return;
                }
            }
        });
        Self { port, scraped }
    }
}

fn answer(mut stream: TcpStream, content_type: &str, page: &str) -> io::Result<()> {
    let request = BufReader::new(stream.try_clone()?).lines();
    for line in request {
        if line?.is_empty() {
            break;
        }
    }
    let length = page.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
    )
}

/// A real Prometheus.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(mut command: Command, folder: &Path, targets: &[(&str, &Target)]) -> Self {
        let jobs = targets.iter().map(|(job, target)| {
            let port = target.port;
            format!("- job_name: {job}\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
        });
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n{}",
            jobs.collect::<String>()
        );
        let file = folder.join("prometheus.yml");
        fs::write(&file, config).expect("it can be written");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let flag = |name: &str, value: &OsStr| {
            let mut flag = std::ffi::OsString::from(format!("--{name}="));
            flag.push(value);
            flag
        };
        command.arg(flag("config.file", file.as_os_str()));
        command.arg(flag("storage.tsdb.path", folder.join("data").as_os_str()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        Self { child, port }
    }

    /// Returns the job and the value of each series that a query gives, in the order of the jobs.
    fn ask(&self, query: &str) -> Vec<(String, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        write!(stream, "GET /api/v1/query?query={query} HTTP/1.0\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (_, body) = text.split_once("\r\n\r\n").expect("an answer");
        let answer: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let series = answer["data"]["result"].as_array().expect("a vector");
        let word = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        let mut values: Vec<_> = series
            .iter()
            .map(|series| (word(&series["metric"]["job"]), word(&series["value"][1])))
            .collect();
        values.sort();
        values
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What cannot be ended has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
