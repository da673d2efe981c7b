//! A GitHub in memory: repositories, pull requests, comments and check runs, with a clock of its own.
//!
//! A test acts on it as people do, and then looks at what stands on the pull request. What people do is also told as GitHub
//! delivers it: [`FakeGitHub::take_deliveries`] returns the payloads, as JSON, in their order; a test may lose, repeat and swap them.

mod actions;
mod hook;
mod http;
mod limits;
mod merge_groups;
mod payloads;
mod port;
mod registration;
#[cfg(test)]
mod samples;
mod statuses;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::{
    api::{
        Annotation, ApiError, ChangedPaths, CheckOutput, CheckRunId, CheckRunState, Collaborator,
        HookDeliveryId, Permission, Reaction, RepositoryId,
    },
    payload::{
        Account, AccountKind, App, Branch, CheckRun, CheckRunAction, Comment, CommitSha, MergeGroup,
        PullRequestInfo, PullRequestState, RepositoryInfo,
    },
    webhook::EventName,
};

pub use actions::FakeRunner;
use actions::FakeWorkflows;
pub use http::{FAKE_TOKEN, FakeAnswer, HttpFake};
#[cfg(test)]
pub(crate) use samples::{run_status, run_status_of};
pub use statuses::FakeStatus;

/// When the fake's clock begins.
const BEGINNING: i64 = 1_800_000_000;

/// A GitHub in memory.
#[derive(Debug)]
pub struct FakeGitHub {
    state: Mutex<State>,
    /// How often it was asked something.
    asked: watch::Sender<u64>,
    app: u64,
}

/// A delivery as GitHub would send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeDelivery {
    /// The kind of event.
    pub event: EventName,
    /// Its body.
    pub body: Vec<u8>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    next_id: u64,
    accounts: BTreeMap<String, Account>,
    repositories: BTreeMap<RepositoryId, FakeRepository>,
    deliveries: Vec<FakeDelivery>,
    /// The calls that fail, by their numbers.
    failing: BTreeMap<u64, ApiError>,
    /// The calls that fail each time, by their names.
    failures: BTreeMap<&'static str, FakeFailure>,
    calls: BTreeMap<&'static str, u32>,
    former_names: BTreeMap<String, RepositoryId>,
    /// What was sent to our webhook, the oldest first, and what of it is to be sent once more.
    sent: Vec<hook::Sending>,
    to_send_again: Vec<HookDeliveryId>,
    /// The Apps that were registered from a manifest, and whether ours is installed.
    registered: Vec<registration::Registered>,
    is_installed: bool,
    n_calls: u64,
    is_down: bool,
    workflows: FakeWorkflows,
}

#[derive(Debug)]
struct FakeRepository {
    info: RepositoryInfo,
    branches: BTreeMap<String, CommitSha>,
    required_checks: BTreeMap<String, BTreeSet<String>>,
    files: BTreeMap<CommitSha, BTreeMap<String, String>>,
    pull_requests: BTreeMap<u64, FakePullRequest>,
    collaborators: Vec<Collaborator>,
    comments: BTreeMap<u64, FakeComment>,
    check_runs: BTreeMap<CheckRunId, StoredCheckRun>,
    merge_groups: Vec<MergeGroup>,
    statuses: BTreeMap<(CommitSha, String), FakeStatus>,
}

#[derive(Debug)]
struct FakePullRequest {
    info: PullRequestInfo,
    changed: ChangedPaths,
}

#[derive(Debug)]
struct FakeComment {
    number: u64,
    comment: Comment,
    reactions: Vec<Reaction>,
}

/// A check run as it stands on the fake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckRun {
    /// The commit.
    pub head: CommitSha,
    /// What was sent last.
    pub check: CheckOutput,
    /// All annotations that were ever sent: GitHub adds those of an update.
    pub annotations: Vec<Annotation>,
    /// How often it was updated.
    pub n_updates: u32,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeFailure {
    /// GitHub is not reached, and nothing happens.
    NotReached,
    /// It happens, and the answer is lost.
    AnswerLost,
    /// The rate limit is used up until then.
    RateLimited(Timestamp),
    /// GitHub refuses it.
    Refused,
}

impl FakeGitHub {
    /// The number of the account that our comments are by.
    pub const ACCOUNT: u64 = 990;

    /// The number of the only installation of our App.
    pub const INSTALLATION: u64 = 12;

    /// Returns a GitHub without repositories, on which our App has this number.
    pub fn new(app: u64) -> Self {
        let state = State {
            now: Timestamp::from_second(BEGINNING).expect("a time"),
            next_id: 1000,
            accounts: BTreeMap::new(),
            repositories: BTreeMap::new(),
            deliveries: Vec::new(),
            failing: BTreeMap::new(),
            failures: BTreeMap::new(),
            calls: BTreeMap::new(),
            former_names: BTreeMap::new(),
            sent: Vec::new(),
            to_send_again: Vec::new(),
            registered: Vec::new(),
            is_installed: false,
            n_calls: 0,
            is_down: false,
            workflows: FakeWorkflows::default(),
        };
        Self {
            state: Mutex::new(state),
            asked: watch::Sender::new(0),
            app,
        }
    }

    /// Makes an account.
    pub fn add_account(&self, id: u64, login: &str, kind: AccountKind) -> Account {
        let account = Account {
            id,
            login: login.into(),
            kind,
        };
        let key = login.to_ascii_lowercase();
        self.lock().accounts.insert(key, account.clone());
        account
    }

    /// Gives an account another login. Whoever makes an account with the old one has that from then on.
    pub fn rename_account(&self, from: &str, to: &str) {
        let mut state = self.lock();
        let account = state
            .accounts
            .remove(&from.to_ascii_lowercase())
            .expect("it is there");
        let renamed = Account {
            login: to.into(),
            ..account
        };
        state.accounts.insert(to.to_ascii_lowercase(), renamed);
    }

    /// Makes a repository whose default branch, `main`, has these files.
    pub fn add_repository(&self, id: RepositoryId, full_name: &str, files: &[(&str, &str)]) {
        let repository = FakeRepository {
            info: RepositoryInfo {
                id: id.0,
                full_name: full_name.into(),
                default_branch: Some("main".into()),
            },
            branches: BTreeMap::new(),
            required_checks: BTreeMap::new(),
            files: BTreeMap::new(),
            pull_requests: BTreeMap::new(),
            collaborators: Vec::new(),
            comments: BTreeMap::new(),
            check_runs: BTreeMap::new(),
            merge_groups: Vec::new(),
            statuses: BTreeMap::new(),
        };
        let mut state = self.lock();
        // Whoever takes a name that was given up takes the redirection away.
        state.former_names.remove(full_name);
        state.repositories.insert(id, repository);
        drop(state);
        self.push_to_main(id, files);
    }

    /// Replaces the files of the default branch, which is told.
    pub fn push_to_main(&self, id: RepositoryId, files: &[(&str, &str)]) {
        let mut state = self.lock();
        let commit = state.new_commit();
        let repository = state.repository(id);
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into()));
        repository.files.insert(commit.clone(), files.collect());
        repository.branches.insert("main".into(), commit.clone());
        let body = payloads::push(&repository.info, &commit);
        state.deliver("push", &body);
    }

    /// Has a branch require these checks, and no others.
    pub fn require_checks(&self, id: RepositoryId, branch: &str, names: &[&str]) {
        let names = names.iter().map(|&name| name.into()).collect();
        let mut state = self.lock();
        state.repository(id).required_checks.insert(branch.into(), names);
    }

    /// Gives an account a permission in a repository, or takes it away.
    pub fn set_permission(&self, id: RepositoryId, account: &Account, permission: Permission) {
        let mut state = self.lock();
        let collaborators = &mut state.repository(id).collaborators;
        collaborators.retain(|one| one.account.id != account.id);
        if permission != Permission::None {
            collaborators.push(Collaborator {
                account: account.clone(),
                permission,
            });
        }
    }

    /// Opens a pull request that changes these paths.
    pub fn open(&self, id: RepositoryId, author: &Account, paths: &[&str]) -> u64 {
        let mut state = self.lock();
        let (number, head, now) = (state.new_id(), state.new_commit(), state.now);
        let repository = state.repository(id).info.clone();
        let info = PullRequestInfo {
            number,
            state: PullRequestState::Open,
            draft: Some(false),
            user: Some(author.clone()),
            head: Branch {
                name: "topic".into(),
                sha: head,
                repo: Some(repository.clone()),
            },
            base: Branch {
                name: "main".into(),
                sha: String::new(),
                repo: Some(repository),
            },
            updated_at: now,
            labels: Vec::new(),
        };
        let changed = ChangedPaths {
            paths: paths
                .iter()
                .map(|&path| path.into())
                .collect::<BTreeSet<String>>(),
            is_cut_off: false,
        };
        let pull_requests = &mut state.repository(id).pull_requests;
        pull_requests.insert(number, FakePullRequest { info, changed });
        state.deliver_pull_request(id, number, "opened", author, None);
        number
    }

    /// Opens a pull request whose head is a commit that somebody has made.
    pub fn open_at(&self, id: RepositoryId, author: &Account, paths: &[&str], head: &CommitSha) -> u64 {
        let number = self.open(id, author, paths);
        let mut state = self.lock();
        state.deliveries.pop();
        state.change(id, number, |info| info.head.sha = head.clone());
        state.deliver_pull_request(id, number, "opened", author, None);
        number
    }

    /// Returns whether there is a pull request of this number.
    pub fn has_pull_request(&self, id: RepositoryId, number: u64) -> bool {
        self.lock().repository(id).pull_requests.contains_key(&number)
    }

    /// Opens a pull request of a number, as another repository has one, too. It is told to nobody.
    pub fn add_pull_request(&self, id: RepositoryId, number: u64, author: &Account) -> u64 {
        let opened = self.open(id, author, &[]);
        let mut state = self.lock();
        state.deliveries.pop();
        let pull_requests = &mut state.repository(id).pull_requests;
        let mut moved = pull_requests.remove(&opened).expect("it was just opened");
        moved.info.number = number;
        pull_requests.insert(number, moved);
        number
    }

    /// Pushes another commit to a pull request, and returns it.
    pub fn push(&self, id: RepositoryId, number: u64, by: &Account) -> CommitSha {
        let mut state = self.lock();
        let commit = state.new_commit();
        state.change(id, number, |info| info.head.sha = commit.clone());
        state.deliver_pull_request(id, number, "synchronize", by, None);
        commit
    }

    /// Pushes a commit that the pull request had before.
    pub fn push_back(&self, id: RepositoryId, number: u64, by: &Account, commit: &CommitSha) {
        let mut state = self.lock();
        state.change(id, number, |info| info.head.sha = commit.clone());
        state.deliver_pull_request(id, number, "synchronize", by, None);
    }

    /// Has a pull request be merged into another branch.
    pub fn change_base(&self, id: RepositoryId, number: u64, by: &Account, base: &str) {
        let mut state = self.lock();
        state.change(id, number, |info| info.base.name = base.into());
        state.deliver_pull_request(id, number, "edited", by, None);
    }

    /// Closes a pull request.
    pub fn close(&self, id: RepositoryId, number: u64, by: &Account) {
        let mut state = self.lock();
        state.change(id, number, |info| info.state = PullRequestState::Closed);
        state.deliver_pull_request(id, number, "closed", by, None);
    }

    /// Puts a label on a pull request.
    pub fn label(&self, id: RepositoryId, number: u64, by: &Account, label: &str) {
        let mut state = self.lock();
        state.change(id, number, |_| {});
        state.deliver_pull_request(id, number, "labeled", by, Some(label));
    }

    /// Comments on a pull request, and returns the comment's number.
    pub fn comment(&self, id: RepositoryId, number: u64, by: &Account, markdown: &str) -> u64 {
        let mut state = self.lock();
        let comment = state.add_comment(id, number, by, None, markdown);
        // GitHub takes a comment for a change of the pull request.
        state.change(id, number, |_| {});
        state.deliver_comment(id, comment, "created", by);
        comment
    }

    /// Changes the text of a comment, and tells that somebody did.
    pub fn edit_comment(&self, id: RepositoryId, comment: u64, by: &Account, markdown: &str) {
        let mut state = self.lock();
        let now = state.now;
        let known = state
            .repository(id)
            .comments
            .get_mut(&comment)
            .expect("it is there");
        known.comment.body = Some(markdown.into());
        known.comment.updated_at = now;
        state.deliver_comment(id, comment, "edited", by);
    }

    /// Presses a button of a check run, or asks for it once more.
    pub fn press(&self, id: RepositoryId, check: &CheckRun, by: &Account, identifier: Option<&str>) {
        let mut state = self.lock();
        let action = match identifier {
            Some(_) => CheckRunAction::RequestedAction,
            None => CheckRunAction::Rerequested,
        };
        let body = payloads::check_run(&state.repository(id).info, check, by, action, identifier);
        state.deliver("check_run", &body);
    }

    /// Lets time pass.
    pub fn advance(&self, by: SignedDuration) {
        self.lock().now += by;
    }

    /// Sets the clock.
    pub fn set_now(&self, now: Timestamp) {
        self.lock().now = now;
    }

    /// Lets a call fail, whichever it is, after so many others.
    pub fn fail_call(&self, after: u64, error: ApiError) {
        let mut state = self.lock();
        let nth = state.n_calls + after;
        state.failing.insert(nth, error);
    }

    /// Has no call answered until [`recover`](Self::recover).
    pub fn go_down(&self) {
        self.lock().is_down = true;
    }

    /// Lets each call of this name fail until [`recover`](Self::recover), such as `create_check_run`.
    pub fn fail(&self, call: &'static str, failure: FakeFailure) {
        self.lock().failures.insert(call, failure);
    }

    /// Has every call answered again.
    pub fn recover(&self) {
        let mut state = self.lock();
        state.is_down = false;
        state.failures.clear();
    }

    /// Returns what was told since this was last asked, in its order.
    pub fn take_deliveries(&self) -> Vec<FakeDelivery> {
        std::mem::take(&mut self.lock().deliveries)
    }

    /// Returns the head that a pull request has.
    pub fn head(&self, id: RepositoryId, number: u64) -> CommitSha {
        let mut state = self.lock();
        state.pull_request(id, number).info.head.sha.clone()
    }

    /// Returns the reactions of a comment.
    pub fn reactions(&self, id: RepositoryId, comment: u64) -> Vec<Reaction> {
        self.lock().repository(id).comments[&comment].reactions.clone()
    }

    /// Returns the check runs of a repository, the first one first.
    pub fn stored_check_runs(&self, id: RepositoryId) -> Vec<StoredCheckRun> {
        self.lock().repository(id).check_runs.values().cloned().collect()
    }

    /// Returns how the check runs of a repository stand.
    fn stored_states(&self, id: RepositoryId) -> BTreeMap<CheckRunId, CheckRunState> {
        let mut state = self.lock();
        let all = state.repository(id).check_runs.iter();
        all.map(|(id, run)| (*id, run.check.state)).collect()
    }

    /// Returns what the check runs of a commit show, the first one first.
    pub fn checks(&self, id: RepositoryId, head: &CommitSha) -> Vec<CheckOutput> {
        let stored = self.stored_check_runs(id);
        let of_head = stored.into_iter().filter(|run| run.head == *head);
        of_head.map(|run| run.check).collect()
    }

    /// Returns once something holds, which is looked at again after each call.
    pub async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut asked = self.asked.subscribe();
        let waited = asked.wait_for(|_| holds(self)).await;
        waited.expect("it lives as long as whoever waits");
    }

    /// Returns how often a call of this name was made, failures included.
    pub fn n_calls(&self, call: &str) -> u32 {
        self.lock().calls.get(call).copied().unwrap_or_default()
    }

    /// Returns the number of our App.
    pub fn app(&self) -> u64 {
        self.app
    }

    /// Gives a repository another name. GitHub redirects from the old one.
    pub fn rename_repository(&self, id: RepositoryId, full_name: &str) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.repository(id).info.full_name, full_name.into());
        state.former_names.insert(before, id);
    }

    /// Returns the repository that has a name.
    fn id_of(&self, full_name: &str) -> Option<RepositoryId> {
        let state = self.lock();
        let mut named = state
            .repositories
            .iter()
            .filter(|(_, one)| one.info.full_name == full_name);
        named.next().map(|(id, _)| *id)
    }

    /// Returns what a repository is called now that had this name.
    fn name_after(&self, former: &str) -> Option<String> {
        let mut state = self.lock();
        let id = *state.former_names.get(former)?;
        Some(state.repository(id).info.full_name.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn new_commit(&mut self) -> CommitSha {
        let digits = format!("{:040x}", self.new_id());
        digits.parse().expect("40 digits")
    }

    fn repository(&mut self, id: RepositoryId) -> &mut FakeRepository {
        self.repositories.get_mut(&id).expect("the repository is there")
    }

    fn pull_request(&mut self, id: RepositoryId, number: u64) -> &mut FakePullRequest {
        let pull_requests = &mut self.repository(id).pull_requests;
        pull_requests.get_mut(&number).expect("the pull request is there")
    }

    fn change(&mut self, id: RepositoryId, number: u64, change: impl FnOnce(&mut PullRequestInfo)) {
        let now = self.now;
        let info = &mut self.pull_request(id, number).info;
        change(info);
        info.updated_at = now;
    }

    fn add_comment(
        &mut self,
        id: RepositoryId,
        number: u64,
        by: &Account,
        app: Option<App>,
        markdown: &str,
    ) -> u64 {
        let (comment, now) = (self.new_id(), self.now);
        let comment_of = FakeComment {
            number,
            comment: Comment {
                id: comment,
                body: Some(markdown.into()),
                user: Some(by.clone()),
                app,
                created_at: now,
                updated_at: now,
            },
            reactions: Vec::new(),
        };
        self.repository(id).comments.insert(comment, comment_of);
        comment
    }

    fn deliver_pull_request(
        &mut self,
        id: RepositoryId,
        number: u64,
        action: &str,
        by: &Account,
        label: Option<&str>,
    ) {
        let repository = self.repository(id).info.clone();
        let info = self.pull_request(id, number).info.clone();
        let body = payloads::pull_request(&repository, &info, action, by, label);
        self.deliver("pull_request", &body);
    }

    fn deliver_comment(&mut self, id: RepositoryId, comment: u64, action: &str, by: &Account) {
        let repository = self.repository(id);
        let known = &repository.comments[&comment];
        let body = payloads::comment(&repository.info, known.number, &known.comment, action, by);
        self.deliver("issue_comment", &body);
    }

    fn deliver(&mut self, event: &str, body: &serde_json::Value) {
        self.deliveries.push(FakeDelivery {
            event: event.parse().expect("a name of an event"),
            body: serde_json::to_vec(body).expect("plain data"),
        });
    }
}
