//! Which attempts of a blueprint passed: what one that ends later is compared with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    domain::{AttemptId, BlueprintName, ProfileName, Repository, RunRequest},
    view::{LastPass, ParameterChange},
};

/// So many of a blueprint are remembered: runs with other parameters may stand between two that are alike.
const REMEMBERED: usize = 100;

/// The latest attempts that passed, of each blueprint under each profile, the oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Passes {
    /// Each attempt with the parameters that it was told, if any.
    #[serde(with = "crate::pairs")]
    by_blueprint: BTreeMap<Blueprint, VecDeque<(AttemptId, Option<Map<String, Value>>)>>,
}

/// A blueprint under a profile, whatever its content and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blueprint {
    repository: Repository,
    name: BlueprintName,
    profile: Option<ProfileName>,
}

impl Passes {
    /// Notes that an attempt passed.
    pub(super) fn note(&mut self, request: &RunRequest, attempt: AttemptId) {
        let passed = self.by_blueprint.entry(Blueprint::of(request)).or_default();
        if passed.len() == REMEMBERED {
            passed.pop_front();
        }
        passed.push_back((attempt, parameters(request).cloned()));
    }

    /// Returns the last one that passed with a request's parameters, or else with others; `None` where none did.
    pub(super) fn before(&self, request: &RunRequest) -> Option<LastPass> {
        let passed = self.by_blueprint.get(&Blueprint::of(request))?;
        let compared = |(attempt, then): &(AttemptId, Option<Map<String, Value>>)| LastPass {
            attempt: *attempt,
            parameters: changes(then.as_ref(), parameters(request)),
        };
        let mut newest_first = passed.iter().rev().map(compared);
        let alike = newest_first.find(|pass| pass.parameters.is_empty());
        alike.or_else(|| passed.back().map(compared))
    }
}

impl Blueprint {
    fn of(request: &RunRequest) -> Self {
        let subject = &request.subject;
        Self {
            repository: subject.repository.clone(),
            name: subject.blueprint.clone(),
            profile: subject.profile.clone(),
        }
    }
}

fn parameters(request: &RunRequest) -> Option<&Map<String, Value>> {
    request.job.work.get("parameters")?.as_object()
}

fn changes(then: Option<&Map<String, Value>>, now: Option<&Map<String, Value>>) -> Vec<ParameterChange> {
    let all = then.into_iter().chain(now).flatten();
    let names: BTreeSet<&String> = all.map(|(name, _)| name).collect();
    let value = |of: Option<&Map<String, Value>>, name: &str| of.and_then(|of| of.get(name)).cloned();
    let compared = names.into_iter().map(|name| ParameterChange {
        name: name.clone(),
        then: value(then, name),
        now: value(now, name),
    });
    compared.filter(|change| change.then != change.now).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{domain::RunId, testing};

    fn request(parameters: &Value) -> RunRequest {
        let mut request = testing::request("key", "nano-lm");
        request.job.work = json!({ "parameters": parameters });
        request
    }

    #[test]
    fn a_run_is_compared_with_the_last_that_passed_with_its_parameters_and_else_with_any() {
        let mut passes = Passes::default();
        assert_eq!(passes.before(&request(&json!({}))), None);
        for (run, epochs) in [(1, 3), (2, 3), (3, 9)] {
            passes.note(&request(&json!({ "epochs": epochs })), RunId(run).attempt(1));
        }

        let alike = passes
            .before(&request(&json!({ "epochs": 3 })))
            .expect("two passed");
        assert_eq!((alike.attempt, alike.parameters), (RunId(2).attempt(1), vec![]));

        let other = passes
            .before(&request(&json!({ "epochs": 5, "seed": 1 })))
            .expect("three passed");
        let change = |name: &str, then, now| ParameterChange {
            name: name.into(),
            then,
            now,
        };
        assert_eq!(other.attempt, RunId(3).attempt(1));
        let expected = [
            change("epochs", Some(json!(9)), Some(json!(5))),
            change("seed", None, Some(json!(1))),
        ];
        assert_eq!(other.parameters, expected);
    }

    #[test]
    fn a_run_of_another_blueprint_profile_or_project_is_not_compared() {
        let mut passes = Passes::default();
        let passed = request(&json!({}));
        passes.note(&passed, RunId(1).attempt(1));
        let others: [fn(&mut RunRequest); 3] = [
            |other| other.subject.repository = Repository::Local("/elsewhere".into()),
            |other| other.subject.blueprint = "other".parse().expect("a name"),
            |other| other.subject.profile = Some("small".parse().expect("a name")),
        ];
        for change in others {
            let mut other = passed.clone();
            change(&mut other);
            assert_eq!(passes.before(&other), None, "{:?}", other.subject);
        }
    }
}
