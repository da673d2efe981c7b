//! What Prometheus' operator reads in a cluster: where the pages are, and the rules as an object.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    keys::sorted,
    rules::{self, Groups},
};

/// An object of the operator's.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Object<T> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Value,
    spec: T,
}

fn object<T>(kind: &'static str, name: &str, spec: T) -> Object<T> {
    Object {
        api_version: "monitoring.coreos.com/v1",
        kind,
        metadata: sorted(json!({ "name": name, "labels": { "app.kubernetes.io/name": name } })),
        spec,
    }
}

/// Returns where the exporter's page is. The labels with the pod that has a device are the page's own, and not those of the
/// exporter's pod.
pub(crate) fn service_monitor() -> Object<Value> {
    let spec = json!({
        "selector": { "matchLabels": { "app.kubernetes.io/name": "blueproof-exporter" } },
        "endpoints": [{
            "port": "metrics",
            "path": "/metrics/native",
            "interval": "15s",
            "scrapeTimeout": "10s",
            "honorLabels": true,
        }],
    });
    object("ServiceMonitor", "blueproof-exporter", sorted(spec))
}

/// Returns all rules in one object.
pub(crate) fn prometheus_rule() -> Object<Groups> {
    let files = [rules::recording(), rules::of_runs(), rules::of_devices()];
    let groups = files.into_iter().flat_map(|file| file.groups).collect();
    object("PrometheusRule", "blueproof", Groups { groups })
}
