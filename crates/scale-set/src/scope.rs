//! Where runners are registered, and which API speaks for it: what the URL of an organization, a repository or an enterprise says.

use std::fmt;

use reqwest::Url;

/// The hosts of GitHub itself, next to the subdomains of `ghe.com`.
const HOSTED: [&str; 3] = ["github.com", "www.github.com", "github.localhost"];

/// What runners are registered for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// An organization.
    Organization(String),
    /// A repository.
    Repository {
        /// The user or organization that has it.
        owner: String,
        /// Its name.
        name: String,
    },
    /// An enterprise.
    Enterprise(String),
}

/// Who runs the GitHub behind a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosting {
    /// GitHub does: github.com, or a subdomain of ghe.com.
    GitHub,
    /// Somebody else does: GitHub Enterprise Server.
    EnterpriseServer,
}

/// The URL that a scale set is configured with, such as `https://github.com/kubeflow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigUrl {
    url: Url,
    scope: Scope,
    hosting: Hosting,
}

/// A text that names no place for runners.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}` is no URL of an organization, a repository or an enterprise: they look like https://github.com/kubeflow, \
     https://github.com/kubeflow/trainer and https://github.com/enterprises/example"
)]
pub struct ConfigUrlError {
    text: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ConfigUrl {
    /// Reads a URL; who hosts it is told by its host.
    pub fn parse(text: &str) -> Result<Self, ConfigUrlError> {
        let url = parse_url(text)?;
        let hosting = Hosting::of(url.host_str().unwrap_or_default());
        Self::of(text, url, hosting)
    }

    /// Reads a URL whose host may look like GitHub's own and is not, or the other way round.
    pub fn parse_hosted(text: &str, hosting: Hosting) -> Result<Self, ConfigUrlError> {
        Self::of(text, parse_url(text)?, hosting)
    }

    fn of(text: &str, url: Url, hosting: Hosting) -> Result<Self, ConfigUrlError> {
        let parts: Vec<&str> = url.path().trim_matches('/').split('/').collect();
        let scope = match parts[..] {
            [organization] if !organization.is_empty() => Scope::Organization(organization.into()),
            [first, enterprise] if first.eq_ignore_ascii_case("enterprises") => {
                Scope::Enterprise(enterprise.into())
            }
            [owner, name] => Scope::Repository {
                owner: owner.into(),
                name: name.into(),
            },
            _ => return Err(wrong(text, None)),
        };
        Ok(Self { url, scope, hosting })
    }

    /// Returns what runners are registered for.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns who runs the GitHub that it names.
    pub fn hosting(&self) -> Hosting {
        self.hosting
    }

    /// Returns the URL of a path of the REST API; `path` begins with a slash.
    pub fn api(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        let (host, prefix) = match self.hosting {
            Hosting::GitHub => (Some(self.api_host()), ""),
            Hosting::EnterpriseServer => (None, "/api/v3"),
        };
        if let Some(host) = host {
            url.set_host(Some(&host))
                .expect("a host with a part in front is a host");
        }
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&format!("{prefix}{path}"));
        url
    }

    fn api_host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        format!("api.{}", host.strip_prefix("www.").unwrap_or(host))
    }

    /// Returns the path by which a registration token is asked for.
    pub fn registration_token_path(&self) -> String {
        let whose = match &self.scope {
            Scope::Organization(name) => format!("orgs/{name}"),
            Scope::Repository { owner, name } => format!("repos/{owner}/{name}"),
            Scope::Enterprise(name) => format!("enterprises/{name}"),
        };
        format!("/{whose}/actions/runners/registration-token")
    }
}

impl Hosting {
    fn of(host: &str) -> Self {
        let is_github = HOSTED.contains(&host) || host.ends_with(".ghe.com");
        if is_github {
            Hosting::GitHub
        } else {
            Hosting::EnterpriseServer
        }
    }
}

impl fmt::Display for ConfigUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

fn parse_url(text: &str) -> Result<Url, ConfigUrlError> {
    let url = Url::parse(text.trim_matches('/')).map_err(|e| wrong(text, Some(e.into())))?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    is_http.then_some(url).ok_or_else(|| wrong(text, None))
}

fn wrong(text: &str, source: Option<Box<dyn std::error::Error + Send + Sync>>) -> ConfigUrlError {
    ConfigUrlError {
        text: text.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_url_names_a_scope_an_api_and_a_path_for_the_token() {
        for (text, api, path) in [
            ("https://github.com/org", "https://api.github.com/x", "/orgs/org"),
            ("https://github.com/org/", "https://api.github.com/x", "/orgs/org"),
            (
                "https://www.github.com/o/r",
                "https://api.github.com/x",
                "/repos/o/r",
            ),
            ("https://GitHub.com/o/r", "https://api.github.com/x", "/repos/o/r"),
            (
                "http://github.localhost/o",
                "http://api.github.localhost/x",
                "/orgs/o",
            ),
            ("https://acme.ghe.com/o", "https://api.acme.ghe.com/x", "/orgs/o"),
            (
                "https://github.com/enterprises/e",
                "https://api.github.com/x",
                "/enterprises/e",
            ),
            (
                "https://github.com/Enterprises/e",
                "https://api.github.com/x",
                "/enterprises/e",
            ),
            (
                "https://git.example.org/o/r",
                "https://git.example.org/api/v3/x",
                "/repos/o/r",
            ),
            (
                "http://127.0.0.1:8080/o",
                "http://127.0.0.1:8080/api/v3/x",
                "/orgs/o",
            ),
        ] {
            let url = ConfigUrl::parse(text).expect(text);
            assert_eq!(url.api("/x").as_str(), api, "{text}");
            let token = format!("{path}/actions/runners/registration-token");
            assert_eq!(url.registration_token_path(), token, "{text}");
        }
    }

    #[test]
    fn a_url_that_names_no_scope_is_refused_with_examples() {
        for text in [
            "https://github.com",
            "https://github.com/",
            "https://github.com/a/b/c",
            "org/repo",
            "ftp://a/b",
        ] {
            let error = ConfigUrl::parse(text).expect_err(text);
            assert!(
                error.to_string().contains("https://github.com/kubeflow"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_host_can_be_said_to_be_a_server_of_ones_own() {
        let url = ConfigUrl::parse_hosted("https://github.com/o", Hosting::EnterpriseServer).expect("a URL");
        assert_eq!(url.api("/x").as_str(), "https://github.com/api/v3/x");
        assert_eq!(url.to_string(), "https://github.com/o");
    }
}
