//! A workload as a case writes it: a name, or a map with amounts among its keys.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor},
};

use super::Toleration;

/// A workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Entry {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) n: String,
    /// Its queue, where that is not said around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) q: Option<String>,
    /// Its LocalQueue; without one it is called as the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) u: Option<String>,
    /// Its priority.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) p: i32,
    /// Its flavor, when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) f: Option<FlavorChoice>,
    /// When its quota was reserved.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) t: i32,
    /// When it was created.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) c: i32,
    /// Whether it was told to go.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) evicted: bool,
    /// The labels that its nodes must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) selector: BTreeMap<String, String>,
    /// The taints that it puts up with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tolerations: Vec<Toleration>,
    /// What it uses, by `flavor/resource`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) r#use: BTreeMap<String, f64>,
    /// What others have to give up for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) contested: Vec<String>,
    /// Its pod sets, where it has more than one pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sets: Vec<PodSetEntry>,
    /// What it asks for.
    #[serde(flatten)]
    pub(crate) amounts: BTreeMap<String, f64>,
}

/// On which flavor a running workload is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum FlavorChoice {
    /// With all that it uses.
    One(String),
    /// By resource.
    Each(BTreeMap<String, String>),
}

impl FlavorChoice {
    /// Returns the flavor of a resource, if it is said.
    pub(crate) fn of(&self, resource: &str) -> Option<&str> {
        match self {
            Self::One(flavor) => Some(flavor),
            Self::Each(flavors) => flavors.get(resource).map(String::as_str),
        }
    }
}

/// A pod set. What it does not say is as the workload has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PodSetEntry {
    pub(crate) count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) f: Option<FlavorChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) selector: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tolerations: Option<Vec<Toleration>>,
    #[serde(flatten)]
    pub(crate) amounts: BTreeMap<String, f64>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrMap)
    }
}

struct NameOrMap;

impl<'de> Visitor<'de> for NameOrMap {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a workload's name, or a map")
    }

    fn visit_str<E>(self, name: &str) -> Result<Entry, E> {
        Ok(Entry {
            n: name.into(),
            amounts: BTreeMap::from([("cpu".into(), 1.0)]),
            ..Entry::default()
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        let mut entry = Entry::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "n" => entry.n = map.next_value()?,
                "q" => entry.q = Some(map.next_value()?),
                "u" => entry.u = Some(map.next_value()?),
                "p" => entry.p = map.next_value()?,
                "f" => entry.f = Some(map.next_value()?),
                "t" => entry.t = map.next_value()?,
                "c" => entry.c = map.next_value()?,
                "evicted" => entry.evicted = map.next_value()?,
                "selector" => entry.selector = map.next_value()?,
                "tolerations" => entry.tolerations = map.next_value()?,
                "use" => entry.r#use = map.next_value()?,
                "contested" => entry.contested = map.next_value()?,
                "sets" => entry.sets = map.next_value()?,
                _ => {
                    let amount = map.next_value()?;
                    entry.amounts.insert(key, amount);
                }
            }
        }
        Ok(entry)
    }
}
