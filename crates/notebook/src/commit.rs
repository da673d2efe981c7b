//! The blueprints at a commit: read, and nothing of them executed.
//!
//! What is there is a stranger's. Links that lead out of the commit are taken away before anything is read, so that no file of this
//! machine is taken for a part of it, nor shown in an error.

use std::{fs, io, path::Path};

use blueproof_core::domain::{
    BlueprintName, Failure, FailureClass, GitSource, Job, ProfileName, Retries, Source,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use walkdir::WalkDir;

use crate::{
    blueprint::{self, Blueprint, Loaded},
    disk,
    environment::{Patience, Unprepared},
    source,
};

/// The most blueprints that are read of a commit.
const MOST_BLUEPRINTS: usize = 200;

/// A blueprint at a commit.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitBlueprint {
    /// Its name; of one that cannot be read, the one that it would have.
    pub name: BlueprintName,
    /// Its folder, relative to the root of the repository; empty is the root.
    pub folder: String,
    /// Changed paths that ask for a run, as globs from the root, or from its folder with `./` in front. None is its folder.
    pub triggers: Vec<String>,
    /// What is carried out as it stands and under each profile, or all that is wrong with it.
    pub variants: Result<Vec<CommitVariant>, Vec<Diagnostic>>,
}

/// A blueprint under a profile, or as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitVariant {
    /// The profile; `None` is the blueprint as it stands.
    pub profile: Option<ProfileName>,
    /// What is carried out.
    pub job: Job,
    /// How often it may be tried again.
    pub retries: Retries,
}

/// Fetches a commit into the folder `to`, which is made and stays, and returns the blueprints in its folder and below it, in the order of
/// their paths.
///
/// Blocks until it is there, or patience ends.
///
/// # Errors
///
/// The commit cannot be fetched, or has more blueprints than are read. What is wrong with one blueprint stands with it.
pub fn blueprints_at(
    commit: &GitSource,
    to: &Path,
    patience: Patience<'_>,
) -> Result<Vec<CommitBlueprint>, Unprepared> {
    let root = source::fetch(commit, to, patience)?;
    let failed = |error: &io::Error| Unprepared::Failed(disk::disk_failure(error));
    let root = root.canonicalize().map_err(|error| failed(&error))?;
    remove_links_out_of(&root).map_err(|error| failed(&error))?;
    let listing = blueprint::list(&root, &mut |_| {});
    if listing.stopped_at.is_some() || listing.found.len() > MOST_BLUEPRINTS {
        return Err(too_many());
    }
    let found = listing.found.iter();
    let read = found.filter_map(|found| read(commit, &root, &found.path, &found.name));
    Ok(read.collect())
}

fn too_many() -> Unprepared {
    let message = format!("the commit has too many files, or more than {MOST_BLUEPRINTS} blueprints");
    let diagnostic = Diagnostic::error(Code::BadValue, message);
    Unprepared::Failed(Box::new(Failure::outside_cells(FailureClass::Config, diagnostic)))
}

/// Removes every link whose end is not below the folder, or is nowhere.
fn remove_links_out_of(root: &Path) -> io::Result<()> {
    let entries = WalkDir::new(root).follow_links(false).into_iter();
    let links = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path_is_symlink());
    for link in links {
        let stays = link.path().canonicalize().is_ok_and(|end| end.starts_with(root));
        if !stays {
            fs::remove_file(link.path())?;
        }
    }
    Ok(())
}

/// Reads one. A name that is none names no check, so that nothing can be said of it.
fn read(commit: &GitSource, root: &Path, file: &Path, name: &str) -> Option<CommitBlueprint> {
    let within = file.parent()?.strip_prefix(root).ok()?;
    let of = GitSource {
        folder: commit.folder.join(within),
        ..commit.clone()
    };
    let folder = of.folder.to_str()?.to_owned();
    let loaded = Blueprint::load(file);
    let name = match &loaded {
        Ok(loaded) => loaded.name.clone(),
        Err(_) => name.parse().ok()?,
    };
    let triggers = loaded
        .as_ref()
        .ok()
        .and_then(|loaded| loaded.blueprint.spec.triggers.as_ref());
    let triggers = triggers.map(|triggers| triggers.paths.iter().map(|glob| glob.0.clone()).collect());
    let variants = loaded.and_then(|loaded| variants(&loaded, &of));
    Some(CommitBlueprint {
        name,
        folder,
        triggers: triggers.unwrap_or_default(),
        variants: variants.map_err(|problems| relative(problems, root, &commit.folder)),
    })
}

fn variants(loaded: &Loaded, of: &GitSource) -> Result<Vec<CommitVariant>, Vec<Diagnostic>> {
    let profiles = loaded.profiles().map(Some);
    let all = std::iter::once(None).chain(profiles);
    let resolved = all.map(|profile| {
        let resolved = loaded.resolve(profile, &[])?;
        let profile = resolved.profile.clone();
        let (job, retries) = resolved.into_job(Source::Git(of.clone()));
        Ok(CommitVariant {
            profile,
            job,
            retries,
        })
    });
    resolved.collect()
}

/// Has files named as they are in the repository, and not as they are on this machine.
fn relative(problems: Vec<Diagnostic>, root: &Path, folder: &Path) -> Vec<Diagnostic> {
    let root = root.display().to_string();
    let in_repository = |text: String| {
        let text = text.replace(&format!("{root}/"), &below(folder));
        text.replace(&root, ".")
    };
    let told = problems.into_iter().map(|problem| Diagnostic {
        message: in_repository(problem.message),
        causes: problem.causes.into_iter().map(in_repository).collect(),
        hints: problem.hints.into_iter().map(in_repository).collect(),
        place: problem.place.map(|place| SourceLocation {
            file: in_repository(place.file),
            ..place
        }),
        ..problem
    });
    told.collect()
}

/// Returns what stands before a path that is relative to a folder of the repository.
fn below(folder: &Path) -> String {
    match folder.as_os_str().is_empty() {
        true => String::new(),
        false => format!("{}/", folder.display()),
    }
}

#[cfg(test)]
mod tests;
