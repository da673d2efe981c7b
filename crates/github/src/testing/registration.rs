//! Apps that are registered from a manifest, on GitHub's pages and by its API.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use wiremock::{Request, ResponseTemplate};

use super::FakeGitHub;

/// The key that each App is given. It was made for tests, and opens nothing.
const KEY: &str = include_str!("../../../scale-set/src/testing/app-key.pem");

/// The secret that each webhook is given.
const SECRET: &str = "secret-of-the-fake-webhook";

/// An App, with the code that stands for it until that was used.
#[derive(Debug)]
pub(super) struct Registered {
    code: Option<String>,
    owner: String,
    manifest: Value,
}

impl FakeGitHub {
    /// Installs the App where its owner is.
    pub fn install_app(&self) {
        self.lock().is_installed = true;
    }

    /// Returns the manifests of the Apps that were registered.
    pub fn manifests(&self) -> Vec<Value> {
        let state = self.lock();
        state.registered.iter().map(|app| app.manifest.clone()).collect()
    }

    /// Registers an App as its owner agrees to on GitHub's page, and returns the code that stands for it.
    pub fn register_app(&self, owner: &str, manifest: Value) -> String {
        let mut state = self.lock();
        let code = format!("code-{}", state.new_id());
        state.registered.push(Registered {
            code: Some(code.clone()),
            owner: owner.into(),
            manifest,
        });
        code
    }

    /// Returns the App of a code, in GitHub's words. Nobody else has it by the same code.
    pub(super) fn convert(&self, code: &str) -> Option<Value> {
        let app = self.app();
        let mut state = self.lock();
        let now = state.now;
        let registered = state
            .registered
            .iter_mut()
            .find(|one| one.code.as_deref() == Some(code))?;
        registered.code = None;
        let manifest = &registered.manifest;
        let has_webhook = manifest["hook_attributes"]["active"] == true;
        Some(json!({
            "id": app,
            "slug": "blueproof-fake",
            "node_id": "A_fake",
            "client_id": "Iv1.fake",
            "owner": { "id": 1, "login": registered.owner, "type": "Organization" },
            "name": manifest["name"],
            "description": null,
            "external_url": manifest["url"],
            "html_url": "https://github.com/apps/blueproof-fake",
            "created_at": now,
            "updated_at": now,
            "permissions": manifest["default_permissions"],
            "events": manifest["default_events"],
            "client_secret": "secret-of-the-fake-client",
            "webhook_secret": has_webhook.then_some(SECRET),
            "pem": KEY,
        }))
    }

    /// Returns where the App is installed, in GitHub's words.
    pub(super) fn installations(&self) -> Vec<Value> {
        let state = self.lock();
        let owner = state
            .registered
            .last()
            .map_or("kubeflow", |app| app.owner.as_str());
        let installed = json!({
            "id": Self::INSTALLATION,
            "app_id": self.app(),
            "account": { "id": 1, "login": owner, "type": "Organization" },
        });
        state.is_installed.then_some(installed).into_iter().collect()
    }
}

/// Answers a browser that sends a manifest: whoever it belongs to agrees at once, and is sent back.
pub(super) fn page(github: &FakeGitHub, request: &Request) -> Option<ResponseTemplate> {
    let path = request.url.path();
    let owner = match path.strip_prefix("/organizations/") {
        Some(rest) => rest.strip_suffix("/settings/apps/new")?,
        None if path == "/settings/apps/new" => "ada",
        None => return None,
    };
    let refused = |why: &str| Some(ResponseTemplate::new(422).set_body_string(why.to_owned()));
    let Some(manifest) = manifest(&request.body) else {
        return refused("the form has no manifest");
    };
    let redirect = manifest["redirect_url"].as_str().unwrap_or_default().to_owned();
    let is_whole = ["name", "url"].iter().all(|name| manifest[*name].is_string())
        && manifest["hook_attributes"]["url"].is_string()
        && redirect.starts_with("http");
    if !is_whole {
        return refused("the manifest lacks something");
    }
    let state = request.url.query_pairs().find(|(name, _)| name == "state");
    let state = state.map_or_else(String::new, |(_, state)| format!("&state={state}"));
    let code = github.register_app(owner, manifest);
    let back = format!("{redirect}?code={code}{state}");
    Some(ResponseTemplate::new(302).insert_header("location", back))
}

/// Reads the manifest of a form.
fn manifest(form: &[u8]) -> Option<Value> {
    let form = std::str::from_utf8(form).ok()?;
    let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    let (_, manifest) = pairs.find(|(name, _)| *name == "manifest")?;
    let manifest = manifest.replace('+', " ");
    serde_json::from_str(&percent_decode_str(&manifest).decode_utf8().ok()?).ok()
}
