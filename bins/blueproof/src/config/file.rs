//! A configuration file: what can stand in it, and what is wrong with it.

use std::{collections::BTreeMap, ffi::OsString, io, path::Path};

use blueproof_core::attempt::read_regular;
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{Error, Location, Spanned};

use super::Key;
use crate::exit::Problem;

const API_VERSION: &str = "blueproof.dev/v1alpha1";
const KIND: &str = "Config";

/// A configuration file is written by hand; what is larger than this is none.
const LARGEST: u64 = 1 << 20;

/// A blueproof configuration file.
///
/// Every value is optional. A value that is not given comes from the next file, and at last from what is built in:
/// the file named with `--config`, the project's `.blueproof/config.yaml`, the user's
/// `~/.config/blueproof/config.yaml`, the machine's `/etc/blueproof/config.yaml`. Flags and `BLUEPROOF_*` variables go
/// before all files. Relative paths are relative to the folder of the file; `~/` is the home folder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Config")]
pub(crate) struct ConfigFile {
    /// Always `blueproof.dev/v1alpha1`.
    #[schemars(with = "String", extend("const" = API_VERSION))]
    api_version: Spanned<String>,
    /// Always `Config`.
    #[schemars(with = "String", extend("const" = KIND))]
    kind: Spanned<String>,
    /// The schedulers and stores that have a name. `--context NAME` chooses one of them, and so does `currentContext`.
    ///
    /// The project's file cannot have any.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ContextSection>")]
    contexts: BTreeMap<String, Spanned<ContextSection>>,
    /// The context that is meant where none is named. It goes before `store` and `server`.
    ///
    /// `blueproof config use-context` sets it. The project's file cannot.
    #[schemars(with = "Option<String>")]
    current_context: Option<Spanned<String>>,
    /// The SQLite file with all runs; their folders lie beside it in `runs/`.
    ///
    /// Without it: `blueproof/blueproof.db` under `$XDG_DATA_HOME`, or under `~/.local/share`.
    #[schemars(with = "Option<String>")]
    store: Option<Spanned<String>>,
    /// The scheduler to ask, in place of the store: `unix:PATH`, or a URL.
    ///
    /// The project's file cannot set it: what is tested does not decide who is asked, and sent a token.
    #[schemars(with = "Option<String>")]
    server: Option<Spanned<String>>,
    /// The file with the token that is sent to the scheduler. BLUEPROOF_TOKEN, which holds a token itself, goes before it.
    ///
    /// The project's file cannot set it either.
    #[schemars(with = "Option<String>")]
    token_file: Option<Spanned<String>>,
    /// The folder in which Python environments are kept for reuse; it can be removed at any time.
    ///
    /// Without it: `blueproof/environments` under `$XDG_CACHE_HOME`, or under `~/.cache`.
    #[schemars(with = "Option<String>")]
    environments: Option<Spanned<String>>,
    /// What the queue of this machine may promise, and to whom.
    local: Option<LocalSection>,
    /// The Python to prefer: a path, or a name to be found through `PATH`.
    ///
    /// Without it: whichever has the version that the blueprint asks for.
    #[schemars(with = "Option<String>")]
    python: Option<Spanned<String>>,
}

/// A scheduler or a store with a name: it has either a `server` or a `store`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Context")]
struct ContextSection {
    /// The scheduler to ask: `unix:PATH`, or a URL.
    #[schemars(with = "Option<String>")]
    server: Option<Spanned<String>>,
    /// The file with the token that is sent to this scheduler, and to no other.
    #[schemars(with = "Option<String>")]
    token_file: Option<Spanned<String>>,
    /// The SQLite file with all runs.
    #[schemars(with = "Option<String>")]
    store: Option<Spanned<String>>,
}

/// What the queue of this machine may promise, and to whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Local")]
struct LocalSection {
    /// Processor time, as Kubernetes writes it: `2`, `1.5`, `500m`. Without it: what the machine has.
    #[schemars(with = "Option<Amount>")]
    cpu: Option<Spanned<String>>,
    /// Memory, as Kubernetes writes it: `8Gi`, `512Mi`. Without it: what the machine has.
    #[schemars(with = "Option<Amount>")]
    memory: Option<Spanned<String>>,
    /// Whether users of this machine approve their own runs by asking for them. Without it: true.
    ///
    /// The project's file cannot set it: what is tested does not decide who approves it.
    #[schemars(with = "Option<bool>")]
    self_approve: Option<Spanned<bool>>,
    /// Which users of this machine may approve the runs of others with `blueproof approve`. Without it: none.
    ///
    /// The project's file cannot set it either.
    #[schemars(with = "Option<Vec<String>>")]
    approvers: Option<Spanned<Vec<String>>>,
    /// Which notebooks run in a sandbox: those of pull requests (`strangers`), `always`, or none (`disposable`).
    ///
    /// Without it: `strangers`. `disposable` is for machines on which nothing needs protection.
    ///
    /// The project's file cannot set it either.
    #[schemars(with = "Option<Isolation>")]
    isolation: Option<Spanned<String>>,
}

/// Which notebooks run in a sandbox.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes what is read as text")]
enum Isolation {
    Strangers,
    Always,
    Disposable,
}

/// An amount, as Kubernetes writes it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it only describes what is read as text")]
enum Amount {
    Number(f64),
    Quantity(String),
}

/// What stands in a file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) settings: Settings,
    /// The settings of each context.
    pub(super) contexts: BTreeMap<String, Settings>,
}

/// The settings of a file, or of a context in it.
pub(super) type Settings = BTreeMap<Key, Setting>;

/// One setting as it stands in a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) text: OsString,
    pub(super) place: SourceLocation,
}

/// Which links are followed to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// All: it is its reader's own, who may keep it elsewhere.
    Followed,
    /// None: a repository's file that leads out of the repository would show what it leads to.
    Refused,
}

/// Reads the file at `path`, if it is a regular one. `None` is a file that is not there.
pub(super) fn read(path: &Path, links: Links) -> Result<Option<Contents>, Problem> {
    let unreadable = |error: &io::Error| {
        let diagnostic = Diagnostic::error(Code::ConfigUnreadable, "the configuration file cannot be read");
        let diagnostic = diagnostic.at(SourceLocation::file(path.display().to_string()));
        Problem::usage(
            diagnostic.caused_by(error).hint(
                "it must be a file of text of at most 1 MiB that you may read; a project's may be no link",
            ),
        )
    };
    let read = || match links {
        Links::Followed => read_regular(&path.canonicalize()?, LARGEST),
        Links::Refused => read_regular(path, LARGEST),
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(error) if missing(&error) => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let text = String::from_utf8(bytes).map_err(|error| unreadable(&io::Error::other(error)))?;
    parse(&path.display().to_string(), &text).map(Some)
}

fn missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Reads what stands in a file.
pub(super) fn parse(file: &str, text: &str) -> Result<Contents, Problem> {
    let source = Source { file, text };
    let options = serde_saphyr::options! { with_snippet: false };
    let read: ConfigFile = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Problem::usage(source.diagnostic(&error)))?;
    for (key, value, wanted) in [
        ("apiVersion", &read.api_version, API_VERSION),
        ("kind", &read.kind, KIND),
    ] {
        if value.value != wanted {
            let message = format!("`{key}` is `{}`, not `{wanted}`", value.value);
            let diagnostic = Diagnostic::error(Code::ConfigValue, message).at(source.place(value.referenced));
            return Err(Problem::usage(
                diagnostic.hint(format!("write `{key}: {wanted}`")),
            ));
        }
    }
    let local = read.local.as_ref();
    let texts = [
        (Key::CurrentContext, read.current_context.as_ref()),
        (Key::Store, read.store.as_ref()),
        (Key::Server, read.server.as_ref()),
        (Key::TokenFile, read.token_file.as_ref()),
        (Key::Environments, read.environments.as_ref()),
        (Key::LocalCpu, local.and_then(|local| local.cpu.as_ref())),
        (Key::LocalMemory, local.and_then(|local| local.memory.as_ref())),
        (
            Key::LocalIsolation,
            local.and_then(|local| local.isolation.as_ref()),
        ),
        (Key::Python, read.python.as_ref()),
    ];
    let mut settings = source.settings(texts);
    if let Some(value) = local.and_then(|local| local.self_approve.as_ref()) {
        let setting = source.setting(value.value.to_string(), value.referenced);
        settings.insert(Key::LocalSelfApprove, setting);
    }
    if let Some(value) = local.and_then(|local| local.approvers.as_ref()) {
        let setting = source.setting(value.value.join(","), value.referenced);
        settings.insert(Key::LocalApprovers, setting);
    }
    let contexts = read.contexts.iter();
    let contexts = contexts.map(|(name, context)| Ok((name.clone(), source.context(name, context)?)));
    Ok(Contents {
        settings,
        contexts: contexts.collect::<Result<_, Problem>>()?,
    })
}

struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn settings<'a>(&self, texts: impl IntoIterator<Item = (Key, Option<&'a Spanned<String>>)>) -> Settings {
        let given = texts.into_iter().filter_map(|(key, value)| Some((key, value?)));
        given
            .map(|(key, value)| (key, self.setting(value.value.clone(), value.referenced)))
            .collect()
    }

    fn context(&self, name: &str, section: &Spanned<ContextSection>) -> Result<Settings, Problem> {
        let context = &section.value;
        if context.server.is_some() == context.store.is_some()
            || (context.store.is_some() && context.token_file.is_some())
        {
            let message = format!("the context `{name}` is neither a scheduler nor a store");
            let diagnostic = Diagnostic::error(Code::ConfigValue, message).at(self.place(section.referenced));
            let hint = "give it a `server`, with a `tokenFile` where one is needed, or a `store` alone";
            return Err(Problem::usage(diagnostic.hint(hint)));
        }
        Ok(self.settings([
            (Key::Server, context.server.as_ref()),
            (Key::TokenFile, context.token_file.as_ref()),
            (Key::Store, context.store.as_ref()),
        ]))
    }

    fn setting(&self, text: String, location: Location) -> Setting {
        Setting {
            text: text.into(),
            place: self.place(location),
        }
    }

    fn place(&self, location: Location) -> SourceLocation {
        let number = |n: u64| u32::try_from(n).ok().filter(|n| *n > 0);
        let line = number(location.line());
        let source = line.and_then(|line| self.text.lines().nth(line as usize - 1));
        SourceLocation {
            file: self.file.into(),
            line,
            column: number(location.column()),
            source: source.map(str::to_owned),
        }
    }

    fn diagnostic(&self, error: &Error) -> Diagnostic {
        let place = match error.location() {
            Some(location) => self.place(location),
            None => SourceLocation::file(self.file),
        };
        if let Error::SerdeUnknownField { field, expected, .. } = error {
            return unknown_key(field, expected).at(place);
        }
        if let Error::SerdeMissingField { field, .. } = error {
            return Diagnostic::error(Code::ConfigValue, format!("`{field}` is missing"))
                .at(SourceLocation::file(self.file))
                .hint(format!(
                    "a configuration file begins with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
                ));
        }
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        Diagnostic::error(Code::ConfigValue, "the configuration file cannot be understood")
            .at(place)
            .because(words.lines().next().unwrap_or_default())
            .hint("`blueproof schema config` prints every key and what it takes")
    }
}

fn unknown_key(key: &str, known: &[&str]) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        Code::UnknownKey,
        format!("`{key}` is no key of a configuration file"),
    );
    let nearest = known
        .iter()
        .map(|known| {
            (
                strsim::jaro_winkler(&key.to_lowercase(), &known.to_lowercase()),
                known,
            )
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
        // Below this the nearest is no longer what was meant, only the least unlike.
        .filter(|(likeness, _)| *likeness > 0.7);
    match nearest {
        Some((_, nearest)) => diagnostic.hint(format!("write `{nearest}`")),
        None => diagnostic.hint(format!("known here are {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_keeps_its_reader_waiting_or_leads_elsewhere_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        symlink("/dev/zero", at("endless")).expect("a link");
        std::fs::write(at("other"), "kind: Config\napiVersion: blueproof.dev/v1alpha1\n").expect("a file");
        symlink("other", at("link")).expect("a link");
        for links in [Links::Followed, Links::Refused] {
            for name in ["pipe", "endless"] {
                assert!(read(&at(name), links).is_err(), "{name} {links:?}");
            }
        }
        assert!(read(&at("link"), Links::Refused).is_err());
        assert!(
            read(&at("link"), Links::Followed).is_ok_and(|read| read.is_some()),
            "a person's own may be kept elsewhere"
        );
        assert!(read(&at("none"), Links::Followed).is_ok_and(|read| read.is_none()));
    }
}
