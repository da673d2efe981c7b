//! The workflows that repositories copy: nothing of a stranger's stands in a script, rights are the least, and the one that waits passes
//! only where the App's own check runs do.
//!
//! `cargo xtask ci github` has actionlint look at them besides.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Arc,
};

use blueproof_github::{
    api::{CheckConclusion, CheckOutput, CheckRunState, GitHub as _, RepositoryId},
    payload::{AccountKind, CommitSha},
    testing::{FAKE_TOKEN, FakeGitHub, HttpFake},
};
use jiff::Timestamp;
use serde_json::Value;

const REPOSITORY: RepositoryId = RepositoryId(7);
const APP: u64 = 99;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workflows")
}

fn workflow(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// Returns what is wrong with a workflow.
fn mistakes(text: &str) -> Vec<String> {
    let workflow = workflow(text);
    let mut mistakes = Vec::new();
    if workflow["permissions"] != Value::Object(Default::default()) {
        mistakes.push("the workflow gives rights to all of its jobs".to_owned());
    }
    if workflow["on"].get("pull_request_target").is_some() {
        mistakes.push("it runs a stranger's content with the rights of the repository".to_owned());
    }
    for (name, job) in workflow["jobs"].as_object().into_iter().flatten() {
        let rights = job["permissions"].as_object().cloned().unwrap_or_default();
        let is_more = rights.iter().any(|(_, level)| level != "read");
        if rights.is_empty() || is_more {
            mistakes.push(format!("the job {name} names no rights, or may write"));
        }
        if !job["timeout-minutes"].is_u64() {
            mistakes.push(format!("the job {name} never ends"));
        }
        for step in job["steps"].as_array().into_iter().flatten() {
            mistakes.extend(mistakes_of_step(step));
        }
    }
    mistakes
}

fn mistakes_of_step(step: &Value) -> Vec<String> {
    let mut mistakes = Vec::new();
    if step["run"].as_str().is_some_and(|script| script.contains("${{")) {
        mistakes.push("a script has words of others in it: they belong into `env`".to_owned());
    }
    if let Some(action) = step["uses"].as_str() {
        let commit = action.split_once('@').map_or("", |(_, commit)| commit);
        if commit.parse::<CommitSha>().is_err() {
            mistakes.push(format!("{action} is not named by its commit"));
        }
        if action.starts_with("actions/checkout@")
            && step["with"]["persist-credentials"] != Value::Bool(false)
        {
            mistakes.push("a checkout leaves its token in the folder".to_owned());
        }
    }
    mistakes
}

#[test]
fn a23_workflows_have_the_least_rights_pinned_actions_and_no_words_of_others_in_scripts() {
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder()).expect("it is there") {
        let path = entry.expect("a file").path();
        let text = fs::read_to_string(&path).expect("text");
        assert_eq!(mistakes(&text), [""; 0], "{}", path.display());
        seen.push(path.file_name().expect("a name").to_string_lossy().into_owned());
    }
    seen.sort();
    assert_eq!(seen, ["blueproof-gpu-job.yml", "blueproof-wait.yml"]);
}

#[test]
fn a_workflow_with_a_mistake_is_told_from_one_without() {
    let good = fs::read_to_string(folder().join("blueproof-gpu-job.yml")).expect("text");
    for (from, to, why) in [
        ("permissions: {}", "permissions: write-all", "gives rights to all"),
        (
            "  pull_request:",
            "  pull_request_target:",
            "with the rights of the repository",
        ),
        ("      contents: read", "      contents: write", "may write"),
        ("    timeout-minutes: 120\n", "", "never ends"),
        (
            "08c6903cd8c0fde910a37f88322edcfb5dd907a8",
            "v5",
            "is not named by its commit",
        ),
        (
            "persist-credentials: false",
            "persist-credentials: true",
            "leaves its token",
        ),
        (
            "nvidia-smi",
            "echo ${{ github.event.pull_request.title }}",
            "words of others",
        ),
    ] {
        let spoilt = good.replacen(from, to, 1);
        assert_ne!(spoilt, good, "{from}");
        let told = mistakes(&spoilt);
        assert!(told.len() == 1 && told[0].contains(why), "{why}: {told:?}");
    }
}

#[test]
fn a_gpu_job_names_the_head_that_was_approved_wherever_it_names_one() {
    let job =
        &workflow(&fs::read_to_string(folder().join("blueproof-gpu-job.yml")).expect("text"))["jobs"]["gpu"];
    let head = "${{ github.event.pull_request.head.sha }}";
    assert_eq!(job["runs-on"], format!("blueproof-{head}"));
    assert_eq!(job["steps"][0]["with"]["ref"], head);
}

/// The script that waits, beside a GitHub.
struct Waiting {
    github: Arc<FakeGitHub>,
    http: HttpFake,
    head: CommitSha,
    folder: tempfile::TempDir,
}

impl Waiting {
    async fn new() -> Self {
        let github = Arc::new(FakeGitHub::new(APP));
        let ada = github.add_account(1, "ada", AccountKind::User);
        github.add_repository(REPOSITORY, "kubeflow/trainer", &[]);
        let number = github.open(REPOSITORY, &ada, &[]);
        Self {
            http: HttpFake::start(github.clone()).await,
            head: github.head(REPOSITORY, number),
            github,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn command(&self, app: &str, head: &str) -> Command {
        let text = fs::read_to_string(folder().join("blueproof-wait.yml")).expect("text");
        let workflow = workflow(&text);
        let script = workflow["jobs"]["wait"]["steps"][0]["run"]
            .as_str()
            .expect("a script");
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs([("TOKEN", FAKE_TOKEN), ("APP_ID", app), ("HEAD_SHA", head)])
            .envs([("LOOK_EVERY_SECONDS", "0"), ("SHOWN_WITHIN_LOOKS", "3")])
            .env("GITHUB_API_URL", self.http.address())
            .env("GITHUB_REPOSITORY", "kubeflow/trainer")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    async fn run(&self, app: &str, head: &str) -> (Option<i32>, String) {
        let mut command = self.command(app, head);
        let output = tokio::task::spawn_blocking(move || command.output().expect("it starts")).await;
        told(&output.expect("it ends"))
    }

    async fn show(&self, conclusion: Option<CheckConclusion>) {
        let check = check(conclusion);
        let made = self.github.create_check_run(REPOSITORY, &self.head, &check).await;
        made.expect("it is made");
    }
}

fn told(output: &Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

fn check(conclusion: Option<CheckConclusion>) -> CheckOutput {
    let at = Timestamp::UNIX_EPOCH;
    CheckOutput {
        name: "GPU · nano-lm".into(),
        external_id: "r-1".into(),
        details_url: None,
        state: conclusion.map_or(CheckRunState::InProgress, |conclusion| CheckRunState::Completed {
            conclusion,
            at,
        }),
        started_at: None,
        title: "it runs".into(),
        summary: "it runs".into(),
        text: String::new(),
        annotations: Vec::new(),
        actions: Vec::new(),
    }
}

/// Returns whether what the script needs is here.
fn has_tools() -> bool {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let all = ["bash", "curl", "jq"].into_iter().all(has);
    if !all {
        println!("NOT TESTED: the script of a workflow needs bash, curl and jq, and one of them is not here");
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_waits_for_an_approval_and_passes_with_the_check_runs() {
    if !has_tools() {
        return;
    }
    let waiting = Waiting::new().await;
    waiting.show(Some(CheckConclusion::ActionRequired)).await;
    let child = waiting
        .command("99", waiting.head.as_str())
        .spawn()
        .expect("it starts");
    waiting
        .github
        .until(|github| github.n_calls("check_runs") >= 4)
        .await;
    let runs = waiting
        .github
        .check_runs(REPOSITORY, &waiting.head)
        .await
        .expect("a read");
    let passed = check(Some(CheckConclusion::Success));
    let update = waiting
        .github
        .update_check_run(REPOSITORY, &waiting.head, runs[0].id, &passed);
    update.await.expect("it is changed");
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().expect("it ends")).await;
    let (code, said) = told(&output.expect("it ends"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("0 of 1 GPU tests passed so far\n"), "{said}");
    assert!(said.ends_with("1 GPU tests passed\n"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_fails_where_a_check_run_did_or_none_of_the_app_is_shown() {
    use CheckConclusion::{Cancelled, Failure, Neutral, Skipped, Success, TimedOut};
    if !has_tools() {
        return;
    }
    for (shown, code) in [
        (&[Success, Neutral][..], 0),
        (&[Skipped], 0),
        (&[Failure], 1),
        (&[Success, Cancelled], 1),
        (&[TimedOut, Success], 1),
        (&[], 1),
    ] {
        let waiting = Waiting::new().await;
        for conclusion in shown {
            waiting.show(Some(*conclusion)).await;
        }
        let came = waiting.run("99", waiting.head.as_str()).await;
        assert_eq!(came.0, Some(code), "{shown:?}: {}", came.1);
    }
    // A check run of another App is none of ours, whatever it is called.
    let waiting = Waiting::new().await;
    waiting.show(Some(Success)).await;
    let (code, said) = waiting.run("100", waiting.head.as_str()).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the App shows no check run"), "{said}");
    for (app, head) in [
        ("", waiting.head.as_str()),
        ("99", "main"),
        ("99", "$(touch pwned)"),
        ("99 or 1", waiting.head.as_str()),
    ] {
        let (code, said) = waiting.run(app, head).await;
        assert_eq!(
            (code, said.starts_with("::error::")),
            (Some(1), true),
            "{app} {head}: {said}"
        );
    }
    assert_eq!(
        fs::read_dir(waiting.folder.path()).expect("it is there").count(),
        0,
        "no word was carried out"
    );
}
