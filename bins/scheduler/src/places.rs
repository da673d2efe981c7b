//! Where things are when nothing is said.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic};

/// Returns where the store is: where `blueproof` has it.
pub(crate) fn store() -> Result<PathBuf, Diagnostic> {
    Ok(folder("XDG_DATA_HOME", ".local/share")?.join("blueproof.db"))
}

/// Returns where environments are: where `blueproof` has them.
pub(crate) fn environments() -> Result<PathBuf, Diagnostic> {
    Ok(folder("XDG_CACHE_HOME", ".cache")?.join("environments"))
}

/// Returns where tokens are.
pub(crate) fn tokens() -> Result<PathBuf, Diagnostic> {
    Ok(folder("XDG_CONFIG_HOME", ".config")?.join("scheduler-tokens.yaml"))
}

/// Returns where the socket of a store's scheduler is.
pub(crate) fn socket(store: &Path) -> PathBuf {
    store.with_file_name("scheduler.sock")
}

/// Returns the program that carries out attempts: the one beside this one, and else the one that is found by its name.
pub(crate) fn agent() -> OsString {
    let beside = env::current_exe().ok().map(|own| own.with_file_name("blueproof"));
    match beside.filter(|beside| beside.is_file()) {
        Some(beside) => beside.into(),
        None => "blueproof".into(),
    }
}

/// Returns our folder below one of the user's. A relative one counts as not set, as the XDG rules have it.
fn folder(variable: &str, below_home: &str) -> Result<PathBuf, Diagnostic> {
    let whole = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = whole(variable).or_else(|| Some(whole("HOME")?.join(below_home)));
    let base = base.ok_or_else(|| {
        let message = "there is no home folder: HOME is not set, or no whole path";
        Diagnostic::error(Code::NoHome, message)
            .hint("set HOME, or say where things are with flags: `--help` lists them")
    })?;
    Ok(base.join("blueproof"))
}
