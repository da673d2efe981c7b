//! Commits of real repositories, with blueprints that are whole, broken and hostile.

use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use super::*;

const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"code","id":"a","metadata":{},"execution_count":null,"outputs":[],
"source":["print(1)"]}],"metadata":{"kernelspec":{"name":"python3","display_name":"Python 3","language":"python"}},
"nbformat":4,"nbformat_minor":5}"#;

const BLUEPRINT: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: Blueprint
metadata: {name: nano-lm}
spec:
  notebook: nano-lm.ipynb
  triggers: {paths: [\"./**\", \"pkg/**\"]}
  driver: {cpu: 1, memory: 1Gi}
  profiles:
    gpu2: {driver: {gpu: 2}}
";

struct Remote(tempfile::TempDir);

impl Remote {
    fn new(files: &[(&str, &str)]) -> Self {
        let remote = Self(tempfile::tempdir().expect("a folder"));
        fs::create_dir(remote.root()).expect("a folder");
        remote.git(&["init", "--quiet", "--initial-branch=main"]);
        for (path, text) in files {
            let path = remote.root().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        remote
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("remote")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(self.root());
        command.args(["-c", "user.name=ada", "-c", "user.email=ada@example.org"]);
        let output = command
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output();
        String::from_utf8_lossy(&output.expect("git is there").stdout)
            .trim()
            .to_owned()
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::os::unix::fs::symlink(to, path).expect("a link");
    }

    fn read(&self) -> Vec<CommitBlueprint> {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", "one"]);
        let commit = GitSource {
            repository: format!("file://{}", self.root().display())
                .parse()
                .expect("an address"),
            commit: self.git(&["rev-parse", "HEAD"]),
            folder: PathBuf::new(),
        };
        let patience = Patience {
            stop: &AtomicBool::new(false),
            deadline: Some(Instant::now() + Duration::from_secs(60)),
        };
        blueprints_at(&commit, &self.0.path().join("fetched"), patience).expect("it is there")
    }
}

#[test]
fn a_blueprint_is_read_under_each_profile_and_comes_from_the_commit() {
    let remote = Remote::new(&[
        ("examples/nano-lm/blueprint.yaml", BLUEPRINT),
        ("examples/nano-lm/nano-lm.ipynb", NOTEBOOK),
        ("README.md", "nothing"),
    ]);
    let read = remote.read();
    let [blueprint] = read.as_slice() else {
        panic!("there is one: {read:?}");
    };
    assert_eq!(blueprint.name.as_str(), "nano-lm");
    assert_eq!(blueprint.folder, "examples/nano-lm");
    assert_eq!(blueprint.triggers, ["./**", "pkg/**"]);
    let variants = blueprint.variants.as_ref().expect("it is whole");
    let asked: Vec<_> = variants
        .iter()
        .map(|variant| {
            (
                variant.profile.as_ref().map(ProfileName::as_str),
                variant.job.gang().gpu.0,
            )
        })
        .collect();
    assert_eq!(asked, [(None, 0), (Some("gpu2"), 2)]);
    let Source::Git(source) = &variants[0].job.source else {
        panic!("it comes from a commit");
    };
    assert_eq!(source.folder, Path::new("examples/nano-lm"));
    assert_eq!(source.commit, remote.git(&["rev-parse", "HEAD"]));
}

#[test]
fn a_broken_one_says_what_is_wrong_in_the_names_of_the_repository_and_leaves_the_others() {
    let broken = BLUEPRINT.replace("notebook: nano-lm.ipynb", "notebok: nano-lm.ipynb");
    let remote = Remote::new(&[
        ("a/blueprint.yaml", &broken),
        ("b/blueprint.yaml", BLUEPRINT),
        ("b/nano-lm.ipynb", NOTEBOOK),
    ]);
    let read = remote.read();
    let problems = read[0].variants.as_ref().expect_err("it is broken");
    let place = problems[0].place.as_ref().expect("it has a place");
    assert_eq!((place.file.as_str(), place.line), ("a/blueprint.yaml", Some(5)));
    let shown = format!("{problems:?}");
    assert!(!shown.contains("/fetched/"), "{shown}");
    assert!(read[1].variants.is_ok());
}

/// A22 of the list of attacks.
#[test]
fn a22_links_that_lead_out_show_nothing_of_this_machine() {
    let secret = tempfile::tempdir().expect("a folder");
    let outside = secret.path().join("secret.yaml");
    fs::write(&outside, "token: hunter2\n").expect("a file");
    fs::write(secret.path().join("nano-lm.ipynb"), NOTEBOOK).expect("a file");
    let remote = Remote::new(&[("b/blueprint.yaml", BLUEPRINT), ("d/real.ipynb", NOTEBOOK)]);
    remote.link("a/blueprint.yaml", &outside.display().to_string());
    remote.link(
        "b/nano-lm.ipynb",
        &secret.path().join("nano-lm.ipynb").display().to_string(),
    );
    remote.link("up", "../../..");
    remote.link("d/blueprint.yaml", "../b/blueprint.yaml");
    remote.link("d/nano-lm.ipynb", "real.ipynb");
    let read = remote.read();
    let folders: Vec<_> = read.iter().map(|blueprint| blueprint.folder.as_str()).collect();
    assert_eq!(folders, ["b", "d"], "a link to nowhere is no blueprint");
    assert!(read[0].variants.is_err(), "its notebook is not in the commit");
    assert!(read[1].variants.is_ok(), "{:?}", read[1].variants);
    assert!(!format!("{read:?}").contains("hunter2"));
}
