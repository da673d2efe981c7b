//! Listing what is kept. Links are listed nowhere and not followed: they may lead anywhere.

use std::{
    fs::{self, ReadDir},
    io,
    path::{Path, PathBuf},
};

use blueproof_core::{domain::Bytes, ports::RunFiles};

use super::below;

/// The most artifacts that are listed: an agent keeps far fewer.
const MOST_ARTIFACTS: usize = 100_000;

/// How deep what is kept of a run is looked through: artifacts may lie in folders of their own, and no deeper counts.
const DEEPEST: usize = 5;

/// Returns the regular files in the folder `below` the folder `root` with their sizes, by path, which is relative to that
/// folder. One that is not there has none.
pub(super) fn artifacts(root: &Path, below: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    if !below::is_folder(root, below) {
        return Ok(Vec::new());
    }
    let artifacts = root.join(below);
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(artifacts.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let about = entry.metadata()?;
            if about.is_dir() {
                open.push(path);
            } else if about.is_file() && found.len() < MOST_ARTIFACTS {
                found.push((path, about.len()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns what is kept in a run's folder, at most `limit` files of it. What cannot be read is not there.
pub(super) fn run(folder: &Path, limit: usize) -> RunFiles {
    let mut files = Vec::new();
    add_files(
        folder,
        folder,
        DEEPEST,
        &|folder| fs::read_dir(folder),
        &mut files,
    );
    files.sort();
    let more = files.len().saturating_sub(limit);
    files.truncate(limit);
    RunFiles {
        location: folder.display().to_string(),
        files,
        more,
    }
}

/// Adds the files below a folder. What is not there, goes away meanwhile or cannot be read holds nothing, and hides nothing else.
fn add_files(
    root: &Path,
    folder: &Path,
    depth: usize,
    read: &impl Fn(&Path) -> io::Result<ReadDir>,
    files: &mut Vec<(PathBuf, Bytes)>,
) {
    for entry in read(folder).into_iter().flatten().filter_map(Result::ok) {
        let Ok(about) = entry.metadata() else { continue };
        let path = entry.path();
        if about.is_dir() && depth > 1 {
            add_files(root, &path, depth - 1, read, files);
        }
        if about.is_file() {
            let below = path.strip_prefix(root).unwrap_or(&path);
            files.push((below.to_owned(), Bytes(about.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(files: &[(PathBuf, Bytes)]) -> Vec<&str> {
        files.iter().filter_map(|(path, _)| path.to_str()).collect()
    }

    #[test]
    fn files_are_listed_in_order_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::create_dir_all(root.join("b/deep")).expect("a folder");
        for (name, size) in [("report.html", 3), ("b/log.ndjson", 5), ("b/deep/x.png", 7)] {
            fs::write(root.join(name), vec![0; size]).expect("a file");
        }
        std::os::unix::fs::symlink("/", root.join("all")).expect("a link");
        let kept = run(root, 40);
        assert_eq!(
            paths(&kept.files),
            ["b/deep/x.png", "b/log.ndjson", "report.html"]
        );
        let sizes: Vec<_> = kept.files.iter().map(|(_, size)| size.0).collect();
        assert_eq!((sizes, kept.more), (vec![7, 5, 3], 0));
    }

    #[test]
    fn a_folder_that_cannot_be_read_hides_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["a", "b", "c"] {
            fs::create_dir(root.join(name)).expect("a folder");
            fs::write(root.join(name).join("file"), "").expect("a file");
        }
        let read = |folder: &Path| match folder.ends_with("b") {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => fs::read_dir(folder),
        };
        let mut files = Vec::new();
        add_files(root, root, DEEPEST, &read, &mut files);
        files.sort();
        assert_eq!(paths(&files), ["a/file", "c/file"]);
    }

    #[test]
    fn more_files_than_a_person_reads_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..42 {
            fs::write(folder.path().join(format!("{number:03}")), "").expect("a file");
        }
        let kept = run(folder.path(), 40);
        assert_eq!((kept.files.len(), kept.more), (40, 2));
        assert_eq!(run(&folder.path().join("nowhere"), 40).files, []);
    }
}
