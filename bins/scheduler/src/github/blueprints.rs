//! The blueprints of a repository's commits, fetched with git.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use blueproof_core::{
    domain::{FailureClass, GitSource},
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::{
    payload::{CommitSha, RepositoryInfo},
    plan::{HeadBlueprint, HeadBlueprints, HeadVariant},
};
use blueproof_notebook::{
    commit::{CommitBlueprint, blueprints_at},
    environment::{Patience, Unprepared},
};

/// How long a commit may take to be fetched and read.
const WITHIN: Duration = Duration::from_secs(120);
/// How many commits are remembered: each is looked at again and again while its pull request is open.
const REMEMBERED: usize = 256;

/// The blueprints of commits. What a commit has never changes, so each is fetched once.
pub(super) struct GitBlueprints {
    web: String,
    known: Mutex<VecDeque<(String, Arc<Vec<HeadBlueprint>>)>>,
}

impl GitBlueprints {
    /// Fetches repositories from below this address.
    pub(super) fn new(web: String) -> Self {
        Self {
            web,
            known: Mutex::default(),
        }
    }

    fn source(&self, repository: &RepositoryInfo, head: &CommitSha) -> Result<GitSource, CallError> {
        let address = format!("{}/{}.git", self.web, repository.full_name);
        let parsed = address.parse().map_err(|error| {
            let message = format!("`{address}` is no address that commits can be fetched from");
            CallError::never(Diagnostic::error(Code::SourceNotFetched, message).caused_by(&error))
        })?;
        Ok(GitSource {
            repository: parsed,
            commit: head.to_string(),
            folder: Default::default(),
        })
    }

    fn remembered(&self, key: &str) -> Option<Arc<Vec<HeadBlueprint>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(of, _)| of == key);
        found.map(|(_, blueprints)| blueprints.clone())
    }

    fn remember(&self, key: String, blueprints: &Arc<Vec<HeadBlueprint>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push_back((key, blueprints.clone()));
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }
}

#[async_trait]
impl HeadBlueprints for GitBlueprints {
    async fn at(
        &self,
        repository: &RepositoryInfo,
        head: &CommitSha,
    ) -> Result<Vec<HeadBlueprint>, CallError> {
        let source = self.source(repository, head)?;
        let key = format!("{}@{head}", source.repository.as_str());
        if let Some(known) = self.remembered(&key) {
            return Ok(known.to_vec());
        }
        let read = tokio::task::spawn_blocking(move || fetch(&source)).await;
        let read = read.unwrap_or_else(|error| Err(failed("the blueprints of a commit", &error)))?;
        let read = Arc::new(read);
        self.remember(key, &read);
        Ok(read.to_vec())
    }
}

/// Fetches a commit into a folder of its own, which is gone afterwards.
fn fetch(source: &GitSource) -> Result<Vec<HeadBlueprint>, CallError> {
    let folder = tempfile::tempdir().map_err(|error| failed("a folder for a commit", &error))?;
    let patience = Patience {
        stop: &AtomicBool::new(false),
        deadline: Some(Instant::now() + WITHIN),
    };
    match blueprints_at(source, folder.path(), patience) {
        Ok(read) => Ok(read.into_iter().map(head_blueprint).collect()),
        Err(Unprepared::Failed(failure)) => Err(match failure.class {
            FailureClass::Config => CallError::never(failure.diagnostic),
            FailureClass::Notebook
            | FailureClass::Workload
            | FailureClass::Expectation
            | FailureClass::Timeout(_)
            | FailureClass::Infrastructure => CallError::later(failure.diagnostic),
        }),
        Err(Unprepared::Stopped | Unprepared::OutOfTime) => {
            let message = format!(
                "{} was not fetched within {} seconds",
                source.commit,
                WITHIN.as_secs()
            );
            Err(CallError::later(Diagnostic::error(
                Code::SourceNotFetched,
                message,
            )))
        }
    }
}

fn head_blueprint(read: CommitBlueprint) -> HeadBlueprint {
    let variants = read.variants.map(|variants| {
        let variants = variants.into_iter().map(|variant| HeadVariant {
            profile: variant.profile,
            job: variant.job,
            retries: variant.retries,
        });
        variants.collect()
    });
    HeadBlueprint {
        name: read.name,
        folder: read.folder,
        triggers: read.triggers,
        variants,
    }
}

fn failed(making: &str, error: &(dyn std::error::Error + 'static)) -> CallError {
    let message = format!("could not make {making}");
    CallError::later(Diagnostic::error(Code::SourceNotFetched, message).caused_by(error))
}
