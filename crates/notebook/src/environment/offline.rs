//! What is missing where the package index cannot be reached, found out in little time.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Unprepared,
    installer::{Build, Installer},
    requirements::{name_of, normalised},
    wanted::Wanted,
};

/// How long to look for packages one by one: somebody waits for an answer that they half know.
const LOOK_FOR: Duration = Duration::from_secs(1);

/// What is known of packages without a network.
struct Missing<'r> {
    /// Those that are neither installed nor here, in the order of the requirements.
    absent: Vec<&'r str>,
    /// How many were not looked for, for want of time.
    unknown: usize,
}

/// Returns the failure of not reaching the index for this reason, with what is missing here.
pub(super) fn failure(build: &Build<'_>, wanted: &Wanted, reason: &str) -> Result<Unprepared, Unprepared> {
    let all = wanted.all();
    let missing = missing(build, &all)?;
    let named: Vec<String> = missing
        .absent
        .iter()
        .map(|requirement| format!("`{requirement}`"))
        .collect();
    let mut message = match named.len() {
        0 => "the package index cannot be reached, and a package that others need is not here".to_owned(),
        1 => format!("{} is not here and the package index cannot be reached", named[0]),
        _ => format!(
            "{} are not here and the package index cannot be reached",
            named.join(", ")
        ),
    };
    if missing.unknown > 0 {
        message.push_str(&format!("; {} more were not looked for", missing.unknown));
    }
    let hint = match build.installer {
        Installer::Uv(_) => "uv's cache keeps what was installed once",
        Installer::OwnPip(_) | Installer::EnvironmentPip | Installer::PipByName { .. } => {
            "a folder of wheels can be named with PIP_FIND_LINKS"
        }
    };
    Ok(Unprepared::config(
        Diagnostic::error(Code::PackagesOffline, message)
            .because(reason)
            .hint("connect to the network, or check the host's index and proxy settings: pip config list")
            .hint(hint),
    ))
}

fn missing<'r>(build: &Build<'_>, requirements: &[&'r str]) -> Result<Missing<'r>, Unprepared> {
    let local = local_names(build);
    let may_be_here = |requirement: &&str| {
        local
            .as_ref()
            .is_none_or(|names| names.contains(&name_of(requirement)))
    };
    let doubtful: Vec<&str> = requirements.iter().copied().filter(may_be_here).collect();
    let began = Instant::now();
    let all_here = doubtful.is_empty() || are_here(build, &doubtful)?;
    let mut missing = Missing {
        absent: Vec::new(),
        unknown: 0,
    };
    for requirement in requirements {
        if !may_be_here(requirement) {
            missing.absent.push(requirement);
        } else if all_here {
            continue;
        } else if began.elapsed() > LOOK_FOR {
            missing.unknown += 1;
        } else if !are_here(build, &[requirement])? {
            missing.absent.push(requirement);
        }
    }
    Ok(missing)
}

fn are_here(build: &Build<'_>, requirements: &[&str]) -> Result<bool, Unprepared> {
    // What was fetched before the network went is here.
    if !build.may_ask() {
        return Ok(true);
    }
    let mut command = build.installer_command("install");
    let offline = match build.installer {
        Installer::Uv(_) => "--offline",
        Installer::OwnPip(_) | Installer::EnvironmentPip | Installer::PipByName { .. } => "--no-index",
    };
    command
        .args([offline, "--no-deps", "--dry-run"])
        .args(requirements);
    Ok(build.run(command, &mut |_| {})?.status.success())
}

/// Returns the names of all packages that pip can have without a network, where a look at folders tells.
fn local_names(build: &Build<'_>) -> Option<BTreeSet<String>> {
    if matches!(build.installer, Installer::Uv(_)) || config_names_links(build) {
        return None;
    }
    let links = build.host.variable("PIP_FIND_LINKS").unwrap_or_default();
    let mut names = BTreeSet::new();
    for link in links.to_str()?.split_whitespace() {
        if link.contains("://") {
            return None;
        }
        for file in fs::read_dir(link).into_iter().flatten().flatten() {
            let file = file.file_name();
            // Only a wheel's file name says where the package's name ends.
            let wheel = file.to_str()?.strip_suffix(".whl")?;
            names.insert(normalised(wheel.split_once('-')?.0));
        }
    }
    Some(names)
}

fn config_names_links(build: &Build<'_>) -> bool {
    let home = build.host.variable("HOME").unwrap_or(OsStr::new("/"));
    let named = build.host.variable("PIP_CONFIG_FILE").map(PathBuf::from);
    let usual = [
        PathBuf::from("/etc/pip.conf"),
        Path::new(home).join(".config/pip/pip.conf"),
        Path::new(home).join(".pip/pip.conf"),
    ];
    let mut files = named.into_iter().chain(usual);
    files.any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains("find-links")))
}
