//! Files of ours.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

/// So many links may lead from one to the next, as in Linux.
const LINKS_AT_MOST: usize = 40;

/// How many files this process began to write.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Writes a file whole or not at all, where there is one already or a link leads to. What is no file, such as a pipe or a
/// terminal, is written to, and stays what it is.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
    let is_open = |file: &fs::Metadata| !file.is_file();
    let written = match target(path) {
        Some(file) if !fs::metadata(&file).is_ok_and(|found| is_open(&found)) => replace(&file, content),
        Some(_) | None => OpenOptions::new()
            .append(true)
            .open(path)
            .and_then(|mut open| open.write_all(content)),
    };
    written.map_err(|error| cannot("write", path, &error))
}

/// Returns the name to which links lead; `None` where that is none, as in `/dev/stdout`: what is open already has no name.
fn target(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_AT_MOST {
        let Ok(next) = fs::read_link(&path) else {
            return Some(path);
        };
        if path.starts_with("/proc") {
            return None;
        }
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Some(path)
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Hidden, since whoever reads all files of the folder must not take it for one; and nobody else's, who may write the same.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (who, when) = (std::process::id(), Timestamp::now().as_nanosecond());
    let which = BEGUN.fetch_add(1, Ordering::Relaxed);
    let part = path.with_file_name(format!(".{name}.{who}-{when}-{which}.part"));
    let written = File::create_new(&part)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Returns why something could not be done with a file.
pub(crate) fn cannot(doing: &str, path: &Path, error: &io::Error) -> Diagnostic {
    let message = format!("could not {doing} `{}`", path.display());
    let told = Diagnostic::error(Code::Unwritable, message).because(error.to_string());
    if error.kind() == io::ErrorKind::InvalidData {
        return told.hint("name another file: this one is no text");
    }
    told.hint("name a file in a folder that you may write to, on a disk that is not full")
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::AsRawFd as _, unix::fs::symlink},
        process::Command,
        thread,
    };

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written_be_it_there_or_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let [link, between, file] = ["link", "between", "file"].map(|name| folder.path().join(name));
        symlink("between", &link).expect("a link");
        symlink(&file, &between).expect("a link");
        for content in ["first", "second"] {
            write_whole(&link, content.as_bytes()).expect("it can be written");
            assert_eq!(fs::read_to_string(&file).expect("a file"), content);
        }
        assert!(link.is_symlink() && between.is_symlink());
        assert_eq!(
            names(folder.path()),
            ["between", "file", "link"],
            "nothing is left"
        );
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays_what_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let [pipe, link] = ["pipe", "link"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is a mkfifo").success());
        symlink("pipe", &link).expect("a link");
        for path in [&pipe, &link] {
            let reads = {
                let pipe = pipe.clone();
                thread::spawn(move || fs::read_to_string(pipe).expect("text"))
            };
            write_whole(path, b"told").expect("it can be written");
            assert_eq!(reads.join().expect("it ends"), "told");
        }
        assert_eq!(names(folder.path()), ["link", "pipe"]);

        let full = write_whole(Path::new("/dev/full"), b"told").expect_err("it takes nothing");
        assert!(full.to_string().contains("/dev/full"), "{full}");
        write_whole(Path::new("/dev/null"), b"told").expect("it takes all");
    }

    #[test]
    fn what_is_open_under_a_name_of_proc_is_added_to() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), "before ").expect("it can be written");
        let (process, number) = (std::process::id(), file.as_file().as_raw_fd());
        let open = PathBuf::from(format!("/proc/{process}/fd/{number}"));
        write_whole(&open, b"and after").expect("it can be written");
        let read = fs::read_to_string(file.path()).expect("it is there");
        assert_eq!(read, "before and after");
    }

    #[test]
    fn those_who_write_one_file_at_once_are_in_nobodys_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("labels");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        write_whole(&path, b"labels").expect("it can be written");
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["labels"]);
    }
}
