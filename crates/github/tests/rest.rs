//! The REST API is asked as GitHub has it, and its answers come out as they went in.

use std::sync::Arc;

use blueproof_core::testing::FakeClock;
use blueproof_github::{
    api::{
        Actions as _, Annotation, ApiRetry, CheckAction, CheckConclusion, CheckOutput, CheckRunState, GitHub,
        NewJitRunner, Permission, Reaction, RepositoryId, RunnerScope,
    },
    payload::{Account, AccountKind},
    rest::{ApiToken, AppTokens, FixedToken, RestGitHub, Tokens as _},
    testing::{FAKE_TOKEN, FakeGitHub, FakeStatus, HttpFake},
};
use blueproof_scale_set::{AppInstallation, AppKey};
use jiff::{SignedDuration, Timestamp};

const REPOSITORY: RepositoryId = RepositoryId(7);
const APP: u64 = 99;
const FILES: [(&str, &str); 5] = [
    ("OWNERS", "approvers: [ada]\n"),
    ("docs/OWNERS", "approvers: [dora]\n"),
    ("docs/a b?.md", "ä\n"),
    ("OWNERS_ALIASES", ""),
    ("deep/er/OWNERS", ""),
];

struct Sides {
    fake: Arc<FakeGitHub>,
    rest: RestGitHub,
    http: HttpFake,
    ada: Account,
}

impl Sides {
    async fn new() -> Self {
        let fake = Arc::new(FakeGitHub::new(APP));
        let ada = fake.add_account(1, "ada", AccountKind::User);
        fake.add_repository(REPOSITORY, "kubeflow/trainer", &FILES);
        let http = HttpFake::start(fake.clone()).await;
        let rest = client(&http, FAKE_TOKEN);
        rest.repository_named("kubeflow/trainer")
            .await
            .expect("it is there");
        Self {
            fake,
            rest,
            http,
            ada,
        }
    }
}

fn client(http: &HttpFake, token: &str) -> RestGitHub {
    let tokens = Arc::new(FixedToken(ApiToken::new(token)));
    RestGitHub::new(&http.address(), Some(APP), tokens).expect("an address")
}

fn check() -> CheckOutput {
    CheckOutput {
        name: "GPU · nano-lm".into(),
        external_id: "r-1".into(),
        details_url: Some("https://gpu.example.org/runs/r-1".into()),
        state: CheckRunState::Completed {
            conclusion: CheckConclusion::ActionRequired,
            at: Timestamp::from_second(1_800_000_100).expect("a time"),
        },
        started_at: None,
        title: "waits for an approval".into(),
        summary: "| a | b |".into(),
        text: String::new(),
        annotations: vec![Annotation {
            path: "examples/nano-lm/nano-lm.ipynb".into(),
            start_line: 7,
            end_line: 7,
            message: "ValueError: no".into(),
            title: "cell 3".into(),
        }],
        actions: vec![CheckAction::Approve, CheckAction::Cancel],
    }
}

/// Asserts that a call comes to the same through HTTP.
macro_rules! same {
    ($sides:ident.$call:ident($($argument:expr),*)) => {{
        let (through_http, directly) =
            ($sides.rest.$call($($argument),*).await, $sides.fake.$call($($argument),*).await);
        assert_eq!(through_http.expect("it is answered"), directly.expect("it is answered"));
    }};
}

#[tokio::test]
async fn what_is_read_is_what_is_there_page_by_page() {
    let sides = Sides::new().await;
    let paths = ["a.py", "b.py", "c.py", "d.py", "e.py"];
    let numbers: Vec<u64> = (0..5)
        .map(|_| sides.fake.open(REPOSITORY, &sides.ada, &paths))
        .collect();
    for id in 10..15 {
        let account = sides
            .fake
            .add_account(id, &format!("user-{id}"), AccountKind::User);
        sides
            .fake
            .set_permission(REPOSITORY, &account, Permission::Maintain);
        sides.fake.comment(REPOSITORY, numbers[0], &account, "/gpu-why");
    }
    let main = sides.fake.branch(REPOSITORY, "main").await.expect("there is one");
    same!(sides.repository(REPOSITORY));
    same!(sides.pull_request(REPOSITORY, numbers[3]));
    same!(sides.open_pull_requests(REPOSITORY));
    same!(sides.changed_paths(REPOSITORY, numbers[0]));
    same!(sides.comments_since(REPOSITORY, Timestamp::UNIX_EPOCH));
    same!(sides.comments(REPOSITORY, numbers[0]));
    same!(sides.branch(REPOSITORY, "main"));
    for path in ["OWNERS", "docs/a b?.md", "none"] {
        same!(sides.file(REPOSITORY, path, &main));
    }
    same!(sides.paths_named(REPOSITORY, "OWNERS", &main));
    for login in ["ada", "nobody"] {
        same!(sides.account(login));
    }
    same!(sides.collaborators(REPOSITORY));
}

#[tokio::test]
async fn without_an_app_a_check_run_is_a_commit_status() {
    let sides = Sides::new().await;
    let number = sides.fake.open(REPOSITORY, &sides.ada, &[]);
    let head = sides.fake.head(REPOSITORY, number);
    let tokens = Arc::new(FixedToken(ApiToken::new(FAKE_TOKEN)));
    let rest = RestGitHub::new(&sides.http.address(), None, tokens).expect("an address");
    rest.repository_named("kubeflow/trainer")
        .await
        .expect("it is there");
    let made = rest.create_check_run(REPOSITORY, &head, &check()).await;
    let shown = || sides.fake.statuses(REPOSITORY, &head);
    let pending = FakeStatus {
        context: check().name,
        state: "pending".into(),
        description: check().title,
    };
    assert_eq!(shown(), std::slice::from_ref(&pending));
    let at = Timestamp::UNIX_EPOCH;
    for (conclusion, state) in [
        (CheckConclusion::Success, "success"),
        (CheckConclusion::TimedOut, "failure"),
        (CheckConclusion::Cancelled, "error"),
        (CheckConclusion::ActionRequired, "pending"),
    ] {
        let later = CheckOutput {
            state: CheckRunState::Completed { conclusion, at },
            ..check()
        };
        let made = *made.as_ref().expect("it is made");
        rest.update_check_run(REPOSITORY, &head, made, &later)
            .await
            .expect("it is changed");
        let expected = FakeStatus {
            state: state.into(),
            ..pending.clone()
        };
        assert_eq!(shown(), [expected]);
    }
    assert_eq!(sides.fake.checks(REPOSITORY, &head), []);
}

#[tokio::test]
async fn what_is_written_stands_there_as_it_was_meant() {
    let sides = Sides::new().await;
    let number = sides.fake.open(REPOSITORY, &sides.ada, &[]);
    let head = sides.fake.head(REPOSITORY, number);
    let made = sides
        .rest
        .create_check_run(REPOSITORY, &head, &check())
        .await
        .expect("it is made");
    assert_eq!(sides.fake.checks(REPOSITORY, &head), [check()]);
    same!(sides.check_runs(REPOSITORY, &head));
    let later = CheckOutput {
        state: CheckRunState::InProgress,
        actions: Vec::new(),
        ..check()
    };
    sides
        .rest
        .update_check_run(REPOSITORY, &head, made, &later)
        .await
        .expect("it is changed");
    assert_eq!(sides.fake.checks(REPOSITORY, &head), [later]);

    let comment = sides
        .rest
        .create_comment(REPOSITORY, number, "a")
        .await
        .expect("it is made");
    sides
        .rest
        .update_comment(REPOSITORY, comment.id, "b\n")
        .await
        .expect("it is changed");
    sides
        .rest
        .react(REPOSITORY, comment.id, Reaction::Confused)
        .await
        .expect("it is made");
    let known = sides.fake.comments(REPOSITORY, number).await.expect("a read");
    assert_eq!(known[0].body.as_deref(), Some("b\n"));
    assert_eq!(sides.fake.reactions(REPOSITORY, comment.id), [Reaction::Confused]);
}

#[tokio::test]
async fn a_repository_that_was_renamed_is_found_again_and_its_number_is_compared() {
    let sides = Sides::new().await;
    let number = sides.fake.open(REPOSITORY, &sides.ada, &[]);
    sides.fake.rename_repository(REPOSITORY, "kubeflow/training");
    same!(sides.pull_request(REPOSITORY, number));
    // Somebody else takes the old name. What is there is not ours, and is not taken for it.
    sides
        .fake
        .add_repository(RepositoryId(8), "kubeflow/trainer", &[]);
    let foreign = sides.fake.add_pull_request(RepositoryId(8), number, &sides.ada);
    for error in [
        sides
            .rest
            .repository(REPOSITORY)
            .await
            .expect_err("it is another's"),
        sides
            .rest
            .pull_request(REPOSITORY, foreign)
            .await
            .expect_err("it is another's"),
        sides
            .rest
            .open_pull_requests(REPOSITORY)
            .await
            .expect_err("it is another's"),
    ] {
        assert_eq!(error.retry, ApiRetry::Never);
        assert!(error.to_string().contains("is another's"), "{error}");
    }
    // Whoever learns the new name finds it.
    sides
        .rest
        .repository_named("kubeflow/training")
        .await
        .expect("it is there");
    same!(sides.pull_request(REPOSITORY, number));
}

#[tokio::test]
async fn a_token_of_an_installation_is_asked_for_once_and_again_before_it_ends() {
    let sides = Sides::new().await;
    let clock = Arc::new(FakeClock::default());
    clock.advance(SignedDuration::from_secs(1_800_000_000));
    let installation = AppInstallation {
        issuer: APP.to_string(),
        installation: 12,
        key: AppKey::from_pem(include_str!("../../scale-set/src/testing/app-key.pem")).expect("a key"),
    };
    let tokens = AppTokens::new(&sides.http.address(), installation, clock.clone()).expect("an address");
    let asked = async || {
        let requests = sides.http.requests().await;
        let for_token = requests
            .iter()
            .filter(|request| request.url.path().ends_with("/access_tokens"));
        for_token.count()
    };
    let (one, other) = tokio::join!(tokens.token(), tokens.token());
    assert_eq!(one.expect("a token"), other.expect("a token"));
    assert_eq!(asked().await, 1, "who comes meanwhile waits for it");
    sides.fake.advance(SignedDuration::from_mins(54));
    clock.advance(SignedDuration::from_mins(54));
    tokens.token().await.expect("a token");
    assert_eq!(asked().await, 1);
    sides.fake.advance(SignedDuration::from_mins(1));
    clock.advance(SignedDuration::from_mins(1));
    let rest = RestGitHub::new(&sides.http.address(), Some(APP), Arc::new(tokens)).expect("an address");
    rest.repository_named("kubeflow/trainer")
        .await
        .expect("it is there");
    assert_eq!(asked().await, 2);
}

#[tokio::test]
async fn a_refusal_says_what_was_tried_and_whether_another_try_may_help() {
    let sides = Sides::new().await;
    let error = sides
        .rest
        .pull_request(REPOSITORY, 4711)
        .await
        .expect_err("there is none");
    let told = "could not read pull request 4711: GitHub answered 404 (request FAKE:1)";
    assert_eq!((error.to_string().as_str(), error.retry), (told, ApiRetry::Never));
    sides.fake.go_down();
    let error = sides
        .rest
        .branch(REPOSITORY, "main")
        .await
        .expect_err("it is down");
    assert_eq!((error.status, error.retry), (Some(503), ApiRetry::Later));
    sides.fake.recover();
    let stranger = client(&sides.http, "ghp_ofSomebodyElse");
    let error = stranger
        .repository_named("kubeflow/trainer")
        .await
        .expect_err("it is not known");
    assert_eq!(error.status, Some(401));
    assert!(!format!("{error:?}").contains("ghp_"));
    let nobody = RestGitHub::new(
        "http://127.0.0.1:1",
        None,
        Arc::new(FixedToken(ApiToken::new("x"))),
    );
    let error = nobody
        .expect("an address")
        .repository_named("a/b")
        .await
        .expect_err("nobody is there");
    assert_eq!((error.status, error.retry), (None, ApiRetry::Later));
}

#[tokio::test]
async fn a_runner_of_one_job_is_registered_found_and_forgotten() {
    let sides = Sides::new().await;
    let scope = RunnerScope::Organization("kubeflow".into());
    let new = NewJitRunner {
        name: "gpu-1".into(),
        group: 5,
        labels: vec!["self-hosted".into(), "gpu".into()],
        work_folder: "_work".into(),
    };
    let group = sides.rest.runner_group("kubeflow", "gpus").await;
    assert_eq!(group.expect("it answers"), Some(5));
    let made = sides.rest.jit_runner(&scope, &new).await.expect("it is made");
    let there = sides.fake.workflow_runners();
    assert_eq!((&there[0].scope, &there[0].new), (&scope, &new));
    let again = sides.rest.jit_runner(&scope, &new).await;
    assert_eq!(again.expect_err("its name is taken").status, Some(409));
    let found = sides.rest.find_runner(&scope, "gpu-1").await;
    assert_eq!(found.expect("it answers"), Some(made.id));

    let head = "1".repeat(40).parse().expect("a commit");
    let run = sides.fake.start_workflow(REPOSITORY, "pull_request", &head);
    let job = sides.fake.queue_workflow_job(REPOSITORY, run, &["gpu"]);
    assert_eq!(sides.fake.connect_runner(&made.config), Some(job));
    let busy = sides.rest.remove_runner(&scope, made.id).await;
    assert_eq!(busy.expect_err("it has a job").status, Some(422));
    let early = sides.rest.rerun_job(REPOSITORY, job).await;
    assert_eq!(early.expect_err("its run is not over").status, Some(403));
    sides.fake.complete_workflow_job(job, "failure");
    sides
        .rest
        .remove_runner(&scope, made.id)
        .await
        .expect("it is gone already");
    sides.rest.rerun_job(REPOSITORY, job).await.expect("it is over");
    assert_eq!(sides.fake.reruns(), [job]);
}

#[tokio::test]
async fn jobs_of_workflow_runs_come_with_their_head_and_labels() {
    let sides = Sides::new().await;
    let head = "1".repeat(40).parse().expect("a commit");
    let run = sides.fake.start_workflow(REPOSITORY, "pull_request", &head);
    let job = sides.fake.queue_workflow_job(REPOSITORY, run, &["gpu"]);
    let told = sides
        .rest
        .workflow_run(REPOSITORY, run)
        .await
        .expect("it is there");
    assert_eq!((&told.head_sha, told.event.as_str()), (&head, "pull_request"));
    let open = sides.rest.unfinished_runs(REPOSITORY).await.expect("it answers");
    assert_eq!(open, [told], "it is in both lists of the fake, and told once");
    let jobs = sides
        .rest
        .workflow_jobs(REPOSITORY, run)
        .await
        .expect("it answers");
    let seen: Vec<_> = jobs
        .iter()
        .map(|job| (job.id, &job.head_sha, &job.labels))
        .collect();
    assert_eq!(seen, [(job, &head, &vec!["gpu".to_owned()])]);
    assert!(
        sides
            .rest
            .workflow_run(REPOSITORY, 1)
            .await
            .expect_err("none")
            .is_not_found()
    );
}
