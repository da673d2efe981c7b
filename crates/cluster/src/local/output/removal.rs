//! Measuring and removing what is kept of a run. No link is followed on the way: a notebook may have put one anywhere.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use blueproof_core::attempt::remove_folder;

use super::below;

/// In how many bytes `st_blocks` counts, whatever the file system (stat(2)).
const BLOCK: u64 = 512;

/// Returns how many bytes the regular files below a folder take, of those that are sparse what is on the disk. A folder that is
/// not there has none, and what goes away meanwhile does not count.
pub(super) fn size(folder: &Path) -> io::Result<u64> {
    let (mut bytes, mut open) = (0, vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if below::is_no_file(&error) => continue,
            other => other?,
        };
        for entry in entries.filter_map(Result::ok) {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                open.push(entry.path());
            } else if about.is_file() {
                bytes += about.len().min(about.blocks().saturating_mul(BLOCK));
            }
        }
    }
    Ok(bytes)
}

/// Removes files and folders of the run whose folder is `folder`, and that folder itself where nothing else is in it. All paths
/// are below `root`.
pub(super) fn remove(root: &Path, folder: &Path, ours: &[PathBuf]) -> io::Result<()> {
    let removed = ours.iter().map(|path| remove_one(root, path));
    let removed = removed.fold(Ok(()), Result::and);
    for left in [folder.join("attempts"), folder.to_owned()] {
        if below::is_folder(root, &left) {
            // One in which there is something else stays.
            let _ = fs::remove_dir(root.join(left));
        }
    }
    removed
}

/// Removes a file or folder, unless a link leads to where it would be.
fn remove_one(root: &Path, path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new(""));
    match below::is_folder(root, parent) {
        true => remove_folder(&root.join(path)),
        false => Ok(()),
    }
}
