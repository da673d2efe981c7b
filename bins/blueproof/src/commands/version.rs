//! `blueproof version`.

use serde::Serialize;

use crate::{
    cli::Version,
    exit::{Exit, Problem},
    output::{self, Document},
};

/// What was built, and where for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Build {
    version: &'static str,
    /// The commit; whoever builds a release says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    platform: String,
}

pub(crate) fn version(arguments: &Version) -> Result<Exit, Problem> {
    let build = Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("BLUEPROOF_COMMIT"),
        platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
    };
    let answer = match arguments.output {
        Some(format) => output::encode(&Document::new("Version", build), format.into())?,
        None => in_words(&build),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

fn in_words(build: &Build) -> String {
    let commit = build
        .commit
        .map_or_else(String::new, |commit| format!(" ({commit})"));
    format!("blueproof {}{commit} on {}\n", build.version, build.platform)
}
