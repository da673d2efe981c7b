//! From a blueprint, a profile and values of parameters to a plan with nothing left to decide.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use blueproof_core::domain::{self, BlueprintName, PodSets, ProfileName, Resources};
use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Decode, Located, Problems, Value, YamlNode, nearest},
};

use super::{
    Loaded, check,
    expect::{Bounds, Expect, TrainJobs},
    format::{Metric, Profile, Retries, ShellInstall, Spec, Timeouts},
    network::Network,
    parameters::{ParameterValue, Values},
    pod_sets,
};
use crate::{
    environment::{checked_python, checked_requirement, pep723},
    plan::{self, Environment, Expectation, MetricSource, Plan, Which},
};

/// A blueprint under a profile, with its parameters: all that a run is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The blueprint's name.
    pub name: BlueprintName,
    /// Who answers for it.
    pub owners: Vec<String>,
    /// The profile, where one was chosen.
    pub profile: Option<ProfileName>,
    /// The folder that holds the blueprint; the paths of the plan are relative to it.
    pub checkout: PathBuf,
    /// What it consists of: the notebook's own kernel, and what the notebook starts.
    pub pod_sets: PodSets,
    /// How long each part may take.
    pub timeouts: domain::Timeouts,
    /// How often it is tried again.
    pub retries: Retries,
    /// What the agent is to do.
    pub plan: Plan,
}

impl Resolved {
    /// Returns what the notebook's own kernel needs of what every machine has.
    pub fn driver(&self) -> Resources {
        self.pod_sets.driver_resources()
    }

    /// Returns what the notebook starts needs of what every machine has, all pods together. Nothing where it starts nothing.
    pub fn workload(&self) -> Resources {
        self.pod_sets.workload_resources()
    }

    /// Returns how many pods the notebook starts.
    pub fn n_pods(&self) -> u32 {
        let counts = self.pod_sets.workload().iter().map(|set| set.count);
        counts.fold(0, u32::saturating_add)
    }
}

impl Loaded {
    /// Applies a profile and values of parameters, which come as the text of a command line.
    ///
    /// Returns every mistake that is found; none of them is left for later.
    pub fn resolve(
        &self,
        profile: Option<&str>,
        parameters: &[(String, String)],
    ) -> Result<Resolved, Vec<Diagnostic>> {
        let profile = profile.map(|name| self.profile(name)).transpose()?;
        let mut problems = Problems::new(&self.source);
        let resolved = self.resolve_into(profile.as_ref(), parameters, &mut problems);
        let mut resolved = problems.finish(resolved)?;
        if resolved.plan.environment == Environment::default()
            && let Some(own) = self.own_environment()?
        {
            resolved.plan.environment = own;
        }
        Ok(resolved)
    }

    /// Returns what the notebook's first cell of code says of its environment (PEP 723). It counts where the blueprint
    /// says nothing of one.
    fn own_environment(&self) -> Result<Option<Environment>, Vec<Diagnostic>> {
        let Some(first) = self.notebook().code().next() else {
            return Ok(None);
        };
        let at = |problem: Diagnostic| problem.at(self.notebook().place(first.number, 1));
        let own = pep723(&first.source).map_err(|problem| vec![at(*problem)])?;
        let Some(own) = own else {
            return Ok(None);
        };
        let python = own.python.iter().map(|python| checked_python(python));
        let requirements = own.requirements.iter().map(|line| checked_requirement(line));
        let refused: Vec<Diagnostic> = python
            .chain(requirements)
            .filter_map(Result::err)
            .map(|problem| at(*problem))
            .collect();
        if refused.is_empty() {
            Ok(Some(own))
        } else {
            Err(refused)
        }
    }

    fn profile(&self, name: &str) -> Result<ProfileName, Vec<Diagnostic>> {
        if self.blueprint.spec.profiles.contains_key(name)
            && let Ok(name) = name.parse()
        {
            return Ok(name);
        }
        let known: Vec<&str> = self.profiles().collect();
        let unknown = Diagnostic::error(Code::UnknownProfile, format!("unknown profile `{name}`"))
            .at(SourceLocation::file(&self.source.file));
        Err(vec![match nearest(name, known.iter().copied()) {
            Some(meant) => unknown.hint(format!("did you mean `{meant}`?")),
            None if known.is_empty() => unknown.hint("this blueprint has no profiles; leave --profile out"),
            None => unknown.hint(format!("its profiles: {}", known.join(", "))),
        }])
    }

    pub(super) fn resolve_into(
        &self,
        profile: Option<&ProfileName>,
        parameters: &[(String, String)],
        problems: &mut Problems<'_>,
    ) -> Option<Resolved> {
        let overrides = profile.and_then(|name| self.blueprint.spec.profiles.get(name.as_str()));
        let spec = match profile {
            Some(name) => Spec::decode(&self.merged(name)?, problems)?,
            None => self.blueprint.spec.clone(),
        };
        let mut values = Values::defaults(&spec.parameters, problems);
        if let Some(Profile { parameters, .. }) = overrides {
            values.give_profile(parameters, problems);
        }
        values.give_texts(parameters, self.notebook(), problems);
        let spot = |keys: &[&str]| self.spot_of(keys);
        let pod_sets = pod_sets::of(&spec, &spot, &values, problems);
        check::spec(self, &spec, problems);
        let given = values.into_map();
        Some(Resolved {
            name: self.name.clone(),
            owners: self.blueprint.metadata.owners.clone(),
            profile: profile.cloned(),
            checkout: self.folder.clone(),
            pod_sets: pod_sets?,
            timeouts: timeouts(&spec.timeouts),
            retries: spec.retries.clone(),
            plan: plan(spec, given),
        })
    }

    /// Returns the tree of `spec` with a profile laid upon it.
    fn merged(&self, profile: &ProfileName) -> Option<YamlNode> {
        let mut spec = self.root.get("spec")?.clone();
        let over = spec.get("profiles")?.get(profile.as_str())?.clone();
        let Value::Map(entries) = &mut spec.value else {
            return None;
        };
        // Parts of `network` only make sense together; the others are merged by key.
        entries.retain(|entry| {
            entry.key != "profiles" && !(entry.key == "network" && over.get("network").is_some())
        });
        let mut over = over;
        if let Value::Map(entries) = &mut over.value {
            entries.retain(|entry| entry.key != "parameters");
            if entries.is_empty() {
                return Some(spec);
            }
        }
        Some(spec.overlaid(&over))
    }
}

fn timeouts(timeouts: &Timeouts) -> domain::Timeouts {
    domain::Timeouts {
        queue: timeouts.queue.duration(),
        startup: timeouts.startup.duration(),
        cell: timeouts.cell.duration(),
        run: timeouts.run.duration(),
        execution: timeouts.execution.duration(),
    }
}

fn plan(spec: Spec, values: BTreeMap<String, ParameterValue>) -> Plan {
    let text = |located: Located<String>| located.value;
    let env = spec.env;
    Plan {
        notebook: spec.notebook.value.0,
        environment: Environment {
            python: env.python.map(text),
            requirements: env.requirements.into_iter().map(text).collect(),
            lock: env.lock.map(|lock| lock.value.0),
        },
        parameters: values
            .into_iter()
            .map(|(name, value)| (name, value.to_json()))
            .collect(),
        shell_install: match env.shell_install {
            ShellInstall::Skip => plan::ShellInstall::Skip,
            ShellInstall::Record => plan::ShellInstall::Record,
            ShellInstall::Allow => plan::ShellInstall::Allow,
        },
        network: match spec.network {
            Network::Any => plan::Network::Any,
            Network::None => plan::Network::None,
            Network::Hosts(hosts) => plan::Network::Hosts(hosts.into_iter().map(text).collect()),
        },
        secrets: spec
            .secrets
            .into_iter()
            .map(|secret| plan::Secret {
                name: secret.name,
                env: secret.env.value,
            })
            .collect(),
        metrics: spec.metrics.into_iter().filter_map(metric).collect(),
        expectations: expectations(spec.expect),
        artifacts: spec.artifacts.into_iter().map(|glob| glob.0).collect(),
        allow_empty: spec.allow_empty,
        left_out: BTreeSet::new(),
    }
}

fn metric(metric: Metric) -> Option<plan::Metric> {
    let from = metric.from.value;
    let regex = from.regex.map(|pattern| MetricSource::Regex(pattern.0));
    let display = from.display.map(|name| MetricSource::Display(name.value));
    Some(plan::Metric {
        name: metric.name.value,
        from: regex.or(display)?,
    })
}

fn expectations(expect: Expect) -> Vec<Expectation> {
    let mut all = Vec::new();
    for (name, bounds) in expect.metrics {
        let each = [
            (Which::First, bounds.first),
            (Which::Last, bounds.last),
            (Which::Min, bounds.min),
            (Which::Max, bounds.max),
            (Which::Every, bounds.every),
        ];
        for (which, bounds) in each {
            let Some(Located {
                value: Bounds { min, max },
                ..
            }) = bounds
            else {
                continue;
            };
            let name = name.value.clone();
            all.push(Expectation::Metric {
                name,
                which,
                min,
                max,
            });
        }
    }
    all.extend(
        expect
            .artifacts
            .into_iter()
            .map(|glob| Expectation::Artifact(glob.0)),
    );
    all.extend(expect.output.into_iter().map(Expectation::Output));
    all.extend(
        expect
            .train_jobs
            .map(|TrainJobs::Complete| Expectation::TrainJobs),
    );
    all
}
