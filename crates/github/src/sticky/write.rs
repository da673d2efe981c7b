//! Writes the comments of pull requests, each in its one place.

use std::{collections::BTreeMap, sync::Arc};

use blueproof_core::ports::RunStatus;
use tokio::sync::Mutex;

use super::{StickyNews, StickyWrite, find, plan};
use crate::{
    answer::Answer,
    api::{ApiError, GitHub, RepositoryId},
    check::CheckSettings,
    payload::Comment,
};

/// How many comments are remembered. One that was forgotten is looked for again.
const REMEMBERED: usize = 4_096;

/// The comments of pull requests. Whoever has news of one tells it here, so that none overwrites what another wrote.
pub struct StickyComments {
    github: Arc<dyn GitHub>,
    /// The number of our App: only its comments are ours.
    app: u64,
    settings: CheckSettings,
    /// Our comments as they were read or written last; `None` where a pull request has none.
    known: Mutex<BTreeMap<(RepositoryId, u64), Option<Comment>>>,
}

impl StickyComments {
    /// Returns the comments that the App of this number writes.
    pub fn new(github: Arc<dyn GitHub>, app: u64, settings: CheckSettings) -> Self {
        Self {
            github,
            app,
            settings,
            known: Mutex::default(),
        }
    }

    /// Tells how a run of a pull request stands. It may be repeated.
    ///
    /// # Errors
    ///
    /// GitHub was not reached, or refused it. Whether it was written is found out by the next call.
    pub async fn tell(
        &self,
        repository: RepositoryId,
        number: u64,
        status: &RunStatus,
    ) -> Result<(), ApiError> {
        self.write(repository, number, &StickyNews::Run(status)).await
    }

    /// Tells why what somebody asked for last was not done; `None` where it was. It may be repeated.
    ///
    /// # Errors
    ///
    /// As for [`tell`](Self::tell).
    pub async fn answer(
        &self,
        repository: RepositoryId,
        number: u64,
        answer: Option<&Answer>,
    ) -> Result<(), ApiError> {
        self.write(repository, number, &StickyNews::Answer(answer)).await
    }

    /// Writes a comment, where there is something to be written. It is forgotten until GitHub's answer is there: where that is lost, the
    /// next call reads what came of it.
    async fn write(
        &self,
        repository: RepositoryId,
        number: u64,
        news: &StickyNews<'_>,
    ) -> Result<(), ApiError> {
        let key = (repository, number);
        let mut known = self.known.lock().await;
        let existing = match known.remove(&key) {
            Some(known) => known,
            None => find(&self.github.comments(repository, number).await?, self.app).cloned(),
        };
        let written = match plan(existing.as_ref(), news, &self.settings) {
            None => existing,
            Some(StickyWrite::Create(markdown)) => {
                Some(self.github.create_comment(repository, number, &markdown).await?)
            }
            Some(StickyWrite::Update { id, markdown }) => {
                self.github.update_comment(repository, id, &markdown).await?;
                existing.map(|comment| Comment {
                    body: Some(markdown),
                    ..comment
                })
            }
        };
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, written);
        Ok(())
    }
}
