//! Commits of real repositories, hostile ones among them. Whatever a repository has run writes a file.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use blueproof_core::domain::GitRepository;

use super::*;

/// A repository in a folder, and a place beside it where what is run leaves its mark.
struct Remote {
    folder: tempfile::TempDir,
}

impl Remote {
    fn new() -> Self {
        let remote = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        fs::create_dir(remote.root()).expect("a folder");
        remote.git(&["init", "--quiet", "--initial-branch=main"]);
        remote
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("remote")
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("ran")
    }

    /// Returns a program that leaves a mark.
    fn program(&self) -> String {
        format!("touch '{}'", self.mark().display())
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let ours = [
            "-c",
            "user.name=ada",
            "-c",
            "user.email=ada@example.org",
            "-c",
            "core.fsmonitor=false",
        ];
        command.current_dir(self.root()).args(ours).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().expect("git is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Commits everything that is there, and returns the commit.
    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", "one more"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn source(&self, commit: &str, folder: &str) -> GitSource {
        let address = format!("file://{}", self.root().display());
        GitSource {
            repository: address.parse::<GitRepository>().expect("it is an address"),
            commit: commit.to_owned(),
            folder: folder.into(),
        }
    }

    fn fetch(&self, commit: &str, folder: &str) -> Result<PathBuf, Unprepared> {
        self.fetch_from(&self.source(commit, folder))
    }

    fn fetch_from(&self, source: &GitSource) -> Result<PathBuf, Unprepared> {
        let to = tempfile::tempdir_in(self.folder.path()).expect("a folder").keep();
        let stop = AtomicBool::new(false);
        fetch(source, &to, patience(&stop))
    }
}

fn patience(stop: &AtomicBool) -> Patience<'_> {
    Patience {
        stop,
        deadline: Some(Instant::now() + Duration::from_secs(60)),
    }
}

fn class_and_message(fetched: Result<PathBuf, Unprepared>) -> (FailureClass, String) {
    let Err(Unprepared::Failed(failure)) = fetched else {
        panic!("{fetched:?}");
    };
    assert_eq!(failure.diagnostic.code, Code::SourceNotFetched);
    (failure.class, failure.diagnostic.message)
}

#[test]
fn exactly_the_commit_is_fetched_though_its_branch_has_moved_on() {
    let remote = Remote::new();
    remote.write("examples/a/n.ipynb", "first");
    let first = remote.commit();
    remote.write("examples/a/n.ipynb", "second");
    remote.write("examples/a/new.py", "");
    let second = remote.commit();

    let folder = remote.fetch(&first, "examples/a").expect("it is there");
    assert_eq!(
        fs::read_to_string(folder.join("n.ipynb")).expect("a file"),
        "first"
    );
    assert!(!folder.join("new.py").exists());
    let root = remote.fetch(&second, "").expect("it is there");
    assert!(root.join("examples/a/new.py").exists() && !root.join(".git").exists());
}

#[test]
fn nothing_that_a_repository_brings_along_is_run() {
    let remote = Remote::new();
    let program = remote.program();
    remote.write("n.ipynb", "a\r\nb\n");
    remote.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
    let modules = format!(
        "[submodule \"inner\"]\n\tpath = inner\n\turl = ext::sh -c \"{program}\"\n\tupdate = !{program}\n"
    );
    remote.write(".gitmodules", &modules);
    remote.commit();
    let inner = format!("160000,{},inner", "1".repeat(40));
    remote.git(&["update-index", "--add", "--cacheinfo", &inner]);
    remote.git(&["commit", "--quiet", "-m", "a submodule"]);
    let commit = remote.git(&["rev-parse", "HEAD"]);
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        let hook = remote.root().join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().expect("it has one")).expect("a folder");
        fs::write(&hook, format!("#!/bin/sh\n{program}\n")).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&hook, mode).expect("it is ours");
    }
    for (key, value) in [
        ("core.fsmonitor", program.as_str()),
        ("filter.evil.smudge", &program),
        ("filter.evil.required", "true"),
        ("uploadpack.packObjectsHook", &program),
        ("core.sshCommand", &program),
        ("protocol.ext.allow", "always"),
    ] {
        remote.git(&["config", key, value]);
    }

    let root = remote.fetch(&commit, "").expect("it is there");
    assert!(!remote.mark().exists(), "something of it was run");
    assert_eq!(
        fs::read_to_string(root.join("n.ipynb")).expect("a file"),
        "a\r\nb\n"
    );
    let inner = fs::read_dir(root.join("inner")).map(Iterator::count);
    assert!(matches!(inner, Ok(0) | Err(_)), "submodules stay where they are");
}

#[test]
fn a_commit_that_is_not_there_is_the_requests_mistake() {
    let remote = Remote::new();
    remote.write("n.ipynb", "a");
    let commit = remote.commit();
    let missing = "1".repeat(40);
    let (class, message) = class_and_message(remote.fetch(&missing, ""));
    assert_eq!(class, FailureClass::Config);
    assert!(
        message.ends_with(&format!("does not have the commit {missing}")),
        "{message}"
    );

    // What has such a name and is none.
    let blob = remote.git(&["rev-parse", "HEAD:n.ipynb"]);
    assert_eq!(class_and_message(remote.fetch(&blob, "")).0, FailureClass::Config);
    remote.git(&["tag", "--annotate", "-m", "a tag", "v1"]);
    let tag = remote.git(&["rev-parse", "v1"]);
    assert_ne!(tag, commit);
    assert_eq!(class_and_message(remote.fetch(&tag, "")).0, FailureClass::Config);
}

#[test]
fn a_repository_that_is_not_there_is_the_machines_failure() {
    let remote = Remote::new();
    let nowhere = GitSource {
        repository: "file:///nowhere/at/all".parse().expect("it is an address"),
        ..remote.source(&"1".repeat(40), "")
    };
    let (class, message) = class_and_message(remote.fetch_from(&nowhere));
    assert_eq!(
        (class, message.as_str()),
        (
            FailureClass::Infrastructure,
            "could not fetch from file:///nowhere/at/all"
        )
    );
}

#[test]
fn a_folder_that_is_not_in_the_commit_is_refused_also_where_a_link_leads_out_of_it() {
    let remote = Remote::new();
    remote.write("inside/n.ipynb", "a");
    for (link, to) in [("out", "/"), ("up", ".."), ("within", "inside")] {
        std::os::unix::fs::symlink(to, remote.root().join(link)).expect("a link");
    }
    let commit = remote.commit();
    for folder in ["absent", "out", "up", "out/etc", "inside/n.ipynb"] {
        let (class, message) = class_and_message(remote.fetch(&commit, folder));
        assert_eq!(class, FailureClass::Config, "{folder}");
        assert!(
            message.ends_with(&format!("has no folder `{folder}`")),
            "{message}"
        );
    }
    let within = remote.fetch(&commit, "within").expect("it stays inside");
    assert!(within.ends_with("inside"));
}

#[test]
fn whoever_stops_it_waits_for_nothing() {
    let remote = Remote::new();
    remote.write("n.ipynb", "a");
    let source = remote.source(&remote.commit(), "");
    let to = remote.folder.path().join("to");
    let stopped = AtomicBool::new(true);
    assert_eq!(
        fetch(&source, &to, patience(&stopped)).err(),
        Some(Unprepared::Stopped)
    );
    let never = AtomicBool::new(false);
    let late = Patience {
        stop: &never,
        deadline: Some(Instant::now()),
    };
    assert_eq!(fetch(&source, &to, late).err(), Some(Unprepared::OutOfTime));
}

#[test]
fn git_is_given_no_configuration_of_this_machine_and_nobody_to_ask() {
    let command = git(Path::new("/repository"));
    let variables: Vec<(String, Option<String>)> = command
        .get_envs()
        .map(|(name, value)| {
            let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
            (text(name), value.map(text))
        })
        .collect();
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_ALLOW_PROTOCOL", "https:ssh:file"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ] {
        let wanted = (name.to_owned(), Some(value.to_owned()));
        assert!(variables.contains(&wanted), "{name}: {variables:?}");
    }
}
