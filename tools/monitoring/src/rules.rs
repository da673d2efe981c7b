//! Files of rules, as Prometheus reads them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    alerts::{self, Alert},
    recorded::{self, Recorded},
};

/// What a file of rules has in it, and a PrometheusRule in its `spec`.
#[derive(Debug, Serialize)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Group {
    name: &'static str,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Rule {
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alert: Option<&'static str>,
    expr: String,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    lasts: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
}

#[derive(Debug, Serialize)]
struct Annotations {
    summary: &'static str,
    description: &'static str,
    hint: &'static str,
}

/// Returns the recording rules.
pub(crate) fn recording() -> Groups {
    let group = |name, recorded: &[&'static Recorded]| Group {
        name,
        rules: recorded.iter().copied().map(Rule::from).collect(),
    };
    Groups {
        groups: vec![
            group("blueproof-figures", recorded::OF_ALL),
            group("blueproof-figures-of-blueprints", recorded::OF_EACH),
            group("blueproof-compared-with", recorded::OTHERS),
        ],
    }
}

/// Returns the alerts on runs and queues.
pub(crate) fn of_runs() -> Groups {
    alerting("blueproof-runs", alerts::of_runs())
}

/// Returns the alerts on devices.
pub(crate) fn of_devices() -> Groups {
    alerting("blueproof-devices", alerts::of_devices())
}

fn alerting(name: &'static str, alerts: Vec<Alert>) -> Groups {
    let rules = alerts.into_iter().map(Rule::from).collect();
    Groups {
        groups: vec![Group { name, rules }],
    }
}

impl From<&'static Recorded> for Rule {
    fn from(recorded: &'static Recorded) -> Self {
        Self {
            record: Some(recorded.name),
            expr: (recorded.expr)().text,
            ..Self::default()
        }
    }
}

impl From<Alert> for Rule {
    fn from(alert: Alert) -> Self {
        let annotations = Annotations {
            summary: alert.summary,
            description: alert.description,
            hint: alert.hint,
        };
        Self {
            alert: Some(alert.name),
            expr: alert.expr.text,
            lasts: Some(alert.lasts),
            labels: BTreeMap::from([("severity", alert.severity.as_str())]),
            annotations: Some(annotations),
            ..Self::default()
        }
    }
}
