//! Values from the texts that files, variables and flags give.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use blueproof_core::{
    domain::{Bytes, Cpus},
    policy::LocalApproval,
};

use blueproof_host::{ServerAddress, ServerAddressError};
use blueproof_machine::IsolationPolicy;

use super::{Origin, ProcessEnv};

/// What somebody said.
pub(super) struct Given {
    pub(super) text: OsString,
    /// What a relative path is relative to.
    pub(super) folder: PathBuf,
    pub(super) origin: Origin,
    /// Where it was said.
    pub(super) place: blueproof_diagnostic::SourceLocation,
}

pub(super) fn cpu(given: &Given, _: &ProcessEnv) -> Result<Cpus, String> {
    let cpu: Cpus = text(given)?
        .parse()
        .map_err(|error: blueproof_diagnostic::amount::ParseAmountError| error.to_string())?;
    if cpu == Cpus::default() {
        return Err("with no processor nothing can run".into());
    }
    Ok(cpu)
}

pub(super) fn memory(given: &Given, _: &ProcessEnv) -> Result<Bytes, String> {
    let memory: Bytes = text(given)?
        .parse()
        .map_err(|error: blueproof_diagnostic::amount::ParseAmountError| error.to_string())?;
    if memory == Bytes(0) {
        return Err("with no memory nothing can run".into());
    }
    Ok(memory)
}

pub(super) fn approval(given: &Given, _: &ProcessEnv) -> Result<LocalApproval, String> {
    match text(given)? {
        "true" => Ok(LocalApproval::Own),
        "false" => Ok(LocalApproval::Required),
        other => Err(format!("`{other}` is neither true nor false")),
    }
}

pub(super) fn isolation(given: &Given, _: &ProcessEnv) -> Result<IsolationPolicy, String> {
    let text = text(given)?;
    let mut all = IsolationPolicy::ALL.into_iter();
    let named = all.find(|policy| policy.as_str() == text);
    named.ok_or_else(|| format!("`{text}` is none of strangers, always and disposable"))
}

/// Reads names with commas between them.
pub(super) fn names(given: &Given, _: &ProcessEnv) -> Result<BTreeSet<String>, String> {
    let names = text(given)?.split(',').map(str::trim);
    let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    match names.iter().find(|name| name.contains(char::is_whitespace)) {
        Some(name) => Err(format!(
            "`{name}` is no name of a user; names have commas between them"
        )),
        None => Ok(names),
    }
}

/// Reads a path: `~/` is the home folder, and what is relative is relative to whoever said it.
pub(super) fn path(given: &Given, process_env: &ProcessEnv) -> Result<PathBuf, String> {
    if given.text.is_empty() {
        return Err("it is empty".into());
    }
    let path = PathBuf::from(&given.text);
    match path.strip_prefix("~") {
        Ok(below) => {
            let home = process_env
                .home()
                .ok_or_else(|| format!("`~` is the home folder, and {}", process_env.why_no_home()))?;
            Ok(home.join(below))
        }
        Err(_) => Ok(given.folder.join(path)),
    }
}

/// Reads a program: a name is left to be found through `PATH`, everything else is a path.
pub(super) fn program(given: &Given, process_env: &ProcessEnv) -> Result<PathBuf, String> {
    let name = !given.text.is_empty() && !given.text.as_encoded_bytes().contains(&b'/');
    if name && given.text != "~" {
        return Ok(PathBuf::from(&given.text));
    }
    path(given, process_env)
}

fn text(given: &Given) -> Result<&str, String> {
    OsStr::to_str(&given.text).ok_or_else(|| "it is not UTF-8".into())
}

pub(super) fn server(given: &Given, _: &ProcessEnv) -> Result<ServerAddress, String> {
    let text = given.text.to_str().ok_or("it is not text")?;
    text.parse()
        .map_err(|error: ServerAddressError| error.to_string())
}
