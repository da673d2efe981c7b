//! Objects of Kueue's older versions, made into v1beta2 as Kueue's own conversion does it.
//!
//! What has another name there is renamed where it stands, so that a mistake is still shown at its place. What means the
//! same under the same name is not touched.

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Entry, Problems, Spot, Value, YamlNode},
};

use super::versions::{CONFIGURATION, CONFIGURATION_GROUP, GROUP, KINDS, VERSION};

/// Returns an object of an older version as one of v1beta2; `None` is that it is of no version that is converted.
pub(super) fn converted(
    node: &YamlNode,
    version: &str,
    kind: &str,
    problems: &mut Problems<'_>,
) -> Option<YamlNode> {
    let (group, version) = version.split_once('/')?;
    let mut node = node.clone();
    let newer = match (group, version, kind) {
        (GROUP, "v1beta1", "ClusterQueue") => {
            in_mapping(&mut node, "spec", |spec| cluster_queue(spec, problems));
            VERSION
        }
        (GROUP, "v1alpha1", "Cohort") => {
            in_mapping(&mut node, "spec", |spec| {
                rename(spec, "parent", "parentName", problems);
            });
            VERSION
        }
        (GROUP, "v1beta1", kind) if KINDS.contains(&kind) => VERSION,
        (CONFIGURATION_GROUP, "v1beta1", "Configuration") => {
            configuration(&mut node);
            CONFIGURATION
        }
        _ => return None,
    };
    if let Some(version) = get(&mut node, "apiVersion") {
        version.value = Value::Text(newer.into());
    }
    Some(node)
}

fn cluster_queue(spec: &mut YamlNode, problems: &mut Problems<'_>) {
    rename(spec, "cohort", "cohortName", problems);
    remove_if(
        spec,
        "admissionChecks",
        |checks| matches!(&checks.value, Value::List(checks) if checks.is_empty()),
    );
    in_mapping(spec, "flavorFungibility", |fungibility| {
        for (key, older) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
            if let Some(policy) = get(fungibility, key)
                && policy.value == Value::Text(older.into())
            {
                policy.value = Value::Text("MayStopSearch".into());
            }
        }
    });
}

/// What had to be enabled is on where it stands, from v1beta2 on.
fn configuration(node: &mut YamlNode) {
    for key in ["fairSharing", "waitForPodsReady"] {
        remove_if(node, key, |settings| {
            settings.entries().is_some()
                && !matches!(settings.get("enable"), Some(enable) if is_true_or_wrong(enable))
        });
        in_mapping(node, key, |settings| {
            remove_if(settings, "enable", |enable| enable.value == Value::Bool(true));
        });
    }
    remove_if(node, "queueVisibility", |_| true);
    in_mapping(node, "fairSharing", |settings| {
        let strategies = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"];
        let is_empty =
            |node: &YamlNode| matches!(&node.value, Value::Null) || node.value == Value::List(Vec::new());
        remove_if(settings, "preemptionStrategies", is_empty);
        let spot = settings.spot;
        let strategies = strategies.map(|name| text(name, spot)).into();
        set_if_absent(settings, "preemptionStrategies", Value::List(strategies));
    });
    in_mapping(node, "waitForPodsReady", |settings| {
        set_if_absent(settings, "blockAdmission", Value::Bool(true));
    });
}

/// Returns whether a switch is on, or is no switch at all, which is a mistake to be reported.
fn is_true_or_wrong(switch: &YamlNode) -> bool {
    !matches!(switch.value, Value::Bool(false) | Value::Null)
}

fn text(text: &str, spot: Spot) -> YamlNode {
    YamlNode {
        value: Value::Text(text.into()),
        spot,
    }
}

fn entries(node: &mut YamlNode) -> Option<&mut Vec<Entry>> {
    match &mut node.value {
        Value::Map(entries) => Some(entries),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::List(_) => {
            None
        }
    }
}

fn get<'n>(node: &'n mut YamlNode, key: &str) -> Option<&'n mut YamlNode> {
    let entry = entries(node)?.iter_mut().find(|entry| entry.key == key)?;
    Some(&mut entry.node)
}

/// Changes what stands under a key, where that is a mapping.
fn in_mapping(node: &mut YamlNode, key: &str, change: impl FnOnce(&mut YamlNode)) {
    if let Some(below) = get(node, key).filter(|below| below.entries().is_some()) {
        change(below);
    }
}

/// Gives a key the name that it has in v1beta2; that name is unknown in the older version.
fn rename(node: &mut YamlNode, older: &str, newer: &str, problems: &mut Problems<'_>) {
    for entry in entries(node).into_iter().flatten() {
        if entry.key == newer {
            let unknown = Diagnostic::error(Code::UnknownKey, format!("`{newer}` is not known here"));
            problems.report(
                entry.spot,
                unknown.hint(format!("in this version it is called `{older}`")),
            );
        } else if entry.key == older {
            newer.clone_into(&mut entry.key);
        }
    }
}

fn remove_if(node: &mut YamlNode, key: &str, is_in_vain: impl Fn(&YamlNode) -> bool) {
    if let Some(entries) = entries(node) {
        entries.retain(|entry| entry.key != key || !is_in_vain(&entry.node));
    }
}

fn set_if_absent(node: &mut YamlNode, key: &str, value: Value) {
    let spot = node.spot;
    let is_set = node.get(key).is_some_and(|set| set.value != Value::Null);
    if let Some(entries) = entries(node).filter(|_| !is_set) {
        entries.retain(|entry| entry.key != key);
        let node = YamlNode { value, spot };
        let key = key.to_owned();
        entries.push(Entry { key, spot, node });
    }
}
