//! What is configured, and by whom.
//!
//! A value comes from the first of these that gives one: a flag, a `BLUEPROOF_*` variable, the file that is named with
//! `--config`, the project's `.blueproof/config.yaml`, the user's file, the machine's file, and what is built in.
//!
//! Which scheduler or store is meant may have a name, its [`Context`].

mod context;
mod file;
mod flags;
mod layers;
mod parse;
mod process_env;

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use blueproof_core::{
    attempt::{RunsFolder, StoreIdentity},
    domain::{Bytes, Cpus},
    policy::LocalApproval,
};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_host::ServerAddress;
use blueproof_machine::IsolationPolicy;
use serde::Serialize;

use crate::exit::Problem;
use layers::{Layers, Owner};

pub(crate) use context::Context;
pub(crate) use file::ConfigFile;
pub(crate) use flags::ConfigFlags;
pub(crate) use layers::{Layer, Presence};
pub(crate) use process_env::ProcessEnv;

/// Everything that can be configured. Paths are absolute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// What the scheduler or store is called that is worked with, where it was chosen by its name.
    pub(crate) context: Value<Option<String>>,
    /// Every context, in the order of their names.
    pub(crate) contexts: Vec<Context>,
    /// The SQLite file with all runs.
    pub(crate) store: Value<PathBuf>,
    /// The scheduler to ask, in place of the store.
    pub(crate) server: Value<Option<ServerAddress>>,
    /// The file with the token that is sent to it.
    pub(crate) token_file: Value<Option<PathBuf>>,
    /// The folder in which Python environments are kept for reuse.
    pub(crate) environments: Value<PathBuf>,
    /// How many cores the local queue may promise; `None` is what the machine has.
    pub(crate) local_cpu: Value<Option<Cpus>>,
    /// How much memory the local queue may promise; `None` is what the machine has.
    pub(crate) local_memory: Value<Option<Bytes>>,
    /// Whether users of this machine approve their own runs by asking for them.
    pub(crate) local_self_approve: Value<LocalApproval>,
    /// Which users of this machine may approve the runs of others.
    pub(crate) local_approvers: Value<BTreeSet<String>>,
    /// Which notebooks run in a sandbox.
    pub(crate) local_isolation: Value<IsolationPolicy>,
    /// The Python to prefer, as a path or as a name to be found through `PATH`.
    pub(crate) python: Value<Option<PathBuf>>,
    /// The files that were looked at, the one that counts most first.
    pub(crate) layers: Vec<Layer>,
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Value<T> {
    /// Returns the value, unless it is the built-in one.
    pub(crate) fn configured(&self) -> Option<&T> {
        (self.origin != Origin::BuiltIn).then_some(&self.value)
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// A line of a file.
    File {
        path: PathBuf,
        line: u32,
    },
    BuiltIn,
}

/// Something that can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    CurrentContext,
    Store,
    Server,
    TokenFile,
    Environments,
    LocalCpu,
    LocalMemory,
    LocalSelfApprove,
    LocalApprovers,
    LocalIsolation,
    Python,
}

impl Config {
    /// Reads what is configured. Blocks for a moment; creates nothing.
    pub(crate) fn load(flags: &ConfigFlags, process_env: &ProcessEnv) -> Result<Self, Problem> {
        let layers = Layers::read(flags, process_env)?;
        Ok(Self {
            context: layers.context(),
            contexts: layers.contexts(),
            store: layers.path(Key::Store, || process_env.data("blueproof.db"))?,
            server: layers.optional(Key::Server, parse::server)?,
            token_file: layers.optional(Key::TokenFile, parse::path)?,
            environments: layers.path(Key::Environments, || process_env.cache("environments"))?,
            local_cpu: layers.optional(Key::LocalCpu, parse::cpu)?,
            local_memory: layers.optional(Key::LocalMemory, parse::memory)?,
            local_self_approve: layers.or(Key::LocalSelfApprove, parse::approval, LocalApproval::Own)?,
            local_approvers: layers.or(Key::LocalApprovers, parse::names, BTreeSet::new())?,
            local_isolation: layers.or(Key::LocalIsolation, parse::isolation, IsolationPolicy::default())?,
            python: layers.optional(Key::Python, parse::program)?,
            layers: layers.files(),
        })
    }

    /// Returns the file that was named with `--config`, if one was.
    pub(crate) fn named_file(&self) -> Option<&Path> {
        let named = self
            .layers
            .iter()
            .find(|layer| matches!(layer.owner, Owner::Named));
        named.map(|layer| &*layer.path)
    }

    /// Makes a context the current one: of the file that is named with `--config`, and else of the user's. Whichever is current now
    /// may be gone.
    pub(crate) fn use_context(
        name: &str,
        flags: &ConfigFlags,
        process_env: &ProcessEnv,
    ) -> Result<(), Problem> {
        let layers = Layers::of_files(flags, process_env)?;
        let files = layers.files();
        let mut files = files.iter();
        let file = files.find(|layer| matches!(layer.owner, Owner::Named | Owner::User));
        let file = file.ok_or_else(|| {
            let message = "there is no file of yours to write the current context into";
            let diagnostic = Diagnostic::error(Code::NoHome, message);
            Problem::usage(diagnostic.hint("set HOME, or name a file with `--config`"))
        })?;
        context::use_context(&file.path, name, &layers.contexts())
    }

    /// Returns the folder with the runs of all stores that lie beside this one.
    pub(crate) fn runs(&self) -> PathBuf {
        self.store.value.parent().unwrap_or(Path::new("/")).join("runs")
    }

    /// Returns the folder with the runs of this store alone.
    pub(crate) fn runs_of(&self, store: &StoreIdentity) -> RunsFolder {
        RunsFolder::new(self.runs(), store.clone())
    }

    /// Returns what a file would have to hold for these values to be configured.
    pub(crate) fn as_file(&self) -> impl Serialize + use<> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shown {
            store: PathBuf,
            #[serde(skip_serializing_if = "Option::is_none")]
            server: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            token_file: Option<PathBuf>,
            environments: PathBuf,
            local: ShownLocal,
            #[serde(skip_serializing_if = "Option::is_none")]
            python: Option<PathBuf>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ShownLocal {
            #[serde(skip_serializing_if = "Option::is_none")]
            cpu: Option<Cpus>,
            #[serde(skip_serializing_if = "Option::is_none")]
            memory: Option<Bytes>,
            self_approve: bool,
            #[serde(skip_serializing_if = "BTreeSet::is_empty")]
            approvers: BTreeSet<String>,
            isolation: &'static str,
        }
        Shown {
            store: self.store.value.clone(),
            server: self.server.value.as_ref().map(ToString::to_string),
            token_file: self.token_file.value.clone(),
            environments: self.environments.value.clone(),
            local: ShownLocal {
                cpu: self.local_cpu.value,
                memory: self.local_memory.value,
                self_approve: self.local_self_approve.value == LocalApproval::Own,
                approvers: self.local_approvers.value.clone(),
                isolation: self.local_isolation.value.as_str(),
            },
            python: self.python.value.clone(),
        }
    }

    /// Returns every key with its value in words, and where that comes from.
    pub(crate) fn entries(&self) -> Vec<(Key, Option<String>, &Origin)> {
        fn path(path: &Path) -> String {
            path.display().to_string()
        }
        fn names(names: &BTreeSet<String>) -> String {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
        }
        let approvers = &self.local_approvers;
        let cpu = &self.local_cpu;
        let memory = &self.local_memory;
        let python = &self.python;
        let approval = match self.local_self_approve.value {
            LocalApproval::Own => "true",
            LocalApproval::Required => "false",
        };
        let context = &self.context;
        vec![
            (Key::CurrentContext, context.value.clone(), &context.origin),
            (Key::Store, Some(path(&self.store.value)), &self.store.origin),
            (
                Key::Server,
                self.server.value.as_ref().map(ToString::to_string),
                &self.server.origin,
            ),
            (
                Key::TokenFile,
                self.token_file.value.as_deref().map(path),
                &self.token_file.origin,
            ),
            (
                Key::Environments,
                Some(path(&self.environments.value)),
                &self.environments.origin,
            ),
            (Key::LocalCpu, cpu.value.map(|cpu| cpu.to_string()), &cpu.origin),
            (
                Key::LocalMemory,
                memory.value.map(|memory| memory.to_string()),
                &memory.origin,
            ),
            (
                Key::LocalSelfApprove,
                Some(approval.into()),
                &self.local_self_approve.origin,
            ),
            (
                Key::LocalApprovers,
                (!approvers.value.is_empty()).then(|| names(&approvers.value)),
                &approvers.origin,
            ),
            (
                Key::LocalIsolation,
                Some(self.local_isolation.value.as_str().into()),
                &self.local_isolation.origin,
            ),
            (Key::Python, python.value.as_deref().map(path), &python.origin),
        ]
    }
}

impl Key {
    /// Returns the key as it stands in a file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Key::CurrentContext => "currentContext",
            Key::Store => "store",
            Key::Server => "server",
            Key::TokenFile => "tokenFile",
            Key::Environments => "environments",
            Key::LocalCpu => "local.cpu",
            Key::LocalMemory => "local.memory",
            Key::LocalSelfApprove => "local.selfApprove",
            Key::LocalApprovers => "local.approvers",
            Key::LocalIsolation => "local.isolation",
            Key::Python => "python",
        }
    }

    /// Returns the environment variable that sets it.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Key::CurrentContext => "BLUEPROOF_CONTEXT",
            Key::Store => "BLUEPROOF_STORE",
            Key::Server => "BLUEPROOF_SERVER",
            Key::TokenFile => "BLUEPROOF_TOKEN_FILE",
            Key::Environments => "BLUEPROOF_ENVIRONMENTS",
            Key::LocalCpu => "BLUEPROOF_LOCAL_CPU",
            Key::LocalMemory => "BLUEPROOF_LOCAL_MEMORY",
            Key::LocalSelfApprove => "BLUEPROOF_LOCAL_SELF_APPROVE",
            Key::LocalApprovers => "BLUEPROOF_LOCAL_APPROVERS",
            Key::LocalIsolation => "BLUEPROOF_LOCAL_ISOLATION",
            Key::Python => "BLUEPROOF_PYTHON",
        }
    }

    /// Says what holds where nothing is configured and there is no one value for it.
    pub(crate) fn unset(self) -> &'static str {
        match self {
            Key::LocalCpu | Key::LocalMemory => "what the machine has",
            Key::LocalApprovers => "nobody",
            Key::Server => "none: the store is used",
            Key::CurrentContext | Key::TokenFile => "none",
            Key::Python => "what the blueprint asks for",
            Key::Store | Key::Environments | Key::LocalSelfApprove | Key::LocalIsolation => "",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Variable(variable) => f.write_str(variable),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::BuiltIn => f.write_str("built-in"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests;
