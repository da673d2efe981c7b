//! Loops over a constant number of nodes, while the number of nodes is set elsewhere.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::Value;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (at, count) in &subject.analysis.node_loops {
        let (Value::Int(counted), None) = (&count.value, &count.via) else {
            continue;
        };
        let nodes: Vec<_> = subject
            .analysis
            .jobs
            .iter()
            .filter_map(|job| job.nodes.as_ref())
            .collect();
        let other = nodes.iter().find(|nodes| {
            let same = matches!(nodes.value, Value::Int(nodes) if nodes == *counted);
            nodes.via.is_some() || !same
        });
        let Some(other) = other else {
            continue;
        };
        let set = match (&other.via, &other.value) {
            (Some(name), _) => format!("`{name}` sets how many there are"),
            (None, Value::Int(nodes)) => format!("the TrainJob has {nodes}"),
            (None, _) => "how many there are is computed".to_owned(),
        };
        let name = other.via.as_deref().unwrap_or("num_nodes");
        found.push(
            subject
                .warning(
                    Code::FixedNodeLoop,
                    *at,
                    format!("it loops over {counted} nodes, but {set}"),
                )
                .hint(format!("for i in range({name}):")),
        );
    }
    found
}
