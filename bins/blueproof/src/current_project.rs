//! Where somebody stands: the project of the current folder, and which runs are of it.
//!
//! A project is a checkout, or the folder of a blueprint that lies in none. Two checkouts of one repository are two
//! projects: what is tested in one is not what is tested in the other.

use std::path::{Path, PathBuf};

use blueproof_core::{domain::Repository, view::RunView};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_notebook::blueprint::FILE_NAME;

use crate::exit::Problem;

/// The current folder, and the project that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentProject {
    folder: PathBuf,
    project: Option<PathBuf>,
}

impl CurrentProject {
    /// Looks at the current folder of this process.
    pub(crate) fn of_this_process() -> Result<Self, Problem> {
        let folder = std::env::current_dir().and_then(|folder| folder.canonicalize());
        let folder = folder.map_err(|error| {
            let gone = Diagnostic::error(Code::FileMissing, "the current folder is gone").caused_by(&error);
            Problem::usage(gone.hint("change into a folder that is there, such as with `cd ~`"))
        })?;
        Ok(Self::at(folder))
    }

    fn at(folder: PathBuf) -> Self {
        let project = project_of(&folder).map(Path::to_path_buf);
        Self { folder, project }
    }

    /// Returns the folder, without links in its path.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of the project, where this is one.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Returns the folder that the checkout begins with, or this one where it lies in none.
    pub(crate) fn checkout(&self) -> &Path {
        checkout_of(&self.folder).unwrap_or(&self.folder)
    }

    /// Returns whether a run was asked for in this project, or tests something that is of it.
    pub(crate) fn has(&self, run: &RunView) -> bool {
        let tested = match &run.subject.repository {
            Repository::Local(folder) => Some(folder),
            Repository::GitHub(_) => None,
        };
        [run.asked_from.as_ref(), tested]
            .into_iter()
            .flatten()
            .any(|folder| self.is_of(folder))
    }

    fn is_of(&self, folder: &Path) -> bool {
        match &self.project {
            Some(project) => project_of(folder) == Some(project),
            None => folder == self.folder,
        }
    }
}

/// Returns the project of a folder. One that is gone is of the project that its path lies in.
fn project_of(folder: &Path) -> Option<&Path> {
    let of_blueprint = || folder.ancestors().find(|folder| folder.join(FILE_NAME).exists());
    checkout_of(folder).or_else(of_blueprint)
}

fn checkout_of(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|folder| folder.join(".git").exists() || folder.join(".blueproof").is_dir())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blueproof_core::{event::Event, policy::Policy, scheduler::Scheduler, testing::request};
    use jiff::Timestamp;

    use super::*;

    /// Returns a run of a blueprint in one folder that was asked for in another.
    fn run(tested: &Path, asked_from: Option<&Path>) -> RunView {
        let mut request = request("key", "story");
        request.subject.repository = Repository::Local(tested.into());
        request.asked_from = asked_from.map(Path::to_path_buf);
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        let request = Box::new(request);
        scheduler.handle(Timestamp::UNIX_EPOCH, Event::Requested { request });
        scheduler.runs().next().expect("it was asked for")
    }

    fn make(root: &Path, path: &str) -> PathBuf {
        let folder = root.join(path);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_run_is_of_the_checkout_in_which_it_was_asked_for_or_whose_blueprint_it_tests() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("it is there");
        make(&root, "one/.git");
        let blueprint = make(&root, "one/examples/a");
        let deep = make(&root, "one/src/deep");
        // A second checkout of a repository has a file of this name.
        let second = make(&root, "one/worktrees/two");
        fs::write(second.join(".git"), "gitdir: elsewhere").expect("a file");
        let elsewhere = make(&root, "elsewhere");
        let gone = root.join("one/gone");
        for (stands, tested, asked_from, is_of) in [
            (&deep, &blueprint, None, true),
            (&deep, &gone, None, true),
            (&deep, &elsewhere, Some(&blueprint), true),
            (&deep, &elsewhere, None, false),
            (&deep, &second, None, false),
            (&second, &second, None, true),
            (&second, &blueprint, Some(&deep), false),
            (&elsewhere, &blueprint, Some(&elsewhere), true),
            (&elsewhere, &blueprint, Some(&root), false),
            (&root, &elsewhere, None, false),
        ] {
            let run = run(tested, asked_from.map(PathBuf::as_path));
            let here = CurrentProject::at(stands.clone());
            assert_eq!(here.has(&run), is_of, "{here:?} {run:?}");
        }
    }

    #[test]
    fn without_a_checkout_the_folder_of_a_blueprint_is_a_project() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("it is there");
        let (a, b) = (make(&root, "a/data"), make(&root, "b"));
        fs::write(root.join("a/blueprint.yaml"), "").expect("a file");
        fs::write(root.join("b/blueprint.yaml"), "").expect("a file");
        let run = run(&root.join("a"), None);
        assert!(CurrentProject::at(a.clone()).has(&run));
        assert!(!CurrentProject::at(b).has(&run));
        assert!(!CurrentProject::at(root.clone()).has(&run));
        assert_eq!(CurrentProject::at(a).project(), Some(root.join("a").as_path()));
        assert_eq!(CurrentProject::at(root).project(), None);
    }
}
