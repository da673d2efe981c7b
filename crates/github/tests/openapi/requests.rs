//! Every request that we make, made of the fake.

use std::sync::Arc;

use blueproof_core::testing::FakeClock;
use blueproof_github::{
    api::{
        Actions, Annotation, AppHook, CheckAction, CheckConclusion, CheckOutput, CheckRunState, GitHub,
        NewJitRunner, Permission, Reaction, RepositoryId, RunnerScope,
    },
    payload::{Account, AccountKind},
    registration::{AppManifest, RegistrationCode},
    rest::{AppTokens, RestGitHub, registered_app},
    testing::{FakeAnswer, FakeGitHub, HttpFake},
};
use blueproof_scale_set::{AppInstallation, AppKey};
use jiff::{SignedDuration, Timestamp};

use super::Sent;

const REPOSITORY: RepositoryId = RepositoryId(7);
const APP: u64 = 99;
/// When the fake's clock begins.
const BEGINNING: i64 = 1_800_000_000;

/// All that is asked, by GitHub's names.
pub(crate) const OPERATIONS: [&str; 37] = [
    "actions/delete-self-hosted-runner-from-org",
    "actions/delete-self-hosted-runner-from-repo",
    "actions/generate-runner-jitconfig-for-org",
    "actions/generate-runner-jitconfig-for-repo",
    "actions/get-workflow-run",
    "actions/list-jobs-for-workflow-run",
    "actions/list-self-hosted-runner-groups-for-org",
    "actions/list-self-hosted-runners-for-org",
    "actions/list-self-hosted-runners-for-repo",
    "actions/list-workflow-runs-for-repo",
    "actions/re-run-job-for-workflow-run",
    "apps/create-from-manifest",
    "apps/create-installation-access-token",
    "apps/list-installations",
    "apps/list-webhook-deliveries",
    "apps/redeliver-webhook-delivery",
    "checks/create",
    "checks/list-for-ref",
    "checks/update",
    "git/get-tree",
    "git/list-matching-refs",
    "issues/create-comment",
    "issues/list-comments",
    "issues/list-comments-for-repo",
    "issues/update-comment",
    "pulls/get",
    "pulls/list",
    "pulls/list-files",
    "reactions/create-for-issue-comment",
    "repos/compare-commits",
    "repos/create-commit-status",
    "repos/get",
    "repos/get-branch",
    "repos/get-branch-rules",
    "repos/get-content",
    "repos/list-collaborators",
    "users/get-by-username",
];

/// The fake, after it was asked everything.
pub(crate) struct Made {
    fake: Arc<FakeGitHub>,
    http: HttpFake,
}

impl Made {
    /// Returns how often a call of the port was made.
    pub(crate) fn n_calls(&self, call: &str) -> u32 {
        self.fake.n_calls(call)
    }

    /// Returns every request, the first one first.
    pub(crate) async fn sent(&self) -> Vec<Sent> {
        let requests = self.http.requests().await;
        let sent = requests.into_iter().map(|request| Sent {
            method: request.method.to_string(),
            path: request.url.path().to_owned(),
            query: request
                .url
                .query_pairs()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            body: request.body,
        });
        sent.collect()
    }

    /// Returns what the fake answered.
    pub(crate) fn answers(&self) -> Vec<FakeAnswer> {
        self.http.answers()
    }
}

/// Makes every call of the port, and those that are made beside it.
pub(crate) async fn all() -> Made {
    let fake = Arc::new(FakeGitHub::new(APP));
    let ada = fake.add_account(1, "ada", AccountKind::User);
    fake.add_repository(
        REPOSITORY,
        "kubeflow/trainer",
        &[("docs/a b?.md", "x"), ("OWNERS", "approvers: [ada]")],
    );
    fake.set_permission(REPOSITORY, &ada, Permission::Maintain);
    let http = HttpFake::start(fake.clone()).await;
    let clock = Arc::new(FakeClock::default());
    clock.advance(SignedDuration::from_secs(BEGINNING));
    let tokens = AppTokens::new(&http.address(), installation(), clock).expect("an address");
    let tokens = Arc::new(tokens);
    let rest = RestGitHub::new(&http.address(), Some(APP), tokens.clone()).expect("an address");
    rest.repository_named("kubeflow/trainer")
        .await
        .expect("it is there");
    let number = fake.open(REPOSITORY, &ada, &["docs/a b?.md", "OWNERS", "third"]);
    read(&rest, &fake, number).await;
    write(&rest, &fake, number).await;
    talk(&rest, &ada, &fake, number).await;
    act(&rest, &fake, number).await;
    let without_app = RestGitHub::new(&http.address(), None, tokens.clone()).expect("an address");
    without_app
        .repository_named("kubeflow/trainer")
        .await
        .expect("it is there");
    say(&without_app, &fake, number).await;
    ask_again(&*tokens, &fake).await;
    register(&http, &tokens, &fake).await;
    Made { fake, http }
}

fn installation() -> AppInstallation {
    AppInstallation {
        issuer: APP.to_string(),
        installation: 12,
        key: AppKey::from_pem(include_str!("../../../scale-set/src/testing/app-key.pem")).expect("a key"),
    }
}

async fn read(rest: &RestGitHub, fake: &FakeGitHub, number: u64) {
    rest.repository(REPOSITORY).await.expect("an answer");
    rest.pull_request(REPOSITORY, number).await.expect("an answer");
    rest.open_pull_requests(REPOSITORY).await.expect("an answer");
    let changed = rest.changed_paths(REPOSITORY, number).await.expect("an answer");
    assert_eq!(changed.paths.len(), 3, "there is a second page");
    let main = rest.branch(REPOSITORY, "main").await.expect("an answer");
    let file = rest.file(REPOSITORY, "docs/a b?.md", &main).await;
    assert_eq!(file.expect("an answer").as_deref(), Some("x"));
    fake.require_checks(REPOSITORY, "main", &["GPU · nano-lm"]);
    let required = rest.required_checks(REPOSITORY, "main").await;
    assert_eq!(required.expect("an answer").len(), 1);
    rest.blobs(REPOSITORY, &main).await.expect("an answer");
    let group = fake.enqueue(REPOSITORY, number, &[("OWNERS", "approvers: [ada]")]);
    rest.compare(REPOSITORY, &main, &group).await.expect("an answer");
    let groups = rest.merge_groups(REPOSITORY).await.expect("an answer");
    assert_eq!(groups.len(), 1);
    rest.paths_named(REPOSITORY, "OWNERS", &main)
        .await
        .expect("an answer");
    rest.account("ada")
        .await
        .expect("an answer")
        .expect("she is there");
    let collaborators = rest.collaborators(REPOSITORY).await.expect("an answer");
    assert_eq!(collaborators.len(), 1);
    let head = fake.head(REPOSITORY, number);
    rest.check_runs(REPOSITORY, &head).await.expect("an answer");
}

/// Makes check runs of every kind: each conclusion, with and without what may be left out.
async fn write(rest: &RestGitHub, fake: &FakeGitHub, number: u64) {
    let head = fake.head(REPOSITORY, number);
    for state in states() {
        let check = check(state);
        let made = rest
            .create_check_run(REPOSITORY, &head, &check)
            .await
            .expect("it is made");
        let least = CheckOutput {
            details_url: None,
            started_at: None,
            text: String::new(),
            annotations: Vec::new(),
            actions: Vec::new(),
            ..check
        };
        rest.update_check_run(REPOSITORY, &head, made, &least)
            .await
            .expect("it is changed");
    }
    rest.check_runs(REPOSITORY, &head).await.expect("an answer");
}

/// Shows check runs of every kind as commit statuses, as without an App.
async fn say(rest: &RestGitHub, fake: &FakeGitHub, number: u64) {
    let head = fake.head(REPOSITORY, number);
    for state in states() {
        let made = rest.create_check_run(REPOSITORY, &head, &check(state)).await;
        let made = made.expect("it is made");
        rest.update_check_run(REPOSITORY, &head, made, &check(state))
            .await
            .expect("it is changed");
    }
    let listed = rest.check_runs(REPOSITORY, &head).await.expect("an answer");
    assert_eq!(listed, [], "without an App there are none");
}

/// Asks about workflows, and for runners of an organisation and of a repository.
async fn act(rest: &RestGitHub, fake: &FakeGitHub, number: u64) {
    let run = fake.start_workflow(REPOSITORY, "pull_request", &fake.head(REPOSITORY, number));
    let job = fake.queue_workflow_job(REPOSITORY, run, &["gpu"]);
    rest.workflow_run(REPOSITORY, run).await.expect("an answer");
    rest.unfinished_runs(REPOSITORY).await.expect("an answer");
    rest.workflow_jobs(REPOSITORY, run).await.expect("an answer");
    let group = rest.runner_group("kubeflow", "GPUs").await.expect("an answer");
    for scope in [
        RunnerScope::Organization("kubeflow".into()),
        RunnerScope::Repository("kubeflow/trainer".into()),
    ] {
        let new = NewJitRunner {
            name: "gpu-1".into(),
            group: group.expect("it is there"),
            labels: vec!["gpu".into()],
            work_folder: "_work".into(),
        };
        let made = rest.jit_runner(&scope, &new).await.expect("it is made");
        rest.find_runner(&scope, "gpu-1").await.expect("an answer");
        rest.remove_runner(&scope, made.id).await.expect("it is removed");
    }
    fake.complete_workflow_job(job, "failure");
    rest.rerun_job(REPOSITORY, job).await.expect("it is begun");
}

fn states() -> impl Iterator<Item = CheckRunState> {
    use CheckConclusion::{ActionRequired, Cancelled, Failure, Neutral, Skipped, Success, TimedOut};
    let at = Timestamp::from_second(BEGINNING).expect("a time");
    let conclusions = [
        Success,
        Failure,
        Neutral,
        Cancelled,
        TimedOut,
        ActionRequired,
        Skipped,
    ];
    let completed = conclusions
        .into_iter()
        .map(move |conclusion| CheckRunState::Completed { conclusion, at });
    [CheckRunState::Queued, CheckRunState::InProgress]
        .into_iter()
        .chain(completed)
}

/// A check run that has all that there may be, and as much of it.
fn check(state: CheckRunState) -> CheckOutput {
    let annotation = Annotation {
        path: "examples/nano-lm/nano-lm.ipynb".into(),
        start_line: 7,
        end_line: 7,
        message: "ValueError: no".into(),
        title: "cell 3".into(),
    };
    CheckOutput {
        name: "GPU · nano-lm".into(),
        external_id: "r-1".into(),
        details_url: Some("https://gpu.example.org/runs/r-1".into()),
        state,
        started_at: Timestamp::from_second(BEGINNING).ok(),
        title: "ä".repeat(CheckOutput::TITLE_AT_MOST),
        summary: "ä".repeat(CheckOutput::TEXT_AT_MOST),
        text: "ä".repeat(CheckOutput::TEXT_AT_MOST),
        annotations: vec![annotation; CheckOutput::ANNOTATIONS_AT_MOST],
        actions: CheckAction::ALL.to_vec(),
    }
}

async fn talk(rest: &RestGitHub, ada: &Account, fake: &FakeGitHub, number: u64) {
    fake.comment(REPOSITORY, number, ada, "/gpu-why");
    let made = rest
        .create_comment(REPOSITORY, number, "one")
        .await
        .expect("it is made");
    rest.update_comment(REPOSITORY, made.id, "another")
        .await
        .expect("it is changed");
    for reaction in [Reaction::Eyes, Reaction::Rocket, Reaction::Confused] {
        rest.react(REPOSITORY, made.id, reaction)
            .await
            .expect("it is made");
    }
    rest.comments(REPOSITORY, number).await.expect("an answer");
    let since = Timestamp::from_second(BEGINNING).expect("a time");
    rest.comments_since(REPOSITORY, since).await.expect("an answer");
}

/// Asks for what was lost, on more than one page.
async fn ask_again(hook: &dyn AppHook, fake: &FakeGitHub) {
    assert!(fake.lose_deliveries().len() > 2, "there is a second page");
    let first = hook.hook_deliveries(None).await.expect("an answer");
    hook.redeliver(first.deliveries[0].id).await.expect("an answer");
    assert!(first.next.is_some());
    hook.hook_deliveries(first.next).await.expect("an answer");
}

/// Registers an App. What a browser does meanwhile is in `tests/registration.rs`.
async fn register(http: &HttpFake, tokens: &AppTokens, fake: &FakeGitHub) {
    let manifest = AppManifest {
        name: "blueproof for kubeflow".into(),
        homepage: "https://github.com/kubeflow/trainer".into(),
        webhook: Some("https://gpu.example.org/webhooks/github".into()),
        has_merge_queue: true,
    };
    let code = RegistrationCode::new(fake.register_app("kubeflow", manifest.to_json(None)));
    let code = code.expect("it is one");
    registered_app(&http.address(), &code).await.expect("it is known");
    fake.install_app();
    tokens.installations().await.expect("an answer");
}
