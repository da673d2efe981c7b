//! What of the system is in a sandbox: its programs and libraries, and of `/etc` what these need.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use super::Arguments;

/// Folders of programs and libraries. On most systems all but the first are links into it.
const SYSTEM: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
];

/// What programs read in `/etc` that tells nothing of the machine's users: never all of it.
const SETTINGS: [&str; 16] = [
    "/etc/OpenCL",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/glvnd",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/vulkan",
];

/// What says which processors there are: libraries of numbers read it.
const PROCESSORS: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// How names of hosts are found.
const RESOLVER: [&str; 4] = [
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/gai.conf",
];

/// Adds what every sandbox has of the system, to be read alone.
pub(super) fn add(all: &mut Arguments) {
    for path in SYSTEM.map(Path::new) {
        match fs::read_link(path) {
            Ok(target) => all.add_paths("--symlink", &target, path),
            Err(_) => all.add_paths("--ro-bind-try", path, path),
        }
    }
    for path in SETTINGS.into_iter().chain(PROCESSORS).map(Path::new) {
        all.add_paths("--ro-bind-try", path, path);
    }
}

/// Adds what names of hosts are found by.
pub(super) fn add_resolver(all: &mut Arguments) {
    for path in RESOLVER.map(Path::new) {
        // A link may lead to `/run`, which is not there.
        let real = path.canonicalize().unwrap_or_else(|_| path.into());
        all.add_paths("--ro-bind-try", &real, path);
    }
}

/// Returns whether every sandbox has this file or folder anyway.
pub(crate) fn is_in_every_sandbox(path: &Path) -> bool {
    let mut there = SYSTEM.iter().chain(&SETTINGS).chain(&["/dev"]);
    there.any(|known| path.starts_with(known))
}

/// Returns the folders that an interpreter needs: its environment, and that of the Python which the environment stands on, as its
/// `pyvenv.cfg` names it. None of them is the system's, which is there anyway.
///
/// # Errors
///
/// With the folder, where it holds more than a Python: a user's home lies in it.
pub(crate) fn interpreter_folders(python: &Path) -> Result<Vec<PathBuf>, PathBuf> {
    let real = python.canonicalize().ok();
    let named = python.parent().and_then(Path::parent).and_then(home_in);
    let homes = std::env::var_os("HOME").map(PathBuf::from);
    let mut folders = Vec::new();
    let programs = [
        Some(python.to_owned()),
        real,
        named.map(|home| home.join("python")),
    ];
    for program in programs.into_iter().flatten() {
        let Some(prefix) = program.parent().and_then(Path::parent) else {
            continue;
        };
        let is_there = SYSTEM.iter().any(|system| prefix.starts_with(system));
        if is_there || folders.iter().any(|known| known == prefix) {
            continue;
        }
        let holds_home = homes.iter().any(|home| home.starts_with(prefix));
        if holds_home || prefix.components().all(|part| part == Component::RootDir) {
            return Err(prefix.into());
        }
        folders.push(prefix.to_owned());
    }
    Ok(folders)
}

/// Returns the folder of the interpreter that an environment stands on.
fn home_in(environment: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(environment.join("pyvenv.cfg")).ok()?;
    let mut settings = text.lines().filter_map(|line| line.split_once('='));
    let (_, home) = settings.find(|(name, _)| name.trim() == "home")?;
    Some(PathBuf::from(home.trim())).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_brings_its_own_folder_and_no_home() {
        let folder = tempfile::tempdir().unwrap();
        let environment = folder.path().join("env");
        fs::create_dir_all(environment.join("bin")).unwrap();
        let python = environment.join("bin/python");
        std::os::unix::fs::symlink("/usr/bin/env", &python).unwrap();
        let of = |home: &str| {
            fs::write(
                environment.join("pyvenv.cfg"),
                format!("version = 3\nhome = {home}\n"),
            )
            .unwrap();
            interpreter_folders(&python)
        };
        assert_eq!(of("/usr/bin"), Ok(vec![environment.clone()]));
        let other = vec![environment.clone(), "/opt/python".into()];
        assert_eq!(of("/opt/python/bin"), Ok(other));
        let home = std::env::var("HOME").unwrap();
        assert_eq!(of(&format!("{home}/bin")), Err(home.into()));
        let system = Path::new("/usr/bin/python3");
        assert_eq!(interpreter_folders(system), Ok(vec![]), "it is there anyway");
    }

    #[test]
    fn of_the_settings_nothing_is_in_reach_that_names_users() {
        let mut all = Arguments::default();
        add(&mut all);
        for secret in [
            "/etc",
            "/etc/passwd",
            "/etc/shadow",
            "/etc/ssl",
            "/etc/ssh",
            "/var",
            "/run",
            "/sys",
            "/root",
        ] {
            assert!(!all.0.iter().any(|word| word == secret), "{secret}");
        }
    }
}
