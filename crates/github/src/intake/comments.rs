//! What people say on pull requests, whether a webhook tells it or a poll finds it.

use blueproof_core::{domain::RequestKey, ports::Command};
use jiff::Timestamp;

use super::{ApprovalRequest, Handled, Ignored, Intake, IntakeError, Pushes, wishes::Wish};
use crate::{
    answer::Answer,
    api::{IssueComment, Reaction, RepositoryId},
    comment::{self, CommentCommand, TestCommand},
    key,
    payload::{Account, Comment},
};

/// A comment on a pull request.
pub(super) struct Said<'a> {
    pub(super) repository: RepositoryId,
    pub(super) number: u64,
    pub(super) comment: &'a Comment,
    pub(super) by: &'a Account,
}

/// How many comments are remembered as heard. A poll lists those of one moment twice, and no older ones.
const MOST_HEARD: usize = 10_000;

impl Said<'_> {
    /// Returns the key of a command of the comment, by its place among them.
    fn key(&self, place: usize) -> RequestKey {
        let (repository, comment) = (self.repository.0.to_string(), self.comment.id.to_string());
        key::of(["comment", &repository, &comment, &place.to_string()])
    }
}

impl Intake {
    /// Looks at the open pull requests of a repository, and at the comments since a time of GitHub's: what webhooks tell those who have an
    /// address. Returns since when the next poll is to look. It may be repeated, and webhooks may tell the same.
    ///
    /// # Errors
    ///
    /// The first thing that failed; the next poll looks since the same time again.
    pub async fn poll(
        &mut self,
        repository: RepositoryId,
        since: Timestamp,
    ) -> Result<Timestamp, IntakeError> {
        self.sweep(repository).await?;
        let comments = self.ports.github.comments_since(repository, since).await?;
        let mut newest = since;
        for IssueComment { number, comment } in &comments {
            newest = newest.max(comment.updated_at);
            // Issues have numbers of the same row. A pull request that is closed takes no word.
            let is_open = self.is_open(repository, *number);
            let Some(by) = comment.user.as_ref().filter(|_| is_open) else {
                continue;
            };
            let said = Said {
                repository,
                number: *number,
                comment,
                by,
            };
            if !self.was_heard(&said).await? {
                // A poll sees what is there: no push is on its way that it does not know.
                self.hear(&said, &Pushes::default()).await?;
            }
        }
        Ok(newest)
    }

    /// Returns whether a comment was heard before: by this process, or by one before it, which left what it asked for.
    async fn was_heard(&self, said: &Said<'_>) -> Result<bool, IntakeError> {
        if self.heard.contains(&(said.repository, said.comment.id)) {
            return Ok(true);
        }
        let left = self.ports.store.command(&said.key(0)).await?;
        Ok(left.is_some())
    }

    /// Does what a comment asks for, as its author wrote it.
    pub(super) async fn hear(&mut self, said: &Said<'_>, pushes: &Pushes) -> Result<Handled, IntakeError> {
        let commands = comment::commands(said.comment.body.as_deref().unwrap_or_default());
        if commands.is_empty() {
            return Ok(Handled::Ignored(Ignored::NoCommand));
        }
        // What a program writes in a person's name is the program's word.
        let is_own_word = said.by.is_person() && said.comment.app.is_none();
        if !said.comment.is_unedited() || !is_own_word {
            return Ok(Handled::Ignored(Ignored::NotAsWritten));
        }
        self.look(said.repository, said.number).await?;
        self.know_who_may(said.repository).await?;
        let mut answers = Vec::new();
        for (place, command) in commands.into_iter().enumerate() {
            answers.push(match command {
                Ok(command) => self.on_command(said, place, command, pushes).await?,
                Err(mistake) => Err(mistake.problem.into()),
            });
        }
        self.acknowledge(said, &answers).await?;
        self.tell(said.repository, said.number, &answers).await?;
        self.heard.insert((said.repository, said.comment.id));
        if self.heard.len() > MOST_HEARD {
            self.heard.pop_first();
        }
        Ok(Handled::Answered(answers))
    }

    async fn on_command(
        &mut self,
        said: &Said<'_>,
        place: usize,
        command: CommentCommand,
        pushes: &Pushes,
    ) -> Result<Result<(), Answer>, IntakeError> {
        let repository = said.repository;
        let wish = Wish {
            repository,
            number: said.number,
            by: said.by,
            key: said.key(place),
        };
        match command {
            CommentCommand::Test(TestCommand {
                head,
                blueprints,
                profile,
            }) => {
                let request = ApprovalRequest {
                    number: wish.number,
                    by: wish.by.clone(),
                    head,
                    said_at: said.comment.created_at,
                    blueprints,
                    profile,
                    key: wish.key,
                    push: pushes.to(repository, said.number),
                };
                Ok(self.approve(repository, &request).await?.map_err(Answer::from))
            }
            CommentCommand::Cancel { blueprints } => self.cancel(&wish, &blueprints).await,
            CommentCommand::Retest { blueprints } => self.retest(&wish, &blueprints).await,
            CommentCommand::Hold => {
                self.hold(&wish, |key, target, by| Command::Hold { key, target, by })
                    .await
            }
            CommentCommand::Resume => {
                self.hold(&wish, |key, target, by| Command::Resume { key, target, by })
                    .await
            }
            // The check runs say it, once they are what they should be.
            CommentCommand::Why => {
                self.asked_for.remove(&(repository, said.number));
                self.ask_for_runs(repository, said.number).await?;
                Ok(Ok(()))
            }
        }
    }

    /// Answers a comment without a word: whoever follows the pull request gets no mail of it.
    async fn acknowledge(&self, said: &Said<'_>, answers: &[Result<(), Answer>]) -> Result<(), IntakeError> {
        let reaction = match answers.iter().all(Result::is_ok) {
            true => Reaction::Rocket,
            false => Reaction::Confused,
        };
        let github = &self.ports.github;
        Ok(github.react(said.repository, said.comment.id, reaction).await?)
    }
}
