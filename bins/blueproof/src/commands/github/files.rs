//! The files of a connection to GitHub, none of which is ever overwritten.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_github::connection::RepositoryName;

use crate::exit::{Exit, Problem};

/// The names that the page on pull requests gives them.
const KEY: &str = "app.pem";
const SECRET: &str = "webhook-secret";
const CONNECTION: &str = "github.yaml";

/// The folder with the files of a connection.
pub(super) struct Files {
    folder: PathBuf,
}

/// What stands in `github.yaml`.
#[derive(Debug)]
pub(super) struct WrittenConnection<'a> {
    pub(super) app: &'a str,
    pub(super) installation: &'a str,
    pub(super) repositories: &'a [RepositoryName],
    /// Where webhooks are taken, if they are sent.
    pub(super) listen: Option<&'a str>,
    /// Addresses that are not GitHub's own.
    pub(super) api: Option<&'a str>,
    pub(super) web: Option<&'a str>,
}

impl Files {
    /// Returns the files in a folder. None may be there.
    pub(super) fn to_be_in(folder: &Path) -> Result<Self, Problem> {
        let files = Self {
            folder: folder.to_owned(),
        };
        for name in [KEY, SECRET, CONNECTION] {
            // A link that leads nowhere is there, too.
            if files.path(name).symlink_metadata().is_ok() {
                return Err(exists(&files.path(name)));
            }
        }
        Ok(files)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns where the connection is.
    pub(super) fn connection(&self) -> PathBuf {
        self.path(CONNECTION)
    }

    /// Writes what is secret, for this user alone.
    pub(super) fn write_secrets(&self, key: &str, secret: Option<&str>) -> Result<(), Problem> {
        std::fs::create_dir_all(&self.folder).map_err(|error| unwritten(&self.folder, &error))?;
        self.write(KEY, 0o600, key)?;
        match secret {
            Some(secret) => self.write(SECRET, 0o600, &format!("{secret}\n")),
            None => Ok(()),
        }
    }

    /// Writes the connection, which has no secret.
    pub(super) fn write_connection(&self, connection: &WrittenConnection<'_>) -> Result<(), Problem> {
        self.write(CONNECTION, 0o644, &connection.text())
    }

    fn write(&self, name: &str, mode: u32, text: &str) -> Result<(), Problem> {
        let path = self.path(name);
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path);
        let written = opened.and_then(|mut file: File| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| match error.kind() == io::ErrorKind::AlreadyExists {
            true => exists(&path),
            false => unwritten(&path, &error),
        })
    }
}

impl WrittenConnection<'_> {
    /// Returns the text of the file.
    pub(super) fn text(&self) -> String {
        let Self {
            app, installation, ..
        } = self;
        let names: Vec<&str> = self
            .repositories
            .iter()
            .map(|repository| repository.0.as_str())
            .collect();
        let mut text = format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: GitHubConnection\nspec:\n  \
             app: {{id: {app}, installationId: {installation}, privateKeyFile: {KEY}}}\n  repositories: [{}]\n",
            names.join(", ")
        );
        for (key, address) in [("api", self.api), ("web", self.web)] {
            if let Some(address) = address {
                text.push_str(&format!("  {key}: \"{address}\"\n"));
            }
        }
        if let Some(listen) = self.listen {
            text.push_str(&format!(
                "  webhook:\n    listen: \"{listen}\"        # behind a proxy with TLS\n    secretFiles: [{SECRET}]\n"
            ));
        }
        text
    }
}

fn exists(path: &Path) -> Problem {
    let problem = Diagnostic::error(
        Code::AppFileExists,
        "a file is there already, and is not overwritten",
    );
    let problem = problem.at(SourceLocation::file(path.display().to_string()));
    Problem::usage(problem.hint("name another folder with --folder, or move the file away"))
}

fn unwritten(path: &Path, error: &io::Error) -> Problem {
    let problem = Diagnostic::error(
        Code::Unwritable,
        "a file of the connection to GitHub could not be written",
    );
    let problem = problem.at(SourceLocation::file(path.display().to_string()));
    Problem {
        diagnostics: vec![problem.caused_by(error)],
        exit: Exit::Infrastructure,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use blueproof_github::connection::Connection;

    use super::*;

    fn connection(repositories: &[RepositoryName]) -> WrittenConnection<'_> {
        WrittenConnection {
            app: "99",
            installation: "12",
            repositories,
            listen: Some("127.0.0.1:8790"),
            api: Some("https://ghe.example.org/api/v3"),
            web: None,
        }
    }

    #[test]
    fn what_is_written_is_what_a_scheduler_reads() {
        let repositories = ["a/b", "a/1.0"].map(|name| name.parse().expect("a name"));
        let read = Connection::read("github.yaml", connection(&repositories).text()).expect("it is one");
        let app = read.app.expect("it is there");
        assert_eq!((app.id, app.installation_id), (99, 12));
        assert_eq!(read.api.0, "https://ghe.example.org/api/v3");
        let names: Vec<_> = read.repositories.into_iter().map(|one| one.value).collect();
        assert_eq!(names, repositories);
        let webhook = read.webhook.expect("it is there");
        assert_eq!(webhook.listen, "127.0.0.1:8790");
        let quiet = WrittenConnection {
            listen: None,
            api: None,
            ..connection(&repositories)
        };
        let read = Connection::read("github.yaml", quiet.text()).expect("it is one");
        assert_eq!(read.webhook, None);
    }

    #[test]
    fn secrets_are_for_their_owner_alone_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("new/one");
        let files = Files::to_be_in(&below).expect("nothing is there");
        files.write_secrets("key", Some("secret")).expect("room");
        let mode = |name: &str| {
            below
                .join(name)
                .metadata()
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!((mode(KEY), mode(SECRET)), (0o600, 0o600));
        let again = files.write_secrets("another", None).expect_err("it is there");
        assert_eq!(again.diagnostics[0].code, Code::AppFileExists);
        assert_eq!(
            std::fs::read_to_string(below.join(KEY)).expect("it is there"),
            "key"
        );
        assert!(Files::to_be_in(&below).is_err());
        let linked = folder.path().join("linked");
        std::fs::create_dir(&linked).expect("a folder");
        std::os::unix::fs::symlink("/nowhere", linked.join(SECRET)).expect("a link");
        assert!(
            Files::to_be_in(&linked).is_err(),
            "a link is there, wherever it leads"
        );
    }
}
