//! Whether this machine can run a stranger's notebook apart from itself: tried, and not guessed.
//!
//! A sandbox is made as for a notebook, and a program is run in it. What bubblewrap, the kernel's settings or a container that
//! blueproof runs in forbid shows then, and in no list of versions and settings.

use std::{ffi::OsString, path::Path, process::Stdio};

use blueproof_core::domain::{Bytes, Cpus, Gpus, Resources};
use blueproof_diagnostic::{Code, Diagnostic};

use crate::{
    process::{Confinement, Launcher},
    sandbox::{Identity, Sandbox},
};

/// What is run: it does nothing, and is on every machine.
const PROGRAM: &str = "/usr/bin/true";

/// Tries whether notebooks of strangers can run here: in a sandbox, with limits on memory and processes. `launcher` is the one that
/// starts kernels. It blocks for some hundredths of a second.
///
/// # Errors
///
/// Why they cannot, and what to do about it.
pub fn try_isolation(launcher: &Launcher) -> Result<(), Box<Diagnostic>> {
    try_sandbox(launcher)?;
    try_limits()
}

fn try_sandbox(launcher: &Launcher) -> Result<(), Box<Diagnostic>> {
    let missing = |why: String| {
        unable(
            &why,
            "install bubblewrap, which Debian's and Fedora's package of that name has, and start blueproof again",
        )
    };
    let sandbox = Sandbox::new(Path::new("/")).map_err(|error| missing(error.to_string()))?;
    let sandbox = sandbox.of_user(Identity::choose(u128::from(std::process::id())));
    let forbidden = |why: &str| {
        unable(
            why,
            "allow user namespaces: `sysctl user.max_user_namespaces`, and where they are there `kernel.unprivileged_userns_clone` and `kernel.apparmor_restrict_unprivileged_userns`; a container needs a security profile that allows them",
        )
    };
    let command = launcher.command(None, Some(&sandbox), OsString::from(PROGRAM));
    let ended = command.and_then(|mut command| command.stdin(Stdio::null()).output());
    let ended = ended.map_err(|error| forbidden(&error.to_string()))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(forbidden(last.unwrap_or(&ended.status.to_string())))
}

/// Makes a cgroup with limits, as for an attempt, and removes it.
fn try_limits() -> Result<(), Box<Diagnostic>> {
    let mut confinement = Confinement::plan(&format!("blueproof-isolation-{}", std::process::id()));
    confinement.make(&Resources {
        cpu: Cpus::cores(1),
        memory: Bytes(64 << 20),
        gpu: Gpus(0),
    });
    let unlimited = confinement.unlimited().clone();
    // What stays has no processes, and takes nothing.
    let _ = confinement.end();
    // Root can be a user of its own there, and the number of that user's processes is limited.
    let processes = unlimited
        .processes
        .filter(|_| !rustix::process::getuid().is_root());
    let Some(why) = unlimited.memory.or(processes) else {
        return Ok(());
    };
    let why = format!("nothing limits what a notebook takes: {why}");
    Err(unable(
        &why,
        "start it in a cgroup of its own: `systemd-run --user --scope -p Delegate=yes`, or `Delegate=yes` in its unit",
    ))
}

fn unable(why: &str, hint: &str) -> Box<Diagnostic> {
    let message = "this machine cannot run the code of pull requests apart from itself";
    let diagnostic = Diagnostic::error(Code::SandboxUnavailable, message);
    Box::new(
        diagnostic
            .because(why)
            .hint(hint)
            .hint("if nothing on this machine needs protection, set `local.isolation: disposable`"),
    )
}
