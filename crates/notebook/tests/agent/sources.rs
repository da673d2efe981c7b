//! Attempts whose content is a commit of a repository.

use std::{fs, path::Path, process::Command};

use blueproof_core::domain::{FailureClass, GitSource, Head, Source, Verdict};
use blueproof_diagnostic::Code;

use crate::support::Attempt;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let ours = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"];
    let mut command = Command::new("git");
    command.current_dir(folder).args(ours).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().expect("git is there");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with a notebook that prints a file's text, and another commit behind it in which that is another.
fn repository() -> (tempfile::TempDir, GitSource) {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("deep/examples");
    fs::create_dir_all(&folder).expect("a folder");
    let notebook = r#"{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "id": "a",
        "metadata": {}, "outputs": [], "execution_count": null,
        "source": "import os\nprint(open('data.txt').read(), os.path.exists('../../source'), os.path.exists('../../.git'))"}]}"#;
    fs::write(folder.join("n.ipynb"), notebook).expect("a file");
    fs::write(folder.join("data.txt"), "of the commit").expect("a file");
    git(root.path(), &["init", "--quiet"]);
    git(root.path(), &["add", "."]);
    git(root.path(), &["commit", "--quiet", "-m", "one"]);
    let commit = git(root.path(), &["rev-parse", "HEAD"]);
    fs::write(folder.join("data.txt"), "of a later one").expect("a file");
    git(root.path(), &["commit", "--quiet", "-a", "-m", "two"]);
    let address = format!("file://{}", root.path().display());
    let source = GitSource {
        repository: address.parse().expect("it is an address"),
        commit,
        folder: "deep".into(),
    };
    (root, source)
}

#[test]
fn a_commit_is_fetched_and_its_notebook_runs_without_the_repository() {
    let (_root, source) = repository();
    let head = Head::Commit(source.commit.clone());
    let done = Attempt::of(&["raise"]).source(Source::Git(source), head).run();
    done.passed();
    assert!(
        done.printed().contains("of the commit False False"),
        "{}",
        done.printed()
    );
}

#[test]
fn a_commit_that_was_not_approved_is_not_run() {
    let (root, source) = repository();
    let approved = Head::Commit(git(root.path(), &["rev-parse", "HEAD"]));
    let attempt = Attempt::of(&["print(1)"]).source(Source::Git(source), approved);
    let failure = attempt.fails();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::HeadChanged)
    );
}

#[test]
fn a_folder_is_not_run_in_place_of_the_commit_that_was_approved() {
    let (root, source) = repository();
    let head = Head::Commit(git(root.path(), &["rev-parse", "HEAD"]));
    let folder = Source::Folder(root.path().join(source.folder));
    let failure = Attempt::of(&["print(1)"]).source(folder, head).fails();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::HeadChanged)
    );
    assert!(
        failure.diagnostic.message.contains("names a folder"),
        "{failure:?}"
    );
}

#[test]
fn a_commit_that_cannot_be_had_fails_before_anything_runs() {
    let (_root, source) = repository();
    let commit = "1".repeat(40);
    let head = Head::Commit(commit.clone());
    let missing = Source::Git(GitSource { commit, ..source });
    let outcome = Attempt::of(&["print(1)"]).source(missing, head).run().outcome();
    let Verdict::Failed(failure) = outcome.verdict else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Config, Code::SourceNotFetched)
    );
}

#[test]
fn a_commit_whose_notebook_or_lock_is_a_link_to_elsewhere_is_refused() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    for linked in ["n.ipynb", "requirements.lock"] {
        let (root, mut source) = repository();
        let target = elsewhere.path().join(linked);
        let link = root.path().join("deep/examples").join(linked);
        fs::copy(root.path().join("deep/examples/n.ipynb"), &target).expect("a file");
        if link.exists() {
            fs::remove_file(&link).expect("it is there");
        }
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        git(root.path(), &["add", "."]);
        git(root.path(), &["commit", "--quiet", "-m", "linked"]);
        source.commit = git(root.path(), &["rev-parse", "HEAD"]);
        let head = Head::Commit(source.commit.clone());
        let mut attempt = Attempt::of(&["print(1)"]).source(Source::Git(source), head);
        attempt.plan.notebook = "examples/n.ipynb".into();
        if linked == "requirements.lock" {
            attempt.plan.environment.lock = Some("examples/requirements.lock".into());
        }
        let failure = attempt.fails();
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Config, Code::FileMissing),
            "{linked}: {failure:?}"
        );
    }
}
