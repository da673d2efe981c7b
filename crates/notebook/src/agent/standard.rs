//! The agent as blueproof starts it: real environments, real measuring.

use std::{
    collections::BTreeMap,
    env, io,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use blueproof_core::{
    attempt::{AttemptLayout, AttemptSpec, Checked, SandboxMode, Stream, read_regular},
    domain::{Bytes, Failure, FailureClass},
    ports::GpuMeter,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use serde_json::Value;

use super::{
    Collect, Conclusion, Dependencies, NothingMeasured, Observer, PrepareEnvironment, Prepared, Preparing,
    SandboxLimits,
};
use crate::{
    environment::{self, Host, Origin, Patience, Strangers, Unprepared},
    executor::{Graces, OutputLimits},
    measure::{self, Before, Evidence, OutputSearch, Recorder, Sample},
    plan::{Expectation, Plan, Secret},
    process::Launcher,
    text::counted,
};

/// How long it may take to install a stranger's packages, whatever time the attempt has to start.
const INSTALL_WITHIN: Duration = Duration::from_secs(1800);

/// The most that is kept of an attempt's artifacts.
const ARTIFACTS: Bytes = Bytes(1 << 30);

impl Dependencies {
    /// Returns what an agent needs for the attempt in `layout`'s folder: environments from the folder that its spec
    /// names, and the metrics and expectations of its plan. What is made of devices is measured by `gpus`.
    pub fn standard(layout: &AttemptLayout, launcher: Launcher, gpus: Box<dyn GpuMeter>) -> Self {
        let plan = plan(layout);
        let sandbox = SandboxLimits::default();
        Self {
            environment: environments(launcher.clone(), sandbox),
            launcher,
            observer: observer(plan.as_ref()),
            secrets: Box::new(plan.as_ref().map(secrets).unwrap_or_default()),
            gpus,
            variables: BTreeMap::new(),
            graces: Graces::default(),
            outputs: OutputLimits::default(),
            sandbox,
        }
    }
}

/// Returns what finds and makes environments. Where an attempt has to be in a sandbox, packages are installed in one that `launcher`
/// starts, within these limits.
pub fn environments(launcher: Launcher, limits: SandboxLimits) -> Arc<dyn PrepareEnvironment> {
    Arc::new(Environments(Strangers {
        launcher,
        disk: limits.disk,
        processes: limits.processes,
    }))
}

/// A spec that cannot be read is the agent's own to tell of; nothing will run then.
fn plan(layout: &AttemptLayout) -> Option<Plan> {
    let text = read_regular(&layout.spec(), AttemptSpec::LONGEST).ok()?;
    let spec: AttemptSpec = serde_json::from_slice(&text).ok()?;
    serde_json::from_value(spec.work).ok()
}

/// Returns the values of the plan's secrets, by name. On one's own machine they are in one's own environment, under the
/// names by which the notebook asks for them; nothing else of that environment reaches the notebook.
fn secrets(plan: &Plan) -> BTreeMap<String, String> {
    let value = |secret: &Secret| Some((secret.name.clone(), env::var(&secret.env).ok()?));
    plan.secrets.iter().filter_map(value).collect()
}

fn observer(plan: Option<&Plan>) -> Box<dyn Observer> {
    match plan.map(Measured::new) {
        Some(Ok(measured)) => Box::new(measured),
        Some(Err(_)) | None => Box::new(NothingMeasured),
    }
}

/// Python environments, found or made; those of strangers as is said here.
struct Environments(Strangers);

impl PrepareEnvironment for Environments {
    fn prepare(
        &self,
        preparing: &Preparing<'_>,
        progress: &mut dyn FnMut(String),
    ) -> Result<Prepared, Box<Failure>> {
        let wanted = &preparing.plan.environment;
        // Whoever waits for this kills what it has started when it takes too long.
        let stop = AtomicBool::new(false);
        let mut patience = Patience {
            stop: &stop,
            deadline: None,
        };
        let mut tell = |text: &str| progress(text.to_owned());
        let (cache, checkout) = (&preparing.spec.environments, preparing.checkout);
        let prepared = match preparing.spec.sandbox {
            SandboxMode::Off | SandboxMode::Requested => {
                environment::prepare(wanted, checkout, cache, patience, &mut tell)
            }
            SandboxMode::Required => {
                patience.deadline = Some(Instant::now() + INSTALL_WITHIN);
                let maker = (&Host::current(), &self.0);
                environment::prepare_for_stranger(maker, wanted, checkout, cache, patience, &mut tell)
            }
        };
        match prepared {
            Ok(prepared) => found(prepared, &wanted.requirements, preparing.own),
            Err(Unprepared::Failed(failure)) => Err(failure),
            Err(Unprepared::OutOfTime) => Err(Box::new(took_too_long())),
            Err(Unprepared::Stopped) => Err(Box::new(gave_up())),
        }
    }

    fn is_as_prepared(&self, prepared: &Prepared) -> bool {
        environment::is_as_made(&prepared.python)
    }
}

fn found(
    prepared: environment::Prepared,
    requirements: &[String],
    own: Option<&Path>,
) -> Result<Prepared, Box<Failure>> {
    let environment = serde_json::to_value(prepared.describe()).expect("plain data");
    let mut detail = describe(&prepared, requirements);
    let python = match own {
        None => prepared.python,
        Some(own) => {
            detail.push_str(" (a copy for this attempt)");
            environment::own_copy(&prepared.python, own).map_err(|error| Box::new(not_copied(own, &error)))?
        }
    };
    Ok(Prepared {
        python,
        detail,
        environment,
    })
}

fn not_copied(own: &Path, error: &io::Error) -> Failure {
    let diagnostic = Diagnostic::error(Code::WorkingCopy, "could not copy the environment")
        .at(SourceLocation::file(own.display().to_string()))
        .caused_by(error);
    Failure::outside_cells(FailureClass::Infrastructure, diagnostic)
}

fn took_too_long() -> Failure {
    let minutes = INSTALL_WITHIN.as_secs() / 60;
    let message = format!("the packages were not installed within {minutes} minutes");
    let diagnostic = Diagnostic::error(Code::InstallFailed, message)
        .because("so long may it take for a pull request")
        .hint("ask for fewer packages, or look at what the index of this machine answers");
    Failure::outside_cells(FailureClass::Config, diagnostic)
}

fn gave_up() -> Failure {
    let diagnostic = Diagnostic::error(Code::InstallFailed, "the environment was given up");
    Failure::outside_cells(FailureClass::Infrastructure, diagnostic)
}

/// Returns `python 3.12 + ipykernel 7.4 + numpy 2.5 (cached)`: what was asked for by name, and no more.
fn describe(prepared: &environment::Prepared, requirements: &[String]) -> String {
    let named = requirements.iter().map(|requirement| name_of(requirement));
    let mut text = format!("python {}", short(&prepared.version));
    for name in std::iter::once("ipykernel").chain(named) {
        if let Some(version) = prepared.version_of(name) {
            text.push_str(&format!(" + {name} {}", short(version)));
        }
    }
    match prepared.origin {
        Origin::Cached => text + " (cached)",
        Origin::Built => text,
    }
}

/// Returns the package that a requirement is about, without extras, versions and markers.
fn name_of(requirement: &str) -> &str {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    &requirement[..end.unwrap_or(requirement.len())]
}

/// Returns a version's first two parts.
fn short(version: &str) -> &str {
    let second_dot = version
        .match_indices('.')
        .nth(1)
        .map_or(version.len(), |(at, _)| at);
    &version[..second_dot]
}

/// What a plan measures and expects.
struct Measured {
    recorder: Recorder,
    printed: OutputSearch,
    cell: Option<u32>,
    before: Before,
}

impl Measured {
    fn new(plan: &Plan) -> Result<Self, Box<Diagnostic>> {
        let recorder = Recorder::new(&plan.metrics)?;
        Ok(Self {
            recorder,
            printed: OutputSearch::new(&plan.expectations),
            cell: None,
            before: Before::default(),
        })
    }

    /// Ends the earlier cell's unfinished line when another one begins to print.
    fn enter(&mut self, cell: u32) -> Vec<Sample> {
        if self.cell.replace(cell).is_none_or(|earlier| earlier == cell) {
            return Vec::new();
        }
        self.end_cell()
    }

    fn end_cell(&mut self) -> Vec<Sample> {
        self.printed.cell_ended();
        self.recorder.cell_ended()
    }
}

impl Observer for Measured {
    fn begin(&mut self, plan: &Plan, folder: &Path) {
        let patterns = plan
            .expectations
            .iter()
            .filter_map(|expectation| match expectation {
                Expectation::Artifact(pattern) => Some(pattern.clone()),
                Expectation::Metric { .. } | Expectation::Output(_) | Expectation::TrainJobs => None,
            });
        self.before = Before::of(&patterns.collect::<Vec<_>>(), folder);
    }

    fn printed(&mut self, cell: u32, stream: Stream, text: &str) -> Vec<(String, Option<f64>)> {
        let mut samples = self.enter(cell);
        self.printed.text(text);
        samples.extend(self.recorder.text(stream, text));
        pairs(samples)
    }

    fn shown(&mut self, cell: u32, output: &Value) -> Vec<(String, Option<f64>)> {
        let mut samples = self.enter(cell);
        samples.extend(self.recorder.display(output));
        pairs(samples)
    }

    fn conclude(&mut self, collect: &Collect<'_>) -> Conclusion {
        self.end_cell();
        let summaries = self.recorder.summaries();
        let evidence = Evidence {
            metrics: &summaries,
            folder: collect.folder,
            before: &self.before,
            printed: &self.printed,
        };
        let check = |expectation| measure::check(expectation, evidence);
        let checked: Vec<Checked> = collect.plan.expectations.iter().map(check).collect();
        let unmet = checked.iter().filter_map(unmet).collect();
        let kept = measure::collect(
            &collect.plan.artifacts,
            collect.folder,
            &self.before,
            collect.artifacts,
            ARTIFACTS,
        );
        let (collected, kept_badly) = match kept {
            Ok(collected) => (collected, None),
            Err(problem) => (measure::Collected::default(), Some(problem)),
        };
        let broken =
            |problem: Box<Diagnostic>| Failure::outside_cells(FailureClass::Infrastructure, *problem);
        let failure = measure::failure(unmet)
            .or_else(|| kept_badly.map(broken))
            .map(Box::new);
        Conclusion {
            metrics: self.recorder.finish(),
            failure,
            expectations: Some(checked),
            detail: counted(collected.artifacts.len(), "artifact"),
            artifacts: collected.artifacts,
            notices: collected.notices,
        }
    }
}

fn unmet(checked: &Checked) -> Option<Diagnostic> {
    match checked {
        Checked::Unmet(diagnostic) => Some(diagnostic.clone()),
        Checked::Met { .. } | Checked::NotLookedAt(_) => None,
    }
}

fn pairs(samples: Vec<Sample>) -> Vec<(String, Option<f64>)> {
    samples
        .into_iter()
        .map(|sample| (sample.name, sample.value))
        .collect()
}
