//! The GitHub App that a scheduler needs: its rights and events, and how it is registered from a manifest.
//!
//! GitHub's flow: a form with the manifest is sent to GitHub by somebody's browser; GitHub shows it, registers the App once they agree,
//! and sends the browser back with a code, for which its private key and the secret of its webhook are had, once.
//!
//! Source: <https://docs.github.com/en/apps/sharing-github-apps/registering-a-github-app-from-a-manifest>.

#[cfg(feature = "registration")]
mod listener;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

#[cfg(feature = "registration")]
pub use listener::{Listener, RegistrationCode};

/// The most characters of an App's name.
pub const NAME_AT_MOST: usize = 34;

/// The repository permissions, and no others: check runs, comments with reactions, and reading what is tested.
const PERMISSIONS: [(&str, &str); 5] = [
    ("checks", "write"),
    ("contents", "read"),
    ("issues", "write"),
    ("metadata", "read"),
    ("pull_requests", "write"),
];

/// What GitHub tells of.
const EVENTS: [&str; 4] = ["check_run", "issue_comment", "pull_request", "push"];

/// What a repository with a merge queue needs besides.
const MERGE_QUEUES: (&str, &str) = ("merge_queues", "read");
const MERGE_GROUP: &str = "merge_group";

/// A GitHub App that is to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppManifest {
    /// What it is called: of all Apps on GitHub no other one may be called so.
    pub name: String,
    /// The page about it.
    pub homepage: String,
    /// Where its webhooks are sent; `None` where they are sent nowhere.
    pub webhook: Option<String>,
    /// Whether there are merge queues, which need a right and an event more.
    pub has_merge_queue: bool,
}

/// Who is to own an App.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppOwner {
    /// Whoever is logged in.
    User,
    /// An organisation.
    Organization(String),
}

impl AppManifest {
    fn permissions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let more = self.has_merge_queue.then_some(MERGE_QUEUES);
        PERMISSIONS.into_iter().chain(more)
    }

    fn events(&self) -> impl Iterator<Item = &'static str> {
        let more = self.has_merge_queue.then_some(MERGE_GROUP);
        EVENTS.into_iter().chain(more)
    }

    /// Returns the manifest, as GitHub reads it. The browser is sent to `redirect` once the App is registered.
    pub fn to_json(&self, redirect: Option<&str>) -> Value {
        let permissions = self
            .permissions()
            .map(|(name, level)| (name.to_owned(), json!(level)));
        let mut manifest = json!({
            "name": self.name,
            "url": self.homepage,
            "public": false,
            "default_permissions": Value::Object(permissions.collect()),
            "default_events": self.events().collect::<Vec<_>>(),
            // GitHub wants an address, also where nothing is sent to it.
            "hook_attributes": {
                "url": self.webhook.as_ref().unwrap_or(&self.homepage),
                "active": self.webhook.is_some(),
            },
        });
        if let Some(redirect) = redirect {
            manifest["redirect_url"] = json!(redirect);
        }
        manifest
    }

    /// Returns the address of a page of GitHub's on which all of this is filled in already.
    pub fn filled_in_page(&self, web: &str, owner: &AppOwner) -> String {
        let public = "false".to_owned();
        let mut query = vec![
            ("name", self.name.clone()),
            ("url", self.homepage.clone()),
            ("public", public),
            ("webhook_active", self.webhook.is_some().to_string()),
        ];
        query.extend(self.webhook.iter().map(|url| ("webhook_url", url.clone())));
        query.extend(self.permissions().map(|(name, level)| (name, level.to_owned())));
        query.extend(self.events().map(|event| ("events[]", event.to_owned())));
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs = query
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        format!("{}?{}", owner.page(web), pairs.collect::<Vec<_>>().join("&"))
    }
}

impl AppOwner {
    /// Returns the address of GitHub's page for a new App.
    pub fn page(&self, web: &str) -> String {
        match self {
            Self::User => format!("{web}/settings/apps/new"),
            Self::Organization(login) => {
                let login = utf8_percent_encode(login, NON_ALPHANUMERIC)
                    .to_string()
                    .replace("%2D", "-");
                format!("{web}/organizations/{login}/settings/apps/new")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that says which rights are given.
    const PAGE: &str = include_str!("../../../docs/pull-requests.md");

    fn manifest(webhook: Option<&str>) -> AppManifest {
        AppManifest {
            name: "blueproof for kubeflow".into(),
            homepage: "https://github.com/kubeflow/trainer".into(),
            webhook: webhook.map(str::to_owned),
            has_merge_queue: false,
        }
    }

    #[test]
    fn the_rights_and_events_are_those_that_the_page_names_and_no_others() {
        let words = |name: &str| {
            let mut words = name.replace('_', " ");
            words[..1].make_ascii_uppercase();
            format!("*{words}*")
        };
        let line = |begin: &str, end: &str| {
            let after = PAGE.split_once(begin).expect("it is there").1;
            after.split_once(end).expect("it ends").0.to_owned()
        };
        let rights = line("Repository permissions:", "No organisation permission");
        let all = AppManifest {
            has_merge_queue: true,
            ..manifest(None)
        };
        for (name, _) in all.permissions() {
            assert!(rights.contains(&words(name)), "{name}: {rights}");
        }
        assert_eq!(
            rights.matches('*').count(),
            2 * all.permissions().count(),
            "{rights}"
        );
        for (begin, end, level) in [
            ("*Checks*", "*Contents*", "write"),
            ("*Contents*", "*Issues*", "read"),
            ("*Issues*", "*Merge queues*", "write"),
            ("*Merge queues*", "*Metadata*", "read"),
            ("*Metadata*", "read", ""),
        ] {
            let between = rights
                .split_once(begin)
                .expect("it is there")
                .1
                .split_once(end)
                .expect("it ends")
                .0;
            assert_eq!(between.contains("write"), level == "write", "{begin}");
        }
        let events = line("- Events:", "- Webhook:");
        for event in all.events() {
            assert!(events.contains(&words(event)), "{event}: {events}");
        }
        assert_eq!(events.matches('*').count(), 2 * all.events().count(), "{events}");
        let without = manifest(None);
        assert_eq!(
            (without.permissions().count(), without.events().count()),
            (5, 4),
            "queues are the exception"
        );
    }

    #[test]
    fn a_manifest_says_what_github_reads() {
        let written =
            manifest(Some("https://gpu.example.org/webhooks/github")).to_json(Some("http://127.0.0.1:1/x"));
        let expected = json!({
            "name": "blueproof for kubeflow",
            "url": "https://github.com/kubeflow/trainer",
            "public": false,
            "redirect_url": "http://127.0.0.1:1/x",
            "hook_attributes": { "url": "https://gpu.example.org/webhooks/github", "active": true },
            "default_permissions": {
                "checks": "write", "contents": "read", "issues": "write", "metadata": "read", "pull_requests": "write",
            },
            "default_events": ["check_run", "issue_comment", "pull_request", "push"],
        });
        assert_eq!(written, expected);
        assert_eq!(manifest(None).to_json(None)["hook_attributes"]["active"], false);
    }

    #[test]
    fn nothing_of_a_name_leaves_its_place_in_an_address() {
        let owner = AppOwner::Organization("kube-flow/../x?".into());
        let page = owner.page("https://github.com");
        assert_eq!(
            page,
            "https://github.com/organizations/kube-flow%2F%2E%2E%2Fx%3F/settings/apps/new"
        );
        let mut odd = manifest(Some("https://gpu.example.org/a&b"));
        odd.name = "a&checks=admin".into();
        let filled = odd.filled_in_page("https://github.com", &AppOwner::User);
        assert!(
            filled.starts_with("https://github.com/settings/apps/new?name=a%26checks%3Dadmin&url="),
            "{filled}"
        );
        for part in [
            "&webhook%5Factive=true&webhook%5Furl=https%3A%2F%2Fgpu%2Eexample%2Eorg%2Fa%26b",
            "&pull%5Frequests=write",
            "&events%5B%5D=push",
        ] {
            assert!(filled.contains(part), "{part}: {filled}");
        }
    }
}
