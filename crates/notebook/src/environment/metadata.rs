//! What is installed in an environment, read without starting it: each package has a folder that says its name and version.
//!
//! What stands there is a stranger's: it is bounded, and names and versions are nothing but that.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use blueproof_diagnostic::{Code, Diagnostic};

use super::{Package, Unprepared, cache};

/// How much of a file is read. Names stand at its beginning, and a description of any length after them.
const READ: u64 = 64 << 10;

/// How many packages there may be, and how long a name or a version.
const PACKAGES: usize = 4096;
const LONGEST: usize = 128;

/// Returns the packages in this folder, in the order of their names.
pub(super) fn packages_in(folder: &Path) -> Result<Vec<Package>, Unprepared> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| cache::broken(folder, &error))? {
        let entry = entry.map_err(|error| cache::broken(folder, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".dist-info") {
            continue;
        }
        let Some(package) = package_of(&entry.path().join("METADATA")) else {
            return Err(unsaid(&name, "its METADATA does not say a name and a version"));
        };
        packages.push(package);
        if packages.len() > PACKAGES {
            return Err(unsaid(&name, "there are too many packages"));
        }
    }
    packages.sort_by_cached_key(|package| (package.name.to_lowercase(), package.version.clone()));
    Ok(packages)
}

fn package_of(file: &Path) -> Option<Package> {
    // It is no link and no pipe: neither is left in an environment.
    let mut text = Vec::new();
    File::open(file).ok()?.take(READ).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let fields = text.lines().take_while(|line| !line.trim().is_empty());
    let value = |name: &str| {
        let mut fields = fields.clone().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        let value = value.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+!".contains(c);
        let is_fine = !value.is_empty() && value.len() <= LONGEST && value.chars().all(is_plain);
        is_fine.then(|| value.to_owned())
    };
    Some(Package {
        name: value("Name")?,
        version: value("Version")?,
    })
}

fn unsaid(folder: &str, why: &str) -> Unprepared {
    let folder: String = folder.chars().take(LONGEST).collect();
    let message = format!("what is installed cannot be told: `{}`", folder.escape_debug());
    Unprepared::config(
        Diagnostic::error(Code::InstallFailed, message)
            .because(why)
            .hint("ask for another version of the package"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> Result<Vec<Package>, Unprepared> {
        let folder = tempfile::tempdir().unwrap();
        let info = folder.path().join("a-1.dist-info");
        fs::create_dir(&info).unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(info.join("METADATA"), text).unwrap();
        packages_in(folder.path())
    }

    #[test]
    fn a_package_is_what_its_first_lines_say_and_a_description_says_nothing() {
        let text = "Metadata-Version: 2.1\nName: A_b\nVersion: 1.0+cu12\n\nName: other\n";
        let package = Package {
            name: "A_b".into(),
            version: "1.0+cu12".into(),
        };
        assert_eq!(of(text.as_bytes()), Ok(vec![package.clone()]));
        let mut long = text.as_bytes().to_vec();
        long.resize(32 << 20, b'x');
        assert_eq!(of(&long), Ok(vec![package]));
    }

    #[test]
    fn what_is_no_name_and_no_version_is_refused_and_not_passed_on() {
        for text in [
            "",
            "Name: a",
            "Name: \nVersion: 1",
            "Name: a\nVersion: 1 <script>",
            "Name: a\x1b[2J\nVersion: 1",
            "\nName: a\nVersion: 1",
        ] {
            assert!(of(text.as_bytes()).is_err(), "{text}");
        }
        let long = format!("Name: {}\nVersion: 1", "a".repeat(4096));
        assert!(of(long.as_bytes()).is_err());
        assert!(of(&[0xff; 64]).is_err());
    }
}
