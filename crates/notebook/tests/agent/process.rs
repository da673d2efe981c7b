//! An agent as a process of its own, with the environment and the secrets that a test gives it by variables.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use blueproof_core::{
    attempt::{AttemptLayout, Orders, SandboxMode},
    domain::{Bytes, Failure, GpuUse},
    gpu::DeviceUuid,
    ports::{GpuMeter, GpuUsed},
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_notebook::{
    Graces, Launcher, OutputLimits,
    agent::{
        self, Dependencies, NothingMeasured, PrepareEnvironment, Prepared, Preparing, SandboxLimits,
        environments,
    },
    launch,
};

/// The Python that a test has made.
struct Given(PathBuf);

impl PrepareEnvironment for Given {
    fn prepare(
        &self,
        preparing: &Preparing<'_>,
        progress: &mut dyn FnMut(String),
    ) -> Result<Prepared, Box<Failure>> {
        progress("found".into());
        if std::env::var_os("TEST_ENDLESS_ENVIRONMENT").is_some() {
            let _ = std::process::Command::new("sleep").arg("600").status();
        }
        Ok(Prepared {
            python: self.0.clone(),
            detail: "given".into(),
            environment: serde_json::json!({ "madeFor": preparing.checkout }),
        })
    }

    fn is_as_prepared(&self, _: &Prepared) -> bool {
        std::env::var_os("TEST_CHANGED_ENVIRONMENT").is_none()
    }
}

/// Real environments, made as for an attempt that has to be in a sandbox where a test says so. Such an attempt itself needs limits
/// of memory, which not every machine has.
struct Real {
    environments: Arc<dyn PrepareEnvironment>,
    sandbox: SandboxMode,
}

impl PrepareEnvironment for Real {
    fn prepare(
        &self,
        preparing: &Preparing<'_>,
        progress: &mut dyn FnMut(String),
    ) -> Result<Prepared, Box<Failure>> {
        let mut spec = preparing.spec.clone();
        spec.sandbox = self.sandbox;
        let preparing = Preparing {
            spec: &spec,
            ..*preparing
        };
        self.environments.prepare(&preparing, progress)
    }

    fn is_as_prepared(&self, prepared: &Prepared) -> bool {
        self.environments.is_as_prepared(prepared)
    }
}

fn environment(launcher: &Launcher, limits: SandboxLimits) -> Arc<dyn PrepareEnvironment> {
    let sandbox = match std::env::var("TEST_ENVIRONMENT").as_deref() {
        Ok("stranger") => SandboxMode::Required,
        Ok(_) => SandboxMode::Off,
        Err(_) => {
            let python = std::env::var_os("TEST_PYTHON").expect("a Python");
            return Arc::new(Given(python.into()));
        }
    };
    Arc::new(Real {
        environments: environments(launcher.clone(), limits),
        sandbox,
    })
}

/// Has each cell use its devices for as many seconds as it is cells from the beginning.
#[derive(Default)]
struct Counting {
    devices: u32,
    cells: BTreeMap<u32, GpuUse>,
}

impl Counting {
    fn busy(&self, seconds: f64) -> GpuUse {
        GpuUse {
            devices: self.devices,
            busy_seconds: Some(seconds),
            ..GpuUse::default()
        }
    }
}

impl GpuMeter for Counting {
    fn begin(&mut self, devices: &[DeviceUuid]) {
        self.devices = u32::try_from(devices.len()).expect("a few");
    }

    fn turn_to(&mut self, cell: u32) {
        let used = self.busy(f64::from(cell));
        self.cells.insert(cell, used);
    }

    fn end(&mut self) -> GpuUsed {
        let whole = self.cells.values().filter_map(|cell| cell.busy_seconds).sum();
        GpuUsed {
            whole: Some(self.busy(whole)),
            cells: std::mem::take(&mut self.cells),
            fault: std::env::var("TEST_GPU_FAULT")
                .ok()
                .map(|words| Box::new(Diagnostic::error(Code::DeviceFault, words))),
            ..GpuUsed::default()
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a test sets a number"))
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().expect("a folder or `launch`");
    if first == "launch" {
        eprintln!("{}", launch(arguments));
        return ExitCode::FAILURE;
    }
    let secrets: BTreeMap<String, String> = std::env::var("TEST_SECRETS")
        .map(|text| serde_json::from_str(&text).expect("secrets are a JSON object"))
        .unwrap_or_default();
    let launcher = Launcher::new(std::env::current_exe().expect("Linux knows it"), ["launch"]);
    let sandbox = SandboxLimits {
        disk: Bytes(number("TEST_DISK").unwrap_or(1 << 30)),
        processes: number("TEST_PROCESSES").unwrap_or(256),
    };
    let dependencies = Dependencies {
        environment: environment(&launcher, sandbox),
        launcher,
        observer: Box::new(NothingMeasured),
        secrets: Box::new(secrets),
        gpus: Box::new(Counting::default()),
        variables: BTreeMap::new(),
        graces: Graces {
            interrupt: Duration::from_secs(2),
            terminate: Duration::from_secs(1),
            leave: Duration::from_secs(5),
        },
        outputs: OutputLimits::default(),
        sandbox,
    };
    let orders = Orders::read(std::io::stdin()).expect("a test says what is to be done");
    match agent::run(&AttemptLayout::new(first), orders, dependencies) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
