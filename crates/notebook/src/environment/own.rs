//! An environment for one attempt alone: a copy of a shared one, so that what a notebook installs reaches no other run.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use regex::Regex;

/// Files of `bin` that are longer are programs and no scripts.
const LONGEST_SCRIPT: u64 = 256 << 10;

/// The longest first line by which Linux starts a script.
const LONGEST_FIRST_LINE: usize = 255;

/// Programs that install packages, and what they are told, not far behind it.
static INSTALLS: LazyLock<Regex> = LazyLock::new(|| {
    let told = "install|uninstall|sync|add|remove|download|update|upgrade";
    let programs = r"pip3?|uv|conda|mamba|micromamba|easy_install|ensurepip|poetry|pdm|spacy";
    Regex::new(&format!(r"\b({programs})\b[^\n]{{0,80}}?\b({told})\b")).expect("it is a pattern")
});

/// Returns whether a notebook's file has what installs packages. Where it only speaks of that, a copy is made for nothing.
pub(crate) fn installs(notebook: &str) -> bool {
    INSTALLS.is_match(notebook)
}

/// Copies the environment of this interpreter to `to`, which must not be there, and returns the copy's interpreter.
///
/// Files are links to the same content where both lie on one file system: installers put others in their place. Scripts name
/// the copy. An edit of a file as it lies there is one of both, and is noticed as one of the shared environment.
pub(crate) fn copy(python: &Path, to: &Path) -> io::Result<PathBuf> {
    let no_folder = || io::Error::other("the interpreter lies in no environment");
    let from = python.parent().and_then(Path::parent).ok_or_else(no_folder)?;
    let copying = Copying { from, to };
    copying.folder(Path::new(""))?;
    Ok(to.join("bin/python"))
}

struct Copying<'a> {
    from: &'a Path,
    to: &'a Path,
}

impl Copying<'_> {
    fn folder(&self, below: &Path) -> io::Result<()> {
        fs::create_dir(self.to.join(below))?;
        for entry in fs::read_dir(self.from.join(below))? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, below.join(entry.file_name()));
            let (from, to) = (entry.path(), self.to.join(&path));
            if kind.is_dir() {
                self.folder(&path)?;
            } else if kind.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
            } else if kind.is_file() {
                self.file(&path, &from, &to)?;
            }
        }
        Ok(())
    }

    fn file(&self, path: &Path, from: &Path, to: &Path) -> io::Result<()> {
        let names_itself = path.starts_with("bin") || path == Path::new("pyvenv.cfg");
        if names_itself
            && fs::metadata(from)?.len() <= LONGEST_SCRIPT
            && let Ok(text) = fs::read_to_string(from)
        {
            fs::write(to, self.renamed(&text))?;
            return fs::set_permissions(to, fs::metadata(from)?.permissions());
        }
        // Not every file system has links, and the copy may lie on another one.
        fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
    }

    /// Returns a script that is the copy's own. A first line that is too long for Linux becomes one that a shell reads.
    fn renamed(&self, text: &str) -> String {
        let (old, new) = (self.from.to_string_lossy(), self.to.to_string_lossy());
        let text = text.replace(&*old, &new);
        let interpreter = text
            .strip_prefix("#!")
            .and_then(|rest| rest.split_once('\n'))
            .filter(|(first, _)| first.len() + "#!\n".len() > LONGEST_FIRST_LINE);
        match interpreter {
            Some((first, rest)) => format!("#!/bin/sh\n'''exec' \"{first}\" \"$0\" \"$@\"\n' '''\n{rest}"),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn whatever_may_install_packages_is_seen_and_other_talk_is_not() {
        for cell in [
            "!pip install -q tabulate",
            "%pip uninstall -y six",
            "subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'a'])",
            r#"\"pip\", \"--quiet\", \"install\""#,
            "!uv pip install a",
            "!python -m spacy download en_core_web_sm",
            "!conda install -y a",
        ] {
            assert!(installs(cell), "{cell}");
        }
        for cell in [
            "import numpy",
            "# install pips",
            "pipeline.install()",
            "pip\ninstall",
        ] {
            assert!(!installs(cell), "{cell}");
        }
    }

    #[test]
    fn a_copy_shares_content_and_its_scripts_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        fs::create_dir_all(shared.join("lib/site-packages")).unwrap();
        fs::create_dir(shared.join("bin")).unwrap();
        fs::write(shared.join("lib/site-packages/a.py"), "a = 1").unwrap();
        symlink("/usr/bin/python3", shared.join("bin/python")).unwrap();
        fs::write(shared.join("bin/program"), b"\x7fELF\xff").unwrap();
        let script = shared.join("bin/pip");
        fs::write(&script, format!("#!{}/bin/python\nimport a", shared.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();

        let own = folder.path().join("own");
        assert_eq!(
            copy(&shared.join("bin/python"), &own).unwrap(),
            own.join("bin/python")
        );

        let inode = |folder: &Path, file: &str| fs::symlink_metadata(folder.join(file)).unwrap().ino();
        for file in ["lib/site-packages/a.py", "bin/program"] {
            assert_eq!(inode(&shared, file), inode(&own, file), "{file}");
        }
        let said = fs::read_to_string(own.join("bin/pip")).unwrap();
        assert_eq!(said, format!("#!{}/bin/python\nimport a", own.display()));
        let mode = fs::metadata(own.join("bin/pip")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(
            fs::read_link(own.join("bin/python")).unwrap(),
            Path::new("/usr/bin/python3")
        );
    }

    #[test]
    fn a_first_line_that_is_too_long_for_linux_is_left_to_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("x".repeat(250)));
        fs::create_dir_all(from.join("bin")).unwrap();
        fs::write(from.join("bin/say"), format!("#!{}/bin/python\n", from.display())).unwrap();
        copy(&from.join("bin/python"), &to).unwrap();
        let said = fs::read_to_string(to.join("bin/say")).unwrap();
        let interpreter = to.join("bin/python");
        assert_eq!(
            said,
            format!(
                "#!/bin/sh\n'''exec' \"{}\" \"$0\" \"$@\"\n' '''\n",
                interpreter.display()
            )
        );
    }
}
