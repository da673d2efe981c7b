//! Pushes a summary to a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//!
//! The variables are those of the specification:
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>.

use std::{env, sync::Arc, time::Duration};

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_gpu::account::JobSummary;
use jiff::Timestamp;
use tokio_rustls::rustls::crypto::ring;
use ureq::{
    Agent,
    tls::{RootCerts, TlsConfig},
};

/// How long a collector may take: a job's end waits for it.
const WITHIN: Duration = Duration::from_secs(10);

/// What GitHub tells of a job, and what the semantic conventions call it.
const ABOUT: [(&str, &str); 4] = [
    ("vcs.repository.name", "GITHUB_REPOSITORY"),
    ("cicd.pipeline.name", "GITHUB_WORKFLOW"),
    ("cicd.pipeline.run.id", "GITHUB_RUN_ID"),
    ("vcs.ref.head.revision", "GITHUB_SHA"),
];

/// Sends a summary, once, to the collector at `endpoint`.
pub(super) fn push(summary: &JobSummary, endpoint: &str) -> Result<(), Diagnostic> {
    let address = address(endpoint);
    let about = ABOUT.map(|(key, variable)| (key, env::var(variable).unwrap_or_default()));
    let about: Vec<_> = about
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let body = summary.to_otlp(Timestamp::now(), env!("CARGO_PKG_VERSION"), &about);
    let mut request = agent().post(&address).content_type("application/json");
    for (name, value) in headers(&env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default()) {
        request = request.header(name, value);
    }
    request.send(body.to_string()).map(drop).map_err(|error| {
        Diagnostic::error(Code::NotPushed, format!("the summary was not taken at {address}"))
            .because(error.to_string())
            .hint("name the address of a collector that takes OTLP over HTTP, as a rule with port 4318; it is not tried again")
    })
}

fn agent() -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        // What the system trusts, a company's own authority among it.
        .root_certs(RootCerts::PlatformVerifier);
    let config = Agent::config_builder().timeout_global(Some(WITHIN));
    config.tls_config(tls.build()).build().into()
}

/// Returns where metrics are posted below a collector's address.
fn address(endpoint: &str) -> String {
    format!("{}/v1/metrics", endpoint.trim_end_matches('/'))
}

/// Returns the headers of a list such as `api-key=k,other=v`.
fn headers(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim(), value.trim()))
}
