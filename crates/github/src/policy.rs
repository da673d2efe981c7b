//! What a repository says about its own pull requests: `.github/blueproof.yaml` of the default branch.
//!
//! It narrows what the admin of the scheduler allows and never widens it. A repository without the file has the defaults below.
//! Which text is read is up to the caller, who never reads it at a pull request's head.

use blueproof_core::{
    domain::{Actor, ProfileName, RunRequest},
    hex::hex,
};
use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Format, Placeholders, Problems, Schema, Source, Value, YamlNode, choice, record},
};
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use jiff::SignedDuration;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{api::Permission, budget::Budgets};

/// Where the policy of a repository lies.
pub const POLICY_PATH: &str = ".github/blueproof.yaml";

/// The most bytes of a policy.
const LARGEST: usize = 1 << 20;
/// The longest time for which an approval counts: GitHub's own, for what waits for an environment.
const LONGEST_APPROVAL: SignedDuration = SignedDuration::from_hours(30 * 24);

static FORMAT: Format = Format {
    name: "a policy for pull requests",
    kinds: "`blueproof schema pull-request-policy` prints every key with the kind of its value",
    missing: "`blueproof schema pull-request-policy` prints what a policy needs",
    placeholders: Placeholders::None,
    most_nodes: 20_000,
};

/// A repository's policy, read and checked.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Names it: an approval counts only under the policy that it was given under.
    pub digest: String,
    /// What is tested.
    pub runs: Runs,
    /// Who approves, and for how long.
    pub approval: ApprovalRules,
    /// How much of the GPUs runs may have.
    pub budgets: Budgets,
    /// What becomes of a merge group whose content no run has passed with.
    pub merge_queue: MergeQueueRule,
    blueprints: GlobSet,
}

choice! {
    /// The version of the format.
    pub enum ApiVersion {
        /// The only one so far.
        V1Alpha1 = "blueproof.dev/v1alpha1",
    }
}

choice! {
    /// What the file is.
    pub enum Kind {
        /// A policy for pull requests.
        PullRequestPolicy = "PullRequestPolicy",
    }
}

record! {
    /// What a repository says about its own pull requests.
    pub struct WrittenPolicy {
        /// The version of the format: `blueproof.dev/v1alpha1`.
        api_version: ApiVersion,
        /// What the file is: `PullRequestPolicy`.
        kind: Kind,
        /// The policy.
        spec: Spec,
    }
}

record! {
    /// The policy.
    pub struct Spec {
        /// Which folders hold blueprints, as globs from the root of the repository. Default: all.
        blueprints: Vec<FolderGlob>,
        /// What is tested.
        runs: Runs,
        /// Who approves, and for how long.
        approval: ApprovalRules,
        /// How much of the GPUs runs of pull requests may have.
        budgets: Budgets,
        /// What becomes of a merge group whose content no run has passed with. Default: run.
        merge_queue: MergeQueueRule = MergeQueueRule::Run,
    }
}

record! {
    /// What is tested.
    pub struct Runs {
        /// The profiles under which a blueprint is run, each that it has. Default, and where it has none of them: as it stands.
        profiles: Vec<ProfileName>,
        /// The most GPUs that a run may ask for, all pods together. Default: as many as its queue may have.
        most_gpus: Option<u32>,
    }
}

record! {
    /// Who approves, and for how long.
    pub struct ApprovalRules {
        /// Whether the approvers of OWNERS approve what they own all of. Default: true.
        owners: bool = true,
        /// The least permission in the repository with which everybody approves: `write`, `maintain`, `admin`, or `none` for nobody.
        /// Default: write.
        permission: ApproverPermission = ApproverPermission::Write,
        /// The numeric ids of GitHub users who approve, too. A login would become another person's one day.
        users: Vec<u32>,
        /// For how long an approval counts, at most `720h`. Default: 24h.
        expires_after: ApprovalSpan = ApprovalSpan(SignedDuration::from_hours(24)),
        /// A label that approves the head that a pull request has when it is put on. Default: no label does.
        label: Option<String>,
        /// Whose pull requests need nobody's approval, as long as they ask for little. Default: nobody's.
        trusted_authors: Option<TrustedAuthors>,
    }
}

record! {
    /// Whose pull requests need nobody's approval, as long as they ask for little. Each push of theirs runs at once.
    pub struct TrustedAuthors {
        /// The numeric ids of GitHub users.
        users: Vec<u32>,
        /// The profiles under which their runs need none. Default: as the blueprint stands, and under no profile.
        profiles: Vec<ProfileName>,
        /// The most GPUs of a run that needs none, all pods together. Default: 0.
        most_gpus: u32 = 0,
    }
}

choice! {
    /// What becomes of a merge group whose content no run has passed with.
    pub enum MergeQueueRule {
        /// It is run, once that commit is approved.
        Run = "run",
        /// It is not tested, and its checks are neutral.
        Neutral = "neutral",
    }
}

choice! {
    /// The least permission in the repository with which everybody approves.
    pub enum ApproverPermission {
        /// Whoever may push.
        Write = "write",
        /// Whoever may change harmless settings.
        Maintain = "maintain",
        /// Whoever may do everything.
        Admin = "admin",
        /// Nobody by their permission alone.
        None = "none",
    }
}

/// A glob over folders: `examples/**`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderGlob(Glob);

/// For how long an approval counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalSpan(pub SignedDuration);

impl Policy {
    /// Reads the text of a policy; `None` is a repository without one.
    ///
    /// # Errors
    ///
    /// Every mistake in it, with its place.
    pub fn read(text: Option<&str>) -> Result<Self, Vec<Diagnostic>> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        let source = Source {
            file: POLICY_PATH.into(),
            text: checked_length(text)?.to_owned(),
            format: &FORMAT,
        };
        let spec = source.read(WrittenPolicy::decode)?.spec;
        Ok(Self {
            digest: digest(text),
            blueprints: set_of(&spec.blueprints).map_err(|error| vec![too_large(&error)])?,
            runs: spec.runs,
            approval: spec.approval,
            budgets: spec.budgets,
            merge_queue: spec.merge_queue,
        })
    }

    /// Returns whether a folder, relative to the root, holds blueprints that pull requests are tested with.
    pub fn has_blueprints_in(&self, folder: &str) -> bool {
        self.blueprints.is_empty() || self.blueprints.is_match(folder)
    }

    /// Returns the JSON Schema of the file.
    pub fn schema() -> Schema {
        WrittenPolicy::schema()
    }
}

impl Default for Policy {
    /// The policy of a repository without a file.
    fn default() -> Self {
        Self {
            digest: digest(""),
            blueprints: GlobSet::empty(),
            runs: Runs::absent().expect("every key has a default"),
            approval: ApprovalRules::absent().expect("every key has a default"),
            budgets: Budgets::absent().expect("every key has a default"),
            merge_queue: MergeQueueRule::Run,
        }
    }
}

impl TrustedAuthors {
    /// Returns whether a run of an author needs nobody's approval.
    pub fn covers(&self, author: &Actor, run: &RunRequest) -> bool {
        let is_trusted = match author {
            Actor::GitHub { id, .. } => self.users.iter().any(|user| u64::from(*user) == *id),
            Actor::Local(_) => false,
        };
        let is_under = match &run.subject.profile {
            Some(profile) => self.profiles.contains(profile),
            None => self.profiles.is_empty(),
        };
        is_trusted && is_under && run.job.gang().gpu.0 <= self.most_gpus
    }
}

impl ApproverPermission {
    /// Returns whether somebody with this permission approves.
    pub fn is_had_by(self, permission: Permission) -> bool {
        match self {
            Self::Write => permission >= Permission::Write,
            Self::Maintain => permission >= Permission::Maintain,
            Self::Admin => permission >= Permission::Admin,
            Self::None => false,
        }
    }
}

impl Decode for FolderGlob {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let text = String::decode(node, problems)?;
        match GlobBuilder::new(&text).literal_separator(true).build() {
            Ok(glob) => Some(Self(glob)),
            Err(error) => {
                let message = format!("`{text}` is no glob: {}", error.kind());
                problems.bad_value(node.spot, message, "write a folder such as `examples/**`");
                None
            }
        }
    }

    fn schema() -> Schema {
        json!({ "type": "string", "examples": ["examples/**"] })
    }
}

impl Decode for ApprovalSpan {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "write a time from 1m to 720h, such as 24h";
        let Value::Text(text) = &node.value else {
            problems.wrong_type(node, "a time such as 24h");
            return None;
        };
        let allowed = SignedDuration::from_mins(1)..=LONGEST_APPROVAL;
        match text.parse::<SignedDuration>() {
            Ok(span) if allowed.contains(&span) => return Some(Self(span)),
            Ok(_) => problems.bad_value(node.spot, format!("an approval cannot count for {text}"), HINT),
            Err(_) => problems.bad_value(node.spot, format!("`{text}` is not a time"), HINT),
        }
        None
    }

    fn schema() -> Schema {
        json!({ "type": "string", "examples": ["24h", "30m"] })
    }
}

fn checked_length(text: &str) -> Result<&str, Vec<Diagnostic>> {
    if text.len() <= LARGEST {
        return Ok(text);
    }
    let message = format!("`{POLICY_PATH}` has more than {LARGEST} bytes");
    Err(vec![Diagnostic::error(Code::BadValue, message)])
}

fn set_of(globs: &[FolderGlob]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for FolderGlob(glob) in globs {
        set.add(glob.clone());
    }
    set.build()
}

fn too_large(error: &globset::Error) -> Diagnostic {
    let message = format!("`{POLICY_PATH}` has globs that are too large together");
    Diagnostic::error(Code::BadValue, message).caused_by(error)
}

/// Returns what names a policy: the SHA-256 of its text, so that nothing in it changes without a new name.
fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: PullRequestPolicy
spec:
  blueprints: [\"examples/**\", demo]
  runs:
    profiles: [gpu2]
    mostGpus: 2
  approval:
    owners: false
    permission: maintain
    users: [583231]
    expiresAfter: 8h
    label: ok-to-test-gpu-runner
";

    fn mistakes(text: &str) -> Vec<String> {
        let mistakes = Policy::read(Some(text)).expect_err("it is none");
        mistakes
            .iter()
            .map(|mistake| {
                let line = mistake.place.as_ref().and_then(|place| place.line);
                format!("{line:?} {}", mistake.message)
            })
            .collect()
    }

    #[test]
    fn a_whole_policy_is_read() {
        let policy = Policy::read(Some(WHOLE)).expect("it is one");
        assert!(policy.has_blueprints_in("examples/jax/mnist") && policy.has_blueprints_in("demo"));
        assert!(!policy.has_blueprints_in("docs") && !policy.has_blueprints_in("demo/deeper"));
        assert_eq!(policy.runs.most_gpus, Some(2));
        assert_eq!(
            policy.approval.expires_after,
            ApprovalSpan(SignedDuration::from_hours(8))
        );
        assert!(!policy.approval.permission.is_had_by(Permission::Write));
        assert!(policy.approval.permission.is_had_by(Permission::Admin));
        let other = Policy::read(Some(&WHOLE.replace("mostGpus: 2", "mostGpus: 4"))).expect("it is one");
        assert_ne!(policy.digest, other.digest);
    }

    #[test]
    fn without_a_file_owners_and_whoever_may_push_approve_for_a_day() {
        let policy = Policy::read(None).expect("the defaults");
        assert!(policy.has_blueprints_in("anywhere") && policy.approval.owners);
        assert!(policy.approval.permission.is_had_by(Permission::Write));
        assert!(!policy.approval.permission.is_had_by(Permission::Triage));
        assert_eq!(policy.approval.label, None);
        assert_eq!(
            policy.approval.expires_after,
            ApprovalSpan(SignedDuration::from_hours(24))
        );
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let text = "\
apiVersion: blueproof.dev/v1alpha1
kind: PullRequestPolicy
spec:
  blueprints: [\"[\"]
  approval:
    permision: write
    users: [ada, -1]
    expiresAfter: 1000h
";
        let expected = [
            "Some(4) `[` is no glob: unclosed character class; missing ']'",
            "Some(6) unknown key `permision`",
            "Some(7) expected a whole number, found text",
            "Some(7) -1 is not a count",
            "Some(8) an approval cannot count for 1000h",
        ];
        assert_eq!(mistakes(text), expected);
        assert_eq!(mistakes("- a")[0], "Some(1) expected a mapping, found a list");
        assert_eq!(mistakes(&"#".repeat(LARGEST + 1)).len(), 1);
        for text in ["", "\u{0}", "spec: {approval: {expiresAfter: 0s}}", "a: &a [*a]"] {
            assert!(Policy::read(Some(text)).is_err(), "{text:?}");
        }
    }
}
