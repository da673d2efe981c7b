//! What an admin says about GitHub: which one, with which rights, about which repositories.

use std::{collections::BTreeSet, str::FromStr};

use blueproof_core::domain::QueueName;
use blueproof_diagnostic::{
    Diagnostic,
    yaml::{
        Decode, FilePath, Format, Located, Placeholders, Problems, Schema, ServerAddress, Source, Spot,
        YamlNode, choice, is_plain_address, record, text,
    },
};
use jiff::SignedDuration;
use serde_json::json;

static FORMAT: Format = Format {
    name: "a connection to GitHub",
    kinds: "`blueproof schema github-connection` prints every key with the kind of its value",
    missing: "`blueproof schema github-connection` prints what a connection needs",
    placeholders: Placeholders::None,
    most_nodes: 20_000,
};

choice! {
    /// The version of the format.
    pub enum ApiVersion {
        /// The only one so far.
        V1Alpha1 = "blueproof.dev/v1alpha1",
    }
}

choice! {
    /// What the file is.
    pub enum Kind {
        /// A connection to GitHub.
        GitHubConnection = "GitHubConnection",
    }
}

record! {
    /// A connection to GitHub.
    pub struct WrittenConnection {
        /// The version of the format: `blueproof.dev/v1alpha1`.
        api_version: ApiVersion,
        /// What the file is: `GitHubConnection`.
        kind: Kind,
        /// The connection.
        spec: Connection,
    }
}

record! {
    /// The connection.
    pub struct Connection {
        /// The address of the REST API. Default: https://api.github.com; of a GitHub Enterprise Server, `https://HOST/api/v3`.
        api: ServerAddress = ServerAddress("https://api.github.com".into()),
        /// The address that commits are fetched from, or the folder, `file:///PATH`. Repositories lie below it as `OWNER/NAME.git`.
        /// Default: https://github.com.
        web: WebAddress = WebAddress("https://github.com".into()),
        /// The GitHub App by which the API is asked. Only an App may write check runs, and so show runs on pull requests.
        app: Option<App>,
        /// In place of an App, a file with a token that is sent to the API, and nothing else in it. Relative paths are relative to this
        /// file.
        token_file: Option<FilePath>,
        /// What the addresses of pages about runs begin with; a check run then leads to `PAGES/runs/RUN`. Default: it leads nowhere.
        pages: Option<ServerAddress>,
        /// The repositories that are followed, as `OWNER/NAME`.
        repositories: Vec<Located<RepositoryName>>,
        /// The LocalQueue that runs of pull requests wait in. Default: local.
        queue: Located<String> = Located { value: "local".into(), spot: Default::default() },
        /// How often pull requests and comments are looked at, from `10s` to `24h`, whether or not webhooks tell of them. Default: 1m.
        poll_every: PollSpan = PollSpan(SignedDuration::from_mins(1)),
        /// Whether a pull request gets one comment, which is edited in place: that it waits for an approval, what did not pass, and why a
        /// command was not done. It takes an App. Default: true.
        comment: bool = true,
        /// Where GitHub sends its webhooks. Default: nowhere, and polling finds everything.
        webhook: Option<Webhook>,
    }
}

record! {
    /// A GitHub App, as it is installed in an organisation or a repository.
    pub struct App {
        /// The number of the App, which stands on its settings page.
        id: u32,
        /// The number of its installation, which stands at the end of the installation's address.
        installation_id: u32,
        /// The file with its private key, as GitHub gave it. Relative paths are relative to this file.
        private_key_file: FilePath,
    }
}

record! {
    /// Where GitHub sends its webhooks.
    pub struct Webhook {
        /// The loopback address and port to listen on, behind a proxy with TLS: `127.0.0.1:8790`. The path is `/webhooks/github`.
        listen: String,
        /// Files with the secrets that deliveries are signed with: one, or while it is changed for another, both.
        secret_files: Vec<FilePath>,
    }
}

/// What repositories are fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress(pub String);

/// `OWNER/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryName(pub String);

/// How often something is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollSpan(pub SignedDuration);

impl Connection {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// Every mistake in it, with its place.
    pub fn read(file: &str, text: String) -> Result<Self, Vec<Diagnostic>> {
        let source = Source {
            file: file.into(),
            text,
            format: &FORMAT,
        };
        source.read(|node, problems| {
            let spec = WrittenConnection::decode(node, problems)?.spec;
            spec.check(node.spot, problems);
            Some(spec)
        })
    }

    fn check(&self, spot: Spot, problems: &mut Problems<'_>) {
        if self.queue.value.parse::<QueueName>().is_err() {
            problems.bad_value(
                self.queue.spot,
                "this is no name of a LocalQueue",
                "write a name such as `pull-requests`",
            );
        }
        if self.app.is_some() == self.token_file.is_some() {
            let message = "a connection has either an `app` or a `tokenFile`";
            problems.bad_value(
                spot,
                message,
                "only an App may write check runs; a token is enough to read, and to run",
            );
        }
        let mut known = BTreeSet::new();
        for repository in &self.repositories {
            if !known.insert(repository.value.0.to_ascii_lowercase()) {
                problems.bad_value(
                    repository.spot,
                    "this repository is named twice",
                    "take one of them away",
                );
            }
        }
    }

    /// Returns the queue that runs of pull requests wait in.
    pub fn queue(&self) -> QueueName {
        self.queue.value.parse().expect("it was checked when it was read")
    }

    /// Returns the JSON Schema of the file.
    pub fn schema() -> Schema {
        WrittenConnection::schema()
    }
}

impl Decode for WebAddress {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        const HINT: &str = "write https://HOST, or file:///PATH for a folder of this machine";
        text(node, problems, HINT, |text| {
            let is_known = text.starts_with("https://") || text.starts_with("file:///");
            (is_known && is_plain_address(text)).then(|| Self(text.trim_end_matches('/').to_owned()))
        })
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^(https|file)://" })
    }
}

/// A text that names no repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a repository is named OWNER/NAME, such as kubeflow/trainer")]
pub struct RepositoryNameError;

impl FromStr for RepositoryName {
    type Err = RepositoryNameError;

    fn from_str(text: &str) -> Result<Self, RepositoryNameError> {
        let is_part = |part: &str| {
            let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !part.is_empty() && part != "." && part != ".." && part.bytes().all(is_usual)
        };
        let parts = text.split_once('/');
        let named = parts.filter(|(owner, name)| is_part(owner) && is_part(name));
        named.map(|_| Self(text.to_owned())).ok_or(RepositoryNameError)
    }
}

impl Decode for RepositoryName {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        text(
            node,
            problems,
            "write OWNER/NAME, such as kubeflow/trainer",
            |text| text.parse().ok(),
        )
    }

    fn schema() -> Schema {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$" })
    }
}

impl Decode for PollSpan {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        text(
            node,
            problems,
            "write a time from 10s to 24h, such as 1m",
            |text| {
                let allowed = SignedDuration::from_secs(10)..=SignedDuration::from_hours(24);
                let span = text.parse::<SignedDuration>().ok();
                span.filter(|span| allowed.contains(span)).map(Self)
            },
        )
    }

    fn schema() -> Schema {
        json!({ "type": "string", "examples": ["1m", "30s"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: GitHubConnection
spec:
  tokenFile: github-token
  repositories: [kubeflow/trainer]
";

    fn read(text: &str) -> Result<Connection, Vec<Diagnostic>> {
        Connection::read("github.yaml", text.to_owned())
    }

    #[test]
    fn the_schema_has_every_key_of_the_file() {
        let schema = Connection::schema();
        let spec = &schema["properties"]["spec"]["properties"];
        for key in ["app", "repositories", "pollEvery", "comment", "webhook"] {
            assert!(spec[key]["description"].is_string(), "{key}: {schema}");
        }
    }

    #[test]
    fn a_connection_has_an_app_or_a_token_and_not_both() {
        let app = "  app: {id: 1, installationId: 2, privateKeyFile: app.pem}\n";
        let with_app = LEAST.replace("  tokenFile: github-token\n", app);
        let app = read(&with_app).expect("it is one").app.expect("it is there");
        assert_eq!((app.id, app.installation_id), (1, 2));
        for text in [
            format!(
                "{LEAST}{}",
                "  app: {id: 1, installationId: 2, privateKeyFile: a}\n"
            ),
            LEAST.replace("  tokenFile: github-token\n", ""),
        ] {
            let mistakes = read(&text).expect_err("it is none");
            assert_eq!(
                mistakes[0].message,
                "a connection has either an `app` or a `tokenFile`"
            );
        }
    }

    #[test]
    fn a_token_and_a_repository_are_enough() {
        let connection = read(LEAST).expect("it is one");
        assert_eq!(connection.api.0, "https://api.github.com");
        assert_eq!(connection.queue().as_str(), "local");
        assert_eq!(connection.poll_every.0, SignedDuration::from_mins(1));
        assert_eq!(connection.webhook, None);
    }

    #[test]
    fn a_token_is_sent_to_nobody_without_tls_but_on_this_machine() {
        let of = |api: &str| read(&format!("{LEAST}  api: \"{api}\"\n"));
        for good in [
            "https://ghe.example.org/api/v3/",
            "http://127.0.0.1:8080",
            "http://[::1]:80",
        ] {
            assert!(of(good).is_ok(), "{good}");
        }
        for bad in [
            "http://api.github.com",
            "ftp://x",
            "https://a@b",
            "",
            "https://a b",
        ] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_mistake_is_told() {
        let text = LEAST.replace("[kubeflow/trainer]", "[a/b, A/B, nobody, a/../b]")
            + "  pollEvery: 1s\n  queue: \"no queue\"\n  webhok: {}\n";
        let mistakes = read(&text).expect_err("it is none");
        let lines: Vec<_> = mistakes
            .iter()
            .map(|mistake| mistake.place.as_ref().and_then(|place| place.line))
            .collect();
        assert_eq!(lines, [Some(5), Some(5), Some(6), Some(8)], "{mistakes:?}");
    }
}
