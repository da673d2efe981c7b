//! GitHub, the people on it, and what they do.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use blueproof_github::{
    api::{CheckAction, GitHub as _, RepositoryId},
    payload::{Account, AccountKind, App, CheckRun},
    testing::{FakeGitHub, HttpFake},
    webhook::WebhookSecret,
};
use blueproof_scale_set::{
    Clock, NewScaleSet, RunnerGroupId, RunnerSetting, ScaleSetId,
    testing::{APP_KEY, FakeServer, FakeService, Model, ModelOptions},
};
use jiff::Timestamp;
use reqwest::Url;

use crate::{
    command::Command,
    hook::Hook,
    place::{BLUEPRINT, Place},
};

const REPOSITORY: RepositoryId = RepositoryId(7);
const APP: u64 = 99;
const SECRET: &str = "secret-of-the-fake-webhook";
const SCALE_SET: &str = "blueproof-gpu";

/// GitHub, and all that is around it.
pub(crate) struct World {
    place: Place,
    github: Arc<FakeGitHub>,
    http: HttpFake,
    hook: Hook,
    people: BTreeMap<&'static str, Account>,
    service: FakeService,
    scale_sets: FakeServer,
    scale_set: ScaleSetId,
    n_commits: u64,
}

impl World {
    /// Makes the folder, and answers on free ports of loopback.
    pub(crate) async fn start(folder: &Path, webhook: Url) -> Result<Self> {
        let place = Place::make(folder)?;
        let github = Arc::new(FakeGitHub::new(APP));
        github.set_now(Timestamp::now());
        let people = [(1, "ada"), (4, "mallory")];
        let people = people.map(|(id, login)| (login, github.add_account(id, login, AccountKind::User)));
        github.add_repository(
            REPOSITORY,
            "kubeflow/trainer",
            &[("OWNERS", "approvers: [ada]\n")],
        );
        // A scheduler looks at the default branch by itself: it was there before.
        github.take_deliveries();
        let http = HttpFake::start(github.clone()).await;
        place.write_secret("app.pem", APP_KEY)?;
        place.write_secret("webhook-secret", SECRET)?;
        let listen = format!(
            "{}:{}",
            webhook.host_str().unwrap_or("127.0.0.1"),
            webhook.port_or_known_default().unwrap_or(8790)
        );
        place.write_connection(&http.address(), APP, FakeGitHub::INSTALLATION, &listen)?;
        let secret = WebhookSecret::new(SECRET).context("the secret is too short")?;
        let service = FakeService::new(Model::new(ModelOptions::default()), Clock::system());
        let scale_set = service.with(|model, _| {
            model.add_scale_set(NewScaleSet {
                name: SCALE_SET.into(),
                runner_group_id: RunnerGroupId(1),
                labels: Vec::new(),
                runner_setting: RunnerSetting::default(),
            })
        });
        let scale_sets = FakeServer::start(service.clone())
            .await
            .context("no port is free")?;
        Ok(Self {
            place,
            github,
            http,
            hook: Hook::new(webhook, secret)?,
            people: people.into(),
            service,
            scale_sets,
            scale_set,
            n_commits: 0,
        })
    }

    /// Returns where everything is.
    pub(crate) fn described(&self) -> String {
        format!(
            "API          {}\nscale sets   {} (scale set {SCALE_SET}, number {})\nwebhooks go  {}\nconnection   {}",
            self.http.address(),
            self.scale_sets.base(),
            self.scale_set.0,
            self.hook.url(),
            self.place.path("github.yaml").display(),
        )
    }

    /// Sends what was asked for once more.
    pub(crate) async fn tick(&mut self) -> String {
        self.github.set_now(Timestamp::now());
        self.hook.send_all(&self.github).await
    }

    /// Does what was typed, and tells of it.
    pub(crate) async fn carry_out(&mut self, command: &Command) -> Result<String> {
        self.github.set_now(Timestamp::now());
        let mut said = match command {
            Command::Open => self.open()?,
            Command::Push(number) => self.of(*number, |world| world.push(*number))?,
            Command::Comment { number, by, text } => {
                self.of(*number, |world| Ok(world.comment(*number, by, text)))?
            }
            Command::Press { number, by, button } => self.press(*number, by, *button).await,
            Command::Label { number, by, label } => self.of(*number, |world| {
                let Some(by) = world.people.get(by.as_str()) else {
                    return Ok(nobody(by));
                };
                world.github.label(REPOSITORY, *number, by, label);
                Ok("labeled\n".into())
            })?,
            Command::Close(number) => self.of(*number, |world| {
                world.github.close(REPOSITORY, *number, &world.people["mallory"]);
                Ok("closed\n".into())
            })?,
            Command::Show(number) => self.show(*number).await,
            Command::Install => {
                self.github.install_app();
                "installed\n".into()
            }
            Command::Job => {
                let job = self
                    .service
                    .with(|model, now| model.queue_job(now, self.scale_set));
                format!("queued the job {}\n", job.0)
            }
            Command::Down => {
                self.github.go_down();
                "the API answers nothing\n".into()
            }
            Command::Up => {
                self.github.recover();
                "the API answers\n".into()
            }
        };
        said.push_str(&self.hook.send_all(&self.github).await);
        Ok(said)
    }

    /// Does something to a pull request, if there is one.
    fn of(&mut self, number: u64, act: impl FnOnce(&mut Self) -> Result<String>) -> Result<String> {
        match self.github.has_pull_request(REPOSITORY, number) {
            true => act(self),
            false => Ok(format!("there is no pull request {number}\n")),
        }
    }

    fn open(&mut self) -> Result<String> {
        let notebook = format!("{BLUEPRINT}/hello.ipynb");
        let head = self.next_commit("topic")?;
        let mallory = &self.people["mallory"];
        let number = self.github.open_at(REPOSITORY, mallory, &[&notebook], &head);
        Ok(format!("opened {number} at {head}\n"))
    }

    fn push(&mut self, number: u64) -> Result<String> {
        let head = self.next_commit("topic")?;
        self.github
            .push_back(REPOSITORY, number, &self.people["mallory"], &head);
        Ok(format!("pushed {head}\n"))
    }

    fn next_commit(&mut self, branch: &str) -> Result<blueproof_github::payload::CommitSha> {
        self.n_commits += 1;
        self.place.commit(branch, self.n_commits)
    }

    fn comment(&self, number: u64, by: &str, text: &str) -> String {
        let Some(by) = self.people.get(by) else {
            return nobody(by);
        };
        let comment = self.github.comment(REPOSITORY, number, by, text);
        format!("commented {comment}\n")
    }

    /// Presses the button of the first check run that has it.
    async fn press(&self, number: u64, by: &str, button: CheckAction) -> String {
        let Some(by) = self.people.get(by) else {
            return nobody(by);
        };
        if !self.github.has_pull_request(REPOSITORY, number) {
            return format!("there is no pull request {number}\n");
        }
        let head = self.github.head(REPOSITORY, number);
        let runs = self
            .github
            .check_runs(REPOSITORY, &head)
            .await
            .unwrap_or_default();
        let shown = self.github.checks(REPOSITORY, &head);
        let with_button = runs
            .into_iter()
            .zip(shown)
            .find(|(_, check)| check.actions.contains(&button));
        let Some((run, _)) = with_button else {
            return format!(
                "no check run of {head} has the button `{}`\n",
                button.identifier()
            );
        };
        let check = CheckRun {
            id: run.id.0,
            name: run.name,
            head_sha: head,
            external_id: Some(run.external_id),
            app: Some(App { id: APP }),
        };
        self.github
            .press(REPOSITORY, &check, by, Some(button.identifier()));
        format!("pressed `{}` of {}\n", button.label(), check.name)
    }

    async fn show(&self, number: u64) -> String {
        if !self.github.has_pull_request(REPOSITORY, number) {
            return format!("there is no pull request {number}\n");
        }
        let head = self.github.head(REPOSITORY, number);
        let mut said = format!("head {head}\n");
        for check in self.github.checks(REPOSITORY, &head) {
            let buttons = check.actions.iter().map(|action| action.label());
            let buttons = buttons.collect::<Vec<_>>().join(", ");
            let _ = writeln!(said, "  check run {}: {} [{buttons}]", check.name, check.title);
        }
        for comment in self.github.comments(REPOSITORY, number).await.unwrap_or_default() {
            let by = comment.user.map_or_else(|| "somebody".into(), |user| user.login);
            let text = comment.body.unwrap_or_default();
            let reactions = self.github.reactions(REPOSITORY, comment.id);
            let _ = writeln!(
                said,
                "  {by}: {} {reactions:?}",
                text.lines().next().unwrap_or_default()
            );
        }
        said
    }
}

fn nobody(login: &str) -> String {
    format!("nobody is called `{login}`: ada is an approver, mallory opens pull requests\n")
}
