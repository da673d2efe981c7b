//! The pod of the chart's runners: what of it a process has.

use blueproof_diagnostic::yaml::{Entry, Value, YamlNode};

use super::{Found, is_empty, plain, quoted};

/// The container that GitHub's runner is in.
const RUNNER: &str = "runner";

pub(super) fn take(found: &mut Found, node: &YamlNode) {
    for entry in node.entries().unwrap_or_default() {
        match entry.key.as_str() {
            "spec" => entry.node.entries().unwrap_or_default().iter().for_each(|entry| {
                of_spec(found, entry);
            }),
            _ if is_empty(&entry.node) => {}
            key => found.note(
                format!("template.{key}"),
                "there is no pod that could have it: a runner is a process of this machine",
            ),
        }
    }
}

fn of_spec(found: &mut Found, entry: &Entry) {
    let path = format!("template.spec.{}", entry.key);
    match (entry.key.as_str(), &entry.node.value) {
        ("containers", Value::List(containers)) => {
            for container in containers {
                of_container(found, container);
            }
        }
        _ if is_empty(&entry.node) => {}
        (
            "nodeSelector" | "tolerations" | "affinity" | "topologySpreadConstraints" | "runtimeClassName",
            _,
        ) => {
            found.note(
                path,
                "a runner runs on the scheduler's own machine: start a scheduler where such nodes were meant",
            );
        }
        ("initContainers" | "volumes" | "imagePullSecrets", _) => {
            found.note(
                path,
                "a process has no containers or volumes: prepare the machine instead",
            );
        }
        ("serviceAccountName" | "serviceAccount" | "automountServiceAccountToken", _) => {
            found.note(
                path,
                "a process has no service account, and gets no token of a cluster",
            );
        }
        _ => found.note(
            path,
            "there is no pod that could have it: a runner is a process of this machine",
        ),
    }
}

fn of_container(found: &mut Found, container: &YamlNode) {
    let name = container.get("name").and_then(plain).unwrap_or_default();
    let path = format!("template.spec.containers[{name}]");
    if name != RUNNER {
        return found.note(
            path,
            "a process has no side-cars: start it on the machine instead",
        );
    }
    for entry in container.entries().unwrap_or_default() {
        let path = format!("{path}.{}", entry.key);
        match (entry.key.as_str(), &entry.node.value) {
            ("name", _) => {}
            ("command", Value::List(words)) => {
                let words = words.iter().filter_map(plain);
                // Arguments that came first stand behind the command all the same.
                found.program.splice(0..0, words);
            }
            ("args", Value::List(words)) => found.program.extend(words.iter().filter_map(plain)),
            ("resources", _) => of_resources(found, &path, &entry.node),
            _ if is_empty(&entry.node) => {}
            ("image", _) => found.note(
                path,
                "a process has no image: install GitHub's runner, and what jobs need, on this machine",
            ),
            ("env" | "envFrom", _) => found.note(
                path,
                "a runner is started with PATH and the language alone: write what jobs need into the runner's `.env`",
            ),
            _ => found.note(
                path,
                "there is no container that could have it: a runner is a process of this machine",
            ),
        }
    }
}

/// Takes requests; where there are none, limits, as Kubernetes does.
fn of_resources(found: &mut Found, path: &str, node: &YamlNode) {
    for of in ["limits", "requests"] {
        for entry in node.get(of).and_then(YamlNode::entries).unwrap_or_default() {
            let Some(amount) = plain(&entry.node) else {
                continue;
            };
            match entry.key.as_str() {
                "cpu" => found.cpu = Some(quoted(&amount)),
                "memory" => found.memory = Some(quoted(&amount)),
                "nvidia.com/gpu" if amount.parse::<u32>().is_ok() => found.gpu = Some(amount),
                other => found.note(
                    format!("{path}.{of}.{other}"),
                    "the queue is asked for `cpu`, `memory` and `gpu`: keep the rest free yourself",
                ),
            }
        }
    }
    for entry in node.entries().unwrap_or_default() {
        if !["limits", "requests"].contains(&entry.key.as_str()) {
            found.note(format!("{path}.{}", entry.key), "the queue knows no such thing");
        }
    }
}
