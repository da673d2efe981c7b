//! What the service has: scale sets, groups, runners, sessions and their statistics.
//!
//! Reading is tolerant. A key that is missing has its default, one that is not known is passed over, and a word that is not known is
//! kept as it came.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::secret::Secret;

/// The group that every organization has. It is not looked up.
pub const DEFAULT_GROUP: RunnerGroupId = RunnerGroupId(1);

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

ids! {
    /// A scale set's number.
    ScaleSetId;
    /// A runner group's number.
    RunnerGroupId;
    /// A runner's number.
    RunnerId;
    /// A message's number. The service counts up.
    MessageId;
    /// The number by which the service asks for a runner for a job.
    RunnerRequestId;
}

/// Words of the service, of which it may have more one day.
macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A word that is not known here, as it came.
            Other(String),
        }

        impl $name {
            /// Returns the service's word.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::from(<String as serde::Deserialize>::deserialize(deserializer)?.as_str()))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}
pub(crate) use open_enum;

open_enum! {
    /// Whether a runner is connected.
    RunnerStatus {
        /// It is.
        Online = "online",
        /// It is not.
        Offline = "offline",
    }
}

/// A label of a scale set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Its kind; `System` is the only one that scale sets have.
    #[serde(rename = "type", default = "system")]
    pub kind: String,
    /// Its name, of 1 to 255 characters.
    pub name: String,
}

/// How a scale set's runners behave.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunnerSetting {
    /// Whether runners are kept from updating themselves.
    pub disable_update: bool,
    /// Whether a runner takes one job only.
    pub ephemeral: bool,
    /// What else there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_elastic: Option<bool>,
}

/// How many jobs and runners a scale set has. They are of the moment of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Statistics {
    /// Jobs that are offered.
    pub total_available_jobs: u32,
    /// Jobs that were acquired.
    pub total_acquired_jobs: u32,
    /// Jobs that are assigned, those that run among them. This is the demand.
    pub total_assigned_jobs: u32,
    /// Jobs that run.
    pub total_running_jobs: u32,
    /// Runners that are registered.
    pub total_registered_runners: u32,
    /// Runners that have a job.
    pub total_busy_runners: u32,
    /// Runners that wait for one.
    pub total_idle_runners: u32,
}

/// A scale set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSet {
    /// Its number.
    pub id: ScaleSetId,
    /// Its name, which is unique in its group.
    pub name: String,
    /// The group that it is in.
    pub runner_group_id: RunnerGroupId,
    /// That group's name.
    pub runner_group_name: String,
    /// What jobs ask for it by. Read them back: an older server keeps the first only.
    pub labels: Vec<Label>,
    /// How its runners behave.
    #[serde(rename = "RunnerSetting", alias = "runnerSetting")]
    pub runner_setting: RunnerSetting,
    /// When it was made.
    #[serde(with = "optional_time")]
    pub created_on: Option<Timestamp>,
    /// Where runners' configurations come from.
    pub runner_jit_config_url: String,
    /// Its jobs and runners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
}

/// A scale set to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewScaleSet {
    /// Its name, of at most 45 characters.
    pub name: String,
    /// The group to put it into.
    pub runner_group_id: RunnerGroupId,
    /// What jobs ask for it by. The service may not change them later.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// How its runners behave.
    #[serde(rename = "RunnerSetting", default)]
    pub runner_setting: RunnerSetting,
}

/// What to change of a scale set; `None` leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleSetPatch {
    /// Another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Another group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_group_id: Option<RunnerGroupId>,
    /// Other labels. Whether the service takes them is not known for all servers: read them back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<Label>>,
    /// Another behaviour.
    #[serde(rename = "RunnerSetting", skip_serializing_if = "Option::is_none")]
    pub runner_setting: Option<RunnerSetting>,
}

/// A group of runners, which says what repositories may use them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunnerGroup {
    /// Its number.
    pub id: RunnerGroupId,
    /// Its name.
    pub name: String,
    /// How many runners it has.
    pub size: u32,
    /// Whether it is the default one.
    pub is_default_group: bool,
}

/// A runner as the service knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Runner {
    /// Its number.
    pub id: RunnerId,
    /// Its name.
    pub name: String,
    /// The scale set that it is of.
    pub runner_scale_set_id: ScaleSetId,
    /// Whether it is connected, where the service says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunnerStatus>,
    /// Whether it has a job, where the service says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<bool>,
    /// The version of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was made.
    #[serde(with = "optional_time")]
    pub created_on: Option<Timestamp>,
}

/// What a runner is started with, once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct JitConfig {
    /// The runner that it is for.
    pub runner: Runner,
    /// What the runner's program is given, for a single use.
    #[serde(rename = "encodedJITConfig")]
    pub encoded: Secret,
}

/// A session, by which one client reads a scale set's messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionGrant {
    /// Its id.
    pub(crate) session_id: uuid::Uuid,
    /// Where messages are.
    pub(crate) message_queue_url: String,
    /// What opens that.
    pub(crate) message_queue_access_token: Secret,
    /// The scale set's jobs and runners.
    #[serde(default)]
    pub(crate) statistics: Option<Statistics>,
}

/// A job that is offered and that nobody has acquired.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AcquirableJob {
    /// What to acquire it by.
    pub runner_request_id: RunnerRequestId,
    /// The repository's owner.
    pub owner_name: String,
    /// The repository's name.
    pub repository_name: String,
    /// The workflow with its ref.
    pub job_workflow_ref: String,
    /// What started the workflow.
    pub event_name: String,
    /// The labels that the job asks for.
    pub request_labels: Vec<String>,
}

/// Several of a kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct List<T> {
    #[serde(default)]
    pub(crate) count: usize,
    #[serde(default = "Vec::new")]
    pub(crate) value: Vec<T>,
}

impl Label {
    /// Returns a label of a scale set.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            kind: system(),
            name: name.into(),
        }
    }
}

impl NewScaleSet {
    /// Returns a scale set in the default group, whose only label is its name. Its runners do not update themselves, and take one
    /// job.
    pub fn named(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            labels: vec![Label::new(&name)],
            name,
            runner_group_id: DEFAULT_GROUP,
            runner_setting: RunnerSetting {
                disable_update: true,
                ephemeral: true,
                is_elastic: None,
            },
        }
    }
}

impl JitConfig {
    /// Returns the files that the configuration has, by their names; `None` if it is not read as one.
    pub fn files(&self) -> Option<BTreeMap<String, Secret>> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let text = STANDARD.decode(self.encoded.expose()).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn system() -> String {
    "System".into()
}

/// Times that the service writes as the year 1 where there is none.
pub(crate) mod optional_time {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};

    const UNSET: &str = "0001-01-01T00:00:00Z";

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.as_deref().and_then(read))
    }

    /// What is no time says as little as one that is not set.
    fn read(text: &str) -> Option<Timestamp> {
        let with_zone = || format!("{text}Z").parse().ok();
        let time: Timestamp = text.parse().ok().or_else(with_zone)?;
        let is_set = !text.starts_with("0001-") && !text.starts_with("0000-");
        is_set.then_some(time)
    }

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(time),
            None => serializer.serialize_str(UNSET),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_survives_and_what_is_missing_has_a_default() {
        let runner: Runner =
            serde_json::from_str(r#"{"id":7,"status":"dozing","new":{"a":1}}"#).expect("it reads");
        assert_eq!(runner.status, Some(RunnerStatus::Other("dozing".into())));
        assert_eq!((runner.id, runner.busy), (RunnerId(7), None));
        let set: ScaleSet =
            serde_json::from_str(r#"{"id":4294967299,"RunnerSetting":{"disableUpdate":true}}"#)
                .expect("it reads");
        assert!(set.runner_setting.disable_update);
        assert_eq!(set.id.0, 4_294_967_299);
    }

    #[test]
    fn a_time_of_the_year_one_is_none() {
        for (text, is_set) in [
            (r#""0001-01-01T00:00:00Z""#, false),
            (r#""0001-01-01T00:00:00""#, false),
            (r#""2026-11-25T10:00:00.1234567Z""#, true),
            (r#""2026-11-25T10:00:00""#, true),
            (r#""2026-11-25T10:00:00+01:00""#, true),
            ("null", false),
            (r#""yesterday""#, false),
        ] {
            let set: ScaleSet = serde_json::from_str(&format!(r#"{{"createdOn":{text}}}"#)).expect(text);
            assert_eq!(set.created_on.is_some(), is_set, "{text}");
        }
    }

    #[test]
    fn a_new_scale_set_is_written_as_the_service_reads_it() {
        let written = serde_json::to_string(&NewScaleSet::named("gpu")).expect("plain data");
        assert_eq!(
            written,
            r#"{"name":"gpu","runnerGroupId":1,"labels":[{"type":"System","name":"gpu"}],"RunnerSetting":{"disableUpdate":true,"ephemeral":true}}"#
        );
    }

    #[test]
    fn a_runners_configuration_is_files_and_shows_none_of_them() {
        let text = r#"{"runner":{"id":3},"encodedJITConfig":"eyIucnVubmVyIjoiYzJWamNtVjAifQ=="}"#;
        let config: JitConfig = serde_json::from_str(text).expect("it reads");
        let files = config.files().expect("it is files");
        assert_eq!(files[".runner"].expose(), "c2VjcmV0");
        assert!(!format!("{config:?}").contains("eyI"));
    }
}
