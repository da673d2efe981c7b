//! What runners need of GitHub's REST API.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use blueproof_core::ports::{RunnerName, SystemClock};
use blueproof_diagnostic::Diagnostic;
use blueproof_github::{
    api::{Actions as _, ApiError, NewJitRunner, RepositoryId, RunnerScope},
    payload::{WorkflowJob, WorkflowJobStatus},
    rest::{AppTokens, FixedToken, RestGitHub, Tokens},
};
use blueproof_runners::{
    Deregistration, Registered, Registrar, RegistrarError, RerunAnswer, Reruns, RunnerJob, SELF_HOSTED,
    UniqueLabel, WORK_FOLDER,
    hook::{self, JobJudge, JobQuestion},
    settings::RunnerScaleSet,
};
use blueproof_scale_set::{AppInstallation, Credentials, Scope, Secret};

use super::{RunnerSet, Shared, problems};
use crate::github::secrets;

/// The group that every organisation and repository has.
const DEFAULT_GROUP: u64 = 1;
/// GitHub's answers to who asks for what the thing's state does not allow.
const NOT_NOW: [u16; 2] = [403, 422];

/// By what GitHub is asked.
pub(super) enum SetCredentials {
    /// A GitHub App: its id, its installation, and the file with its key.
    App(String, i64, std::path::PathBuf),
    /// A token.
    Token(String),
}

impl SetCredentials {
    pub(super) fn read(settings: &RunnerScaleSet, beside: &Path) -> Result<Self, Diagnostic> {
        if let Some(app) = &settings.app {
            let file = beside.join(&app.private_key_file.0);
            let read = Self::App(app.id.clone(), i64::from(app.installation_id), file);
            // Where it cannot be read, that is said at the start.
            read.of_scale_set()?;
            return Ok(read);
        }
        let file = settings.token_file.as_ref().expect("it has one or the other");
        secrets::plain_token(&beside.join(&file.0)).map(Self::Token)
    }

    /// Returns them as the client of scale sets takes them.
    pub(super) fn of_scale_set(&self) -> Result<Credentials, Diagnostic> {
        Ok(match self {
            Self::App(..) => Credentials::App(self.installation()?),
            Self::Token(token) => Credentials::Token(Secret::new(token.clone())),
        })
    }

    pub(super) fn tokens(&self, api: &str) -> Result<Arc<dyn Tokens>, Diagnostic> {
        Ok(match self {
            Self::App(..) => {
                let tokens = AppTokens::new(api, self.installation()?, Arc::new(SystemClock));
                Arc::new(tokens.map_err(|error| error.diagnostic())?)
            }
            Self::Token(token) => Arc::new(FixedToken(blueproof_github::rest::ApiToken::new(token.clone()))),
        })
    }

    fn installation(&self) -> Result<AppInstallation, Diagnostic> {
        let Self::App(issuer, installation, file) = self else {
            unreachable!("only an App is installed");
        };
        Ok(AppInstallation {
            issuer: issuer.clone(),
            installation: *installation,
            key: secrets::app_key(file)?,
        })
    }
}

/// Returns the address of the REST API.
pub(super) fn api_of(settings: &RunnerScaleSet) -> String {
    match &settings.api {
        Some(api) => api.0.clone(),
        None => settings
            .config_url()
            .api("")
            .as_str()
            .trim_end_matches('/')
            .to_owned(),
    }
}

/// Registers runners with a label for one commit.
pub(super) struct RestRegistrar {
    rest: Arc<RestGitHub>,
    scope: RunnerScope,
    group: u64,
    labels: Vec<String>,
}

impl RestRegistrar {
    pub(super) async fn of(set: &RunnerSet) -> Result<Self, Diagnostic> {
        let scope = match set.settings.config_url().scope() {
            Scope::Organization(name) | Scope::Enterprise(name) => RunnerScope::Organization(name.clone()),
            Scope::Repository { owner, name } => RunnerScope::Repository(format!("{owner}/{name}")),
        };
        let wanted = &set.settings.runner_group;
        let group = match &scope {
            RunnerScope::Organization(name) if !wanted.eq_ignore_ascii_case("default") => {
                let found = set.rest.runner_group(name, wanted).await;
                let found = found.map_err(|error| error.diagnostic())?;
                found.ok_or_else(|| problems::no_group(wanted))?
            }
            RunnerScope::Organization(_) | RunnerScope::Repository(_) => DEFAULT_GROUP,
        };
        let mut labels = vec![SELF_HOSTED.to_owned()];
        labels.extend(set.settings.labels());
        Ok(Self {
            rest: Arc::clone(&set.rest),
            scope,
            group,
            labels,
        })
    }
}

fn failed(doing: &str, runner: &RunnerName, error: ApiError) -> RegistrarError {
    RegistrarError::new(format!("{doing} {runner}"), error)
}

#[async_trait]
impl Registrar for RestRegistrar {
    async fn register(
        &self,
        name: &RunnerName,
        label: Option<&UniqueLabel>,
    ) -> Result<Registered, RegistrarError> {
        let mut labels = self.labels.clone();
        labels.extend(label.map(|label| label.as_str().to_owned()));
        let new = NewJitRunner {
            name: name.as_str().to_owned(),
            group: self.group,
            labels,
            work_folder: WORK_FOLDER.into(),
        };
        let made = self.rest.jit_runner(&self.scope, &new).await;
        let made = made.map_err(|error| failed("register runner", name, error))?;
        Ok(Registered {
            registration: i64::try_from(made.id).unwrap_or(i64::MAX),
            config: made.config,
        })
    }

    async fn deregister(
        &self,
        name: &RunnerName,
        registration: Option<i64>,
    ) -> Result<Deregistration, RegistrarError> {
        let known = registration.and_then(|id| u64::try_from(id).ok());
        let id = match known {
            Some(id) => Some(id),
            None => {
                let found = self.rest.find_runner(&self.scope, name.as_str()).await;
                found.map_err(|error| failed("find runner", name, error))?
            }
        };
        let Some(id) = id else {
            return Ok(Deregistration::Gone);
        };
        match self.rest.remove_runner(&self.scope, id).await {
            Ok(()) => Ok(Deregistration::Gone),
            Err(error) if error.status == Some(422) => Ok(Deregistration::JobStillRunning),
            Err(error) => Err(failed("remove runner", name, error)),
        }
    }
}

/// Has jobs run once more whose runner was lost.
pub(super) struct RestReruns(pub(super) Arc<RestGitHub>);

#[async_trait]
impl Reruns for RestReruns {
    async fn rerun(&self, runner: &RunnerName, job: &RunnerJob) -> Result<RerunAnswer, RegistrarError> {
        let unknown = |error| failed("tell what became of the job of", runner, error);
        let Ok(run) = u64::try_from(job.workflow_run) else {
            return Ok(RerunAnswer::Declined);
        };
        let repository = self.0.repository_named(&job.repository).await.map_err(unknown)?;
        let id = RepositoryId(repository.id);
        let jobs = self.0.workflow_jobs(id, run).await.map_err(unknown)?;
        let is_it = |job: &&WorkflowJob| job.runner_name.as_deref() == Some(runner.as_str());
        let Some(found) = jobs.iter().find(is_it) else {
            // Somebody has run it once more already, or it is gone.
            return Ok(RerunAnswer::Declined);
        };
        if found.status != WorkflowJobStatus::Completed {
            return Ok(RerunAnswer::TooEarly);
        }
        if found.conclusion.as_deref() == Some("success") {
            return Ok(RerunAnswer::Declined);
        }
        match self.0.rerun_job(id, found.id).await {
            Ok(()) => Ok(RerunAnswer::Requested),
            Err(error) if error.status.is_some_and(|status| NOT_NOW.contains(&status)) => {
                Ok(RerunAnswer::TooEarly)
            }
            Err(error) => Err(failed("have the job run once more of", runner, error)),
        }
    }
}

/// Judges jobs by what GitHub says of their workflow run, and the gate of its head.
pub(super) struct Judge(pub(super) Arc<Shared>);

#[async_trait]
impl JobJudge for Judge {
    async fn judge(&self, question: &JobQuestion) -> Result<String, Diagnostic> {
        let Some(set) = self.set_of(&question.runner) else {
            return Err(hook::refusal("on a runner that this scheduler did not start"));
        };
        let is_for = is_within(set.settings.config_url().scope(), &question.repository)
            && set.settings.has_repository(&question.repository);
        if !is_for {
            return Err(hook::refusal("of a repository that these runners are not for"));
        }
        let unknown = |error: ApiError| {
            hook::refusal("of a workflow run that GitHub does not tell us about").caused_by(&error)
        };
        let repository = set.rest.repository_named(&question.repository).await;
        let repository = RepositoryId(repository.map_err(unknown)?.id);
        let run = set.rest.workflow_run(repository, question.workflow_run).await;
        let run = run.map_err(unknown)?;
        let head = self.0.head_status(repository.0, run.head_sha.as_str()).await;
        let Some(head) = head else {
            return Err(hook::refusal(
                "not known whether it may: this scheduler does not lead",
            ));
        };
        hook::may_start(&run.event, &set.settings.trusted_events, &head)
    }
}

impl Judge {
    fn set_of(&self, runner: &RunnerName) -> Option<Arc<RunnerSet>> {
        let handles = self.0.handles();
        let mut all = handles.values();
        let found = all.find(|(_, handle)| handle.runners.borrow().contains(runner));
        found.map(|(set, _)| Arc::clone(set))
    }
}

fn is_within(scope: &Scope, repository: &str) -> bool {
    let Some((of, name)) = repository.split_once('/') else {
        return false;
    };
    match scope {
        Scope::Enterprise(_) => true,
        Scope::Organization(organization) => organization.eq_ignore_ascii_case(of),
        Scope::Repository { owner, name: own } => {
            owner.eq_ignore_ascii_case(of) && own.eq_ignore_ascii_case(name)
        }
    }
}
