//! The program with runners: jobs of a scale set, jobs that are bound to a commit, and the hook that jobs pass first.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use blueproof_core::{
    approval::{Approval, ApprovalTarget, Scope, Selection},
    domain::{Actor, Head, Repository, RequestKey},
    engine,
    ports::{Command as StoreCommand, StoreClient as _},
    sqlite::SqliteStore,
};
use blueproof_github::{
    api::RepositoryId,
    payload::CommitSha,
    testing::{FAKE_TOKEN, FakeGitHub, HttpFake},
};
use blueproof_scale_set::{
    Clock, RunnerRequestId,
    testing::{FakeServer, FakeService, Model, ModelOptions},
};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};

const REPOSITORY: RepositoryId = RepositoryId(7);
const NAME: &str = "owner/repository";
/// So long it is waited for what must come.
const BOUND: Duration = Duration::from_secs(60);

/// The stand-in for GitHub's runner: it shows what it was given, asks by the hook about the workflow run that a file names, and
/// waits until it is told to end.
const PROGRAM: &str = r#"#!/bin/sh
name=$(basename "$BLUEPROOF_RUNNER")
printf '%s' "$ACTIONS_RUNNER_INPUT_JITCONFIG" > "$1/$name.new" && mv "$1/$name.new" "$1/$name.config"
while [ ! -e "$1/asks" ]; do sleep 0.05; done
RUNNER_NAME=$name GITHUB_REPOSITORY=owner/repository GITHUB_RUN_ID=$(cat "$1/asks") \
    "$2" hook job-started --scheduler "$(cat "$1/hook")" > "$1/$name.said" 2>&1
echo $? > "$1/$name.code.new" && mv "$1/$name.code.new" "$1/$name.code"
while [ ! -e "$1/end" ]; do sleep 0.05; done
"#;

struct Place {
    folder: tempfile::TempDir,
    github: Arc<FakeGitHub>,
    http: HttpFake,
    service: FakeService,
    server: FakeServer,
}

/// The program, which ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended is nobody's to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Place {
    async fn new() -> Self {
        let github = Arc::new(FakeGitHub::new(99));
        github.add_repository(REPOSITORY, NAME, &[]);
        let service = FakeService::new(Model::new(ModelOptions::default()), Clock::system());
        let place = Self {
            folder: tempfile::tempdir().expect("a folder"),
            http: HttpFake::start(github.clone()).await,
            github,
            server: FakeServer::start(service.clone()).await.expect("a port is free"),
            service,
        };
        fs::create_dir(place.path("seen")).expect("a folder");
        place.write("run.sh", PROGRAM, 0o755);
        place.write("token", FAKE_TOKEN, 0o600);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).expect("a file");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    /// Starts the program, and returns it once it has said that runners are made.
    fn serve(&self, more: &str) -> Served {
        let program = env!("CARGO_BIN_EXE_blueproof-scheduler");
        let settings = format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: RunnerScaleSet\nspec:\n  name: gpu\n  url: {}/{NAME}\n  api: {}\n  \
             tokenFile: token\n  maxRunners: 2\n  resources: {{cpu: 10m}}\n  process:\n    program: run.sh\n    \
             arguments: [{}, {program}]\n    isolation: disposable\n{more}",
            self.server.base(),
            self.http.address(),
            self.path("seen").display(),
        );
        self.write("runners.yaml", &settings, 0o600);
        let mut command = Command::new(program);
        command
            .args(["serve", "--store"])
            .arg(self.path("store.db"))
            .arg("--runners")
            .arg(self.path("runners.yaml"))
            .args([
                "--runner-hook",
                "127.0.0.1:0",
                "--agent",
                "/bin/false",
                "--approver",
                "grace",
            ]);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let process = command
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let mut served = Served(process.expect("it starts"));
        let said = BufReader::new(served.0.stderr.take().expect("it is piped"));
        let (sender, lines) = std::sync::mpsc::channel();
        // It reads on when nobody listens any more, so that the program is never held up.
        std::thread::spawn(move || {
            said.lines()
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)));
        });
        loop {
            let line = lines
                .recv_timeout(BOUND)
                .expect("it goes on, and says so in time");
            if let Some((_, address)) = line.split_once("answers runners address=") {
                self.write("seen/hook", address.trim(), 0o600);
            }
            if line.contains("runners are made") {
                return served;
            }
        }
    }

    /// Returns the files of an ending, by the runner's name, once there are so many.
    async fn seen(&self, ending: &str, n_files: usize) -> Vec<(String, String)> {
        let read = || {
            let files = fs::read_dir(self.path("seen")).expect("it is there").flatten();
            let named = files.filter_map(|file| {
                let name = file.file_name().into_string().ok()?;
                let runner = name.strip_suffix(ending)?.to_owned();
                Some((runner, fs::read_to_string(file.path()).ok()?))
            });
            named.collect::<Vec<_>>()
        };
        until(|| read().len() >= n_files).await;
        read()
    }

    /// Has the runners ask about a workflow run, and returns with which code that ended and what was said.
    async fn ask(&self, workflow_run: u64) -> (String, String) {
        self.write("seen/asks.new", &workflow_run.to_string(), 0o600);
        fs::rename(self.path("seen/asks.new"), self.path("seen/asks")).expect("it is there");
        let (runner, code) = self.seen(".code", 1).await.remove(0);
        let said = fs::read_to_string(self.path(&format!("seen/{runner}.said"))).expect("it was said");
        (code.trim().to_owned(), said)
    }

    async fn is_clean(&self) {
        let folder = self.path("runners/gpu");
        until(|| n_entries(&folder) == 0).await;
    }

    /// Approves a commit.
    async fn approve(&self, head: &CommitSha) {
        let store = SqliteStore::open_existing(&self.path("store.db")).expect("it can be read");
        let store = store.expect("it is there");
        let (scheduler, _) = engine::replay(&store).await.expect("it can be read");
        let target = ApprovalTarget {
            repository: Repository::GitHub(REPOSITORY.0),
            pull_request: Some(12),
            head: Head::Commit(head.as_str().to_owned()),
            base: None,
            scope: Scope {
                blueprints: Selection::All,
                profiles: Selection::All,
                jobs: Selection::All,
            },
        };
        let digest = scheduler.policy().expect("it was set").gate.digest.clone();
        let approve = StoreCommand::Approve {
            key: RequestKey("approve".into()),
            approval: Box::new(Approval::new(target, digest, Actor::Local("grace".into()))),
        };
        store.submit(Timestamp::now(), approve).await.expect("it is left");
    }

    /// Queues a job at the scale set, and returns it once a runner has it.
    async fn job_with_runner(&self) -> RunnerRequestId {
        let set = self
            .service
            .with(|model, _| model.scale_set_named("gpu").expect("it was made"));
        let job = self.service.with(|model, now| model.queue_job(now, set));
        let (_, config) = self.seen(".config", 1).await.remove(0);
        let taken = self.service.with(|model, now| model.connect_runner(now, &config));
        assert_eq!(taken, Ok(Some(job)));
        job
    }

    /// Has a job end, and waits until nothing is left of its runner.
    async fn complete(&self, job: RunnerRequestId, result: &str) {
        self.service
            .with(|model, now| model.complete_job(now, job, result));
        fs::write(self.path("seen/end"), "").expect("a file");
        self.is_clean().await;
    }
}

fn n_entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

async fn until(holds: impl Fn() -> bool) {
    let came = tokio::time::timeout(BOUND, async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    });
    came.await.expect("it holds in time");
}

fn head(digit: &str) -> CommitSha {
    digit.repeat(40).parse().expect("a commit")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_scale_set_gets_a_runner_and_starts_only_if_it_may() {
    for (event, code, said) in [
        ("push", "0", "this job may start: `push` is of who may write"),
        ("pull_request", "2", "no approval of this commit counts now"),
        (
            "pull_request_target",
            "2",
            "no approval of this commit counts now",
        ),
    ] {
        let place = Place::new().await;
        let served = place.serve("");
        let job = place.job_with_runner().await;
        let run = place.github.start_workflow(REPOSITORY, event, &head("1"));
        let answered = place.ask(run).await;
        assert!(
            answered.0 == code && answered.1.contains(said),
            "{event}: {answered:?}"
        );
        place.complete(job, "success").await;
        drop(served);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a18_a_job_of_a_repository_that_is_not_listed_may_not_start_whatever_its_event() {
    let place = Place::new().await;
    let served = place.serve("  repositories: [owner/another]\n");
    let job = place.job_with_runner().await;
    let run = place.github.start_workflow(REPOSITORY, "push", &head("1"));
    let (code, said) = place.ask(run).await;
    let why = "of a repository that these runners are not for";
    assert!(code == "2" && said.contains(why), "{said}");
    place.complete(job, "failure").await;
    drop(served);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_bound_to_a_commit_gets_a_runner_once_that_is_approved() {
    let place = Place::new().await;
    let (approved, other) = (head("1"), head("2"));
    for head in [&approved, &other] {
        let run = place.github.start_workflow(REPOSITORY, "pull_request", head);
        let label = format!("blueproof-{head}");
        place
            .github
            .queue_workflow_job(REPOSITORY, run, &["self-hosted", "gpu", &label]);
    }
    // A job that names the approved commit and is of another.
    let run = place.github.start_workflow(REPOSITORY, "pull_request", &other);
    let label = format!("blueproof-{approved}");
    place.github.queue_workflow_job(REPOSITORY, run, &[&label]);

    let first = place.serve("  binding: uniqueLabel\n  repositories: [owner/repository]\n");
    assert_eq!(place.github.workflow_runners(), []);
    place.approve(&approved).await;
    // What was decided is looked at again with the next start as well.
    drop(first);
    let served = place.serve("  binding: uniqueLabel\n  repositories: [owner/repository]\n");
    let (_, config) = place.seen(".config", 1).await.remove(0);
    let runners = place.github.workflow_runners();
    assert_eq!(runners.len(), 1, "{runners:?}");
    assert_eq!(runners[0].new.labels, ["self-hosted", "gpu", &label]);
    let config = blueproof_core::ports::JitConfig::new(config);
    let job = place.github.connect_runner(&config).expect("a job waits");
    let (code, said) = place.ask(job - 1).await;
    assert!(
        code == "0" && said.contains("its commit is approved by grace"),
        "{said}"
    );
    place.github.complete_workflow_job(job, "success");
    fs::write(place.path("seen/end"), "").expect("a file");
    place.is_clean().await;
    drop(served);
}

#[test]
fn a_hook_that_nobody_answers_refuses_the_job() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", free.local_addr().expect("it is bound"));
    drop(free);
    let hook = |set: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"))
            .args(["hook", "job-started", "--scheduler", &address])
            .env_clear()
            .envs(set.iter().copied())
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let whole = [
        ("RUNNER_NAME", "gpu-1"),
        ("GITHUB_REPOSITORY", NAME),
        ("GITHUB_RUN_ID", "7"),
    ];
    let (code, said) = hook(&whole);
    assert!(
        code == Some(2) && said.contains("the scheduler does not answer"),
        "{said}"
    );
    let (code, said) = hook(&whole[..2]);
    assert!(
        code == Some(2) && said.contains("`GITHUB_RUN_ID` is not set"),
        "{said}"
    );
}

#[test]
fn what_a_chart_says_is_printed_as_a_file_of_ours_with_what_has_no_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let values = folder.path().join("values.yaml");
    fs::write(
        &values,
        "githubConfigUrl: https://github.com/cncf\nrunnerGroup: GPUs\nmaxRunners: 1\ncontainerMode: {type: dind}\n",
    )
    .expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_blueproof-scheduler"))
        .args(["import", "arc", "--name", "oracle-vm-gpu-a10-1"])
        .arg(&values)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).expect("text");
    let read = blueproof_runners::settings::RunnerScaleSet::read("out.yaml", text.clone()).expect(&text);
    assert_eq!(
        (read.name.0.as_str(), read.runner_group.as_str()),
        ("oracle-vm-gpu-a10-1", "GPUs")
    );
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("not carried over: containerMode: "), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_is_told_to_stop_closes_its_session() {
    let place = Place::new().await;
    let mut served = place.serve("");
    let set = place
        .service
        .with(|model, _| model.scale_set_named("gpu").expect("it was made"));
    until(|| place.service.with(|model, _| model.has_session(set))).await;
    kill_process(Pid::from_child(&served.0), Signal::TERM).expect("it is there");
    assert_eq!(served.0.wait().expect("it ends").code(), Some(0));
    assert!(!place.service.with(|model, _| model.has_session(set)));
}
