//! The values that stand in Kueue's objects: names, amounts, labels, and the words of the API.

use std::collections::BTreeMap;

use blueproof_diagnostic::{
    Code, Diagnostic, amount,
    yaml::{Decode, Entry, Located, Problems, Schema, Value, YamlNode, word, words_schema},
};
use jiff::SignedDuration;
use serde_json::json;

use crate::{
    Quantity,
    objects::{
        Admission, AdmissionMode, FairRule, FlavorPreference, LocalQueueUsers, QueueingStrategy,
        ReclaimWithinCohort, RequeuingTimestamp, StopPolicy, TaintEffect, WhenCanBorrow, WhenCanPreempt,
        WithinClusterQueue,
    },
};

/// The most labels that a flavor may have.
const MOST_LABELS: usize = 8;

/// The most characters of a DNS label, and of the value of a label.
const MOST_OF_LABEL: usize = 63;

/// How many units there are in one: as Kubernetes, amounts are kept to the billionth.
const NANOS: u128 = 1_000_000_000;

/// Beyond this, calendars end.
const LONGEST: SignedDuration = SignedDuration::from_hours(1000 * 365 * 24);

/// What is there and decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ignored;

/// A text of at most so many characters that decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Remark<const MOST: usize>;

/// A whole number of 32 bits that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub(super) u32);

/// What the annotations begin with that are not for Kueue but for us.
const OURS: &str = "blueproof.dev/";

/// The annotation that says who is told apart of those who come through a LocalQueue.
pub(super) const USERS: &str = "blueproof.dev/users";

/// The annotation that says who decides which workloads of a ClusterQueue are admitted.
pub(super) const ADMISSION: &str = "blueproof.dev/admission";

/// The annotation of a ClusterQueue that names the cluster that its workloads run on.
pub(super) const CLUSTER: &str = "blueproof.dev/cluster";

/// What an object is called, in which namespace, and what beyond Kueue's own is said of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metadata {
    pub(super) name: Located<Name>,
    pub(super) namespace: Option<String>,
    pub(super) users: Option<Located<LocalQueueUsers>>,
    pub(super) admission: Option<Located<Admission>>,
    pub(super) cluster: Option<Located<Name>>,
}

/// What annotations of ours say.
#[derive(Default)]
struct Annotations {
    users: Option<Located<LocalQueueUsers>>,
    admission: Option<Located<Admission>>,
    cluster: Option<Located<Name>>,
}

/// The name of an object: a DNS subdomain.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(pub(super) String);

/// An amount as Kubernetes writes it, exact: in billionths, what is finer rounded up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

/// A span of time: `30s`, `1h30m`, `200ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span(pub SignedDuration);

/// A list of at least and at most so many.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List<T, const LEAST: usize, const MOST: usize>(pub(super) Vec<T>);

/// Labels of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Labels(pub(super) BTreeMap<String, String>);

/// That every namespace is meant: there are none here, so that nothing else can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selector;

/// Whether a toleration looks at a taint's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Exists,
}

impl Amount {
    /// Returns the amount in Kueue's units, rounded up: thousandths of cpu, and ones of everything else. As in Kueue, what
    /// cannot be counted is without limit.
    pub fn of(self, resource: &str) -> Quantity {
        let unit = if resource == "cpu" { NANOS / 1000 } else { NANOS };
        i64::try_from(self.0.div_ceil(unit)).map_or(Quantity::UNLIMITED, Quantity)
    }

    /// Returns the nearest double.
    pub(super) fn to_f64(self) -> f64 {
        let text = format!("{}.{:09}", self.0 / NANOS, self.0 % NANOS);
        text.parse().expect("it is a number")
    }

    /// Returns whether it is a billionth: Kueue takes no weight that small but zero.
    pub(super) fn is_least(self) -> bool {
        self.0 == 1
    }
}

impl Decode for Ignored {
    fn decode(_: &YamlNode, _: &mut Problems<'_>) -> Option<Self> {
        Some(Self)
    }

    fn schema() -> Schema {
        json!(true)
    }

    fn absent() -> Option<Self> {
        Some(Self)
    }
}

impl Decode for Metadata {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        if node.entries().is_none() {
            problems.wrong_type(node, "a mapping");
            return None;
        }
        let Some(name) = node.get("name") else {
            problems.missing(node.spot, "name");
            return None;
        };
        let namespace = match node.get("namespace") {
            Some(namespace) => Some(namespace_name(namespace, problems)?),
            None => None,
        };
        let Annotations {
            users,
            admission,
            cluster,
        } = annotations(node, problems)?;
        Some(Self {
            name: Located::decode(name, problems)?,
            namespace,
            users,
            admission,
            cluster,
        })
    }

    fn schema() -> Schema {
        json!({ "type": "object", "required": ["name"] })
    }
}

impl Decode for Count {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let number = i32::decode(node, problems)?;
        let count = u32::try_from(number).ok().map(Self);
        if count.is_none() {
            problems.bad_value(node.spot, format!("{number} is negative"), "write 0 or more");
        }
        count
    }

    fn schema() -> Schema {
        json!({ "type": "integer", "minimum": 0, "maximum": i32::MAX })
    }
}

/// Returns what our annotations say; those of others are passed over.
fn annotations(metadata: &YamlNode, problems: &mut Problems<'_>) -> Option<Annotations> {
    let annotations = metadata.get("annotations").and_then(YamlNode::entries);
    let mut said = Annotations::default();
    for ours in annotations
        .into_iter()
        .flatten()
        .filter(|of| of.key.starts_with(OURS))
    {
        match ours.key.as_str() {
            USERS => said.users = Some(Located::decode(&ours.node, problems)?),
            ADMISSION => said.admission = Some(Located::decode(&ours.node, problems)?),
            CLUSTER => said.cluster = Some(Located::decode(&ours.node, problems)?),
            other => {
                let unknown = Diagnostic::error(Code::UnknownKey, format!("unknown annotation `{other}`"));
                let known = format!("ours are `{USERS}`, `{ADMISSION}` and `{CLUSTER}`");
                problems.report(ours.spot, unknown.hint(known));
                return None;
            }
        }
    }
    Some(said)
}

fn namespace_name(node: &YamlNode, problems: &mut Problems<'_>) -> Option<String> {
    let text = String::decode(node, problems)?;
    if !is_subdomain(&text) || text.contains('.') || text.len() > MOST_OF_LABEL {
        problems.bad_value(
            node.spot,
            format!("`{text}` cannot be the name of a namespace"),
            "namespaces have 1 to 63 of a-z, 0-9 and `-`, with a letter or digit at both ends",
        );
        return None;
    }
    Some(text)
}

impl<const MOST: usize> Decode for Remark<MOST> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let length = String::decode(node, problems)?.chars().count();
        if length > MOST {
            let message = format!("there are {length} characters here");
            problems.bad_value(node.spot, message, &format!("Kueue takes at most {MOST}"));
            return None;
        }
        Some(Self)
    }

    fn schema() -> Schema {
        json!({ "type": "string", "maxLength": MOST })
    }

    fn absent() -> Option<Self> {
        Some(Self)
    }
}

impl Decode for Name {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let text = String::decode(node, problems)?;
        if !is_subdomain(&text) {
            problems.bad_value(
                node.spot,
                format!("`{text}` cannot be the name of an object"),
                "names have 1 to 253 of a-z, 0-9, `-` and `.`, with a letter or digit at both ends of each part",
            );
            return None;
        }
        Some(Self(text))
    }

    fn schema() -> Schema {
        json!({ "type": "string", "maxLength": 253 })
    }
}

/// Returns whether a text is a DNS subdomain, as RFC 1123 has it.
fn is_subdomain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// Returns whether a text can be the key of a label, a taint, or the name of a resource: `nvidia.com/gpu`.
pub fn is_label_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_subdomain) && !name.is_empty() && is_label_value(name)
}

/// Returns whether a text can be the value of a label.
pub fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = |c: char| c.is_ascii_alphanumeric();
    text.len() <= MOST_OF_LABEL
        && text.chars().all(inner)
        && (text.is_empty() || text.starts_with(end) && text.ends_with(end))
}

impl Decode for Amount {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) if number.fract() == 0.0 => number.to_string(),
            Value::Float(number) => {
                let message = format!("`{number}` is a number with a fraction");
                let hint = "a cluster takes whole numbers and texts: put quotes around it";
                problems.bad_value(node.spot, message, hint);
                return None;
            }
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
                problems.wrong_type(node, "an amount such as 2, 500m or 4Gi");
                return None;
            }
        };
        match amount::parse(&text, NANOS) {
            Ok(nanos) => Some(Self(nanos)),
            Err(error) => {
                let hint = "amounts are written as in Kubernetes: 2, 500m, 1.5, 512Mi, 4Gi";
                problems.bad_value(node.spot, error.to_string(), hint);
                None
            }
        }
    }

    fn schema() -> Schema {
        json!({ "type": ["number", "string"] })
    }
}

impl Decode for Span {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "spans of time are written as 30s, 1h30m or 200ms";
        let Value::Text(text) = &node.value else {
            problems.wrong_type(node, "a span of time such as 30s");
            return None;
        };
        match text.parse::<SignedDuration>() {
            Ok(span) if !span.is_negative() && span < LONGEST => return Some(Self(span)),
            Ok(_) => problems.bad_value(
                node.spot,
                format!("`{text}` is not between 0 and 1000 years"),
                HINT,
            ),
            Err(_) => problems.bad_value(node.spot, format!("`{text}` is not a span of time"), HINT),
        }
        None
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "[0-9]", "examples": ["30s", "1h30m", "200ms"] })
    }
}

impl<T: Decode, const LEAST: usize, const MOST: usize> Decode for List<T, LEAST, MOST> {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let items = Vec::<T>::decode(node, problems)?;
        if items.len() < LEAST || items.len() > MOST {
            let message = format!("there are {} here", items.len());
            problems.bad_value(node.spot, message, &format!("Kueue takes {LEAST} to {MOST}"));
            return None;
        }
        Some(Self(items))
    }

    fn schema() -> Schema {
        json!({ "type": "array", "items": T::schema(), "minItems": LEAST, "maxItems": MOST })
    }

    fn absent() -> Option<Self> {
        (LEAST == 0).then(|| Self(Vec::new()))
    }
}

impl Decode for Labels {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let labels = BTreeMap::<String, String>::decode(node, problems)?;
        for entry in node.entries()? {
            let value = &labels[&entry.key];
            if !is_label_key(&entry.key) || !is_label_value(value) {
                let message = format!("`{}: {value}` is not a label", entry.key);
                problems.bad_value(entry.spot, message, "labels look like `example.com/gpu: a10`");
            }
        }
        if labels.len() > MOST_LABELS {
            let message = format!("there are {} labels", labels.len());
            problems.bad_value(node.spot, message, &format!("Kueue takes at most {MOST_LABELS}"));
        }
        Some(Self(labels))
    }

    fn schema() -> Schema {
        json!({ "type": "object", "maxProperties": MOST_LABELS })
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

impl Decode for Selector {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let selects_all = |entry: &Entry| match entry.key.as_str() {
            "matchLabels" => matches!(&entry.node.value, Value::Map(labels) if labels.is_empty()),
            "matchExpressions" => matches!(&entry.node.value, Value::List(terms) if terms.is_empty()),
            _ => false,
        };
        if node
            .entries()
            .is_some_and(|entries| entries.iter().all(selects_all))
        {
            return Some(Self);
        }
        problems.not_supported(
            node.spot,
            "namespaceSelector",
            "there are no namespaces here to choose from: write `namespaceSelector: {}`",
        );
        None
    }

    fn schema() -> Schema {
        json!({
            "type": "object",
            "properties": {
                "matchLabels": { "type": "object", "maxProperties": 0 },
                "matchExpressions": { "type": "array", "maxItems": 0 },
            },
            "additionalProperties": false,
        })
    }
}

macro_rules! words {
    ($($name:ident { $($variant:ident)* })*) => {$(
        impl Decode for $name {
            fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
                match word(node, &[$(stringify!($variant)),*], problems)? {
                    $(stringify!($variant) => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn schema() -> Schema {
                words_schema(&[$(stringify!($variant)),*])
            }
        }
    )*};
}

words! {
    Admission { Embedded External }
    AdmissionMode { UsageBasedAdmissionFairSharing NoAdmissionFairSharing }
    FairRule { LessThanOrEqualToFinalShare LessThanInitialShare }
    FlavorPreference { BorrowingOverPreemption PreemptionOverBorrowing }
    LocalQueueUsers { LocalQueue Author Repository }
    Operator { Equal Exists }
    QueueingStrategy { StrictFIFO BestEffortFIFO }
    ReclaimWithinCohort { Never LowerPriority Any }
    RequeuingTimestamp { Eviction Creation }
    StopPolicy { None Hold HoldAndDrain }
    TaintEffect { NoSchedule PreferNoSchedule NoExecute }
    WhenCanBorrow { MayStopSearch TryNextFlavor }
    WhenCanPreempt { MayStopSearch TryNextFlavor }
    WithinClusterQueue { Never LowerPriority LowerOrNewerEqualPriority }
}
