//! Which head, base and state each pull request was last seen with.
//!
//! An observation is what GitHub said at one moment, in a webhook or in answer to a question. It becomes commands where it differs from
//! the one before. Both can come late: one that is older than what is known, by GitHub's own time, is passed over. Nothing here is
//! kept beyond the process: after a restart every pull request is looked at again.

use std::collections::BTreeMap;

use blueproof_core::{
    domain::{PullRequest, RequestKey},
    ports::Command,
};
use jiff::Timestamp;

use crate::{
    api::RepositoryId,
    key,
    payload::{PullRequestInfo, PullRequestState},
};

/// The pull requests that were seen.
#[derive(Debug, Default)]
pub struct Observed {
    known: BTreeMap<(RepositoryId, u64), Observation>,
}

/// A pull request as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The pull request.
    pub info: PullRequestInfo,
    /// By when, by GitHub's clock, it had its head: the head came then or earlier.
    pub head_by: Timestamp,
    /// By when it had its base.
    pub base_by: Timestamp,
    /// How often it was seen otherwise than before.
    n_changes: u32,
}

impl Observed {
    /// Returns what the scheduler has to be told of what was seen. It is [noted](Self::note) once that is told.
    pub fn changes(&self, repository: RepositoryId, info: &PullRequestInfo) -> Vec<Command> {
        let before = self.get(repository, info.number);
        if before.is_some_and(|before| before.is_newer_than(info)) {
            return Vec::new();
        }
        let told = Told {
            pull_request: PullRequest {
                repository: repository.to_repository(),
                number: info.number,
            },
            at: info.updated_at,
            n_before: before.map_or(0, |before| before.n_changes),
        };
        told.changes(before.map(|before| &before.info), info)
    }

    /// Takes note of what was seen, unless something newer is known.
    pub fn note(&mut self, repository: RepositoryId, info: PullRequestInfo) {
        let is_change = !self.changes(repository, &info).is_empty();
        let before = self.get(repository, info.number);
        if before.is_some_and(|before| before.is_newer_than(&info)) {
            return;
        }
        let mut observation = Observation::after(before, info);
        observation.n_changes += u32::from(is_change);
        let place = (repository, observation.info.number);
        self.known.insert(place, observation);
    }

    /// Returns how a pull request was last seen.
    pub fn get(&self, repository: RepositoryId, number: u64) -> Option<&Observation> {
        self.known.get(&(repository, number))
    }

    /// Forgets the pull requests of a repository that we may not see any more.
    pub fn forget(&mut self, repository: RepositoryId) {
        self.known.retain(|(of, _), _| *of != repository);
    }
}

impl Observation {
    fn after(before: Option<&Self>, info: PullRequestInfo) -> Self {
        let at = info.updated_at;
        let same_head = before.filter(|before| before.info.head.sha == info.head.sha);
        let same_base = before.filter(|before| before.info.base.name == info.base.name);
        Self {
            head_by: same_head.map_or(at, |before| before.head_by),
            base_by: same_base.map_or(at, |before| before.base_by),
            n_changes: before.map_or(0, |before| before.n_changes),
            info,
        }
    }

    fn is_newer_than(&self, info: &PullRequestInfo) -> bool {
        self.info.updated_at > info.updated_at
    }

    /// Returns whether it is open.
    pub fn is_open(&self) -> bool {
        match self.info.state {
            PullRequestState::Open => true,
            PullRequestState::Closed | PullRequestState::Other(_) => false,
        }
    }
}

/// Makes the commands about one pull request, at one time of GitHub's.
struct Told {
    pull_request: PullRequest,
    at: Timestamp,
    /// GitHub's times are whole seconds, in which a head can come and go.
    n_before: u32,
}

impl Told {
    /// Returns what is another than before; of what was never seen, everything.
    fn changes(&self, before: Option<&PullRequestInfo>, now: &PullRequestInfo) -> Vec<Command> {
        let mut commands = Vec::new();
        let is_open = |info: &PullRequestInfo| info.state == PullRequestState::Open;
        // What is closed is told first, and what is open again last: in between nothing of it may start.
        if !is_open(now) && before.is_none_or(is_open) {
            commands.push(self.closed());
        }
        if before.is_none_or(|before| before.base.name != now.base.name) {
            commands.extend(self.base(now));
        }
        if before.is_none_or(|before| before.head.sha != now.head.sha) {
            commands.push(self.head(now));
        }
        if is_open(now) && before.is_none_or(|before| !is_open(before)) {
            commands.push(self.reopened());
        }
        commands
    }

    fn closed(&self) -> Command {
        Command::ClosePullRequest {
            key: self.key("closed", ""),
            pull_request: self.pull_request.clone(),
        }
    }

    fn reopened(&self) -> Command {
        Command::ReopenPullRequest {
            key: self.key("open", ""),
            pull_request: self.pull_request.clone(),
        }
    }

    /// A base that git has no branch for is none that anything was approved for.
    fn base(&self, now: &PullRequestInfo) -> Option<Command> {
        Some(Command::ChangeBase {
            key: self.key("base", &now.base.name),
            pull_request: self.pull_request.clone(),
            base: now.base_ref()?,
        })
    }

    fn head(&self, now: &PullRequestInfo) -> Command {
        Command::Synchronize {
            key: self.key("head", now.head.sha.as_str()),
            pull_request: self.pull_request.clone(),
            head: now.head.sha.to_head(),
        }
    }

    fn key(&self, kind: &str, now: &str) -> RequestKey {
        let PullRequest { repository, number } = &self.pull_request;
        let (number, at, n) = (number.to_string(), self.at.to_string(), self.n_before.to_string());
        key::of([key::repository(repository).as_str(), &number, kind, &at, &n, now])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{Branch, Label};

    const REPOSITORY: RepositoryId = RepositoryId(7);

    fn info(head: char, base: &str, second: i64) -> PullRequestInfo {
        PullRequestInfo {
            number: 12,
            state: PullRequestState::Open,
            draft: None,
            user: None,
            head: Branch {
                name: "topic".into(),
                sha: head.to_string().repeat(40).parse().expect("a commit"),
                repo: None,
            },
            base: Branch {
                name: base.into(),
                sha: String::new(),
                repo: None,
            },
            updated_at: Timestamp::from_second(second).expect("a time"),
            labels: Vec::<Label>::new(),
        }
    }

    impl Observed {
        fn observe(&mut self, repository: RepositoryId, info: PullRequestInfo) -> Vec<Command> {
            let commands = self.changes(repository, &info);
            self.note(repository, info);
            commands
        }
    }

    fn kinds(commands: &[Command]) -> Vec<&'static str> {
        commands.iter().map(Command::kind).collect()
    }

    fn closed(info: PullRequestInfo) -> PullRequestInfo {
        PullRequestInfo {
            state: PullRequestState::Closed,
            ..info
        }
    }

    #[test]
    fn only_what_is_another_than_before_is_told() {
        let mut observed = Observed::default();
        let mut told = |info| kinds(&observed.observe(REPOSITORY, info));
        assert_eq!(
            told(info('a', "main", 1)),
            ["changeBase", "synchronize", "reopenPullRequest"]
        );
        assert_eq!(told(info('a', "main", 2)), [""; 0]);
        assert_eq!(told(info('b', "main", 3)), ["synchronize"]);
        assert_eq!(told(info('b', "release", 4)), ["changeBase"]);
        assert_eq!(told(closed(info('b', "release", 5))), ["closePullRequest"]);
        assert_eq!(told(closed(info('b', "release", 6))), [""; 0]);
        assert_eq!(
            told(info('c', "release", 7)),
            ["synchronize", "reopenPullRequest"]
        );
    }

    /// A6 of the list of attacks, and a REST API that lags behind.
    #[test]
    fn what_is_older_than_what_is_known_is_passed_over() {
        let mut observed = Observed::default();
        observed.observe(REPOSITORY, info('b', "main", 9));
        assert_eq!(observed.observe(REPOSITORY, info('a', "main", 8)), []);
        let known = observed.get(REPOSITORY, 12).expect("it was seen");
        assert_eq!(known.info.head.sha, info('b', "main", 9).head.sha);
    }

    #[test]
    fn when_a_head_came_is_told_by_the_first_look_at_it() {
        let mut observed = Observed::default();
        for (head, second) in [('a', 1), ('a', 50), ('b', 60), ('b', 99)] {
            observed.observe(REPOSITORY, info(head, "main", second));
        }
        let known = observed.get(REPOSITORY, 12).expect("it was seen");
        assert_eq!(known.head_by, Timestamp::from_second(60).expect("a time"));
        assert_eq!(known.base_by, Timestamp::from_second(1).expect("a time"));
        observed.forget(REPOSITORY);
        assert_eq!(observed.get(REPOSITORY, 12), None);
    }

    #[test]
    fn a_head_that_comes_back_is_told_by_another_command() {
        let mut observed = Observed::default();
        let mut keys = Vec::new();
        for head in ['a', 'b', 'a', 'b'] {
            let commands = observed.observe(REPOSITORY, info(head, "main", 1));
            keys.extend(commands.iter().map(|command| command.key().clone()));
        }
        let different: std::collections::BTreeSet<_> = keys.iter().map(|key| &key.0).collect();
        assert_eq!(different.len(), keys.len(), "{keys:?}");
    }

    #[test]
    fn after_a_restart_what_has_not_changed_is_told_by_the_same_commands() {
        let told = || Observed::default().observe(REPOSITORY, info('a', "main", 1));
        assert_eq!(told(), told());
    }
}
