//! Removing what an attempt has left, and nothing else: what a notebook has mounted in its folder is somebody else's.

use std::{
    fs, io,
    os::unix::{ffi::OsStringExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::mount::{UnmountFlags, unmount};

/// Removes a folder and all in it that can be removed, or what lies in its place; nothing is a success. Links are not followed,
/// and what is mounted there is unmounted. It may be called again.
///
/// # Errors
///
/// The first thing that cannot be removed. Where something is mounted that cannot be unmounted nothing is removed.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    unmount_below(folder)?;
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(folder),
        // What a link leads to is nobody's here.
        Err(error) if !is_folder(folder) => Err(refused(folder, &error)),
        Err(_) => remove_what_goes(folder, &|file| fs::remove_file(file)),
    }
}

/// Returns the path in a line of `/proc/self/mountinfo`, where white space and backslashes are written as `\` and three octal
/// digits.
pub fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped.filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_dir())
}

/// Unmounts what is mounted on a folder or below it, the last first.
fn unmount_below(folder: &Path) -> io::Result<()> {
    // What a link leads to is nobody's here.
    let real = folder.canonicalize().ok().filter(|_| is_folder(folder));
    let Some(folder) = real else {
        return Ok(());
    };
    // Where the system does not tell, it has no mounts to tell of.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for point in mounted_below(&folder, &mounts).into_iter().rev() {
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        unmount(&point, flags).map_err(|error| {
            let why = format!("is mounted, and cannot be unmounted: {}", io::Error::from(error));
            io::Error::new(io::ErrorKind::ResourceBusy, format!("{} {why}", point.display()))
        })?;
    }
    Ok(())
}

/// Returns the mount points below a folder in the order of proc_pid_mountinfo(5), in which a mount follows what it lies on.
fn mounted_below(folder: &Path, mounts: &str) -> Vec<PathBuf> {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .map(unescaped)
        .filter(|point| point.starts_with(folder))
        .collect()
}

/// Removes each thing by itself, so that one that refuses keeps no other.
fn remove_what_goes(folder: &Path, remove_file: &impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    // A notebook may have taken our rights away from what it made. What that did not help against, is told below.
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    let entries = fs::read_dir(folder).map_err(|error| refused(folder, &error))?;
    let mut removed = Ok(());
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let this = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_what_goes(&path, remove_file)
        } else {
            remove_file(&path).map_err(|error| refused(&path, &error))
        };
        removed = removed.and(this);
    }
    removed?;
    fs::remove_dir(folder).map_err(|error| refused(folder, &error))
}

fn refused(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::mount::mount_bind;

    use super::*;

    #[test]
    fn what_a_notebook_locked_up_is_removed_all_the_same() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("work");
        fs::create_dir_all(folder.join("locked/deep")).expect("folders");
        fs::set_permissions(folder.join("locked"), fs::Permissions::from_mode(0o0)).expect("rights");
        remove_folder(&folder).expect("it goes");
        assert!(!folder.exists());
        remove_folder(&folder).expect("and may be gone already");
        fs::write(&folder, "").expect("a file");
        remove_folder(&folder).expect("a file in its place goes, too");
        assert!(!folder.exists());
    }

    #[test]
    fn what_refuses_to_be_removed_keeps_nothing_else_and_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("work");
        fs::create_dir_all(folder.join("a/mine")).expect("folders");
        fs::create_dir_all(folder.join("z")).expect("folders");
        for file in ["a/roots", "a/mine/large", "z/large"] {
            fs::write(folder.join(file), "").expect("a file");
        }
        let refuses = |file: &Path| match file.ends_with("roots") {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => fs::remove_file(file),
        };
        let error = remove_what_goes(&folder, &refuses).expect_err("one file stays");
        let roots = folder.join("a/roots");
        assert_eq!(
            error.to_string(),
            format!("{}: permission denied", roots.display())
        );
        assert!(roots.exists() && !folder.join("a/mine").exists() && !folder.join("z").exists());
        symlink(&folder, root.path().join("link")).expect("a link");
        assert!(is_folder(&folder) && !is_folder(&root.path().join("link")));
    }

    #[test]
    fn what_is_mounted_keeps_its_files_and_is_unmounted() {
        let root = tempfile::tempdir().expect("a folder");
        let [folder, others] = ["work", "others"].map(|name| root.path().join(name));
        let points = [folder.join("data one"), folder.join("data one/deep")];
        fs::create_dir_all(others.join("deep")).expect("folders");
        fs::write(others.join("precious"), "kept").expect("a file");
        fs::create_dir_all(&points[0]).expect("a folder");
        for point in &points {
            if let Err(error) = mount_bind(&others, point) {
                println!("NOT TESTED: nothing can be mounted here: {error}");
                return;
            }
        }
        symlink(&folder, root.path().join("link")).expect("a link");
        let mounted = || {
            let mounts = fs::read_to_string("/proc/self/mountinfo").expect("it is told");
            mounted_below(&folder.canonicalize().expect("it is there"), &mounts)
        };
        unmount_below(&root.path().join("link")).expect("a link's target is left alone");
        assert_eq!(
            mounted(),
            points
                .each_ref()
                .map(|point| point.canonicalize().expect("it is there"))
        );
        remove_folder(&folder).expect("it goes");
        assert!(!folder.exists());
        assert_eq!(
            fs::read_to_string(others.join("precious")).expect("it is there"),
            "kept"
        );
        assert!(others.join("deep").exists());
    }

    #[test]
    fn a_mounts_place_is_found_whatever_its_name_and_no_others() {
        let mounts = "22 1 0:5 / /work/a\\040b rw - tmpfs t rw\n23 1 0:6 / /workshop rw - tmpfs t rw\n24 1 0:7 / /work rw - ext4 d rw\n";
        let found = mounted_below(Path::new("/work"), mounts);
        assert_eq!(found, [Path::new("/work/a b"), Path::new("/work")]);
        assert_eq!(unescaped(r"/a\040b\134c\011d\9"), Path::new("/a b\\c\td\\9"));
    }
}
