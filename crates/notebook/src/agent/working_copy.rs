//! The private copy of the checkout that a notebook works in.
//!
//! Git's own folder, sockets and devices are not copied; links are copied as links.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Copies the folder `from` to `to`, which must not be there yet. Folders in `leave_out` are passed over, so that a
/// store inside the checkout is not copied into itself.
pub(crate) fn copy(from: &Path, to: &Path, leave_out: &[PathBuf]) -> io::Result<()> {
    let leave_out: Vec<PathBuf> = leave_out
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let from = from.canonicalize()?;
    let mut open = vec![(from, to.to_owned())];
    while let Some((from, to)) = open.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let source = entry.path();
            let target = to.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&source)?, target)?;
            } else if kind.is_dir() {
                if entry.file_name() != ".git" && !leave_out.contains(&source) {
                    open.push((source, target));
                }
            } else if kind.is_file() {
                fs::copy(&source, &target)?;
                let_owner_write(&target)?;
            }
        }
    }
    Ok(())
}

/// A read-only checkout must not make the copy read-only.
fn let_owner_write(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | 0o600);
    fs::set_permissions(path, permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_inside_the_checkout_and_git_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let checkout = folder.path();
        for path in ["a/b.txt", ".git/HEAD", "store/work/c.txt"] {
            fs::create_dir_all(checkout.join(path).parent().unwrap()).unwrap();
            fs::write(checkout.join(path), path).unwrap();
        }
        std::os::unix::fs::symlink("a/b.txt", checkout.join("link")).unwrap();
        let to = checkout.join("store/copy");
        copy(checkout, &to, &[checkout.join("store")]).unwrap();
        assert_eq!(fs::read_to_string(to.join("link")).unwrap(), "a/b.txt");
        assert!(!to.join(".git").exists());
        assert!(!to.join("store").exists());
    }
}
