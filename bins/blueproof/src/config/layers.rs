//! Who may say what a value is, in order.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    ConfigFlags, Key, Origin, ProcessEnv, Value, context,
    context::Context,
    file::{self, Contents, Setting},
    parse::{self, Given},
};
use crate::exit::Problem;

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Whose it is.
    pub(crate) owner: Owner,
    /// Where it is, or would be.
    pub(crate) path: PathBuf,
    /// Whether it is there.
    pub(crate) presence: Presence,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Named,
    Project,
    User,
    Machine,
}

/// Whether a file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Read,
    Missing,
}

/// Everything that can say what a value is.
pub(super) struct Layers<'a> {
    flags: &'a ConfigFlags,
    process_env: &'a ProcessEnv,
    files: Vec<(Layer, Contents)>,
    /// The context that was chosen.
    chosen: Option<Chosen>,
}

/// A context that was chosen by its name.
struct Chosen {
    name: String,
    origin: Origin,
    /// In which file it stands, by its place in the list.
    file: usize,
}

impl Owner {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Owner::Named => "--config",
            Owner::Project => "project",
            Owner::User => "user",
            Owner::Machine => "machine",
        }
    }
}

impl<'a> Layers<'a> {
    /// Reads every file, and finds the context that is chosen.
    pub(super) fn read(flags: &'a ConfigFlags, process_env: &'a ProcessEnv) -> Result<Self, Problem> {
        let mut layers = Self::of_files(flags, process_env)?;
        layers.chosen = layers.choose()?;
        Ok(layers)
    }

    /// Reads every file. No context is chosen.
    pub(super) fn of_files(flags: &'a ConfigFlags, process_env: &'a ProcessEnv) -> Result<Self, Problem> {
        let mut files = Vec::new();
        for (owner, path) in candidates(flags, process_env) {
            if owner == Owner::Project && is_of_stranger(&path) {
                return Err(Problem::usage(of_stranger(&path)));
            }
            let links = match owner {
                Owner::Project => file::Links::Refused,
                Owner::Named | Owner::User | Owner::Machine => file::Links::Followed,
            };
            let contents = file::read(&path, links)?;
            let presence = match contents {
                Some(_) => Presence::Read,
                None => Presence::Missing,
            };
            if let (Owner::Named, Presence::Missing) = (owner, presence) {
                return Err(Problem::usage(named_but_missing(&path)));
            }
            let contents = contents.unwrap_or_default();
            let not_a_projects = [
                Key::LocalSelfApprove,
                Key::LocalApprovers,
                Key::LocalIsolation,
                Key::CurrentContext,
                Key::Server,
                Key::TokenFile,
            ];
            let set = not_a_projects.iter().find_map(|key| contents.settings.get(key));
            let of_contexts = contents
                .contexts
                .values()
                .find_map(|context| context.values().next());
            if let (Owner::Project, Some(setting)) = (owner, of_contexts) {
                return Err(Problem::usage(not_from_project(setting.place.clone())));
            }
            if let (Owner::Project, Some(setting)) = (owner, set) {
                return Err(Problem::usage(not_from_project(setting.place.clone())));
            }
            let layer = Layer {
                owner,
                path,
                presence,
            };
            files.push((layer, contents));
        }
        Ok(Self {
            flags,
            process_env,
            files,
            chosen: None,
        })
    }

    /// Returns what the context is called that was chosen.
    pub(super) fn context(&self) -> Value<Option<String>> {
        let chosen = self.chosen.as_ref();
        Value {
            value: chosen.map(|chosen| chosen.name.clone()),
            origin: chosen.map_or(Origin::BuiltIn, |chosen| chosen.origin.clone()),
        }
    }

    /// Returns every context once, in the order of their names: of several of one name that of the file that counts most.
    pub(super) fn contexts(&self) -> Vec<Context> {
        let mut contexts = BTreeMap::new();
        for (name, settings) in self.files.iter().flat_map(|(_, contents)| &contents.contexts) {
            let text = |key| {
                let setting: Option<&Setting> = settings.get(&key);
                setting.map(|setting| setting.text.to_string_lossy().into_owned())
            };
            contexts.entry(name).or_insert_with(|| Context {
                name: name.clone(),
                server: text(Key::Server),
                token_file: text(Key::TokenFile),
                store: text(Key::Store),
            });
        }
        contexts.into_values().collect()
    }

    /// Returns the context that was chosen: by the flag, a variable or a file. Whoever names a server or a store as near or nearer
    /// means that, and no context has a part in it: a token is for the server of its own context.
    fn choose(&self) -> Result<Option<Chosen>, Problem> {
        if self.flags.store.is_some() || self.flags.server.is_some() {
            return Ok(None);
        }
        let is_set = |key: Key| self.process_env.variable(key.variable()).is_some();
        let said = match &self.flags.context {
            Some(name) => Some((name.clone(), Origin::Flag("--context"))),
            None if is_set(Key::Server) || is_set(Key::Store) => return Ok(None),
            None => self.given(Key::CurrentContext).map(|given| {
                let name = given.text.to_string_lossy().into_owned();
                (name, given.origin)
            }),
        };
        let Some((name, origin)) = said else {
            return Ok(None);
        };
        let mut files = self.files.iter();
        match files.position(|(_, contents)| contents.contexts.contains_key(&name)) {
            Some(file) => Ok(Some(Chosen { name, origin, file })),
            None => Err(Problem::usage(
                context::unknown(&name, &self.contexts())
                    .at(blueproof_diagnostic::SourceLocation::file(origin.to_string())),
            )),
        }
    }

    /// Returns what the chosen context says: `None` where there is none, or it has no part in this key.
    fn of_context(&self, key: Key) -> Option<Option<Given>> {
        let chosen = self.chosen.as_ref()?;
        let (layer, contents) = &self.files[chosen.file];
        let context = contents.contexts.get(&chosen.name)?;
        match key {
            // A context with a store is no server's, and one without a token sends none.
            Key::Server | Key::TokenFile => Some(context.get(&key).map(|setting| setting_of(layer, setting))),
            Key::Store => context.get(&key).map(|setting| Some(setting_of(layer, setting))),
            Key::CurrentContext
            | Key::Environments
            | Key::LocalCpu
            | Key::LocalMemory
            | Key::LocalSelfApprove
            | Key::LocalApprovers
            | Key::LocalIsolation
            | Key::Python => None,
        }
    }

    /// Returns the files that were looked at.
    pub(super) fn files(&self) -> Vec<Layer> {
        self.files.iter().map(|(layer, _)| layer.clone()).collect()
    }

    /// Returns a path, or what is built in.
    pub(super) fn path(
        &self,
        key: Key,
        built_in: impl FnOnce() -> Result<PathBuf, Problem>,
    ) -> Result<Value<PathBuf>, Problem> {
        if let Some(value) = self.find(key, parse::path)? {
            return Ok(value);
        }
        Ok(Value {
            value: built_in()?,
            origin: Origin::BuiltIn,
        })
    }

    /// Returns a value where one is given.
    pub(super) fn optional<T>(
        &self,
        key: Key,
        parse: impl FnOnce(&Given, &ProcessEnv) -> Result<T, String>,
    ) -> Result<Value<Option<T>>, Problem> {
        self.or(
            key,
            |given, process_env| parse(given, process_env).map(Some),
            None,
        )
    }

    /// Returns a value, or what is built in.
    pub(super) fn or<T>(
        &self,
        key: Key,
        parse: impl FnOnce(&Given, &ProcessEnv) -> Result<T, String>,
        built_in: T,
    ) -> Result<Value<T>, Problem> {
        let found = self.find(key, parse)?;
        Ok(found.unwrap_or(Value {
            value: built_in,
            origin: Origin::BuiltIn,
        }))
    }

    fn find<T>(
        &self,
        key: Key,
        parse: impl FnOnce(&Given, &ProcessEnv) -> Result<T, String>,
    ) -> Result<Option<Value<T>>, Problem> {
        let Some(given) = self.given(key) else {
            return Ok(None);
        };
        match parse(&given, self.process_env) {
            Ok(value) => Ok(Some(Value {
                value,
                origin: given.origin,
            })),
            Err(why) => {
                let message = format!("`{}` cannot be `{}`", key.name(), given.text.display());
                let diagnostic = Diagnostic::error(Code::ConfigValue, message).at(given.place);
                Err(Problem::usage(diagnostic.because(why).hint(
                    "`blueproof schema config` prints every key and what it takes",
                )))
            }
        }
    }

    fn given(&self, key: Key) -> Option<Given> {
        let said = |text: OsString, origin: Origin| Given {
            text,
            folder: self.process_env.folder.clone(),
            place: blueproof_diagnostic::SourceLocation::file(origin.to_string()),
            origin,
        };
        if let (Key::Store, Some(path)) = (key, &self.flags.store) {
            return Some(said(path.clone().into(), Origin::Flag("--store")));
        }
        if let (Key::Server, Some(address)) = (key, &self.flags.server) {
            return Some(said(address.into(), Origin::Flag("--server")));
        }
        // A store that is named by a flag is meant in place of a server that is configured.
        if key == Key::Server && self.flags.store.is_some() {
            return None;
        }
        if let Some(of_context) = self.of_context(key) {
            return of_context;
        }
        if let Some(value) = self.process_env.variable(key.variable()) {
            return Some(said(value.clone(), Origin::Variable(key.variable())));
        }
        self.files.iter().find_map(|(layer, contents)| {
            let setting = contents.settings.get(&key)?;
            Some(setting_of(layer, setting))
        })
    }
}

fn setting_of(layer: &Layer, setting: &Setting) -> Given {
    let origin = Origin::File {
        path: layer.path.clone(),
        line: setting.place.line.unwrap_or(1),
    };
    Given {
        text: setting.text.clone(),
        folder: layer.path.parent().unwrap_or(Path::new("/")).to_owned(),
        origin,
        place: setting.place.clone(),
    }
}

/// Returns where files are looked for, the one that counts most first.
fn candidates(flags: &ConfigFlags, process_env: &ProcessEnv) -> Vec<(Owner, PathBuf)> {
    let named = flags
        .config
        .clone()
        .or_else(|| process_env.variable("BLUEPROOF_CONFIG").map(PathBuf::from));
    let named = named.map(|path| (Owner::Named, process_env.folder.join(path)));
    let project = process_env
        .folder
        .ancestors()
        .map(|folder| folder.join(".blueproof/config.yaml"))
        .find(|path| path.exists())
        .map(|path| (Owner::Project, path));
    let user = process_env
        .user()
        .map(|folder| (Owner::User, folder.join("config.yaml")));
    let machine = (Owner::Machine, process_env.machine.join("config.yaml"));
    named
        .into_iter()
        .chain(project)
        .chain(user)
        .chain([machine])
        .collect()
}

/// Returns whether somebody else put a project's file into a folder that everybody may write to, such as `/tmp`: it is
/// found from every folder below, and names programs that are run.
fn is_of_stranger(path: &Path) -> bool {
    let project = path.ancestors().nth(2).map(Path::metadata);
    let (Ok(file), Some(Ok(project))) = (path.metadata(), project) else {
        return false;
    };
    is_planted(project.mode(), file.uid(), rustix::process::geteuid().as_raw())
}

fn is_planted(project_mode: u32, owner: u32, user: u32) -> bool {
    const ROOT: u32 = 0;
    const ANYONE_WRITES: u32 = 0o002;
    project_mode & ANYONE_WRITES != 0 && owner != user && owner != ROOT
}

fn of_stranger(path: &Path) -> Diagnostic {
    let message = "this configuration is somebody else's, in a folder that everybody may write to";
    Diagnostic::error(Code::ConfigOfStranger, message)
        .at(blueproof_diagnostic::SourceLocation::file(
            path.display().to_string(),
        ))
        .hint("remove it, work in a folder of your own, or name it with `--config` if you trust it")
}

fn named_but_missing(path: &Path) -> Diagnostic {
    Diagnostic::error(Code::ConfigUnreadable, "the configuration file that was named is not there")
        .at(blueproof_diagnostic::SourceLocation::file(path.display().to_string()))
        .hint("see that `--config` and `BLUEPROOF_CONFIG` name a file that is there; relative names start at the current folder")
}

fn not_from_project(flags: blueproof_diagnostic::SourceLocation) -> Diagnostic {
    let message = "a project's file cannot say who approves its runs, what they are kept from, or which scheduler is asked";
    Diagnostic::error(Code::ConfigNotHere, message).at(flags).hint(
        "move `local.selfApprove`, `local.approvers`, `local.isolation`, `server`, `tokenFile` and contexts to your own file, \
         `~/.config/blueproof/config.yaml`, or set BLUEPROOF_LOCAL_SELF_APPROVE, BLUEPROOF_SERVER and the like",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_planted_in_an_open_folder_is_refused() {
        for (why, mode, owner, planted) in [
            ("somebody else's file in /tmp", 0o41777, 1001, true),
            ("one's own file in /tmp", 0o41777, 1000, false),
            ("root may do anything anyway", 0o41777, 0, false),
            (
                "a checkout that is mounted with another owner",
                0o40755,
                1001,
                false,
            ),
            ("a folder of a team", 0o42775, 1001, false),
        ] {
            assert_eq!(is_planted(mode, owner, 1000), planted, "{why}");
        }
    }
}
