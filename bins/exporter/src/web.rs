//! Who may ask, and how: TLS and passwords by a file, as Prometheus' exporter-toolkit has it.
//!
//! The file, and the certificates that it names, are read anew for each connection and each request, so that a renewed
//! certificate or a password that was taken back needs no restart. What cannot be used changes nothing: it is told once,
//! and what held before holds on. Only whether TLS is spoken at all is decided at the start.

mod auth;
mod file;
mod tls;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use tokio_rustls::rustls::ServerConfig;

pub(crate) use self::{auth::authorize, tls::TlsListener};
use self::{
    auth::{Passwords, Users},
    file::{Reader, WebFile},
};
use crate::tell;

/// What the file says, as it is now.
pub(crate) struct Web {
    path: PathBuf,
    state: Mutex<State>,
    passwords: Passwords,
}

/// What holds for a connection or a request.
pub(crate) struct Rules {
    tls: Option<Arc<ServerConfig>>,
    users: Users,
}

struct State {
    rules: Arc<Rules>,
    files: Files,
    /// What was told last, so that it is told once.
    told: Option<Vec<Diagnostic>>,
}

/// The files that were read.
#[derive(PartialEq)]
struct Files {
    paths: Vec<PathBuf>,
    digest: [u8; 32],
}

impl Web {
    /// Reads the file for the first time.
    pub(crate) fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let (rules, files) = read(path)?;
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                rules: Arc::new(rules),
                files,
                told: None,
            }),
            passwords: Passwords::default(),
        })
    }

    /// Returns whether TLS is spoken.
    pub(crate) fn speaks_tls(&self) -> bool {
        self.last().tls.is_some()
    }

    /// Reads what changed, and returns what holds now.
    pub(crate) async fn rules(self: &Arc<Self>) -> Arc<Rules> {
        let web = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || web.refresh());
        // It fails where the program is about to end.
        read.await.unwrap_or_else(|_| self.last())
    }

    fn last(&self) -> Arc<Rules> {
        let state = self.state.lock().expect("nobody panics while they hold it");
        Arc::clone(&state.rules)
    }

    fn refresh(&self) -> Arc<Rules> {
        let mut state = self.state.lock().expect("nobody panics while they hold it");
        if state.told.is_none() && state.files.are_as_they_were() {
            return Arc::clone(&state.rules);
        }
        match self.read_again(&state.rules) {
            Ok((rules, files)) => {
                if state.files != files {
                    // Those who are connected already keep what they agreed upon.
                    state.rules = Arc::new(rules);
                    state.files = files;
                }
                if state.told.take().is_some() {
                    eprintln!("the web configuration can be used again");
                }
            }
            Err(problems) => {
                if state.told.as_ref() != Some(&problems) {
                    problems.iter().for_each(tell);
                    state.told = Some(problems);
                }
            }
        }
        Arc::clone(&state.rules)
    }

    fn read_again(&self, before: &Rules) -> Result<(Rules, Files), Vec<Diagnostic>> {
        let (rules, files) = read(&self.path)?;
        if rules.tls.is_some() == before.tls.is_some() {
            return Ok((rules, files));
        }
        let message = "whether TLS is spoken cannot change while the exporter runs";
        let refused = Diagnostic::error(Code::WebConfig, message).hint("start the exporter again");
        Err(vec![
            refused.at(SourceLocation::file(self.path.display().to_string())),
        ])
    }
}

impl Files {
    fn are_as_they_were(&self) -> bool {
        let mut reader = Reader::default();
        let read = self.paths.iter().all(|path| reader.read(path).is_ok());
        read && reader.digest() == self.digest
    }
}

fn read(path: &Path) -> Result<(Rules, Files), Vec<Diagnostic>> {
    let mut reader = Reader::default();
    let WebFile { tls, users } = file::read(path, &mut reader)?;
    let tls = tls.map(|tls| tls::config(&tls, &mut reader)).transpose();
    let rules = Rules {
        tls: tls.map_err(|problem| vec![*problem])?,
        users,
    };
    let files = Files {
        paths: reader.paths.clone(),
        digest: reader.digest(),
    };
    Ok((rules, files))
}
