//! `blueproof-scheduler hook job-started`: what GitHub's runner calls before the first step of a job.
//!
//! Whatever keeps the scheduler from saying yes is a no.

use std::env;

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_runners::hook::HOOK_PATH;
use blueproof_scale_set::{HttpTransport, Method, Request, Transport as _, Url, header::HeaderMap};

use crate::cli::JobStarted;

pub(crate) fn job_started(arguments: &JobStarted) -> Result<(), Diagnostic> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| refused("no thread can be made").because(error.to_string()))?;
    let why = runtime.block_on(ask(arguments))?;
    println!("blueproof: this job may start: {why}");
    Ok(())
}

async fn ask(arguments: &JobStarted) -> Result<String, Diagnostic> {
    let request = Request {
        method: Method::GET,
        url: url(&arguments.scheduler)?,
        headers: HeaderMap::new(),
        body: Vec::new(),
    };
    let unreached = |error: &(dyn std::error::Error + 'static)| {
        refused("the scheduler does not answer")
            .caused_by(error)
            .hint("see that it runs, and was started with --runner-hook and this address")
    };
    let transport = HttpTransport::new().map_err(|error| unreached(&error))?;
    let response = transport.send(request).await.map_err(|error| unreached(&error))?;
    let text = String::from_utf8_lossy(&response.body).into_owned();
    if response.status.is_success() {
        return Ok(text);
    }
    match serde_json::from_str::<Diagnostic>(&text) {
        Ok(diagnostic) => Err(diagnostic),
        Err(_) => Err(refused("the scheduler's answer is not understood").because(text)),
    }
}

/// Returns the address with the question. These variables are the runner's own: GitHub lets no workflow set them.
fn url(scheduler: &str) -> Result<Url, Diagnostic> {
    let variable = |name: &str| {
        let value = env::var(name).ok().filter(|value| !value.is_empty());
        value.ok_or_else(|| {
            refused(&format!("`{name}` is not set"))
                .hint("have GitHub's runner call this, by ACTIONS_RUNNER_HOOK_JOB_STARTED")
        })
    };
    let address = format!("{}{HOOK_PATH}", scheduler.trim_end_matches('/'));
    let url = Url::parse_with_params(
        &address,
        [
            ("runner", variable("RUNNER_NAME")?),
            ("repository", variable("GITHUB_REPOSITORY")?),
            ("workflowRun", variable("GITHUB_RUN_ID")?),
        ],
    );
    url.map_err(|error| refused(&format!("`{scheduler}` is no address: {error}")))
}

fn refused(why: &str) -> Diagnostic {
    Diagnostic::error(Code::JobRefused, format!("this job may not start: {why}"))
}
