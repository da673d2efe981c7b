//! Who may approve what a repository has, as its default branch and its settings say at one moment.
//!
//! Everything is read at one commit of the default branch, so that a policy is never paired with the OWNERS of another time. What
//! a pull request changes of these files has no effect on who approves it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use blueproof_core::{
    domain::{Actor, RunRequest},
    ports::Command,
};
use blueproof_diagnostic::{Code, Diagnostic};

use jiff::Timestamp;

use crate::{
    api::{ApiError, ChangedPaths, Collaborator, GitHub, RepositoryId},
    key,
    owners::{Login, Owners, OwnersError},
    payload::{Account, CommitSha},
    policy::{POLICY_PATH, Policy},
};

/// The most OWNERS files that are read of a repository.
const MOST_OWNERS_FILES: usize = 500;
/// The path of the aliases.
const ALIASES: &str = "OWNERS_ALIASES";
/// What files with owners are called.
const OWNERS: &str = "OWNERS";

/// Who may approve what a repository has.
#[derive(Debug)]
pub struct Entitlement {
    /// The repository.
    pub repository: RepositoryId,
    /// The commit of the default branch that it was read at.
    pub commit: CommitSha,
    written: Arc<Written>,
    collaborators: Vec<Collaborator>,
}

/// What is written at a commit about who may approve.
#[derive(Debug)]
struct Written {
    policy: Policy,
    owners: Owners,
    /// Who had the logins of OWNERS when it was read.
    accounts: BTreeMap<Login, Account>,
}

/// Returns who approves what the policy lets run without anybody's word. No user of a machine is called so.
pub fn the_policy() -> Actor {
    Actor::Local("the policy of the default branch".into())
}

/// Why nobody can tell who may approve.
#[derive(Debug, thiserror::Error)]
pub enum EntitlementError {
    /// GitHub could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// OWNERS or OWNERS_ALIASES cannot be read.
    #[error(transparent)]
    Owners(#[from] OwnersError),
    /// There are too many OWNERS files.
    #[error("the repository has {0} OWNERS files, and at most {MOST_OWNERS_FILES} are read")]
    TooManyOwners(usize),
    /// The policy cannot be read.
    #[error("could not read the policy `{POLICY_PATH}` of the default branch")]
    Policy(Vec<Diagnostic>),
    /// The repository has no branch yet.
    #[error("the repository has no default branch")]
    NoBranch,
}

impl EntitlementError {
    /// Returns it as it is shown to people.
    pub fn diagnostic(&self) -> Diagnostic {
        let told = |hint: &str| {
            let message = "nobody can tell who may approve here";
            Diagnostic::error(Code::EntitlementUnreadable, message)
                .caused_by(self)
                .hint(hint)
        };
        match self {
            Self::Api(error) => error.diagnostic(),
            Self::Owners(_) => told("repair the file on the default branch"),
            Self::TooManyOwners(_) => told("set `spec.approval.owners: false` in the policy"),
            Self::NoBranch => told("push a first commit"),
            Self::Policy(problems) => {
                let told = told("repair the policy on the default branch");
                problems
                    .iter()
                    .fold(told, |told, problem| told.because(problem.message.clone()))
            }
        }
    }
}

impl Written {
    async fn read(
        github: &dyn GitHub,
        repository: RepositoryId,
        commit: &CommitSha,
    ) -> Result<Self, EntitlementError> {
        let policy = github.file(repository, POLICY_PATH, commit).await?;
        let policy = Policy::read(policy.as_deref()).map_err(EntitlementError::Policy)?;
        let owners = match policy.approval.owners {
            true => read_owners(github, repository, commit).await?,
            false => Owners::default(),
        };
        Ok(Self {
            accounts: accounts(github, &owners).await?,
            policy,
            owners,
        })
    }
}

impl Entitlement {
    /// Returns the repository's policy.
    pub fn policy(&self) -> &Policy {
        &self.written.policy
    }

    /// Reads who may approve what a repository has, as it is now. What was read `before` at the same commit is not read again.
    ///
    /// # Errors
    ///
    /// GitHub was not reached, or something in the repository cannot be read. Nobody is entitled by half of it.
    pub async fn read(
        github: &dyn GitHub,
        repository: RepositoryId,
        before: Option<&Self>,
    ) -> Result<Self, EntitlementError> {
        let branch = github.repository(repository).await?.default_branch;
        let branch = branch.ok_or(EntitlementError::NoBranch)?;
        let commit = github.branch(repository, &branch).await?;
        let written = match before.filter(|before| before.commit == commit) {
            Some(before) => before.written.clone(),
            None => Arc::new(Written::read(github, repository, &commit).await?),
        };
        Ok(Self {
            collaborators: github.collaborators(repository).await?,
            repository,
            commit,
            written,
        })
    }

    /// Returns whether somebody may approve a pull request that changes these paths. Whoever is no person may not. Where not all
    /// paths are known, owners have to own the root.
    pub fn may_approve(&self, account: &Account, changed: &ChangedPaths) -> bool {
        account.is_person() && (self.is_named(account.id) || self.owns(account.id, changed))
    }

    /// Returns everybody who may approve some pull request.
    pub fn approvers(&self) -> BTreeSet<Actor> {
        let owners = self.written.accounts.values();
        let collaborators = self.collaborators.iter().filter(|one| self.is_enough(one));
        let persons = owners
            .chain(collaborators.map(|collaborator| &collaborator.account))
            .filter(|account| account.is_person())
            .map(Account::to_actor);
        // The policy names them by their ids alone. Whoever has a login, too, is shown by it.
        let users = self.policy().approval.users.iter().map(|id| Actor::GitHub {
            id: u64::from(*id),
            login: id.to_string(),
        });
        let policy = self
            .policy()
            .approval
            .trusted_authors
            .iter()
            .map(|_| the_policy());
        let mut approvers = BTreeSet::new();
        for approver in persons.chain(users).chain(policy) {
            approvers.insert(approver);
        }
        approvers
    }

    /// Returns whether the policy itself approves a run, because of who wrote it and how little it asks for.
    pub fn approves_itself(&self, run: &RunRequest) -> bool {
        let trusted = self.policy().approval.trusted_authors.as_ref();
        let author = run.author.as_ref();
        trusted
            .zip(author)
            .is_some_and(|(trusted, author)| trusted.covers(author, run))
    }

    /// Returns whether another entitles the same people under the same policy.
    pub fn entitles_as(&self, other: &Self) -> bool {
        self.policy().digest == other.policy().digest && self.approvers() == other.approvers()
    }

    /// Returns the command that has these people, and no others, approve from now on, as it was seen at a time: whoever lost a
    /// right and has it again is entitled by another command than the first one.
    pub fn command(&self, at: Timestamp) -> Command {
        let repository = self.repository.0.to_string();
        Command::Entitle {
            key: key::of(["entitle", &repository, &at.to_string()]),
            repository: Some(self.repository.to_repository()),
            approvers: self.approvers(),
            source: format!("{OWNERS}, {POLICY_PATH} and the collaborators at {}", self.commit),
            policy: Some(self.policy().digest.clone()),
        }
    }

    fn is_named(&self, id: u64) -> bool {
        let users = &self.policy().approval.users;
        let mut collaborators = self.collaborators.iter().filter(|one| self.is_enough(one));
        users.iter().any(|user| u64::from(*user) == id)
            || collaborators.any(|collaborator| collaborator.account.id == id)
    }

    fn is_enough(&self, collaborator: &Collaborator) -> bool {
        self.policy()
            .approval
            .permission
            .is_had_by(collaborator.permission)
    }

    fn owns(&self, id: u64, changed: &ChangedPaths) -> bool {
        let paths = changed.paths.iter().map(String::as_str);
        let root = changed.is_cut_off.then_some(OWNERS);
        let owners = self.written.owners.approvers_of_all(paths.chain(root));
        let mut accounts = owners.iter().filter_map(|login| self.written.accounts.get(login));
        accounts.any(|account| account.id == id)
    }
}

async fn read_owners(
    github: &dyn GitHub,
    repository: RepositoryId,
    commit: &CommitSha,
) -> Result<Owners, EntitlementError> {
    let mut owners = Owners::default();
    if let Some(aliases) = github.file(repository, ALIASES, commit).await? {
        owners.add_aliases(&aliases)?;
    }
    let paths = github.paths_named(repository, OWNERS, commit).await?;
    if paths.len() > MOST_OWNERS_FILES {
        return Err(EntitlementError::TooManyOwners(paths.len()));
    }
    for path in paths {
        let text = github.file(repository, &path, commit).await?;
        let folder = path.strip_suffix(OWNERS).unwrap_or(&path);
        owners.add(folder, text.as_deref().unwrap_or_default())?;
    }
    Ok(owners)
}

/// Returns who has the logins now. A login that nobody has entitles nobody.
async fn accounts(
    github: &dyn GitHub,
    owners: &Owners,
) -> Result<BTreeMap<Login, Account>, EntitlementError> {
    let mut accounts = BTreeMap::new();
    for login in owners.all_approvers() {
        if let Some(account) = github.account(login.as_str()).await? {
            accounts.insert(login, account);
        }
    }
    Ok(accounts)
}
