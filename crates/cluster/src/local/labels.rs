//! Whether this machine is a node that a run asks for.
//!
//! It has no labels of its own: its nodes are the flavors that were assigned, and have the labels of these. A label that
//! they do not speak of keeps nobody from quota, here as in Kueue; but a pod that asks for it finds no node.

use blueproof_core::{action::Reservation, ports::CallError};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_queue::Assignment;

/// Refuses a reservation of which a pod set asks for a label that none of its flavors has.
pub(super) fn check(reservation: &Reservation, assignment: &Assignment) -> Result<(), CallError> {
    for set in reservation.pod_sets.as_slice() {
        let assigned = assignment
            .pod_sets
            .iter()
            .find(|assigned| assigned.name == set.name);
        let names = assigned
            .into_iter()
            .flat_map(|assigned| assigned.flavors.values());
        let flavors: Vec<_> = names.filter_map(|name| reservation.flavors.get(name)).collect();
        let missing = set.node_selector.iter().find(|(key, value)| {
            let mut labels = flavors.iter().map(|flavor| flavor.node_labels.get(*key));
            !labels.any(|label| label == Some(*value))
        });
        if let Some((key, value)) = missing {
            return Err(no_node(&set.name, key, value));
        }
    }
    Ok(())
}

fn no_node(set: &str, key: &str, value: &str) -> CallError {
    let message = format!(
        "the pod set {set} asks for a node with the label {key}={value}, and none of its flavors has it"
    );
    let diagnostic = Diagnostic::error(Code::NodeLabelMissing, message);
    CallError::never(
        diagnostic
            .hint("if this machine has it, add it to the nodeLabels of a ResourceFlavor: `blueproof quota apply -f FILE`")
            .hint("else take it out of nodeSelector (spec.driver, spec.workload), in a profile if it is for here only"),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blueproof_core::{
        action::ReservedQuota,
        domain::{ClusterName, PodSets, RunId},
    };
    use blueproof_queue::{PodSet, Quantity, objects::ResourceFlavor};

    use super::*;

    /// Returns what is said of a driver with a node selector where its flavor has these labels.
    fn said(asked: &[(&str, &str)], labels: &[(&str, &str)]) -> Option<String> {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            pairs.collect()
        };
        let driver = PodSet {
            name: "driver".into(),
            count: 1,
            requests: BTreeMap::from([("cpu".into(), Quantity(1000))]),
            node_selector: map(asked),
            ..PodSet::default()
        };
        let assignment = Assignment {
            cluster_queue: "local".into(),
            local_queue: "local".into(),
            pod_sets: vec![driver.assigned(1, map(&[("cpu", "box")]))],
        };
        let flavor = ResourceFlavor {
            node_labels: map(labels),
            ..ResourceFlavor::default()
        };
        let reservation = Reservation {
            attempt: RunId(1).attempt(1),
            cluster: ClusterName::default(),
            pod_sets: PodSets::try_from(vec![driver]).expect("a run can have it"),
            flavors: BTreeMap::from([("box".into(), flavor)]),
            quota: ReservedQuota::Assigned(assignment.clone()),
        };
        let refused = check(&reservation, &assignment).err()?;
        assert_eq!(refused.diagnostic.code, Code::NodeLabelMissing);
        Some(refused.diagnostic.message.clone())
    }

    #[test]
    fn a_node_has_the_labels_of_its_flavor_and_no_others() {
        let a10 = ("gpu", "a10");
        assert_eq!(said(&[], &[]), None);
        assert_eq!(said(&[a10], &[a10, ("rack", "r1")]), None);
        let message =
            "the pod set driver asks for a node with the label gpu=a10, and none of its flavors has it";
        for labels in [&[][..], &[("gpu", "h100")], &[("rack", "r1")]] {
            assert_eq!(said(&[a10], labels).as_deref(), Some(message));
        }
    }
}
