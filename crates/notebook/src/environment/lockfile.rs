//! Reads a lock: a requirements file with every version pinned, or `uv.lock`.
//!
//! Both become what pip and uv understand alike: requirements to install and constraints on everything else. The
//! file is read once; what is installed is what was read, whatever happens to the checkout meanwhile.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path},
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use serde::Deserialize;

use super::{Unprepared, requirements};
use crate::text::encoding;

/// The most that a lock may hold. The largest in the wild are a few megabytes.
const LOCK_BYTES: u64 = 32 * 1024 * 1024;

/// A lock that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    /// What it installs, without hashes.
    pub(super) requirements: Vec<String>,
    /// What it says about the versions of whatever is installed, in pip's form and without hashes.
    pub(super) constraints: Vec<String>,
    /// The file that pip is given to install from, options and hashes included.
    pub(super) file: String,
}

#[derive(Deserialize)]
struct UvLock {
    #[serde(default)]
    package: Vec<UvPackage>,
}

#[derive(Deserialize)]
struct UvPackage {
    name: String,
    version: Option<String>,
    #[serde(default)]
    source: BTreeMap<String, toml::Value>,
    #[serde(default)]
    dependencies: Vec<UvDependency>,
    #[serde(default, rename = "resolution-markers")]
    markers: Vec<String>,
}

#[derive(Deserialize)]
struct UvDependency {
    name: String,
    #[serde(default)]
    extra: Vec<String>,
    marker: Option<String>,
}

impl Lock {
    /// Reads the lock at `path`, which is relative to `checkout` and may not lead out of it.
    pub(super) fn read(checkout: &Path, path: &Path) -> Result<Self, Unprepared> {
        let text = read_inside(checkout, path)?;
        let place = SourceLocation::file(path.display().to_string());
        let lock = if path.file_name().is_some_and(|name| name == "uv.lock") {
            Self::from_uv(&text)
        } else {
            Self::from_requirements(&text)
        };
        lock.map_err(|diagnostic| match diagnostic.place {
            Some(_) => Unprepared::config(*diagnostic),
            None => Unprepared::config(diagnostic.at(place)),
        })
    }

    /// Returns all that it says, for a key.
    pub(super) fn text(&self) -> String {
        format!("{}\0{}", self.file, self.constraints.join("\n"))
    }

    /// Refuses what has an effect other than to name packages and versions. `uv.lock` is another's text, too.
    pub(super) fn check_of_stranger(&self) -> Result<(), Unprepared> {
        let refuse = |message: String, why: &str, hint: &str| {
            let diagnostic = Diagnostic::error(Code::SandboxRefused, message);
            Unprepared::config(diagnostic.because(why).hint(hint).hint(requirements::DISPOSABLE))
        };
        if let Some(option) = self.file.lines().find(|line| line.trim().starts_with("--")) {
            return Err(refuse(
                format!("the lock has the option `{}`", option.trim().escape_debug()),
                "for a pull request packages come from the indexes of this machine",
                "leave it out of the lock",
            ));
        }
        if let Some(line) = self.file.lines().find(|line| line.contains(" --")) {
            let name = line.split(" --").next().unwrap_or(line).trim();
            return Err(refuse(
                format!("the lock gives `{}` options, such as hashes", name.escape_debug()),
                "for a pull request all packages are installed at once, and hashes of some would be asked of all",
                "make a lock without hashes, for example: uv pip compile requirements.in -o lock.txt",
            ));
        }
        let mut lines = self.requirements.iter().chain(&self.constraints);
        lines.try_for_each(|line| {
            requirements::checked_by_name(line).map_err(|refused| Unprepared::config(*refused))
        })
    }

    fn from_requirements(text: &str) -> Result<Self, Box<Diagnostic>> {
        let mut lock = Self {
            requirements: Vec::new(),
            constraints: Vec::new(),
            file: String::new(),
        };
        let joined = text.replace("\r\n", "\n").replace("\\\n", " ");
        for line in joined.lines().map(str::trim) {
            if is_reference(line) {
                let message = format!(
                    "`{}` leads to another file, which a lock may not",
                    line.escape_debug()
                );
                let diagnostic = Diagnostic::error(Code::LockFile, message);
                let hint =
                    "compile it into one file, for example: uv pip compile requirements.in -o lock.txt";
                return Err(diagnostic.hint(hint).into());
            }
            if line.starts_with("--") {
                lock.file.push_str(line);
                lock.file.push('\n');
                continue;
            }
            let bare = line.split(" --").next().unwrap_or(line);
            let parsed = requirements::parse(bare).map_err(|why| {
                Diagnostic::error(
                    Code::LockFile,
                    format!("`{}` is not a requirement: {why}", bare.escape_debug()),
                )
            })?;
            let Some(requirement) = parsed else {
                continue;
            };
            lock.file.push_str(line);
            lock.file.push('\n');
            if !requirement.contains('[') {
                lock.constraints.push(requirement.clone());
            }
            lock.requirements.push(requirement);
        }
        Ok(lock)
    }

    fn from_uv(text: &str) -> Result<Self, Box<Diagnostic>> {
        let parsed: UvLock = toml::from_str(text).map_err(|error| {
            Diagnostic::error(Code::LockFile, "the file is not a lock of uv's").caused_by(&error)
        })?;
        let is_root = |package: &&UvPackage| {
            let local = ["virtual", "editable"]
                .iter()
                .find_map(|kind| package.source.get(*kind));
            local.and_then(toml::Value::as_str) == Some(".")
        };
        let root = parsed.package.iter().find(is_root);
        let requirements: Vec<_> = root
            .iter()
            .flat_map(|root| &root.dependencies)
            .map(UvDependency::requirement)
            .collect();
        let constraints: Vec<_> = parsed.package.iter().flat_map(UvPackage::constraints).collect();
        Ok(Self {
            file: requirements.join("\n"),
            requirements,
            constraints,
        })
    }
}

impl UvPackage {
    fn constraints(&self) -> Vec<String> {
        let text = |kind: &str| self.source.get(kind).and_then(toml::Value::as_str);
        let pinned = if let Some(url) = text("url") {
            format!("{} @ {url}", self.name)
        } else if let Some((url, commit)) = text("git").and_then(|git| git.rsplit_once('#')) {
            let repository = url.split('?').next().unwrap_or(url);
            format!("{} @ git+{repository}@{commit}", self.name)
        } else if let (Some(_), Some(version)) = (self.source.get("registry"), &self.version) {
            format!("{}=={version}", self.name)
        } else {
            return Vec::new();
        };
        if self.markers.is_empty() {
            return vec![pinned];
        }
        self.markers
            .iter()
            .map(|marker| format!("{pinned} ; {marker}"))
            .collect()
    }
}

impl UvDependency {
    fn requirement(&self) -> String {
        let extras = match self.extra.as_slice() {
            [] => String::new(),
            extras => format!("[{}]", extras.join(",")),
        };
        let marker = self
            .marker
            .as_ref()
            .map_or_else(String::new, |marker| format!(" ; {marker}"));
        format!("{}{extras}{marker}", self.name)
    }
}

/// A line by which pip would read something of the checkout, or of the host.
fn is_reference(line: &str) -> bool {
    let long = ["--requirement", "--constraint", "--editable"];
    let short = ["-r", "-c", "-e"];
    long.iter().any(|option| line.starts_with(option))
        || (!line.starts_with("--") && short.iter().any(|option| line.starts_with(option)))
}

fn read_inside(checkout: &Path, path: &Path) -> Result<String, Unprepared> {
    let shown = path.display().to_string();
    let refuse =
        |message: String| Diagnostic::error(Code::LockFile, message).at(SourceLocation::file(&shown));
    let leaves = || Unprepared::config(refuse(format!("the lock `{shown}` lies outside the checkout")));
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !plain {
        return Err(leaves());
    }
    let cannot = |error: std::io::Error| {
        let diagnostic = refuse(format!("the lock `{shown}` cannot be read")).caused_by(&error);
        Unprepared::config(diagnostic.hint("paths are relative to the folder of the blueprint"))
    };
    let real = checkout.join(path).canonicalize().map_err(cannot)?;
    if !real.starts_with(checkout.canonicalize().map_err(cannot)?) {
        return Err(leaves());
    }
    let about = fs::metadata(&real).map_err(cannot)?;
    if !about.is_file() || about.len() > LOCK_BYTES {
        let message = format!(
            "the lock `{shown}` is no ordinary file of at most {} MiB",
            LOCK_BYTES >> 20
        );
        return Err(Unprepared::config(refuse(message)));
    }
    let bytes = fs::read(&real).map_err(cannot)?;
    if let Some(text) = encoding::utf_8(&bytes) {
        return Ok(text.to_owned());
    }
    let refused = refuse(format!("the lock `{shown}` is not text in UTF-8"));
    Err(Unprepared::config(refused.hint(encoding::hint(path, &bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirements_file_with_hashes_is_installed_with_them_and_constrains_without() {
        let text =
            "# made by a tool\nnumpy==2.3.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nsix==1.17.0\n";
        let lock = Lock::from_requirements(text).expect("it is a lock");

        assert_eq!(lock.requirements, ["numpy==2.3.1", "six==1.17.0"]);
        assert_eq!(lock.constraints, lock.requirements);
        assert!(lock.file.contains("--hash=sha256:bb"));
    }

    #[test]
    fn a_lock_that_leads_to_another_file_is_refused() {
        for line in [
            "-r base.txt",
            "--requirement=base.txt",
            "-c c.txt",
            "-e .",
            "-rbase.txt",
            "./wheels/x.whl",
        ] {
            assert!(Lock::from_requirements(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_lock_of_uv_installs_the_roots_dependencies_and_pins_the_rest() {
        let text = r#"
version = 1
[[package]]
name = "demo"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "jax", extra = ["cuda12"], marker = "sys_platform == 'linux'" },
    { name = "six" },
]
[[package]]
name = "six"
version = "1.17.0"
source = { registry = "https://example.org/simple" }
[[package]]
name = "numpy"
version = "2.2.0"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version < '3.11'", "python_full_version == '3.11.*'"]
[[package]]
name = "tool"
version = "1.0"
source = { git = "https://example.org/tool.git?rev=main#0123abc" }
"#;
        let lock = Lock::from_uv(text).expect("it is a lock");

        assert_eq!(
            lock.requirements,
            ["jax[cuda12] ; sys_platform == 'linux'", "six"]
        );
        assert_eq!(
            lock.constraints,
            [
                "six==1.17.0",
                "numpy==2.2.0 ; python_full_version < '3.11'",
                "numpy==2.2.0 ; python_full_version == '3.11.*'",
                "tool @ git+https://example.org/tool.git@0123abc",
            ]
        );
    }

    #[test]
    fn a_lock_outside_the_checkout_is_refused_by_name_and_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let checkout = folder.path().join("checkout");
        fs::create_dir(&checkout).expect("a folder can be made");
        fs::write(folder.path().join("out.txt"), "six").expect("a file can be written");
        std::os::unix::fs::symlink("../out.txt", checkout.join("link.txt")).expect("a link can be made");

        for path in ["../out.txt", "link.txt", "/etc/hostname"] {
            let Err(Unprepared::Failed(failure)) = Lock::read(&checkout, Path::new(path)) else {
                panic!("{path} is refused");
            };
            assert!(
                failure.diagnostic.message.contains("outside the checkout"),
                "{path}"
            );
        }
    }
}
