//! Resources by their Kubernetes names, and labels of nodes: what is refused here a cluster would refuse, too.

use std::{collections::BTreeMap, convert::Infallible, str::FromStr};

use blueproof_diagnostic::{
    amount,
    yaml::{Decode, Entry, Located, Problems, Schema, Value, YamlNode, nullable},
};
use blueproof_queue::{
    Quantity,
    manifest::{in_right_case, is_label_key, is_label_value, wrong_case},
};
use serde_json::json;

use super::{parameters::Values, value::Number};

/// How many units there are in one: as Kubernetes, amounts are read to the billionth.
const NANOS: u128 = 1_000_000_000;

/// Resources beside cpu and memory, by their Kubernetes names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceMap(Vec<(Located<String>, Located<Number<AmountText>>)>);

/// An amount as it is written. What it comes to depends on the resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmountText(String);

/// Labels that a node must have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSelector(pub BTreeMap<String, String>);

impl ResourceMap {
    /// Returns where the amount of a resource stands, if it stands here.
    pub(super) fn find(&self, resource: &str) -> Option<&Located<String>> {
        let mut names = self.0.iter().map(|(name, _)| name);
        names.find(|name| name.value == resource)
    }

    /// Returns the amounts, looking parameters up in `values`.
    pub(super) fn resolve(
        &self,
        values: &Values<'_>,
        problems: &mut Problems<'_>,
    ) -> Option<BTreeMap<String, Quantity>> {
        let resolved: Vec<_> = self
            .0
            .iter()
            .map(|(name, amount)| {
                let AmountText(text) = amount.value.resolve(values, problems)?;
                match whole(&text) {
                    Ok(amount) => Some((name.value.clone(), amount)),
                    Err((message, hint)) => {
                        problems.bad_value(amount.spot, format!("{}: {message}", name.value), hint);
                        None
                    }
                }
            })
            .collect();
        resolved.into_iter().collect()
    }
}

/// Reads an amount of which there is at least one, and no part of one.
fn whole(text: &str) -> Result<Quantity, (String, &'static str)> {
    const HINT: &str = "amounts are written as in Kubernetes: 2, 512Mi, 10Gi";
    let nanos = amount::parse(text, NANOS).map_err(|error| (error.to_string(), HINT))?;
    if nanos == 0 {
        let hint = "leave the resource out where none is needed; in a profile, `null` takes it away";
        return Err((format!("`{text}` is nothing"), hint));
    }
    if nanos % NANOS != 0 {
        let message = format!("`{text}` is no whole number");
        return Err((message, "only processor time can be had in parts"));
    }
    // What cannot be counted is reported with the sum of all pods.
    Ok(i64::try_from(nanos / NANOS).map_or(Quantity::UNLIMITED, Quantity))
}

impl Decode for ResourceMap {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            problems.wrong_type(node, "a mapping");
            return None;
        };
        let set = entries.iter().filter(|entry| entry.node.value != Value::Null);
        let read: Vec<_> = set
            .map(|entry| {
                let name = resource_name(entry, problems);
                let amount = Located::decode(&entry.node, problems);
                Some((name?, amount?))
            })
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Self)
    }

    fn schema() -> Schema {
        json!({ "type": "object", "additionalProperties": nullable(Number::<AmountText>::schema()) })
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

fn resource_name(entry: &Entry, problems: &mut Problems<'_>) -> Option<Located<String>> {
    let name = entry.key.as_str();
    if ["cpu", "memory"].contains(&name) {
        let message = format!("`{name}` has a key of its own");
        problems.bad_value(
            entry.spot,
            message,
            &format!("write `{name}` beside `resources`, not in it"),
        );
        return None;
    }
    if let Some(meant) = in_right_case(name) {
        problems.report(entry.spot, wrong_case(name, meant));
        return None;
    }
    if !is_resource(name) {
        let message = format!("`{name}` cannot be the name of a resource");
        let hint = "names look like `amd.com/gpu` or `nvidia.com/mig-1g.10gb`; without a domain there are \
                    `ephemeral-storage` and `hugepages-2Mi`";
        problems.bad_value(entry.spot, message, hint);
        return None;
    }
    Some(Located {
        value: name.to_owned(),
        spot: entry.spot,
    })
}

/// Returns whether a container may ask for a resource of this name, as Kubernetes has it.
pub(crate) fn is_resource(name: &str) -> bool {
    match name.split_once('/') {
        Some((domain, _)) => {
            let is_native = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
            // A quota's name for what is asked for of the resource behind it.
            let is_quota = domain.starts_with("requests.");
            is_label_key(name) && !is_native && !is_quota
        }
        None => {
            let size = name.strip_prefix("hugepages-");
            let is_huge = size.is_some_and(|size| amount::parse(size, 1).is_ok_and(|size| size > 0));
            name == "ephemeral-storage" || is_huge
        }
    }
}

impl Decode for AmountText {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(Self(text.clone())),
            Value::Int(number) => Some(Self(number.to_string())),
            Value::Float(number) => Some(Self(number.to_string())),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
                problems.wrong_type(node, "an amount such as 2, 512Mi or 10Gi");
                None
            }
        }
    }

    fn schema() -> Schema {
        json!({ "type": ["number", "string"], "minimum": 1, "pattern": "^[0-9.]+[A-Za-z0-9+-]*$" })
    }
}

impl FromStr for AmountText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl Decode for NodeSelector {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        let Some(entries) = node.entries() else {
            problems.wrong_type(node, "a mapping");
            return None;
        };
        let set = entries.iter().filter(|entry| entry.node.value != Value::Null);
        let read: Vec<_> = set.map(|entry| label(entry, problems)).collect();
        read.into_iter().collect::<Option<BTreeMap<_, _>>>().map(Self)
    }

    fn schema() -> Schema {
        json!({ "type": "object", "additionalProperties": nullable(json!({ "type": "string", "maxLength": 63 })) })
    }

    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

fn label(entry: &Entry, problems: &mut Problems<'_>) -> Option<(String, String)> {
    let value = String::decode(&entry.node, problems)?;
    if !is_label_key(&entry.key) {
        let message = format!("`{}` cannot be the key of a label", entry.key);
        problems.bad_value(entry.spot, message, "keys look like `nvidia.com/gpu.product`");
        return None;
    }
    if !is_label_value(&value) {
        let message = format!("`{value}` cannot be the value of a label");
        let hint =
            "values have at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends";
        problems.bad_value(entry.node.spot, message, hint);
        return None;
    }
    Some((entry.key.clone(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_resources_are_those_that_a_container_may_ask_for() {
        for name in [
            "amd.com/gpu",
            "nvidia.com/mig-1g.10gb",
            "google.com/tpu",
            "ephemeral-storage",
            "hugepages-2Mi",
        ] {
            assert!(is_resource(name), "{name}");
        }
        for name in [
            "",
            "gpu",
            "pods",
            "storage",
            "hugepages-",
            "hugepages-big",
            "amd.com/",
            "/gpu",
            "a/b/c",
            "requests.amd.com/gpu",
            "kubernetes.io/gpu",
            "node.kubernetes.io/x",
            "amd_com/gpu",
        ] {
            assert!(!is_resource(name), "{name}");
        }
    }

    #[test]
    fn amounts_are_whole_and_not_nothing() {
        for (text, amount) in [("1", 1), ("10Gi", 10 << 30), ("2000m", 2), ("99Ei", i64::MAX)] {
            assert_eq!(whole(text), Ok(Quantity(amount)), "{text}");
        }
        for text in ["", "0", "0.0", "-1", "500m", "1.5", "many"] {
            assert!(whole(text).is_err(), "{text}");
        }
    }
}
