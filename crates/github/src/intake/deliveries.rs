//! What is done about a delivery.

use blueproof_core::{
    domain::{AttemptId, RequestKey, RunId},
    view::RunView,
};

use super::{
    ApprovalRequest, Handled, Ignored, Intake, IntakeError, Pushes, approve::PushPending, comments::Said,
    merge_groups::GroupWish, wishes::Wish,
};
use crate::{
    answer::{Answer, ApprovalProblem},
    api::{CheckAction, RepositoryId},
    key,
    payload::{
        CheckRunAction, CheckRunEvent, CommentAction, IssueCommentEvent, MergeGroupAction, MergeGroupEvent,
        Payload, PullRequestAction, PullRequestEvent, RepositoryInfo,
    },
    webhook::DeliveryId,
};

impl Intake {
    /// Does what a delivery asks for. `later` are the pushes that came after it. It may be repeated: what was done once is not done
    /// again.
    ///
    /// # Errors
    ///
    /// Something could not be read or left. Where another attempt may help, the delivery is to be handled again.
    pub async fn handle(
        &mut self,
        via: &DeliveryId,
        payload: &Payload,
        later: &Pushes,
    ) -> Result<Handled, IntakeError> {
        match payload {
            Payload::PullRequest(event) => self.on_pull_request(event, later).await,
            Payload::IssueComment(event) => self.on_comment(event, later).await,
            Payload::CheckRun(event) => self.on_check_run(via, event).await,
            Payload::Push(event) if event.is_to_default_branch() => {
                self.entitle(id(&event.repository)).await?;
                Ok(Handled::Looked)
            }
            Payload::Push(_) => Ok(Handled::Ignored(Ignored::Action)),
            Payload::MergeGroup(event) => self.on_merge_group(event).await,
            Payload::WorkflowJob(_) if self.jobs.is_some() => {
                self.jobs.iter().for_each(|jobs| jobs.notify_waiters());
                Ok(Handled::Looked)
            }
            Payload::CheckSuite(_)
            | Payload::WorkflowJob(_)
            | Payload::Installation(_)
            | Payload::InstallationRepositories(_)
            | Payload::Repository(_)
            | Payload::Ping
            | Payload::Other => Ok(Handled::Ignored(Ignored::Event)),
        }
    }

    async fn on_pull_request(
        &mut self,
        event: &PullRequestEvent,
        later: &Pushes,
    ) -> Result<Handled, IntakeError> {
        let (repository, number) = (id(&event.repository), event.pull_request.number);
        self.take_in(repository, event.pull_request.clone()).await?;
        self.look(repository, number).await?;
        match event.action {
            PullRequestAction::Labeled => self.on_label(event, later).await,
            PullRequestAction::Opened
            | PullRequestAction::Synchronize
            | PullRequestAction::Edited
            | PullRequestAction::Closed
            | PullRequestAction::Reopened
            | PullRequestAction::ReadyForReview
            | PullRequestAction::ConvertedToDraft
            | PullRequestAction::Unlabeled
            | PullRequestAction::Other(_) => Ok(Handled::Looked),
        }
    }

    /// A label approves the head that was there when it was put on, by the same rule as words without a commit.
    async fn on_label(&mut self, event: &PullRequestEvent, later: &Pushes) -> Result<Handled, IntakeError> {
        let (repository, info) = (id(&event.repository), &event.pull_request);
        let approving = self.entitlements.get(&repository);
        let approving = approving.and_then(|entitlement| entitlement.policy().approval.label.as_ref());
        let is_it = approving.is_some() && event.label.as_ref().map(|label| &label.name) == approving;
        if !is_it {
            return Ok(Handled::Looked);
        }
        let now = self.observed.get(repository, info.number);
        if let Some(now) = now.filter(|now| now.info.head.sha != info.head.sha) {
            let problem = ApprovalProblem::HeadChanged(now.info.head.sha.clone());
            return Ok(Handled::Answered(vec![Err(problem.into())]));
        }
        let asked = ApprovalRequest {
            number: info.number,
            by: event.sender.clone(),
            head: None,
            said_at: info.updated_at,
            blueprints: Vec::new(),
            profile: None,
            key: label_key(repository, event),
            push: later.to(repository, info.number),
        };
        let approved = self.approve(repository, &asked).await?;
        let answers = vec![approved.map_err(Answer::from)];
        self.tell(repository, info.number, &answers).await?;
        Ok(Handled::Answered(answers))
    }

    async fn on_merge_group(&mut self, event: &MergeGroupEvent) -> Result<Handled, IntakeError> {
        let (repository, group) = (id(&event.repository), &event.merge_group);
        match event.action {
            MergeGroupAction::ChecksRequested => self.answer_group(repository, group).await?,
            MergeGroupAction::Destroyed => self.end_group(repository, &group.head_sha).await?,
            MergeGroupAction::Other(_) => return Ok(Handled::Ignored(Ignored::Action)),
        }
        Ok(Handled::Looked)
    }

    async fn on_comment(
        &mut self,
        event: &IssueCommentEvent,
        later: &Pushes,
    ) -> Result<Handled, IntakeError> {
        if event.action != CommentAction::Created {
            return Ok(Handled::Ignored(Ignored::Action));
        }
        if !event.issue.is_pull_request() {
            return Ok(Handled::Ignored(Ignored::NoCommand));
        }
        let author = event.comment.user.as_ref();
        if author.map(|author| author.id) != Some(event.sender.id) {
            return Ok(Handled::Ignored(Ignored::NotAsWritten));
        }
        let said = Said {
            repository: id(&event.repository),
            number: event.issue.number,
            comment: &event.comment,
            by: &event.sender,
        };
        self.hear(&said, later).await
    }

    async fn on_check_run(
        &mut self,
        via: &DeliveryId,
        event: &CheckRunEvent,
    ) -> Result<Handled, IntakeError> {
        let action = match event.action {
            CheckRunAction::RequestedAction => event.requested_action.as_ref(),
            CheckRunAction::Rerequested => None,
            CheckRunAction::Created | CheckRunAction::Completed | CheckRunAction::Other(_) => {
                return Ok(Handled::Ignored(Ignored::Action));
            }
        };
        let of = event.check_run.app.map(|app| app.id);
        if of.is_none() || of != self.settings.app {
            return Ok(Handled::Ignored(Ignored::OtherApp));
        }
        let action = action.map_or(Ok(CheckAction::Retry), |action| action.identifier.parse());
        let (Ok(action), Some(view)) = (action, self.run_of_check(event).await?) else {
            return Ok(Handled::Answered(vec![Err(Answer::NoRun)]));
        };
        let answers = vec![self.on_button(via, event, action, &view).await?];
        if let Some(number) = view.subject.pull_request {
            self.tell(id(&event.repository), number, &answers).await?;
        }
        Ok(Handled::Answered(answers))
    }

    async fn on_button(
        &mut self,
        via: &DeliveryId,
        event: &CheckRunEvent,
        action: CheckAction,
        view: &RunView,
    ) -> Result<Result<(), Answer>, IntakeError> {
        let repository = id(&event.repository);
        let Some(number) = view.subject.pull_request else {
            let wish = GroupWish {
                repository,
                view,
                by: &event.sender,
                key: key::of(["button", via.as_str()]),
            };
            return self.on_group_button(&wish, action).await;
        };
        self.look_at_head(repository, number).await?;
        self.know_who_may(repository).await?;
        let wish = Wish {
            repository,
            number,
            by: &event.sender,
            key: key::of(["button", via.as_str()]),
        };
        match action {
            CheckAction::Approve => {
                let asked = ApprovalRequest {
                    number,
                    by: event.sender.clone(),
                    head: Some(event.check_run.head_sha.clone()),
                    said_at: self.ports.clock.now(),
                    blueprints: vec![view.subject.blueprint.clone()],
                    profile: view.subject.profile.clone(),
                    key: wish.key,
                    push: PushPending::None,
                };
                Ok(self.approve(repository, &asked).await?.map_err(Answer::from))
            }
            CheckAction::Retry => self.retry(&wish, view).await,
            CheckAction::Cancel => self.stop(&wish, view).await,
        }
    }

    /// Returns the run that a check run of ours is of, where it is of the repository and commit that the delivery names.
    async fn run_of_check(&self, event: &CheckRunEvent) -> Result<Option<RunView>, IntakeError> {
        let named = event.check_run.external_id.as_deref().and_then(run_id);
        let Some(run) = named else {
            return Ok(None);
        };
        let view = self.ports.store.run(run).await?;
        Ok(view.filter(|view| {
            view.subject.repository == event.repository.to_repository()
                && view.subject.head == event.check_run.head_sha.to_head()
        }))
    }
}

/// Returns the key of what a label asks for. A label has no number: it is told from others by when, where and by whom it was put on.
fn label_key(repository: RepositoryId, event: &PullRequestEvent) -> RequestKey {
    let info = &event.pull_request;
    let numbers = [repository.0, info.number, event.sender.id].map(|number| number.to_string());
    let [repository, number, sender] = &numbers;
    key::of(["label", repository, number, sender, &info.updated_at.to_string()])
}

fn id(repository: &RepositoryInfo) -> RepositoryId {
    RepositoryId(repository.id)
}

/// Returns the run that a check run's `external_id` names, by the first attempt that it shows.
fn run_id(external_id: &str) -> Option<RunId> {
    let attempt: AttemptId = external_id.parse().ok()?;
    Some(attempt.run)
}
