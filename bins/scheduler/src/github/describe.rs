//! What a notebook's work asks for that whoever approves it should know.

use blueproof_github::check::WorkFact;
use blueproof_notebook::plan::{Environment, Network, Plan};

/// Returns what of a job's work approvers should know. Of work that is no notebook's nothing is told.
pub(super) fn work(work: &serde_json::Value) -> Vec<WorkFact> {
    let Ok(plan) = serde_json::from_value::<Plan>(work.clone()) else {
        return Vec::new();
    };
    let secrets = plan.secrets.iter().map(|secret| secret.name.as_str());
    let facts = [
        ("network", network(&plan.network)),
        ("secrets", listed(secrets)),
        ("packages", packages(&plan.environment)),
    ];
    let facts = facts.map(|(name, value)| WorkFact {
        name: name.into(),
        value,
    });
    facts.into()
}

fn network(network: &Network) -> String {
    match network {
        Network::Any => "any host, where it runs without a sandbox".into(),
        Network::None => "none".into(),
        Network::Hosts(hosts) => listed(hosts.iter().map(String::as_str)),
    }
}

fn packages(environment: &Environment) -> String {
    match &environment.lock {
        Some(lock) => format!("as pinned in {}", lock.display()),
        None => listed(environment.requirements.iter().map(String::as_str)),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => "none".into(),
        false => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_notebook_its_network_secrets_and_packages_are_told_and_of_other_work_nothing() {
        let plan = Plan {
            notebook: "a.ipynb".into(),
            environment: Environment {
                requirements: vec!["torch==2.9".into(), "datasets".into()],
                ..Environment::default()
            },
            network: Network::Hosts(vec!["huggingface.co".into()]),
            parameters: Default::default(),
            shell_install: Default::default(),
            secrets: Vec::new(),
            metrics: Vec::new(),
            expectations: Vec::new(),
            artifacts: Vec::new(),
            allow_empty: false,
            left_out: Default::default(),
        };
        let told = work(&serde_json::to_value(plan).expect("plain data"));
        let told: Vec<_> = told.iter().map(|fact| (&*fact.name, &*fact.value)).collect();
        let expected = [
            ("network", "huggingface.co"),
            ("secrets", "none"),
            ("packages", "torch==2.9, datasets"),
        ];
        assert_eq!(told, expected);
        assert!(work(&json!({ "image": "x" })).is_empty());
    }
}
