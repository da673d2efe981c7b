//! Which commit a folder was checked out from, as git tells.
//!
//! It is shown to people and decides nothing, so whatever git cannot tell is left out. Of the repository's own programs, none
//! is run: no hook, no file system monitor, and no filter, which `git status` would start otherwise.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use blueproof_core::domain::Revision;

use crate::{
    environment::{Patience, child},
    snapshot,
};

/// How long git may take. A folder that takes it longer has no revision.
const WITHIN: Duration = Duration::from_secs(5);

/// The most settings of filters that are switched off; with more of them git is not asked.
const MOST_SETTINGS: usize = 256;

/// Returns the commit that a folder was checked out from, or `None` where it lies in no repository, or git is not there.
/// Untracked files at the paths `without`, relative to the folder, are no change.
///
/// Blocks: git looks at every file of the folder.
pub(crate) fn of(folder: &Path, without: &BTreeSet<PathBuf>) -> Option<Revision> {
    repository(folder)?;
    let deadline = Instant::now() + WITHIN;
    let mut status = Status::default();
    let mut command = git(folder);
    switch_off(&mut command, &filters(folder, deadline)?);
    command.args([
        "status",
        "--porcelain=v2",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
        "--",
        ".",
    ]);
    run(command, deadline, &mut |line| status.read(line, folder, without))?;
    status.revision()
}

/// Returns the root of the working tree that a folder lies in.
fn repository(folder: &Path) -> Option<PathBuf> {
    let mut ancestors = folder.ancestors();
    ancestors
        .find(|ancestor| ancestor.join(".git").exists())
        .map(Path::to_path_buf)
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).stdin(Stdio::null());
    // Inside of a hook, variables name another repository.
    let variables = env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(["-c", "status.relativePaths=true"]);
    command
}

/// Returns the settings of every filter that is configured; `None` where there are too many, or git cannot tell.
fn filters(folder: &Path, deadline: Instant) -> Option<Vec<String>> {
    let mut settings = Vec::new();
    let mut command = git(folder);
    command.args(["config", "--name-only", "--get-regexp", r"^filter\."]);
    let listed = run(command, deadline, &mut |line| settings.push(line.to_owned()));
    // With none, git ends with an error.
    (listed.is_some() || settings.is_empty()).then_some(())?;
    (settings.len() <= MOST_SETTINGS).then_some(settings)
}

/// Makes the value of each setting empty, which is no program and not required.
fn switch_off(command: &mut Command, settings: &[String]) {
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (nth, setting) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{nth}"), setting);
        command.env(format!("GIT_CONFIG_VALUE_{nth}"), "");
    }
}

/// Runs git to its end; `None` where it is not there, failed, or took too long.
fn run(command: Command, deadline: Instant, on_line: &mut dyn FnMut(&str)) -> Option<()> {
    let stop = AtomicBool::new(false);
    let patience = Patience {
        stop: &stop,
        deadline: Some(deadline),
    };
    let ended = child::run(command, patience, on_line).ok()?;
    ended.status.success().then_some(())
}

/// What `git status --porcelain=v2 --branch` tells: <https://git-scm.com/docs/git-status>.
#[derive(Debug, Default)]
struct Status {
    commit: Option<String>,
    branch: Option<String>,
    is_changed: bool,
}

impl Status {
    fn read(&mut self, line: &str, folder: &Path, without: &BTreeSet<PathBuf>) {
        if let Some(commit) = line.strip_prefix("# branch.oid ") {
            self.commit = Some(commit.to_owned()).filter(|commit| is_commit(commit));
        } else if let Some(branch) = line.strip_prefix("# branch.head ") {
            self.branch = Some(branch.to_owned()).filter(|branch| branch != "(detached)");
        } else if let Some(untracked) = line.strip_prefix("? ") {
            let name = untracked.trim_matches('"').trim_end_matches('/');
            let is_content = !without.contains(Path::new(name)) && !snapshot::is_left_out(&folder.join(name));
            self.is_changed |= is_content;
        } else if line.starts_with(['1', '2', 'u']) {
            self.is_changed = true;
        }
    }

    fn revision(self) -> Option<Revision> {
        Some(Revision {
            commit: self.commit?,
            branch: self.branch,
            has_uncommitted_changes: self.is_changed,
        })
    }
}

/// A repository without a commit says `(initial)`.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn of(folder: &Path) -> Option<Revision> {
        super::of(folder, &BTreeSet::new())
    }

    fn command(folder: &Path, arguments: &[&str]) {
        let mut command = git(folder);
        command.args(["-c", "user.name=ada", "-c", "user.email=ada@example.org"]);
        command
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        assert!(command.status().expect("git is there").success(), "{arguments:?}");
    }

    /// A repository with a folder `examples` and one commit on the branch `topic`.
    fn committed() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("examples");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("a.ipynb"), "{}").expect("a file");
        fs::write(folder.join("b.py"), "1").expect("a file");
        command(root.path(), &["init", "--quiet", "--initial-branch=topic"]);
        command(root.path(), &["add", "."]);
        command(root.path(), &["commit", "--quiet", "-m", "one"]);
        (root, folder)
    }

    #[test]
    fn a_folder_in_a_repository_has_its_commit_and_branch_and_says_what_is_not_committed() {
        let (root, folder) = committed();
        let clean = of(&folder).expect("there is a commit");
        assert_eq!(clean.branch.as_deref(), Some("topic"));
        assert!(is_commit(&clean.commit) && !clean.has_uncommitted_changes);

        fs::write(root.path().join("elsewhere"), "1").expect("a file");
        fs::create_dir(folder.join(".blueproof")).expect("a folder");
        fs::write(folder.join(".blueproof/x"), "1").expect("a file");
        assert_eq!(
            of(&folder),
            Some(clean.clone()),
            "only the folder's own content counts"
        );

        fs::write(folder.join("new file.py"), "1").expect("a file");
        let changed = of(&folder).expect("there is a commit");
        assert!(changed.has_uncommitted_changes);
        assert_eq!(
            changed.to_string(),
            format!("{} on topic, with uncommitted changes", &clean.commit[..7])
        );

        let own = BTreeSet::from([PathBuf::from("new file.py")]);
        assert_eq!(super::of(&folder, &own), Some(clean));

        fs::remove_file(folder.join("new file.py")).expect("it is there");
        fs::write(folder.join("a.ipynb"), "[]").expect("a file");
        assert!(of(&folder).expect("there is a commit").has_uncommitted_changes);
    }

    #[test]
    fn a_folder_without_repository_or_commit_has_no_revision() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(of(folder.path()), None);
        command(folder.path(), &["init", "--quiet"]);
        assert_eq!(of(folder.path()), None);
    }

    #[test]
    fn no_program_of_the_repository_is_run() {
        let (root, folder) = committed();
        let ran = root.path().join("ran");
        let program = format!("touch '{}'; cat", ran.display());
        for (key, value) in [
            ("core.fsmonitor", program.as_str()),
            ("filter.evil.clean", &program),
            ("filter.evil.process", &program),
            ("filter.evil.required", "true"),
            ("filter.a=b.clean", &program),
        ] {
            command(root.path(), &["config", key, value]);
        }
        fs::write(
            root.path().join(".git/info/attributes"),
            "*.ipynb filter=evil\n*.py filter=a=b\n",
        )
        .expect("a file");
        fs::write(folder.join("a.ipynb"), "[]").expect("a file of the same length");
        fs::write(folder.join("b.py"), "2").expect("a file of the same length");

        assert!(of(&folder).expect("there is a commit").has_uncommitted_changes);

        assert!(!ran.exists());
    }
}
