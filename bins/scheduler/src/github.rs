//! GitHub's side of the scheduler: files and addresses put together.

mod blueprints;
mod describe;
pub(crate) mod secrets;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use blueproof_core::{
    ports::{Clock, Deliveries, Reporter, StoreClient, SystemClock},
    sqlite::SqliteStore,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_github::{
    check::{CheckSettings, InfrastructureConclusion},
    confirm::{self, ConfirmedStarts, PullRequestNumber},
    connection::{Connection, Webhook},
    intake::{Intake, IntakePorts, IntakeSettings},
    receiver::Receiver,
    redelivery::Redelivery,
    reporter::CheckReporter,
    rest::{AppTokens, FixedToken, RestGitHub, Tokens},
    service::GitHubService,
    sticky::StickyComments,
    webhook::WebhookSecrets,
    worker::DeliveryWorker,
};
use blueproof_host::api::{Address, Listening};
use blueproof_machine::Additions;
use blueproof_scale_set::AppInstallation;
use tokio::sync::{Notify, mpsc};

use blueprints::GitBlueprints;

/// What an admin says about GitHub, with the secrets that it names.
pub(crate) struct GitHub {
    connection: Connection,
    rest: Arc<RestGitHub>,
    /// The comments of pull requests, where any are written.
    comments: Option<Arc<StickyComments>>,
    app: Option<Arc<AppTokens>>,
    secrets: Option<WebhookSecrets>,
    received: Arc<Notify>,
    changed: mpsc::Sender<PullRequestNumber>,
    looks: mpsc::Receiver<PullRequestNumber>,
    /// Who is told of a job of GitHub Actions that has changed.
    jobs: Option<Arc<Notify>>,
}

impl GitHub {
    /// Reads a connection and the files that it names. Call it in a tokio runtime.
    pub(crate) fn read(path: &Path) -> Result<Self, Diagnostic> {
        let text = secrets::text(path)?;
        let connection = Connection::read(&path.display().to_string(), text).map_err(all_in_one)?;
        let beside = |file: &Path| path.parent().unwrap_or(Path::new("")).join(file);
        let app = app_tokens(&connection, &beside)?.map(Arc::new);
        let tokens: Arc<dyn Tokens> = match &app {
            Some(app) => app.clone(),
            None => fixed_token(&connection, &beside)?,
        };
        let number = connection.app.as_ref().map(|app| u64::from(app.id));
        let rest = RestGitHub::new(&connection.api.0, number, tokens);
        let rest = rest.map_err(|error| error.diagnostic())?;
        let files = connection.webhook.as_ref().map(|webhook| {
            let files = webhook.secret_files.iter().map(|file| beside(&file.0));
            files.collect::<Vec<PathBuf>>()
        });
        let secrets = files.map(|files| secrets::of_webhook(path, &files)).transpose()?;
        let (changed, looks) = confirm::looks();
        let rest = Arc::new(rest);
        let comments = number
            .filter(|_| connection.comment)
            .map(|app| Arc::new(StickyComments::new(rest.clone(), app, check_settings())));
        Ok(Self {
            connection,
            rest,
            comments,
            app,
            secrets,
            received: Arc::default(),
            changed,
            looks,
            jobs: None,
        })
    }

    /// Has somebody told of each job of GitHub Actions that has changed.
    pub(crate) fn telling_of(self, jobs: Arc<Notify>) -> Self {
        Self {
            jobs: Some(jobs),
            ..self
        }
    }

    /// Returns what GitHub adds to the machine: runs are shown there, and asked about once more before they start.
    pub(crate) fn additions(&self) -> Additions {
        let (github, changed) = (self.rest.clone(), self.changed.clone());
        Additions {
            reporters: vec![self.reporter()],
            around_driver: Some(Box::new(move |driver| {
                Arc::new(ConfirmedStarts::new(driver, github, changed))
            })),
        }
    }

    /// Returns what shows runs on their pull requests.
    fn reporter(&self) -> Arc<dyn Reporter> {
        if self.connection.app.is_none() {
            tracing::warn!(
                "without `spec.app` runs are shown as commit statuses, without tables, annotations and buttons: only a GitHub App may \
                 write check runs"
            );
        }
        let pages = self.connection.pages.as_ref().map(|pages| pages.0.clone());
        let clock = Arc::new(SystemClock);
        let reporter = CheckReporter::new(self.rest.clone(), clock, check_settings(), pages);
        let reporter = reporter.describing(describe::work);
        match &self.comments {
            Some(comments) => Arc::new(reporter.commenting(comments.clone())),
            None => Arc::new(reporter),
        }
    }

    /// Listens where GitHub is to send its webhooks, if it is. Nobody is answered yet.
    pub(crate) async fn listen(&self) -> Result<Option<Listening>, Diagnostic> {
        let Some(Webhook { listen, .. }) = &self.connection.webhook else {
            return Ok(None);
        };
        let address: Address = listen.parse().map_err(|error| {
            let message = format!("`spec.webhook.listen` of the connection to GitHub: {error}");
            Diagnostic::error(Code::Usage, message)
        })?;
        let listening = address.listen().await?;
        tracing::info!(address = %listening.address(), "takes webhooks");
        Ok(Some(listening))
    }

    /// Returns what answers webhooks, if any are sent.
    pub(crate) fn receiver(&self, store: &Arc<SqliteStore>) -> Option<Receiver> {
        let secrets = self.secrets.clone()?;
        let deliveries: Arc<dyn Deliveries> = store.clone();
        Some(Receiver::new(
            secrets,
            deliveries,
            Arc::new(SystemClock),
            self.received.clone(),
        ))
    }

    /// Returns what keeps the scheduler up to date.
    pub(crate) fn service(self, store: &Arc<SqliteStore>) -> GitHubService {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store_client: Arc<dyn StoreClient> = store.clone();
        let ports = IntakePorts {
            github: self.rest.clone(),
            store: store_client,
            blueprints: Arc::new(GitBlueprints::new(self.connection.web.0.clone())),
            clock: clock.clone(),
        };
        let settings = IntakeSettings {
            app: self.connection.app.as_ref().map(|app| u64::from(app.id)),
            queue: self.connection.queue(),
        };
        let redelivery = self.redelivery(store, &clock);
        let mut intake = Intake::new(ports, settings).telling_of_jobs(self.jobs);
        if let Some(comments) = self.comments {
            intake = intake.answering(comments);
        }
        let worker = DeliveryWorker::new(store.clone(), clock.clone(), intake);
        let repositories = self.connection.repositories.into_iter();
        let service = GitHubService::new(
            self.rest,
            worker,
            clock,
            self.received,
            self.looks,
            self.connection.poll_every.0,
            repositories.map(|repository| repository.value.0),
        );
        match redelivery {
            Some(redelivery) => service.redelivering(redelivery),
            None => service,
        }
    }

    /// Returns what asks for deliveries that were lost, where an App's webhook sends them here.
    fn redelivery(&self, store: &Arc<SqliteStore>, clock: &Arc<dyn Clock>) -> Option<Redelivery> {
        self.connection.webhook.as_ref()?;
        let (app, hook) = (self.connection.app.as_ref()?, self.app.clone()?);
        let installation = u64::from(app.installation_id);
        Some(Redelivery::new(hook, store.clone(), clock.clone(), installation))
    }
}

/// Returns how runs are shown.
fn check_settings() -> CheckSettings {
    CheckSettings {
        approver_role: "an approver of this repository".into(),
        infrastructure: InfrastructureConclusion::default(),
        simulated_clusters: BTreeSet::new(),
    }
}

/// Returns what an App's requests are authorised with, where there is an App.
fn app_tokens(
    connection: &Connection,
    beside: &dyn Fn(&Path) -> PathBuf,
) -> Result<Option<AppTokens>, Diagnostic> {
    let Some(app) = &connection.app else {
        return Ok(None);
    };
    let installation = AppInstallation {
        issuer: app.id.to_string(),
        installation: i64::from(app.installation_id),
        key: secrets::app_key(&beside(&app.private_key_file.0))?,
    };
    let tokens = AppTokens::new(&connection.api.0, installation, Arc::new(SystemClock));
    tokens.map(Some).map_err(|error| error.diagnostic())
}

fn fixed_token(
    connection: &Connection,
    beside: &dyn Fn(&Path) -> PathBuf,
) -> Result<Arc<dyn Tokens>, Diagnostic> {
    let file = connection.token_file.as_ref().expect("it has one or the other");
    Ok(Arc::new(FixedToken(secrets::token(&beside(&file.0))?)))
}

/// Returns the first mistake, with the others as what is to be mended, too.
pub(crate) fn all_in_one(mistakes: Vec<Diagnostic>) -> Diagnostic {
    let mut mistakes = mistakes.into_iter();
    let first = mistakes.next().expect("a file that is refused has a mistake");
    mistakes.fold(first, |first, other| {
        let place = other.place.map_or_else(String::new, |place| format!("{place}: "));
        first.because(format!("{place}{}", other.message))
    })
}
