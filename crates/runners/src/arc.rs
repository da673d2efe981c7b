//! From the values of GitHub's chart `gha-runner-scale-set` to a `RunnerScaleSet`.
//!
//! The scale set keeps its name, its group and its labels, so that no workflow changes. A value that has no place here is named with the
//! reason; none is dropped in silence. No secret is copied.

mod template;

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Entry, Format, Placeholders, Source, Value, YamlNode},
};

use crate::settings::{LabelName, ScaleSetName};

static FORMAT: Format = Format {
    name: "values of the chart gha-runner-scale-set",
    kinds: "the chart's `values.yaml` shows the kind of each value",
    missing: "the chart's `values.yaml` shows what is needed",
    placeholders: Placeholders::None,
    most_nodes: 20_000,
};

/// How many runners there may be where the chart names no bound.
const UNBOUNDED: i64 = 100;

/// What became of a chart's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedChart {
    /// The file of the kind `RunnerScaleSet`.
    pub text: String,
    /// The values that were not carried over, each with the reason.
    pub notes: Vec<ChartNote>,
}

/// A value that was not carried over as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartNote {
    /// Where it stands, such as `template.spec.volumes`.
    pub path: String,
    /// Why, and what to do instead.
    pub why: String,
}

/// What is taken from the values so far. Texts are as YAML has them.
#[derive(Debug, Default)]
struct Found {
    url: Option<String>,
    name: Option<String>,
    credentials: Option<String>,
    group: Option<String>,
    labels: Vec<String>,
    min_runners: Option<i64>,
    max_runners: Option<i64>,
    program: Vec<String>,
    cpu: Option<String>,
    memory: Option<String>,
    gpu: Option<String>,
    notes: Vec<ChartNote>,
}

/// Reads a chart's values. `release` is the name of the Helm release, which is the scale set's where the values name none.
///
/// # Errors
///
/// The file is no YAML, or says neither where runners are registered nor what the scale set is called.
pub fn import(file: &str, text: String, release: Option<&str>) -> Result<ImportedChart, Diagnostic> {
    let source = Source {
        file: file.into(),
        text,
        format: &FORMAT,
    };
    let node = YamlNode::from_yaml(&source)?;
    let mut found = Found::default();
    for entry in node.entries().unwrap_or_default() {
        found.take(entry);
    }
    let name = found.name.clone().or(release.map(str::to_owned));
    let name = name.and_then(|name| ScaleSetName::of(&name)).ok_or_else(|| {
        refused(file, "has no name for the scale set that could be used")
            .hint("name the Helm release with --name: it is the scale set's name where `runnerScaleSetName` is not set")
    })?;
    let Some(url) = found.url.clone() else {
        return Err(
            refused(file, "does not say where runners are registered").hint("set `githubConfigUrl` in it")
        );
    };
    Ok(found.written(&name.0, &url))
}

fn refused(file: &str, what: &str) -> Diagnostic {
    Diagnostic::error(Code::BadValue, format!("`{file}` {what}"))
}

impl Found {
    fn note(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.notes.push(ChartNote {
            path: path.into(),
            why: why.into(),
        });
    }

    fn take(&mut self, entry: &Entry) {
        let node = &entry.node;
        match entry.key.as_str() {
            "githubConfigUrl" => self.url = text(node).filter(|url| !url.is_empty()),
            "githubConfigSecret" => self.take_secret(node),
            "runnerScaleSetName" => self.name = text(node).filter(|name| !name.is_empty()),
            "runnerGroup" => self.group = text(node).filter(|group| !group.is_empty()),
            "scaleSetLabels" => self.take_labels(node),
            "minRunners" => self.min_runners = self.count("minRunners", node),
            "maxRunners" => self.max_runners = self.count("maxRunners", node),
            "template" => template::take(self, node),
            _ if is_empty(node) => {}
            key => self.note(key, why_not(key)),
        }
    }

    fn take_labels(&mut self, node: &YamlNode) {
        let Value::List(labels) = &node.value else {
            return self.note("scaleSetLabels", "it is no list");
        };
        for label in labels {
            match text(label).filter(|label| LabelName::of(label).is_some()) {
                Some(label) => self.labels.push(label),
                None => self.note(
                    "scaleSetLabels",
                    "one of them is no label: write it into `spec.labels`",
                ),
            }
        }
    }

    fn count(&mut self, key: &str, node: &YamlNode) -> Option<i64> {
        let count = match node.value {
            Value::Int(count) => u32::try_from(count).ok().map(i64::from),
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => None,
        };
        if count.is_none() && !is_empty(node) {
            self.note(
                key,
                format!("it is no number of runners: write `spec.{key}` yourself"),
            );
        }
        count
    }

    fn take_secret(&mut self, node: &YamlNode) {
        let Some(entries) = node.entries() else {
            self.credentials = Some("  tokenFile: github-token\n".into());
            return self.note(
                "githubConfigSecret",
                "the Secret stays in its cluster: write its token into `github-token` beside this file, or its App into `spec.app`",
            );
        };
        let get = |key: &str| {
            let entry = entries.iter().find(|entry| entry.key == key);
            entry
                .and_then(|entry| plain(&entry.node))
                .filter(|text| !text.is_empty())
        };
        let app = get("github_app_id").zip(get("github_app_installation_id"));
        self.credentials = Some(match app {
            Some((id, installation)) => format!(
                "  app:\n    id: {}\n    installationId: {installation}\n    privateKeyFile: app.pem\n",
                quoted(&id)
            ),
            None => "  tokenFile: github-token\n".into(),
        });
        let known = ["github_app_id", "github_app_installation_id"];
        for entry in entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()))
        {
            let path = format!("githubConfigSecret.{}", entry.key);
            let why = match entry.key.as_str() {
                "github_token" if app_is_there(entries) && is_empty(&entry.node) => continue,
                "github_token" => {
                    "a secret is not copied: write the token into `github-token` beside this file, readable by the scheduler's user alone"
                }
                "github_app_private_key" => {
                    "a secret is not copied: write the key into `app.pem` beside this file, readable by the scheduler's user alone"
                }
                _ => "the chart has no such key",
            };
            self.note(path, why);
        }
    }

    fn written(mut self, name: &str, url: &str) -> ImportedChart {
        let credentials = self.credentials.take().unwrap_or_else(|| {
            self.note(
                "githubConfigSecret",
                "it is missing: write a token into `github-token` beside this file",
            );
            "  tokenFile: github-token\n".into()
        });
        let max_runners = self.max_runners.take().unwrap_or_else(|| {
            self.note(
                "maxRunners",
                format!("the chart has no bound without it, and here one is needed: {UNBOUNDED} is written, and what can be placed bounds it as well"),
            );
            UNBOUNDED
        });
        if self.program.is_empty() {
            self.note(
                "template.spec.containers",
                "no container `runner` has a command: `/home/runner/run.sh` is written",
            );
            self.program.push("/home/runner/run.sh".into());
        }
        let mut text = String::from("apiVersion: blueproof.dev/v1alpha1\nkind: RunnerScaleSet\nspec:\n");
        text += &format!("  name: {}\n  url: {}\n", quoted(name), quoted(url));
        text += &credentials;
        if let Some(group) = &self.group {
            text += &format!("  runnerGroup: {}\n", quoted(group));
        }
        if !self.labels.is_empty() {
            text += &format!("  labels: {}\n", list(&self.labels));
        }
        if let Some(min_runners) = self.min_runners {
            text += &format!("  minRunners: {min_runners}\n");
        }
        text += &format!("  maxRunners: {max_runners}\n");
        text += &self.resources();
        let (program, arguments) = self.program.split_first().expect("it was just filled");
        text += &format!("  process:\n    program: {}\n", quoted(program));
        if !arguments.is_empty() {
            text += &format!("    arguments: {}\n", list(arguments));
        }
        text += "    # A job does on this machine whatever the scheduler's user may do.\n    isolation: disposable\n";
        for ChartNote { path, why } in &self.notes {
            let line = format!("# not carried over: {path}: {why}").replace(char::is_control, " ");
            text += &format!("{line}\n");
        }
        ImportedChart {
            text,
            notes: self.notes,
        }
    }

    fn resources(&self) -> String {
        let mut parts = Vec::new();
        for (key, amount) in [("cpu", &self.cpu), ("memory", &self.memory), ("gpu", &self.gpu)] {
            if let Some(amount) = amount {
                parts.push(format!("{key}: {amount}"));
            }
        }
        format!("  resources: {{{}}}\n", parts.join(", "))
    }
}

/// Returns why a value of the chart has no place here, and what to do instead.
fn why_not(key: &str) -> &'static str {
    match key {
        "containerMode" => {
            "a runner is a process of this machine, in no container: a job that needs Docker finds the machine's"
        }
        "proxy" => "the scheduler goes to GitHub directly; a runner's program has a proxy in its own `.env`",
        "githubServerTLS" => {
            "certificates of this machine are trusted: add yours with `update-ca-certificates`"
        }
        "keyVault" => "secrets are files: have your vault write them beside this file",
        "listenerTemplate" => "there is no pod that listens: one process does for all scale sets",
        "listenerMetrics" => {
            "every metric of the listener has the chart's usual labels and buckets, and buckets up to six hours beside"
        }
        "listenerConfig" => "it is an object of GitHub's controller, which is not needed",
        "controllerServiceAccount" => "there is no controller that would need rights in a cluster",
        "namespaceOverride" => "there is no namespace: runners are processes of this machine",
        "labels" | "annotations" | "resourceMeta" => "there are no objects in a cluster to put them on",
        _ => "the chart has no such key, or one that came after version 0.14",
    }
}

fn app_is_there(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.key == "github_app_id")
}

fn text(node: &YamlNode) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => {
            None
        }
    }
}

/// Returns a text or a number as text.
fn plain(node: &YamlNode) -> Option<String> {
    match &node.value {
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn is_empty(node: &YamlNode) -> bool {
    match &node.value {
        Value::Null => true,
        Value::Text(text) => text.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}

/// Returns a text as YAML takes it, whatever is in it: JSON is YAML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text")
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests;
