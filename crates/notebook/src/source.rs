//! A commit of a git repository, fetched by the system's git.
//!
//! Exactly that commit is fetched, without what came before it, and nothing of it is run: no hook, no submodule, no file
//! system monitor, and no filter. A filter is a program that only a configuration names, and of configurations none is read
//! but that of the empty repository that is made here; so large files of Git LFS stay the pointers that they are in the commit.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use blueproof_core::domain::{Failure, FailureClass, GitSource};
use blueproof_diagnostic::{Code, Diagnostic};

use crate::{
    disk,
    environment::{Patience, Unprepared, child},
    text::line,
};

/// The protocols that git may speak, whatever an address or an answer says.
const PROTOCOLS: &str = "https:ssh:file";

/// Settings that hold whatever is configured elsewhere.
const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.symlinks=true",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
];

/// What a server says of a commit that it does not have, or does not give away.
const NO_SUCH_COMMIT: [&str; 4] = [
    "not our ref",
    "unadvertised object",
    "couldn't find remote ref",
    "did not send all necessary objects",
];

/// Fetches a commit into the folder `to`, which is made, and returns the folder of the blueprint in it.
///
/// Blocks until it is there, or patience ends.
///
/// # Errors
/// A commit that is not there, or a folder that is not in it, is the request's mistake; anything else is the machine's.
pub(crate) fn fetch(source: &GitSource, to: &Path, patience: Patience<'_>) -> Result<PathBuf, Unprepared> {
    let fetching = Fetching {
        source,
        repository: to.join("repository"),
        tree: to.join("tree"),
        patience,
    };
    for folder in [&fetching.repository, &fetching.tree] {
        fs::create_dir_all(folder).map_err(|error| Unprepared::Failed(disk::disk_failure(&error)))?;
    }
    fetching.run(&["init", "--quiet", "--bare", "--template=", "."])?;
    fetching.fetch()?;
    fetching.verify()?;
    let tree = format!("--work-tree={}", fetching.tree.display());
    let commit = source.commit.as_str();
    fetching.run(&[
        &tree,
        "checkout",
        "--quiet",
        "--force",
        "--detach",
        "--no-recurse-submodules",
        commit,
    ])?;
    fetching.folder()
}

/// A commit on its way.
struct Fetching<'a> {
    source: &'a GitSource,
    /// Where its objects are put.
    repository: PathBuf,
    /// Where its files are put.
    tree: PathBuf,
    patience: Patience<'a>,
}

impl Fetching<'_> {
    /// Has git fetch the commit by its name, and nothing else.
    fn fetch(&self) -> Result<(), Unprepared> {
        self.run(&[
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--",
            self.source.repository.as_str(),
            &self.source.commit,
        ])?;
        Ok(())
    }

    /// Refuses what is there under the commit's name and is none: a tag or a file.
    fn verify(&self) -> Result<(), Unprepared> {
        let commit = format!("{}^{{commit}}", self.source.commit);
        let found = self.run(&["rev-parse", "--verify", "--quiet", &commit]);
        match found {
            Ok(lines) if lines == [self.source.commit.as_str()] => Ok(()),
            Ok(_) | Err(Unprepared::Failed(_)) => Err(self.no_such_commit(&["it is no commit".to_owned()])),
            Err(ended @ (Unprepared::Stopped | Unprepared::OutOfTime)) => Err(ended),
        }
    }

    /// Returns the folder of the blueprint, unless a link leads out of the commit.
    fn folder(&self) -> Result<PathBuf, Unprepared> {
        let whole = self.tree.join(&self.source.folder);
        let real = self
            .tree
            .canonicalize()
            .and_then(|tree| Ok((tree, whole.canonicalize()?)));
        match real {
            Ok((tree, folder)) if folder.starts_with(&tree) && folder.is_dir() => Ok(folder),
            Ok(_) => Err(self.no_such_folder("it is no folder of the commit")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.no_such_folder("it is not there"))
            }
            Err(error) => Err(Unprepared::Failed(disk::disk_failure(&error))),
        }
    }

    /// Runs git to its end, and returns what it printed.
    fn run(&self, arguments: &[&str]) -> Result<Vec<String>, Unprepared> {
        let mut command = git(&self.repository);
        command.args(arguments);
        let ended = child::run(command, self.patience, &mut |_| {});
        match ended {
            Ok(ended) if ended.status.success() => Ok(ended.lines),
            Ok(ended) if NO_SUCH_COMMIT.iter().any(|said| has(&ended.lines, said)) => {
                Err(self.no_such_commit(&ended.lines))
            }
            Ok(ended) => Err(self.not_fetched(&ended.lines)),
            Err(child::Unfinished::NotStarted(error)) => {
                let lines = [format!("git could not be started: {error}")];
                Err(self.not_fetched(&lines))
            }
            Err(child::Unfinished::Killed(ended)) => Err(ended),
        }
    }

    fn no_such_commit(&self, said: &[String]) -> Unprepared {
        let GitSource {
            repository, commit, ..
        } = self.source;
        let message = format!("{} does not have the commit {commit}", repository.as_str());
        let diagnostic = because(Diagnostic::error(Code::SourceNotFetched, message), said);
        let hint = "see that it was pushed there, and that the server gives it away";
        refused(diagnostic.hint(hint))
    }

    fn no_such_folder(&self, why: &str) -> Unprepared {
        let folder = self.source.folder.display();
        let message = format!("the commit {} has no folder `{folder}`", self.source.commit);
        refused(Diagnostic::error(Code::SourceNotFetched, message).because(why))
    }

    fn not_fetched(&self, said: &[String]) -> Unprepared {
        let message = format!("could not fetch from {}", self.source.repository.as_str());
        let diagnostic = because(Diagnostic::error(Code::SourceNotFetched, message), said);
        failed(
            FailureClass::Infrastructure,
            diagnostic
                .hint("see that `git ls-remote` reaches it from this machine without asking for anything"),
        )
    }
}

/// Returns git in a repository, with no configuration but what is given here, and with nobody to ask.
fn git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(repository).stdin(Stdio::null());
    // Variables name other repositories, configurations and programs.
    let variables = env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command
        .env("GIT_DIR", repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "/bin/false")
        .env("SSH_ASKPASS_REQUIRE", "never")
        .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        .env("LC_ALL", "C");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
}

fn has(lines: &[String], said: &str) -> bool {
    lines.iter().any(|line| line.contains(said))
}

/// Adds the last of what git said.
fn because(diagnostic: Diagnostic, said: &[String]) -> Diagnostic {
    const MOST: usize = 3;
    let last = &said[said.len().saturating_sub(MOST)..];
    last.iter()
        .map(|said| line(said))
        .fold(diagnostic, Diagnostic::because)
}

fn refused(diagnostic: Diagnostic) -> Unprepared {
    failed(FailureClass::Config, diagnostic)
}

fn failed(class: FailureClass, diagnostic: Diagnostic) -> Unprepared {
    Unprepared::Failed(Box::new(Failure::outside_cells(class, diagnostic)))
}

#[cfg(test)]
mod tests;
