//! Environments that are really built, with this machine's Python, from wheels that the tests make.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

use blueproof_core::domain::{Failure, FailureClass};
use blueproof_diagnostic::Code;
use tempfile::TempDir;

use super::*;

const MAKE_WHEEL: &str = "
import sys, zipfile
folder, name, version = sys.argv[1:]
info = f'{name}-{version}.dist-info'
with zipfile.ZipFile(f'{folder}/{name}-{version}-py3-none-any.whl', 'w') as wheel:
    wheel.writestr(f'{name}.py', f'VERSION = {version!r}')
    wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')
    wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(f'{info}/RECORD', '')
";

/// A host without a network whose pip knows a folder of small wheels.
struct Bench {
    folder: TempDir,
    variables: Vec<(OsString, OsString)>,
}

static NEVER: AtomicBool = AtomicBool::new(false);

const PATIENT: Patience<'static> = Patience {
    stop: &NEVER,
    deadline: None,
};

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let wheels = folder.path().join("wheels");
        fs::create_dir(&wheels).expect("a folder can be made");
        let named = |name: &str| std::env::var_os(name).map(|value| (name.into(), value));
        let mut variables: Vec<(OsString, OsString)> = ["PATH", "HOME", "PYENV_ROOT"]
            .iter()
            .filter_map(|name| named(name))
            .collect();
        variables.push(("PIP_CONFIG_FILE".into(), "/dev/null".into()));
        variables.push(("PIP_NO_INDEX".into(), "1".into()));
        variables.push(("PIP_FIND_LINKS".into(), wheels.clone().into()));
        variables.push(("UV_NO_INDEX".into(), "1".into()));
        variables.push(("UV_FIND_LINKS".into(), wheels.into()));
        let bench = Self { folder, variables };
        bench.wheel("ipykernel", "7.1");
        bench.wheel("pip", "99.0");
        bench
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.into(), value.into()));
        self
    }

    fn host(&self) -> Host {
        Host::with_variables(self.variables.clone())
    }

    fn wheel(&self, name: &str, version: &str) {
        let interpreter =
            interpreter::find(None, &Host::current(), PATIENT).expect("this machine has a Python");
        let mut command = Command::new(interpreter.executable);
        command
            .args(["-c", MAKE_WHEEL])
            .arg(self.folder.path().join("wheels"));
        let status = command.args([name, version]).status().expect("Python runs");
        assert!(status.success());
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn prepare(&self, requirements: &[&str]) -> Result<Prepared, Unprepared> {
        self.prepare_with(&asking(requirements), PATIENT)
    }

    fn prepare_with(
        &self,
        environment: &Environment,
        patience: Patience<'_>,
    ) -> Result<Prepared, Unprepared> {
        prepare_on(
            &self.host(),
            environment,
            self.folder.path(),
            &self.cache(),
            patience,
            &mut |_| {},
        )
    }
}

fn asking(requirements: &[&str]) -> Environment {
    Environment {
        requirements: requirements.iter().map(ToString::to_string).collect(),
        ..Environment::default()
    }
}

fn failure(result: Result<Prepared, Unprepared>) -> Failure {
    match result {
        Err(Unprepared::Failed(failure)) => *failure,
        other => panic!("it fails: {other:?}"),
    }
}

fn program(folder: &Path, name: &str, script: &str) {
    fs::create_dir_all(folder).expect("a folder can be made");
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a file can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

#[test]
fn one_of_several_callers_builds_and_all_get_the_same_environment() {
    let bench = Bench::new();
    bench.wheel("tinything", "1.2");

    let prepared: Vec<Prepared> = thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| bench.prepare(&["tinything"])))
            .collect();
        let joined = callers
            .into_iter()
            .map(|caller| caller.join().expect("no caller panics"));
        joined
            .map(|result| result.expect("the wheels are there"))
            .collect()
    });

    let built = prepared
        .iter()
        .filter(|prepared| prepared.origin == Origin::Built)
        .count();
    assert_eq!(built, 1);
    assert!(
        prepared
            .iter()
            .all(|each| each.key == prepared[0].key && each.packages == prepared[0].packages)
    );
    assert_eq!(prepared[0].version_of("TinyThing"), Some("1.2"));
    assert_eq!(prepared[0].version_of("ipykernel"), Some("7.1"));
    let import = Command::new(&prepared[0].python)
        .args(["-c", "import tinything, ipykernel"])
        .status();
    assert!(import.expect("the environment's Python runs").success());
}

#[test]
fn a_half_built_environment_is_built_anew_and_one_whose_packages_changed_is_left_to_its_users() {
    let bench = Bench::new();
    let first = bench.prepare(&[]).expect("the wheels are there");
    let folder = first
        .python
        .parent()
        .and_then(Path::parent)
        .expect("it lies in a folder")
        .to_owned();
    fs::remove_file(bench.cache().join("complete").join(&first.key)).expect("it is there");
    fs::write(folder.join("leftover"), "").expect("a file can be written");

    let second = bench.prepare(&[]).expect("the wheels are there");
    assert_eq!((second.origin, &second.python), (Origin::Built, &first.python));
    assert!(!folder.join("leftover").exists());

    let site = folder
        .join("lib")
        .read_dir()
        .expect("it is there")
        .flatten()
        .next()
        .expect("a version")
        .path();
    fs::write(site.join("site-packages/added.py"), "").expect("a file can be written");
    let third = bench.prepare(&[]).expect("the wheels are there");
    assert_eq!((third.origin, &third.key), (Origin::Built, &first.key));
    assert_ne!(third.python, first.python);
    assert!(folder.join("bin/python").exists());
    assert_eq!(bench.prepare(&[]).expect("it is there").origin, Origin::Cached);

    let modules = third
        .python
        .parent()
        .and_then(Path::parent)
        .expect("a folder")
        .join("lib");
    let module = walkdir::WalkDir::new(modules).into_iter().flatten();
    let mut module = module.filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "py"));
    let module = module.next().expect("packages have code").into_path();
    fs::write(module, "changed = True").expect("a file can be written");
    let fourth = bench.prepare(&[]).expect("the wheels are there");
    assert_eq!(fourth.origin, Origin::Built, "code was edited");
    assert_ne!(fourth.python, third.python);

    let folder = fourth.python.parent().and_then(Path::parent).expect("a folder");
    let settings = folder.join("pyvenv.cfg");
    let says = fs::read_to_string(&settings).expect("each environment has one");
    let others = says.replace(
        "include-system-site-packages = false",
        "include-system-site-packages = true",
    );
    assert_ne!(says, others);
    fs::write(settings, others).expect("a file can be written");
    let fifth = bench.prepare(&[]).expect("the wheels are there");
    assert_eq!(
        fifth.origin,
        Origin::Built,
        "packages of the machine are among its own"
    );
}

#[test]
fn a_lock_decides_versions_and_is_part_of_the_key() {
    let bench = Bench::new();
    bench.wheel("tinything", "1.2");
    bench.wheel("tinything", "2.0");
    fs::write(bench.folder.path().join("lock.txt"), "tinything==1.2\n").expect("a file can be written");
    let mut environment = asking(&["tinything"]);

    let newest = bench
        .prepare_with(&environment, PATIENT)
        .expect("the wheels are there");
    environment.lock = Some("lock.txt".into());
    let locked = bench
        .prepare_with(&environment, PATIENT)
        .expect("the wheels are there");

    assert_eq!(newest.version_of("tinything"), Some("2.0"));
    assert_eq!(locked.version_of("tinything"), Some("1.2"));
    assert_ne!(newest.key, locked.key);
}

#[test]
fn what_no_index_has_is_named_with_the_resolvers_words() {
    let bench = Bench::new();
    bench.wheel("tinything", "1.2");
    let rows = [
        ("no-such-package-anywhere", Code::PackageMissing),
        ("tinything==9", Code::PackageVersion),
    ];
    for (requirement, code) in rows {
        let failure = failure(bench.prepare(&[requirement]));

        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Config, code)
        );
        assert!(
            failure.diagnostic.message.contains(&format!("`{requirement}`")),
            "{failure:?}"
        );
        assert!(!failure.diagnostic.causes.is_empty() && !failure.diagnostic.hints.is_empty());
        let left = bench.cache().read_dir().expect("it is there").flatten();
        assert_eq!(
            left.filter(|entry| entry.file_name().to_string_lossy().starts_with("py"))
                .count(),
            0
        );
    }
}

#[test]
fn without_a_network_everything_that_is_missing_is_named_and_nothing_else() {
    // Nothing listens on the discard port, so every connection is refused at once.
    let index = "http://127.0.0.1:9/simple";
    let mut bench = Bench::new()
        .with("PIP_INDEX_URL", index)
        .with("UV_INDEX_URL", index);
    bench
        .variables
        .retain(|(name, _)| name != "PIP_NO_INDEX" && name != "UV_NO_INDEX");
    bench.wheel("tinything", "1.2");

    let failure = failure(bench.prepare(&["absent-a", "absent-b>=2", "tinything"]));

    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::PackagesOffline)
    );
    let expected = "`absent-a`, `absent-b>=2` are not here and the package index cannot be reached";
    assert_eq!(failure.diagnostic.message, expected);
}

/// Answers everything with this status, on a port of its own, for as long as the tests run.
fn index_that_answers(status: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it listens").port();
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let mut lines = std::io::BufRead::lines(std::io::BufReader::new(
                connection.try_clone().expect("a socket can be copied"),
            ));
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
            // A client that has gone away wants no answer.
            let _ = std::io::Write::write_all(&mut connection, answer.as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}/simple")
}

#[test]
fn an_index_that_fails_is_not_told_as_a_package_that_it_lacks() {
    for (status, locked, class, code) in [
        (
            "401 Unauthorized",
            None,
            FailureClass::Config,
            Code::InstallFailed,
        ),
        (
            "503 Service Unavailable",
            None,
            FailureClass::Infrastructure,
            Code::PackageDownload,
        ),
        (
            "503 Service Unavailable",
            Some("absent==1\n"),
            FailureClass::Infrastructure,
            Code::PackageDownload,
        ),
        ("404 Not Found", None, FailureClass::Config, Code::PackageMissing),
        (
            "404 Not Found",
            Some("absent==1\n"),
            FailureClass::Config,
            Code::PackageMissing,
        ),
    ] {
        let index = index_that_answers(status);
        let mut bench = Bench::new()
            .with("PIP_INDEX_URL", &index)
            .with("UV_INDEX_URL", &index)
            .with("UV_HTTP_RETRIES", "0")
            .with("PIP_RETRIES", "0");
        bench
            .variables
            .retain(|(name, _)| name != "PIP_NO_INDEX" && name != "UV_NO_INDEX");
        let mut environment = asking(&["absent"]);
        if let Some(lock) = locked {
            fs::write(bench.folder.path().join("lock.txt"), lock).expect("files can be written");
            environment.lock = Some("lock.txt".into());
        }
        let failure = failure(bench.prepare_with(&environment, PATIENT));
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (class, code),
            "{status} {failure:?}"
        );
    }
}

#[test]
fn a_name_on_the_path_that_does_not_run_is_tried_told_and_passed_over() {
    let shims = tempfile::tempdir().expect("a folder can be made");
    program(
        shims.path(),
        "python3.12",
        "echo 'pyenv: python3.12: command not found' >&2; exit 127",
    );
    program(shims.path(), "python3", "echo what");
    let host = Host::with_variables([("PATH".into(), shims.path().into())]);
    let request = interpreter::PythonRequest::parse("3.12").expect("it is a version");

    let Err(Unprepared::Failed(failure)) = interpreter::find(Some(&request), &host, PATIENT) else {
        panic!("there is no Python");
    };

    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::PythonVersion)
    );
    let causes = failure.diagnostic.causes.join("\n");
    assert!(
        causes.contains("exit status: 127: pyenv: python3.12: command not found"),
        "{causes}"
    );
    assert!(
        causes.contains("python3: does not answer as Python does"),
        "{causes}"
    );
    assert!(failure.diagnostic.hints[0].contains("python3.12"));
}

#[test]
fn no_python_at_all_says_so() {
    let host = Host::with_variables([("PATH".into(), "/nowhere".into())]);

    let Err(Unprepared::Failed(failure)) = interpreter::find(None, &host, PATIENT) else {
        panic!("there is no Python");
    };

    assert_eq!(failure.diagnostic.code, Code::PythonMissing);
    assert!(failure.diagnostic.hints[0].contains("apt install python3"));
}

#[test]
fn when_patience_ends_the_program_and_what_it_started_are_killed() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    program(folder.path(), "python3", "sleep 600 & sleep 600");
    let host = Host::with_variables([(
        "PATH".into(),
        format!("{}:/usr/bin:/bin", folder.path().display()).into(),
    )]);
    let begun = Instant::now();
    let hurried = Patience {
        stop: &NEVER,
        deadline: Some(begun + Duration::from_millis(200)),
    };

    let found = interpreter::find(None, &host, hurried);

    assert_eq!(found.err(), Some(Unprepared::OutOfTime));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_stop_ends_the_wait_for_another_builder() {
    let bench = Bench::new();
    let cache = Cache::open(&bench.cache()).expect("the folder can be made");
    let held = cache
        .lock("some-key", PATIENT, &mut |_| {})
        .expect("nobody holds it");
    let stop = AtomicBool::new(false);
    let patience = Patience {
        stop: &stop,
        deadline: None,
    };

    // The wait itself asks to stop, by way of what it tells: it is certain to be waiting then.
    let mut told = Vec::new();
    let waited = cache.lock("some-key", patience, &mut |text| {
        told.push(text.to_owned());
        stop.store(true, Ordering::Relaxed);
    });

    assert_eq!(waited.err(), Some(Unprepared::Stopped));
    assert_eq!(told, ["waiting for another run that builds the same environment"]);
    drop(held);
}

#[test]
fn an_installer_whose_parent_is_gone_keeps_others_from_building() {
    let bench = Bench::new();
    let cache = Cache::open(&bench.cache()).expect("the folder can be made");
    let held = cache
        .lock("some-key", PATIENT, &mut |_| {})
        .expect("nobody holds it");
    let mut installer = Command::new("sleep")
        .arg("600")
        .stdin(held)
        .spawn()
        .expect("it is on every system");
    let soon = Patience {
        stop: &NEVER,
        deadline: Some(Instant::now() + Duration::from_millis(100)),
    };

    let while_it_lives = cache.lock("some-key", soon, &mut |_| {});
    installer.kill().expect("it runs");
    installer.wait().expect("it was killed");
    let afterwards = cache.lock("some-key", PATIENT, &mut |_| {});

    assert_eq!(while_it_lives.err(), Some(Unprepared::OutOfTime));
    assert!(afterwards.is_ok());
}
