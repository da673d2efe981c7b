//! The folder: what a scheduler reads, and the repository that commits are fetched from.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use blueproof_github::payload::CommitSha;

/// The folder of the blueprint, in the repository.
pub(crate) const BLUEPRINT: &str = "examples/hello";

const BLUEPRINT_YAML: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: Blueprint
metadata: {name: hello}
spec:
  notebook: hello.ipynb
  driver: {cpu: 100m, memory: 256Mi}
";

/// The folder.
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// Makes the folder. What was there of an earlier one is made anew, since that GitHub is gone.
    pub(crate) fn make(root: &Path) -> Result<Self> {
        let made = fs::create_dir_all(root).and_then(|()| root.canonicalize());
        let root = made.with_context(|| format!("could not make `{}`", root.display()))?;
        let place = Self { root };
        if place.repository().exists() {
            fs::remove_dir_all(place.repository()).context("could not remove the earlier repository")?;
        }
        place.init()?;
        Ok(place)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn repository(&self) -> PathBuf {
        self.path("web/kubeflow/trainer.git")
    }

    /// Writes a file for this user alone.
    pub(crate) fn write_secret(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        let _ = fs::remove_file(&path);
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("could not write `{}`", path.display()))
    }

    /// Writes the connection of a scheduler to the API at an address.
    pub(crate) fn write_connection(
        &self,
        api: &str,
        app: u64,
        installation: u64,
        listen: &str,
    ) -> Result<PathBuf> {
        let path = self.path("github.yaml");
        let web = self.path("web");
        let text = format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: GitHubConnection\nspec:\n  api: {api}\n  web: file://{}\n  \
             app: {{id: {app}, installationId: {installation}, privateKeyFile: app.pem}}\n  repositories: [kubeflow/trainer]\n  \
             pollEvery: 10s\n  webhook: {{listen: \"{listen}\", secretFiles: [webhook-secret]}}\n",
            web.display()
        );
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
        Ok(path)
    }

    fn init(&self) -> Result<()> {
        let repository = self.repository();
        fs::create_dir_all(&repository)
            .with_context(|| format!("could not make `{}`", repository.display()))?;
        self.git(&["init", "--quiet", "--initial-branch=main"])?;
        // A head that was pushed over is still fetched by its commit.
        self.git(&["config", "uploadpack.allowAnySHA1InWant", "true"])?;
        self.commit("main", 0)?;
        Ok(())
    }

    /// Commits another notebook to a branch, and returns the commit.
    pub(crate) fn commit(&self, branch: &str, nth: u64) -> Result<CommitSha> {
        let folder = self.repository().join(BLUEPRINT);
        let notebook = format!(
            r#"{{"cells":[{{"cell_type":"code","id":"a","metadata":{{}},"execution_count":null,"outputs":[],"source":["print({nth})"]}}],
"metadata":{{"kernelspec":{{"name":"python3","display_name":"Python 3","language":"python"}}}},"nbformat":4,"nbformat_minor":5}}"#
        );
        self.git(&["checkout", "--quiet", "-B", branch])?;
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("blueprint.yaml"), BLUEPRINT_YAML))
            .and_then(|()| fs::write(folder.join("hello.ipynb"), notebook));
        written.with_context(|| format!("could not write to `{}`", folder.display()))?;
        self.git(&["add", "--all"])?;
        self.git(&[
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            &format!("print {nth}"),
        ])?;
        let head = self.git(&["rev-parse", "HEAD"])?;
        head.parse().context("git named no commit")
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("git")
            .current_dir(self.repository())
            .args([
                "-c",
                "user.name=mallory",
                "-c",
                "user.email=mallory@example.org",
                "-c",
                "commit.gpgSign=false",
            ])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output();
        let output = output.context("git is not here")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`git {}` failed: {said}",
            arguments.join(" ")
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}
