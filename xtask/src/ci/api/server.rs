//! The server that is asked, in a home of its own, with a run in its store. It ends with the step, however that goes.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    process::{Ended, Invocation},
    tool,
    workspace::Workspace,
};

/// How long it may take to end: longer than it waits for those who are asking.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

const NOTEBOOK: &str = r#"{"cells": [{"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": null,
"source": "print('one')"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;

const BLUEPRINT: &str = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nmetadata: {name: story}\nspec:\n  notebook: nb.ipynb\n";

/// A home in which nothing is of whoever runs this but where Python environments are kept.
#[derive(Debug)]
pub(super) struct Home {
    folder: PathBuf,
    environments: PathBuf,
    blueproof: PathBuf,
    scheduler: PathBuf,
}

/// A server, which ends with this.
#[derive(Debug)]
pub(super) struct Server {
    child: Option<Child>,
    url: String,
}

impl Home {
    /// Builds the programs, and makes a home whose store has a run that passed.
    pub(super) fn prepare(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.target.join("ci/api");
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("could not remove `{}`", folder.display()))?;
        }
        let home = Self {
            environments: workspace.target.join("test-environments"),
            blueproof: tool::built(workspace, "blueproof")?,
            scheduler: tool::built(workspace, "blueproof-scheduler")?,
            folder,
        };
        home.write("nb/nb.ipynb", NOTEBOOK)?;
        home.write("nb/blueprint.yaml", BLUEPRINT)?;
        let run = home.invocation(&home.blueproof, &["run", "nb"]);
        ensure!(run.show(&home.folder)? == Ended::Well, "`{run}` failed");
        Ok(home)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns where the server's log is.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("scheduler.log")
    }

    /// Writes a file, and returns its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        let folder = path.parent().expect("it is below the home");
        fs::create_dir_all(folder).with_context(|| format!("could not make `{}`", folder.display()))?;
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
        Ok(path.display().to_string())
    }

    /// Makes a token of a role, the first time that it is asked for.
    pub(super) fn token(&self, role: &str) -> Result<String> {
        let kept = self.folder.join(format!("{role}.token"));
        if let Ok(token) = fs::read_to_string(&kept) {
            return Ok(token);
        }
        let create = self.invocation(&self.scheduler, &["token", "create", role, "--role", role]);
        let token = create.ask(&self.folder);
        let token = token.with_context(|| format!("`{create}` made no token"))?;
        self.write(&format!("{role}.token"), token.trim())?;
        Ok(token.trim().to_owned())
    }

    /// Returns the key of the request that made the run.
    pub(super) fn request(&self) -> Result<String> {
        let list = self.invocation(&self.blueproof, &["get", "commands", "-o", "json"]);
        let answer = list.ask(&self.folder);
        let answer = answer.with_context(|| format!("`{list}` failed"))?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        // The newest first: since then much else was asked for.
        let commands = answer["items"].as_array().and_then(|items| items.last());
        let key = commands.and_then(|command| command["key"].as_str());
        Ok(key.context("no command has a key")?.to_owned())
    }

    fn invocation(&self, program: &Path, arguments: &[&str]) -> Invocation {
        let mut invocation = Invocation::of(program, arguments.iter().copied());
        let at = |name: &str| self.folder.join(name).display().to_string();
        for (variable, value) in [
            ("HOME", at("")),
            ("XDG_CONFIG_HOME", at("config")),
            ("XDG_DATA_HOME", at("share")),
            ("XDG_CACHE_HOME", at("cache")),
            ("BLUEPROOF_STORE", at("blueproof.db")),
            ("BLUEPROOF_ENVIRONMENTS", self.environments.display().to_string()),
        ] {
            invocation = invocation.env(variable, &value);
        }
        invocation
    }
}

impl Server {
    /// Starts one on a free port of this machine, and returns it as soon as it leads.
    pub(super) fn start(home: &Home) -> Result<Self> {
        let invocation = home.invocation(&home.scheduler, &["serve", "--listen", "127.0.0.1:0"]);
        let mut command = invocation.command(&home.folder);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("could not start `{invocation}`"))?;
        let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut server = Self {
            child: Some(child),
            url: String::new(),
        };
        let mut log = File::create(home.log()).context("could not write the server's log")?;
        let mut line = String::new();
        while !line.trim_end().ends_with(" leads") {
            line.clear();
            let read = said.read_line(&mut line).context("could not read what it says")?;
            ensure!(
                read > 0,
                "`{invocation}` ended before it led: {}",
                home.log().display()
            );
            std::io::Write::write_all(&mut log, line.as_bytes())
                .context("could not write the server's log")?;
            if let Some((_, address)) = line.trim_end().split_once("address=") {
                server.url = address.to_owned();
            }
        }
        ensure!(
            server.url.starts_with("http://"),
            "`{invocation}` does not say where it listens"
        );
        thread::spawn(move || std::io::copy(&mut said, &mut log));
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Tells it to end, and sees that it does so in order.
    pub(super) fn end(mut self, home: &Home) -> Result<()> {
        let child = self.child.as_mut().expect("it was started");
        let kill = Invocation::of("kill", ["-TERM", &child.id().to_string()]);
        ensure!(kill.show(&home.folder)? == Ended::Well, "`{kill}` failed");
        let began = Instant::now();
        while began.elapsed() < ENDS_WITHIN {
            if let Some(status) = child.try_wait().context("could not wait for the server")? {
                ensure!(
                    status.success(),
                    "the server ended with {status}: {}",
                    home.log().display()
                );
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!(
            "the server did not end within {ENDS_WITHIN:?}: {}",
            home.log().display()
        );
    }

    #[cfg(test)]
    pub(super) fn at(url: &str) -> Self {
        Self {
            child: None,
            url: url.into(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // What cannot be ended has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
