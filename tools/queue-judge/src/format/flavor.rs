//! A flavor's labels and taints, and what puts up with taints: written as in Kubernetes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is said of a flavor beside its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Flavor {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) taints: Vec<Taint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tolerations: Vec<Toleration>,
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taint {
    pub(crate) key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// A toleration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Toleration {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) key: String,
    pub(crate) operator: Operator,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) effect: String,
}

/// Whether a toleration's value matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operator {
    #[default]
    Equal,
    Exists,
}
