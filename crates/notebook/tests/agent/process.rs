//! An agent as a process of its own, with the environment and the secrets that a test gives it by variables.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use blueproof_core::{attempt::AttemptLayout, domain::Failure};
use blueproof_notebook::{
    Graces, Launcher, OutputLimits,
    agent::{self, Dependencies, NothingMeasured, PrepareEnvironment, Prepared, Preparing},
    launch,
};

/// The Python that a test has made.
struct Given(PathBuf);

impl PrepareEnvironment for Given {
    fn prepare(&self, _: &Preparing<'_>, progress: &mut dyn FnMut(String)) -> Result<Prepared, Box<Failure>> {
        progress("found".into());
        if std::env::var_os("TEST_ENDLESS_ENVIRONMENT").is_some() {
            let _ = std::process::Command::new("sleep").arg("600").status();
        }
        Ok(Prepared {
            python: self.0.clone(),
            detail: "given".into(),
        })
    }
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
    let dependencies = Dependencies {
        launcher: Launcher::new(std::env::current_exe().expect("Linux knows it"), ["launch"]),
        environment: Arc::new(Given(std::env::var_os("TEST_PYTHON").expect("a Python").into())),
        observer: Box::new(NothingMeasured),
        secrets: Box::new(secrets),
        variables: BTreeMap::new(),
        graces: Graces {
            interrupt: Duration::from_secs(2),
            terminate: Duration::from_secs(1),
        },
        outputs: OutputLimits::default(),
    };
    match agent::run(&AttemptLayout::new(first), dependencies) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
