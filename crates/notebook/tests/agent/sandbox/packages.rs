//! Packages that a stranger chose: installed without any of their code being run, and used in a sandbox alone.
//!
//! Each test is a real installer that has a folder of wheels in the place of an index.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use blueproof_core::{
    attempt::RecordKind,
    domain::{Failure, FailureClass},
};
use blueproof_diagnostic::Code;
use jiff::SignedDuration;
use tempfile::TempDir;

use super::{can_sandbox, resources::is_root};
use crate::support::{Attempt, Done};

const MAKE_WHEEL: &str = "
import json, sys, zipfile
folder, name, requires, files = sys.argv[1:]
name, _, version = name.partition('-')
version = version or '1.0'
info = f'{name}-{version}.dist-info'
with zipfile.ZipFile(f'{folder}/{name}-{version}-py3-none-any.whl', 'w', zipfile.ZIP_DEFLATED) as wheel:
    for path, text in json.loads(files):
        wheel.writestr(path, text if isinstance(text, str) else bytes(text))
    needs = f'Requires-Dist: {requires}\\n' if requires else ''
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', '')
";

const MAKE_SOURCE: &str = "
import io, sys, tarfile
folder, name, code = sys.argv[1:]
with tarfile.open(f'{folder}/{name}-1.0.tar.gz', 'w:gz') as source:
    for path, text in (('setup.py', code), ('PKG-INFO', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')):
        about = tarfile.TarInfo(f'{name}-1.0/{path}')
        about.size = len(text)
        source.addfile(about, io.BytesIO(text.encode()))
";

/// A machine that has an index of wheels, and a home with a key.
struct Machine {
    folder: TempDir,
    links: String,
}

impl Machine {
    /// Has what a kernel needs be in the index.
    fn new() -> Self {
        let machine = Self::without_kernel();
        let links = format!("{} {}", machine.links, kernel_wheels().display());
        Self { links, ..machine }
    }

    /// Has packages without content in the place of those that a kernel needs.
    fn bare() -> Self {
        let machine = Self::without_kernel();
        for name in ["ipykernel", "pip"] {
            machine.wheel(name, "", &[]);
        }
        machine
    }

    fn without_kernel() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for below in ["wheels", "home/.ssh", "environments"] {
            fs::create_dir_all(folder.path().join(below)).unwrap();
        }
        fs::write(folder.path().join("home/.ssh/id_rsa"), "the secret key").unwrap();
        let links = folder.path().join("wheels").display().to_string();
        Self { folder, links }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Puts a wheel into the index, of version 1.0 or as its name says, with a requirement, if any, and files.
    fn wheel(&self, name: &str, requires: &str, files: &[(&str, &str)]) {
        self.wheel_of(name, requires, &serde_json::to_string(files).unwrap());
    }

    /// Puts a wheel into the index that has so many files of so many zeros, and takes little itself.
    fn wheel_of_zeros(&self, name: &str, n_files: usize, zeros: usize) {
        let files: Vec<_> = (0..n_files).map(|at| (format!("zeros/{at}"), zeros)).collect();
        self.wheel_of(name, "", &serde_json::to_string(&files).unwrap());
    }

    fn wheel_of(&self, name: &str, requires: &str, files: &str) {
        python(
            MAKE_WHEEL,
            &[&self.path("wheels").display().to_string(), name, requires, files],
        );
    }

    /// Puts a source distribution into the index whose building writes into the home.
    fn source(&self, name: &str) {
        let code = format!("open({:?}, 'w').write('built')", self.path("home/planted"));
        python(
            MAKE_SOURCE,
            &[&self.path("wheels").display().to_string(), name, &code],
        );
    }

    /// Makes a wheel whose code runs wherever its environment's Python starts: it takes the key, and plants files.
    fn hostile_wheel(&self) {
        let code = format!(
            "import os, sys\n\
             def tries(step):\n    try:\n        return 'got ' + repr(step())\n    except BaseException as error:\n        return type(error).__name__\n\
             def plant(path):\n    with open(path, 'w') as file: return file.write('planted')\n\
             key, home = {:?}, {:?}\n\
             os.environ['STARTED'] = ' '.join([tries(lambda: open(key).read()), tries(lambda: plant(home)), tries(lambda: plant(sys.prefix + '/started-here'))])\n",
            self.path("home/.ssh/id_rsa"),
            self.path("home/planted"),
        );
        let files = [("hostile.pth", "import hostile"), ("hostile.py", &code)];
        self.wheel("hostile", "", &files);
    }

    /// Describes an attempt of a stranger's notebook on this machine.
    fn stranger(&self, requirements: &[&str], cell: &str) -> Attempt {
        self.attempt("stranger", requirements, cell).sandboxed()
    }

    fn attempt(&self, chooser: &str, requirements: &[&str], cell: &str) -> Attempt {
        let mut attempt = Attempt::of(&[cell])
            .environments(&self.path("environments"))
            .variable("TEST_ENVIRONMENT", chooser)
            .variable("HOME", &self.path("home").display().to_string())
            .variable("PIP_CONFIG_FILE", "/dev/null")
            .variable("PIP_NO_INDEX", "1")
            .variable("PIP_FIND_LINKS", &self.links)
            .variable("UV_OFFLINE", "1")
            .variable("UV_FIND_LINKS", &self.links.replace(' ', ","));
        // A real kernel's packages are installed, which takes long on a busy machine.
        attempt.timeouts.run = Some(SignedDuration::from_secs(110));
        let asked = requirements.iter().map(ToString::to_string);
        attempt.plan.environment.requirements.extend(asked);
        attempt
    }

    /// Returns why a stranger's packages are refused, and checks that nothing of them is left and nothing was run.
    fn refuses(&self, attempt: Attempt) -> Failure {
        let done = attempt.run();
        let failure = done.failure();
        assert_eq!(failure.class, FailureClass::Config, "{failure:?}");
        assert_eq!(done.ends(), []);
        assert!(!failure.diagnostic.hints.is_empty(), "{failure:?}");
        self.has_nothing_planted();
        assert_eq!(self.left(), Vec::<String>::new());
        failure
    }

    fn has_nothing_planted(&self) {
        assert!(!self.path("home/planted").exists());
    }

    /// Returns what there is of environments of strangers, but for the folders that all have.
    fn left(&self) -> Vec<String> {
        let root = self.path("environments/strangers");
        let mut left = names(&root);
        left.retain(|name| {
            !["locks", "requests", "complete", "asked", "CACHEDIR.TAG"].contains(&name.as_str())
        });
        left.extend(names(&root.join("complete")));
        left.extend(names(&root.join("asked")));
        left
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn python(code: &str, arguments: &[&str]) {
    let status = Command::new("python3")
        .args(["-c", code])
        .args(arguments)
        .status();
    assert!(status.unwrap().success());
}

/// Returns a folder of the wheels that a kernel needs, fetched once and kept in the target folder.
fn kernel_wheels() -> &'static Path {
    static WHEELS: OnceLock<PathBuf> = OnceLock::new();
    WHEELS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wheels-ipykernel");
        let lock = File::create(folder.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        if !folder.join("complete").exists() {
            let mut fetch = Command::new("python3");
            fetch.args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--only-binary",
                ":all:",
                "--dest",
            ]);
            let status = fetch.arg(&folder).args(["ipykernel", "pip"]).status();
            assert!(status.unwrap().success());
            fs::write(folder.join("complete"), "").unwrap();
        }
        folder
    })
}

/// Returns the environment that an attempt had, as its report shows it.
fn environment(done: &Done) -> serde_json::Value {
    let ready = done.records.iter().find_map(|record| {
        let RecordKind::EnvironmentReady { environment } = &record.kind else {
            return None;
        };
        Some(environment.clone())
    });
    ready.unwrap()
}

fn has(environment: &serde_json::Value, name: &str, version: &str) -> bool {
    let packages = environment["packages"].as_array().unwrap();
    packages.contains(&serde_json::json!({"name": name, "version": version}))
}

#[test]
fn a_strangers_notebook_has_the_packages_that_it_asks_for_and_cannot_change_them() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::new();
    machine.wheel(
        "asked_for",
        "brought_along",
        &[("asked_for.py", "import brought_along")],
    );
    machine.wheel(
        "brought_along",
        "",
        &[("brought_along.py", "said = 'brought along'")],
    );
    let cell = "import asked_for, sys\nprint(asked_for.brought_along.said, sys.prefix)\n\
                try:\n    open(asked_for.__file__, 'a')\nexcept OSError:\n    print('refused')";
    let done = machine.stranger(&["asked_for"], cell).run();
    done.passed();
    let strangers = machine.path("environments/strangers").display().to_string();
    let printed = done.printed();
    assert!(
        printed.starts_with(&format!("brought along {strangers}/py3")),
        "{printed}"
    );
    assert!(printed.ends_with("\nrefused\n"), "{printed}");
    let environment = environment(&done);
    assert!(has(&environment, "brought_along", "1.0"), "{environment}");
}

#[test]
fn the_environment_of_a_stranger_is_not_that_of_a_trusted_run_with_the_same_packages() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    machine.wheel("asked_for", "", &[]);
    let made = |chooser| environment(&machine.attempt(chooser, &["asked_for"], "print(1)").run());
    let of_stranger = made("stranger");
    let only_there = machine.left();
    assert_eq!(only_there.len(), 2, "{only_there:?}");
    let trusted = machine.path("environments");
    assert_eq!(names(&trusted), ["strangers"]);
    let of_trusted = made("trusted");
    assert_ne!(of_stranger["key"], of_trusted["key"]);
    assert!(names(&trusted).contains(&of_trusted["key"].as_str().unwrap().to_owned()));
    assert_eq!(machine.left(), only_there);
    assert_eq!(
        of_stranger["packages"], of_trusted["packages"],
        "as installed by the trusted one, which asks Python"
    );
}

#[test]
fn code_that_starts_with_python_runs_in_no_place_but_the_sandbox_of_a_notebook() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::new();
    machine.hostile_wheel();
    let cell = "import os; print(os.environ['STARTED'])";
    let mut keys = Vec::new();
    for _ in 0..2 {
        let done = machine.stranger(&["hostile"], cell).run();
        done.passed();
        assert_eq!(done.printed(), "FileNotFoundError FileNotFoundError OSError\n");
        machine.has_nothing_planted();
        let left = machine.left();
        assert_eq!(left.len(), 2, "one environment, and what it is: {left:?}");
        let made = names(&machine.path("environments/strangers").join(&left[0]));
        assert!(!made.contains(&"started-here".into()), "{made:?}");
        keys.push(environment(&done)["key"].clone());
    }
    assert_eq!(keys[0], keys[1], "the second run has that of the first");

    // The wheel does what it is made for: of a trusted run its code is the agent's, as soon as it is installed.
    let trusting = Machine::bare();
    trusting.hostile_wheel();
    trusting.attempt("trusted", &["hostile"], cell).run();
    assert!(trusting.path("home/planted").exists());
}

#[test]
fn a_package_without_a_wheel_is_refused_by_its_name_and_not_built() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    machine.source("only-source");
    machine.wheel("needs_source", "only-source", &[]);
    for asked in ["only-source", "needs_source"] {
        let failure = machine.refuses(machine.stranger(&[asked], "print(1)"));
        let diagnostic = failure.diagnostic;
        assert_eq!(diagnostic.code, Code::PackageBuild, "{diagnostic:?}");
        assert!(diagnostic.message.contains("`only-source`"), "{diagnostic:?}");
    }
}

#[test]
fn an_address_that_a_package_or_a_lock_names_is_not_asked_and_not_built() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    machine.source("far");
    let address = format!("far @ file://{}", machine.path("wheels/far-1.0.tar.gz").display());
    machine.wheel("leads_there", &address, &[]);
    let failure = machine.refuses(machine.stranger(&["leads_there"], "print(1)"));
    assert_eq!(failure.diagnostic.code, Code::SandboxRefused, "{failure:?}");
    assert!(failure.diagnostic.message.contains("`far`"), "{failure:?}");

    let locks = [
        ("far @ git+https://example.org/far@1", "far @ git+https"),
        ("--index-url https://example.org/simple", "--index-url"),
        ("far==1.0 --hash=sha256:00", "far==1.0"),
    ];
    for (lock, told) in locks {
        let mut attempt = machine.stranger(&[], "print(1)").file("lock.txt", lock);
        attempt.plan.environment.lock = Some("lock.txt".into());
        let failure = machine.refuses(attempt);
        assert_eq!(failure.diagnostic.code, Code::SandboxRefused, "{failure:?}");
        assert!(failure.diagnostic.message.contains(told), "{failure:?}");
    }
    let name = "[[package]]\nname = \"far\\n--index-url=https://example.org\\nfar\"\nversion = \"1\"\nsource = { registry = \"x\" }\n";
    let mut attempt = machine.stranger(&[], "print(1)").file("uv.lock", name);
    attempt.plan.environment.lock = Some("uv.lock".into());
    assert_eq!(machine.refuses(attempt).diagnostic.code, Code::Requirement);
}

#[test]
fn a_lock_of_names_decides_the_versions_of_a_strangers_packages() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    machine.wheel("asked_for", "", &[]);
    machine.wheel("asked_for-2.0", "", &[]);
    let mut attempt = machine.stranger(&["asked_for"], "print(1)");
    let newest = environment(&attempt.run());
    assert!(has(&newest, "asked_for", "2.0"), "{newest}");
    attempt = machine
        .stranger(&["asked_for"], "print(1)")
        .file("lock.txt", "asked_for==1.0\n");
    attempt.plan.environment.lock = Some("lock.txt".into());
    let locked = environment(&attempt.run());
    assert!(has(&locked, "asked_for", "1.0"), "{locked}");
}

#[test]
fn a_package_larger_than_its_environment_may_be_ends_the_installation_and_leaves_nothing() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    machine.wheel_of_zeros("one_file", 1, 256 << 20);
    machine.wheel_of_zeros("many_files", 200, 12 << 20);
    for package in ["one_file", "many_files"] {
        let attempt = machine
            .stranger(&[package], "print(1)")
            .variable("TEST_DISK", "16777216");
        let failure = machine.refuses(attempt);
        assert_eq!(failure.diagnostic.code, Code::DiskLimit, "{package}: {failure:?}");
        assert!(failure.diagnostic.message.contains("16Mi"), "{failure:?}");
    }
}

#[test]
fn a_wheel_that_leads_out_of_its_environment_or_changes_its_python_is_refused() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    machine.wheel("leads_out", "", &[("../../../../escaped.py", "")]);
    machine.wheel(
        "other_home",
        "",
        &[("other_home-1.0.data/data/pyvenv.cfg", "home = /secret/bin\n")],
    );
    machine.wheel(
        "other_python",
        "",
        &[("other_python-1.0.data/data/bin/python", "#!/bin/sh\n")],
    );
    let refuses = |name| machine.refuses(machine.stranger(&[name], "print(1)")).diagnostic;
    let out = machine.stranger(&["leads_out"], "print(1)").run();
    if out
        .records
        .iter()
        .any(|record| matches!(record.kind, RecordKind::EnvironmentReady { .. }))
    {
        // It passes such a file by.
        assert_eq!(environment(&out)["tool"], "uv");
    } else {
        let refused = out.failure().diagnostic;
        assert_eq!(refused.code, Code::SandboxRefused, "{refused:?}");
        assert!(refused.message.contains("`leads_out`"), "{refused:?}");
    }
    let everything = walkdir::WalkDir::new(machine.path("")).into_iter().flatten();
    let mut escaped = everything.filter(|entry| entry.file_name() == "escaped.py");
    assert!(escaped.next().is_none());
    fs::remove_dir_all(machine.path("environments")).unwrap();
    for (name, told) in [("other_home", "pyvenv.cfg"), ("other_python", "python`")] {
        let refused = refuses(name);
        assert_eq!(refused.code, Code::SandboxRefused, "{refused:?}");
        assert!(refused.message.contains(told), "{refused:?}");
    }
    assert_eq!(names(&machine.path("")), ["environments", "home", "wheels"]);
}

#[test]
fn what_a_package_says_that_its_environment_is_counts_for_nothing() {
    if !can_sandbox() {
        return;
    }
    let machine = Machine::bare();
    let said = r#"{"key":"k","version":"9","tool":"uv","packagesFolder":"lib","packages":[],"code":"","standsOn":""}"#;
    machine.wheel(
        "asked_for",
        "",
        &[("asked_for-1.0.data/data/blueproof.json", said)],
    );
    let done = machine.stranger(&["asked_for"], "print(1)").run();
    assert!(environment(&done)["python"].as_str().unwrap().starts_with("3."));
}

#[test]
fn what_installs_a_strangers_packages_is_another_user_than_the_agent() {
    if !can_sandbox() {
        return;
    }
    if !is_root() {
        eprintln!("NOT TESTED: the user that installs packages, because this one is not root");
        return;
    }
    let machine = Machine::bare();
    machine.wheel("closed", "", &[]);
    let file = machine.path("wheels/closed-1.0-py3-none-any.whl");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let failure = machine.stranger(&["closed"], "print(1)").fails();
    let causes = failure.diagnostic.causes.join("\n").to_lowercase();
    assert!(causes.contains("permission denied"), "{failure:?}");
}
