//! What somebody asks for: a run of this blueprint, at exactly this content, under this profile.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    path::PathBuf,
};

use blueproof_queue::Quantity;
use serde::{Deserialize, Serialize};

use crate::domain::{
    BaseRef, BlueprintName, Head, PodSets, ProfileName, QueueName, Resources, Revision, Source, Timeouts,
};

/// What an approval is of, and what a run tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The repository or folder that the content belongs to.
    #[serde(alias = "project")]
    pub repository: Repository,
    /// The pull request, where there is one.
    #[serde(default, alias = "change", skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// The content.
    pub head: Head,
    /// The branch that the pull request is to be merged into, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseRef>,
    /// The blueprint.
    pub blueprint: BlueprintName,
    /// The profile; `None` is the blueprint as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileName>,
}

/// Where content comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Repository {
    /// A folder on this machine.
    Local(PathBuf),
    /// A GitHub repository, by its id: names change hands.
    GitHub(u64),
}

/// A pull request of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    /// The repository.
    #[serde(alias = "project")]
    pub repository: Repository,
    /// Its number there.
    #[serde(rename = "pullRequest", alias = "change")]
    pub number: u64,
}

/// Somebody who asks, approves or stops.
///
/// GitHub users are compared by their ids alone: a user who takes another login stays the same user, and one who takes
/// over somebody's login does not become that user.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// A user of this machine.
    Local(String),
    /// A GitHub user.
    GitHub {
        /// The numeric id, by which rights are judged: logins change hands.
        id: u64,
        /// The login, to be shown.
        login: String,
    },
}

/// What makes a request the same request when it comes again.
///
/// Whoever asks chooses it: a webhook's delivery id, or a random one. A second request with the key of an earlier
/// one changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RequestKey(#[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256)))] pub String);

impl RequestKey {
    /// The most characters of a key that is taken from elsewhere: it stays in the log.
    pub const LONGEST: usize = 256;

    /// Returns whether a key tells its request from others, and is no longer than one may be.
    pub fn is_valid(&self) -> bool {
        (1..=Self::LONGEST).contains(&self.0.chars().count())
    }
}

/// The order of the queue: higher goes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Priority(pub i32);

/// The request for a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// What makes it the same request when it comes again.
    pub key: RequestKey,
    /// What is tested.
    pub subject: Subject,
    /// The commit that the checkout was made from, where it lies in a git repository. It is shown, and judged by nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Who asks.
    pub requested_by: Actor,
    /// Who wrote the content, such as the pull request's author: their approval of it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Actor>,
    /// The folder on this machine in which it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_from: Option<PathBuf>,
    /// The queue that it waits in.
    pub queue: QueueName,
    /// Its place among the others there.
    #[serde(default)]
    pub priority: Priority,
    /// How often it may be tried again.
    #[serde(default)]
    pub retries: Retries,
    /// What is carried out.
    pub job: Job,
}

/// How often a run may be tried again by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// After an infrastructure failure.
    #[cfg_attr(feature = "schema", schemars(range(max = 10)))]
    pub infrastructure: u32,
    /// After a failure of the blueprint itself, for those that are known to be flaky.
    #[cfg_attr(feature = "schema", schemars(range(max = 10)))]
    pub blueprint: u32,
}

impl Retries {
    /// The most that anybody may ask for, of each: a retry takes the time of others.
    pub const MOST: u32 = 10;

    /// Returns whether nobody asks for more than there may be.
    pub fn is_valid(self) -> bool {
        self.infrastructure <= Self::MOST && self.blueprint <= Self::MOST
    }
}

/// What an attempt carries out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", try_from = "WrittenJob")]
pub struct Job {
    /// Where the content is; it is the subject's head.
    pub source: Source,
    /// What it consists of: the notebook's own kernel (the blueprint's `driver`), and what the notebook starts (its `workload`).
    pub pod_sets: PodSets,
    /// The limits of time.
    pub timeouts: Timeouts,
    /// What is to be done, in the notebook crate's words: core passes it on, and reads only in which of its
    /// `parameters` it differs from another.
    pub work: serde_json::Value,
}

impl Job {
    /// The most bytes of a job that is taken from elsewhere, as JSON: it is kept in memory for as long as its run is remembered.
    pub const LARGEST: usize = 256 << 10;

    /// Returns how many bytes it has as JSON.
    pub(crate) fn size(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |written| written.len())
    }

    /// Returns what the notebook's own kernel is given of this machine.
    pub fn driver(&self) -> Resources {
        self.pod_sets.driver_resources()
    }

    /// Returns what has to be reserved for the whole gang of what every machine has; what cannot be counted is the most that can.
    pub fn gang(&self) -> Resources {
        self.pod_sets.resources()
    }

    /// Returns what has to be reserved for the whole gang beside that, by its Kubernetes name.
    pub fn further(&self) -> BTreeMap<String, Quantity> {
        self.pod_sets.further()
    }
}

/// A job as it may be written: logs of before have amounts in place of pod sets, and the path of a folder as its source. Whoever
/// writes one now is told of pod sets alone.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct WrittenJob {
    #[serde(alias = "checkout")]
    source: Source,
    #[cfg_attr(feature = "schema", schemars(required))]
    pod_sets: Option<PodSets>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    driver: Option<Resources>,
    #[cfg_attr(feature = "schema", schemars(skip))]
    workload: Option<Resources>,
    timeouts: Timeouts,
    work: serde_json::Value,
}

impl TryFrom<WrittenJob> for Job {
    type Error = &'static str;

    fn try_from(written: WrittenJob) -> Result<Self, Self::Error> {
        let pod_sets = match (written.pod_sets, written.driver) {
            (Some(pod_sets), _) => pod_sets,
            (None, Some(driver)) => PodSets::of_amounts(driver, written.workload.unwrap_or_default()),
            (None, None) => return Err("a job has `podSets`"),
        };
        Ok(Self {
            source: written.source,
            pod_sets,
            timeouts: written.timeouts,
            work: written.work,
        })
    }
}

impl Actor {
    /// Returns what tells it from everybody else.
    fn identity(&self) -> Identity<'_> {
        match self {
            Actor::Local(user) => Identity::Local(user),
            Actor::GitHub { id, login: _ } => Identity::GitHub(*id),
        }
    }
}

/// Who somebody is, whatever they are called.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Identity<'a> {
    Local(&'a str),
    GitHub(u64),
}

impl PartialEq for Actor {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Actor {}

impl PartialOrd for Actor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Actor {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for Actor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Local(user) => write!(f, "{user}"),
            Actor::GitHub { login, .. } => write!(f, "@{login}"),
        }
    }
}

impl Subject {
    /// Returns whether its content is a stranger's: whoever opened its pull request wrote it, and to approve a commit is not to
    /// vouch for all that it might do. That holds for what is only to be merged, too. A folder of this machine, and what a repository
    /// has merged, are no stranger's.
    pub fn is_of_stranger(&self) -> bool {
        self.pull_request.is_some() || self.base.is_some()
    }

    /// Returns the pull request, where it is of one.
    pub fn of_pull_request(&self) -> Option<PullRequest> {
        self.pull_request.map(|number| PullRequest {
            repository: self.repository.clone(),
            number,
        })
    }
}

impl fmt::Display for PullRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pull request {} of {}", self.number, self.repository)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repository::Local(folder) => write!(f, "{}", folder.display()),
            Repository::GitHub(id) => write!(f, "GitHub repository {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    fn github(id: u64, login: &str) -> Actor {
        Actor::GitHub {
            id,
            login: login.into(),
        }
    }

    #[test]
    fn a_github_user_is_who_the_id_says_whatever_the_login() {
        let (ada, renamed, successor) = (github(7, "ada"), github(7, "lovelace"), github(8, "ada"));
        assert_eq!(ada, renamed);
        assert_ne!(ada, successor);
        let ordered = BTreeSet::from([ada.clone()]);
        let hashed = HashSet::from([ada.clone()]);
        assert!(ordered.contains(&renamed) && hashed.contains(&renamed));
        assert!(!ordered.contains(&successor) && !hashed.contains(&successor));
        assert!(!ordered.contains(&Actor::Local("ada".into())));
        assert_eq!(ada.cmp(&renamed), Ordering::Equal);
    }

    #[test]
    fn a_job_with_amounts_in_place_of_pod_sets_is_read() {
        let earlier = |workload: &str| {
            format!(
                r#"{{"checkout":"/c","driver":{{"cpu":"1","memory":"2Gi","gpu":1}},{workload}"timeouts":{{}},"work":null}}"#
            )
        };
        let of_cpus = r#""workload":{"cpu":"4","memory":"0"},"#;
        let job: Job = serde_json::from_str(&earlier(of_cpus)).expect("an earlier version wrote it");
        assert_eq!(job.driver().to_string(), "1 cpu, 2Gi memory, 1 gpu");
        assert_eq!(job.source, Source::Folder("/c".into()));
        assert_eq!(job.gang().to_string(), "5 cpu, 2Gi memory, 1 gpu");
        let sets = job
            .pod_sets
            .as_slice()
            .iter()
            .map(|set| (set.name.as_str(), set.count));
        assert_eq!(sets.collect::<Vec<_>>(), [("driver", 1), ("workload", 1)]);

        let text = serde_json::to_string(&job).expect("plain data");
        assert_eq!(serde_json::from_str::<Job>(&text).expect("it comes back"), job);

        let nothing = r#""workload":{"cpu":"0","memory":"0"},"#;
        let job: Job = serde_json::from_str(&earlier(nothing)).expect("an earlier version wrote it");
        assert!(job.pod_sets.workload().is_empty());
        let neither = r#"{"checkout":"/c","timeouts":{},"work":null}"#;
        assert!(serde_json::from_str::<Job>(neither).is_err());
    }

    #[test]
    fn what_was_stored_under_earlier_names_is_read() {
        let earlier = r#"{"project":{"gitHub":7},"change":12,"head":"1111111111111111111111111111111111111111",
            "blueprint":"nano-lm"}"#;
        let subject: Subject = serde_json::from_str(earlier).expect("it was written by an earlier version");
        assert_eq!(
            (subject.repository, subject.pull_request),
            (Repository::GitHub(7), Some(12))
        );
    }
}
