//! A repository with owners and strangers, and all that stands between its pull requests and a cluster.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use blueproof_core::{
    domain::{BlueprintName, GitSource, Gpus, Head, PodSets, Resources, Retries, RunId, RunState, Source},
    engine::{Engine, Ports},
    policy::{GatePolicy, LocalApproval, Policy},
    ports::{CallError, Clusters, Seq, StoreClient as _},
    testing::{self, FakeClock, FakeCluster, FakeReporter, MemoryDeliveries, MemoryStore, two_cores},
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_github::{
    answer::Answer,
    api::{CheckConclusion, CheckRunState, GitHub, Permission, RepositoryId},
    check::{CheckSettings, InfrastructureConclusion},
    confirm::{self, ConfirmedStarts, PullRequestNumber},
    intake::{Handled, Intake, IntakeError, IntakePorts, IntakeSettings, Pushes},
    payload::{Account, AccountKind, App, CheckRun, CommitSha, Payload, RepositoryInfo},
    plan::{HeadBlueprint, HeadBlueprints, HeadVariant},
    rest::{ApiToken, FixedToken, RestGitHub},
    sticky::StickyComments,
    testing::{FAKE_TOKEN, FakeDelivery, FakeGitHub, HttpFake},
    worker::DeliveryWorker,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

pub(crate) const REPOSITORY: RepositoryId = RepositoryId(7);
/// The number of our App.
const APP: u64 = 99;

/// OWNERS and the policy of the default branch.
pub(crate) const FILES: [(&str, &str); 3] = [
    ("OWNERS", "approvers: [ada]\n"),
    ("docs/OWNERS", "approvers: [dora]\n"),
    (".github/blueproof.yaml", POLICY),
];

pub(crate) const POLICY: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: PullRequestPolicy
spec:
  approval:
    label: ok-to-test-gpu-runner
    expiresAfter: 8h
";

/// Everybody and everything that a pull request meets.
pub(crate) struct World {
    pub(crate) github: Arc<FakeGitHub>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) cluster: Arc<FakeCluster>,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) intake: Intake,
    engine: Engine,
    /// How GitHub is asked.
    port: Arc<dyn GitHub>,
    /// What is asked over HTTP, where it is.
    http: Option<HttpFake>,
    n_deliveries: u64,
    /// What there is at each commit.
    pub(crate) blueprints: Arc<Examples>,
    /// The pull requests that were not as they were approved when they were to start.
    pub(crate) looks: mpsc::Receiver<PullRequestNumber>,
    /// Approves what is anywhere: in the root's OWNERS.
    pub(crate) ada: Account,
    /// Approves what is in `docs`.
    pub(crate) dora: Account,
    /// May push.
    pub(crate) cleo: Account,
    /// Opens pull requests from a fork.
    pub(crate) mallory: Account,
}

impl World {
    /// Returns a world whose GitHub is asked directly.
    pub(crate) async fn new() -> Self {
        let github = Arc::new(FakeGitHub::new(APP));
        Self::of(github.clone(), github, None).await
    }

    /// Returns a world whose GitHub is asked through its REST API.
    pub(crate) async fn over_http() -> Self {
        let github = Arc::new(FakeGitHub::new(APP));
        let http = HttpFake::start(github.clone()).await;
        let tokens = Arc::new(FixedToken(ApiToken::new(FAKE_TOKEN)));
        let rest = RestGitHub::new(&http.address(), Some(APP), tokens).expect("an address");
        let rest = Arc::new(rest);
        let world = Self::of(github, rest.clone(), Some(http)).await;
        rest.repository_named("kubeflow/trainer")
            .await
            .expect("it is there");
        world
    }

    async fn of(github: Arc<FakeGitHub>, port: Arc<dyn GitHub>, http: Option<HttpFake>) -> Self {
        let [ada, dora, cleo, mallory] = [(1, "ada"), (2, "dora"), (3, "cleo"), (4, "mallory")]
            .map(|(id, login)| github.add_account(id, login, AccountKind::User));
        github.add_repository(REPOSITORY, "kubeflow/trainer", &FILES);
        github.set_permission(REPOSITORY, &cleo, Permission::Write);
        let (store, clock) = (Arc::new(MemoryStore::default()), Arc::new(FakeClock::default()));
        let cluster = Arc::new(FakeCluster::waiting(two_cores()));
        let (changed, looks) = confirm::looks();
        let confirmed = ConfirmedStarts::new(cluster.clone(), port.clone(), changed);
        let engine = Engine::open(
            Ports {
                store: store.clone(),
                clusters: Clusters::one(Arc::new(confirmed)),
                reporters: vec![Arc::new(FakeReporter::default())],
                clock: clock.clone(),
            },
            policy(),
        );
        let engine = engine.await.expect("a store that works");
        let blueprints = Arc::new(Examples::default());
        let ports = IntakePorts {
            github: port.clone(),
            store: store.clone(),
            blueprints: blueprints.clone(),
            clock: clock.clone(),
        };
        Self {
            port,
            http,
            intake: Intake::new(ports, settings()),
            engine,
            github,
            store,
            cluster,
            clock,
            n_deliveries: 0,
            looks,
            blueprints,
            ada,
            dora,
            cleo,
            mallory,
        }
    }

    /// Opens a pull request of Mallory's that changes a blueprint, and has it looked at.
    pub(crate) async fn opened(&mut self) -> u64 {
        let number = self
            .github
            .open(REPOSITORY, &self.mallory, &["examples/nano-lm/nano-lm.ipynb"]);
        self.deliver().await;
        self.pass_minutes(5);
        number
    }

    /// Has the policy of the default branch say more.
    pub(crate) async fn set_policy(&mut self, more: &str) {
        self.push_policy(&format!("{POLICY}{more}")).await;
    }

    /// Has the policy's rules of approval say more.
    pub(crate) async fn set_policy_of_approval(&mut self, more: &str) {
        let policy = POLICY.replace("    expiresAfter: 8h\n", &format!("    expiresAfter: 8h\n{more}"));
        self.push_policy(&policy).await;
    }

    async fn push_policy(&mut self, policy: &str) {
        let files = [
            ("OWNERS", "approvers: [ada]\n"),
            (".github/blueproof.yaml", policy),
        ];
        self.github.push_to_main(REPOSITORY, &files);
        self.deliver().await;
    }

    /// Returns the names and conclusions of the check runs of a commit, all of which are concluded.
    pub(crate) fn concluded(&self, head: &CommitSha) -> Vec<(String, CheckConclusion)> {
        let checks = self.github.checks(REPOSITORY, head);
        let concluded = checks.into_iter().map(|check| match check.state {
            CheckRunState::Completed { conclusion, .. } => (check.name, conclusion),
            CheckRunState::Queued | CheckRunState::InProgress => panic!("{} is not concluded", check.name),
        });
        concluded.collect()
    }

    /// Lets time pass, for GitHub and for us.
    pub(crate) fn pass_minutes(&self, minutes: i64) {
        self.github.advance(SignedDuration::from_mins(minutes));
        self.clock.advance(SignedDuration::from_mins(minutes));
    }

    /// Has everything handled that GitHub has to tell, in its order, and the scheduler decide about it.
    pub(crate) async fn deliver(&mut self) -> Vec<Handled> {
        let deliveries = self.github.take_deliveries();
        self.handle_all(&deliveries).await
    }

    /// Polls, and has the scheduler decide about what is new.
    pub(crate) async fn poll(&mut self, since: Timestamp) -> Timestamp {
        let next = self.intake.poll(REPOSITORY, since).await.expect("GitHub works");
        self.decide().await;
        next
    }

    /// Has these deliveries handled, each once those before it are.
    pub(crate) async fn handle_all(&mut self, deliveries: &[FakeDelivery]) -> Vec<Handled> {
        let payloads: Vec<Payload> = deliveries.iter().map(parse).collect();
        let mut handled = Vec::new();
        for (place, payload) in payloads.iter().enumerate() {
            let later = Pushes::among(&payloads[place + 1..]);
            let result = self.handle(payload, &later).await;
            handled.push(result.expect("GitHub and the store work"));
            self.decide().await;
        }
        handled
    }

    /// Has one payload handled.
    pub(crate) async fn handle(&mut self, payload: &Payload, later: &Pushes) -> Result<Handled, IntakeError> {
        self.n_deliveries += 1;
        let id = format!("delivery-{}", self.n_deliveries);
        let id = id.parse().expect("a name of a delivery");
        self.intake.handle(&id, payload, later).await
    }

    /// Has the scheduler decide about all that was left.
    pub(crate) async fn decide(&mut self) {
        self.engine.run_until(|_| true).await.expect("a store that works");
    }

    /// Has the engine work until as many attempts run.
    pub(crate) async fn until_running(&mut self, n: usize) {
        let running = |view: &RunView| view.state == RunState::Running;
        self.engine
            .run_until(|scheduler| scheduler.runs().filter(|view| running(view)).count() == n)
            .await
            .expect("a store that works");
    }

    /// Has the engine work until a run is where it is expected.
    pub(crate) async fn until(&mut self, run: u64, state: RunState) {
        let is_there = move |view: &RunView| view.id == RunId(run) && view.state == state;
        self.engine
            .run_until(|scheduler| scheduler.runs().any(|view| is_there(&view)))
            .await
            .expect("a store that works");
    }

    /// Has the engine work until a run is seen so.
    pub(crate) async fn until_view(&mut self, is_so: impl Fn(&RunView) -> bool) {
        self.engine
            .run_until(|scheduler| scheduler.runs().any(|view| is_so(&view)))
            .await
            .expect("a store that works");
    }

    /// Says something on a pull request, and returns what came of it.
    pub(crate) async fn say(&mut self, number: u64, by: &Account, markdown: &str) -> Vec<Result<(), Answer>> {
        self.github.comment(REPOSITORY, number, by, markdown);
        answers(self.deliver().await)
    }

    /// Presses a button on the check run of a run.
    pub(crate) async fn press(
        &mut self,
        run: u64,
        by: &Account,
        identifier: Option<&str>,
    ) -> Vec<Result<(), Answer>> {
        let view = self.view(run).await;
        let Head::Commit(head) = &view.subject.head else {
            panic!("GitHub's heads are commits");
        };
        let check = check_of(run, head, APP);
        self.github.press(REPOSITORY, &check, by, identifier);
        answers(self.deliver().await)
    }

    pub(crate) async fn view(&self, run: u64) -> RunView {
        let view = self.store.run(RunId(run)).await.expect("a read");
        view.unwrap_or_else(|| panic!("there is no r-{run}"))
    }

    pub(crate) async fn state(&self, run: u64) -> RunState {
        self.view(run).await.state
    }

    /// Returns what every run is of, and how it stands.
    pub(crate) async fn runs(&self) -> Vec<(String, RunState)> {
        let mut views = self.store.runs(100).await.expect("a read");
        views.sort_by_key(|view| view.id);
        let told = views
            .into_iter()
            .map(|view| (view.subject.blueprint.to_string(), view.state));
        told.collect()
    }

    /// Returns how many requests came over HTTP.
    pub(crate) async fn n_requests(&self) -> usize {
        match &self.http {
            Some(http) => http.requests().await.len(),
            None => 0,
        }
    }

    /// Returns how many approvals were accepted.
    pub(crate) async fn approvals(&self) -> usize {
        let facts = self.store.facts(Seq(0), usize::MAX).await.expect("a read");
        facts
            .iter()
            .filter(|logged| logged.fact.kind() == "approvalAccepted")
            .count()
    }

    /// Hands the intake over to a worker on deliveries that are kept in memory.
    pub(crate) fn worker(&mut self) -> (DeliveryWorker, Arc<MemoryDeliveries>) {
        let deliveries = Arc::new(MemoryDeliveries::default());
        let next = Intake::new(self.ports(), settings());
        let intake = std::mem::replace(&mut self.intake, next);
        let worker = DeliveryWorker::new(deliveries.clone(), self.clock.clone(), intake);
        (worker, deliveries)
    }

    /// Ends the process that told the scheduler about GitHub, and begins another.
    pub(crate) fn restart_intake(&mut self) {
        self.intake = Intake::new(self.ports(), settings());
    }

    /// Has it told in comments why something was not done.
    pub(crate) fn answer_in_comments(&mut self) {
        let shown = CheckSettings {
            approver_role: "an approver of this repository".into(),
            infrastructure: InfrastructureConclusion::Failure,
            simulated_clusters: Default::default(),
        };
        let comments = StickyComments::new(self.port.clone(), APP, shown);
        self.intake = Intake::new(self.ports(), settings()).answering(Arc::new(comments));
    }

    fn ports(&self) -> IntakePorts {
        IntakePorts {
            github: self.port.clone(),
            store: self.store.clone(),
            blueprints: self.blueprints.clone(),
            clock: self.clock.clone(),
        }
    }

    pub(crate) fn head(&self, number: u64) -> CommitSha {
        self.github.head(REPOSITORY, number)
    }
}

/// Returns a check run as a payload names it.
pub(crate) fn check_of(run: u64, head: &str, app: u64) -> CheckRun {
    CheckRun {
        id: 500 + run,
        name: "GPU · nano-lm".into(),
        head_sha: head.parse().expect("a commit"),
        external_id: Some(format!("r-{run}.1")),
        app: Some(App { id: app }),
    }
}

/// Returns what came of the wishes among what was handled.
pub(crate) fn answers(handled: Vec<Handled>) -> Vec<Result<(), Answer>> {
    let answered = handled.into_iter().filter_map(|handled| match handled {
        Handled::Answered(answers) => Some(answers),
        Handled::Looked | Handled::Ignored(_) => None,
    });
    answered.flatten().collect()
}

pub(crate) fn parse(delivery: &FakeDelivery) -> Payload {
    Payload::parse(&delivery.event, &delivery.body).expect("GitHub sends what can be read")
}

fn settings() -> IntakeSettings {
    IntakeSettings {
        app: Some(APP),
        queue: "local".parse().expect("a name"),
    }
}

fn policy() -> Policy {
    Policy {
        gate: GatePolicy {
            digest: "of-the-admin".into(),
            local: LocalApproval::Required,
            approvers: Default::default(),
        },
        ..Policy::local(two_cores())
    }
}

/// Two blueprints, at each commit as they are written now.
#[derive(Debug, Default)]
pub(crate) struct Examples(Mutex<Written>);

/// How the blueprints are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Written {
    #[default]
    Well,
    /// The first has a mistake.
    WithMistake,
    /// Each asks for eight GPUs.
    Greedily,
    /// None of them can be read.
    Unreadably,
}

impl Examples {
    pub(crate) fn write(&self, written: Written) {
        *self.0.lock().expect("nobody panics with it") = written;
    }
}

#[async_trait]
impl HeadBlueprints for Examples {
    async fn at(&self, _: &RepositoryInfo, head: &CommitSha) -> Result<Vec<HeadBlueprint>, CallError> {
        let mut all = ["mnist", "nano-lm"].map(|name| example(name, head));
        let written = *self.0.lock().expect("nobody panics with it");
        let mistake = |message| Diagnostic::error(Code::UnknownKey, message);
        match written {
            Written::Well => {}
            Written::WithMistake => {
                let place = SourceLocation {
                    line: Some(3),
                    ..SourceLocation::file("examples/mnist/blueprint.yaml")
                };
                all[0].variants = Err(vec![mistake("unknown key `notbook`").at(place)]);
            }
            Written::Greedily => {
                let eight = Resources {
                    gpu: Gpus(8),
                    ..Resources::default()
                };
                for variant in all
                    .iter_mut()
                    .filter_map(|one| one.variants.as_mut().ok())
                    .flatten()
                {
                    variant.job.pod_sets = PodSets::of_amounts(eight, Resources::default());
                }
            }
            Written::Unreadably => return Err(CallError::never(mistake("the commit has too many files"))),
        }
        Ok(all.into())
    }
}

fn example(name: &str, head: &CommitSha) -> HeadBlueprint {
    let name: BlueprintName = name.parse().expect("a name");
    let mut job = testing::request("any", name.as_str()).job;
    job.source = Source::Git(GitSource {
        repository: "https://github.com/kubeflow/trainer".parse().expect("an address"),
        commit: head.to_string(),
        folder: PathBuf::from(format!("examples/{name}")),
    });
    HeadBlueprint {
        folder: format!("examples/{name}"),
        name,
        triggers: Vec::new(),
        variants: Ok(vec![HeadVariant {
            profile: None,
            job,
            retries: Retries::default(),
        }]),
    }
}
