//! What can be imported from a folder of packages, as a text that tells whether any of it was changed.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirEntry, FileType, Metadata},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::UNIX_EPOCH,
};

use sha2::{Digest, Sha256, digest::Output};

use crate::files::hexadecimal;

/// How the names of files end from which Python takes code; `.pth` files are carried out at its start, and what is compiled is
/// imported without a source where it lies beside others.
const SUFFIXES: [&str; 4] = [".py", ".so", ".pth", ".pyc"];

/// What stands in the name of a shared library that has a version.
const VERSIONED_LIBRARY: &str = ".so.";

/// The name of the folders in which Python keeps what it compiles.
const COMPILED: &str = "__pycache__";

/// How many threads look at most: what they wait for is one file system.
const THREADS_AT_MOST: usize = 8;

type Sum = Output<Sha256>;

/// Describes all that can be imported from a folder: packages that were added or removed, and files that were edited, make
/// another text. What Python itself compiles into folders of its own is left out, as it holds that against the source; what
/// packages keep beside their code is their own affair. Nothing is read but names, sizes and times, so that tens of thousands of
/// files take a moment.
pub(super) fn code_in(packages: &Path) -> io::Result<String> {
    let names = fs::read_dir(packages)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names: Vec<OsString> = names.collect::<io::Result<_>>()?;
    names.sort();
    let mut whole = Sha256::new();
    // Whatever is named here was installed, and a folder without code can be imported, too.
    for name in names.iter().filter(|name| *name != COMPILED) {
        whole.update(name.as_bytes());
        whole.update([0]);
    }
    for sum in sums(packages, &names)? {
        whole.update(sum);
    }
    Ok(hexadecimal(&whole.finalize()))
}

/// Returns the sum of each name under which there is code, in their order. Threads share them out, where there are any to be had.
fn sums(packages: &Path, names: &[OsString]) -> io::Result<Vec<Sum>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut taken = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(name) = names.get(at)
        {
            taken.extend(sum_of(packages, name)?.map(|sum| (at, sum)));
        }
        Ok::<_, io::Error>(taken)
    };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(THREADS_AT_MOST));
    let taken = thread::scope(|scope| {
        let another = |_| thread::Builder::new().spawn_scoped(scope, take).ok();
        let others: Vec<_> = (1..threads).filter_map(another).collect();
        let mut taken = take()?;
        for other in others {
            taken.extend(other.join().expect("it does not panic")?);
        }
        Ok::<_, io::Error>(taken)
    });
    let mut taken = taken?;
    taken.sort_by_key(|(at, _)| *at);
    Ok(taken.into_iter().map(|(_, sum)| sum).collect())
}

/// Returns the sum of what stands under a name in the folder of packages; `None` where that is no code.
fn sum_of(packages: &Path, name: &OsStr) -> io::Result<Option<Sum>> {
    let mut sum = Sha256::new();
    let entry = packages.join(name);
    let about = fs::symlink_metadata(&entry)?;
    let has_code = add(&mut sum, Path::new(name), &entry, about.file_type(), || Ok(about))?;
    Ok(has_code.then(|| sum.finalize()))
}

/// Adds a file that is code, and all below a folder. Returns whether there was any.
fn add(
    sum: &mut Sha256,
    name: &Path,
    path: &Path,
    kind: FileType,
    about: impl FnOnce() -> io::Result<Metadata>,
) -> io::Result<bool> {
    if kind.is_dir() {
        return add_folder(sum, name, path);
    }
    // Python follows links, and any may lead to a package. They are not followed here: where they lead to is a part of them.
    let file = path.file_name().unwrap_or_default();
    if !kind.is_symlink() && !is_code(&file.to_string_lossy()) {
        return Ok(false);
    }
    let about = about()?;
    sum.update(name.as_os_str().as_bytes());
    sum.update([0]);
    sum.update(about.len().to_le_bytes());
    sum.update(changed_at(&about)?.to_le_bytes());
    Ok(true)
}

fn add_folder(sum: &mut Sha256, name: &Path, path: &Path) -> io::Result<bool> {
    if path.ends_with(COMPILED) {
        return Ok(false);
    }
    let mut entries: Vec<DirEntry> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
    entries.sort_by_cached_key(DirEntry::file_name);
    let mut has_code = false;
    for entry in entries {
        let name = name.join(entry.file_name());
        has_code |= add(sum, &name, &entry.path(), entry.file_type()?, || entry.metadata())?;
    }
    Ok(has_code)
}

fn is_code(name: &str) -> bool {
    let ends = |suffix: &str| name.ends_with(suffix);
    SUFFIXES.iter().any(|suffix| ends(suffix)) || name.contains(VERSIONED_LIBRARY)
}

/// Returns when a file was written to, in nanoseconds of the Unix time.
pub(super) fn changed_at(about: &Metadata) -> io::Result<u128> {
    let modified = about.modified()?;
    Ok(modified
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whatever_python_takes_code_from_counts_wherever_it_lies_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("package/module.py", "a = 1");
        let mut before = code_in(folder.path()).unwrap();
        assert_eq!(code_in(folder.path()).unwrap(), before);
        for other in [
            "package/__pycache__/module.cpython-312.pyc",
            "package/data.csv",
            "package/cache/index.json",
        ] {
            write(other, "x");
            assert_eq!(code_in(folder.path()).unwrap(), before, "{other}");
        }
        for code in [
            "package/module.py",
            "top.py",
            "site.pth",
            "package/deep/er/_c.cpython-312-x86_64-linux-gnu.so",
            "package.libs/libgfortran-040039e1.so.5.0.0",
            "package/hidden.pyc",
            "a.dist-info/RECORD",
            "folder/data.json",
        ] {
            write(code, "another");
            let after = code_in(folder.path()).unwrap();
            assert_ne!(after, before, "{code}");
            before = after;
        }
    }

    #[test]
    fn a_link_counts_wherever_it_leads_and_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("package")).unwrap();
        let mut before = code_in(folder.path()).unwrap();
        for (name, target) in [
            ("gone", "/nowhere"),
            ("all", "/"),
            ("self", "."),
            ("package/deep", "/"),
        ] {
            symlink(target, folder.path().join(name)).unwrap();
            let after = code_in(folder.path()).unwrap();
            assert_ne!(after, before, "{name}");
            before = after;
        }
    }
}
