//! What can be imported from a folder of packages, as a text that tells whether any of it was changed.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use sha2::{Digest, Sha256, digest::Output};
use walkdir::{DirEntry, WalkDir};

use super::cache::changed_at;

/// How the names of files end from which Python takes code; `.pth` files are carried out at its start.
const SUFFIXES: [&str; 3] = [".py", ".so", ".pth"];

/// What stands in the name of a shared library that has a version.
const VERSIONED_LIBRARY: &str = ".so.";

/// The name of the folders in which Python keeps what it compiles.
const COMPILED: &str = "__pycache__";

/// How many threads look at most: what they wait for is one file system.
const THREADS_AT_MOST: usize = 8;

type Sum = Output<Sha256>;

/// Describes all that can be imported from a folder: packages that were added or removed, and files that were edited, make
/// another text. What Python itself compiles is left out, as it holds that against the source; what packages keep beside their
/// code is their own affair. Nothing is read but names, sizes and times, so that tens of thousands of files take a moment.
pub(super) fn code_in(packages: &Path) -> io::Result<String> {
    let entries = fs::read_dir(packages)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    entries.sort();
    let mut whole = Sha256::new();
    for sum in sums(packages, &entries)? {
        whole.update(sum);
    }
    let whole = whole.finalize();
    Ok(whole.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the sum of each entry that has code, in their order. Many threads share them out, as a few entries hold most of the files.
fn sums(packages: &Path, entries: &[PathBuf]) -> io::Result<Vec<Sum>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut taken = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(entry) = entries.get(at)
        {
            taken.extend(sum_of(packages, entry)?.map(|sum| (at, sum)));
        }
        Ok::<_, io::Error>(taken)
    };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(THREADS_AT_MOST));
    let taken = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
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

fn sum_of(packages: &Path, entry: &Path) -> io::Result<Option<Sum>> {
    let mut sum = None;
    let is_source = |entry: &DirEntry| entry.file_name() != COMPILED;
    let below = WalkDir::new(entry).sort_by_file_name().into_iter();
    for file in below.filter_entry(is_source) {
        let file = file?;
        if !is_code(&file.file_name().to_string_lossy()) {
            continue;
        }
        let path = file.path().strip_prefix(packages).unwrap_or(file.path());
        let about = file.metadata()?;
        let sum = sum.get_or_insert_with(Sha256::new);
        sum.update(path.as_os_str().as_bytes());
        sum.update([0]);
        sum.update(about.len().to_le_bytes());
        sum.update(changed_at(&about)?.to_le_bytes());
    }
    Ok(sum.map(Sha256::finalize))
}

fn is_code(name: &str) -> bool {
    let ends = |suffix: &str| name.ends_with(suffix);
    SUFFIXES.iter().any(|suffix| ends(suffix)) || name.contains(VERSIONED_LIBRARY)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            "a.dist-info/RECORD",
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
        ] {
            write(code, "another");
            let after = code_in(folder.path()).unwrap();
            assert_ne!(after, before, "{code}");
            before = after;
        }
    }
}
