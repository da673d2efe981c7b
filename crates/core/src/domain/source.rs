//! Where the content of a job comes from.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::Head;

/// The most characters of the address of a repository.
const MOST_OF_ADDRESS: usize = 2048;

/// An address of a repository, as a pattern: what [`GitRepository::from_str`] takes, up to the length.
#[cfg(feature = "schema")]
const ADDRESS: &str = concat!(
    r"^(file:///[!-~]*",
    r#"|https://[!"$-,.0->A-~][!"$-.0->A-~]*([/?#][!-~]*)?"#,
    r#"|ssh://(([!"$-,.0-9;->@-~][!"$-.0-9;->@-~]*)?@)?[!"$-,.0->A-~][!"$-.0->A-~]*([/?#][!-~]*)?)$"#,
);

/// A commit, as a pattern.
#[cfg(feature = "schema")]
const COMMIT: &str = "^[0-9a-f]{40}$";

/// A folder below another, as a pattern: no part is `..`, and the first is not `.` either.
#[cfg(feature = "schema")]
const BELOW: &str = r"^(([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+)(/+([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+|\.))*/*)?$";

/// Where the content of a job comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A folder of the machine that the job is carried out on.
    Folder(PathBuf),
    /// A commit, which is fetched by whoever carries the job out.
    Git(GitSource),
}

/// A folder at a commit of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", try_from = "WrittenGit")]
pub struct GitSource {
    /// The repository.
    pub repository: GitRepository,
    /// The commit: 40 lower-case hexadecimal digits. No branch, no tag, and no part of one.
    pub commit: String,
    /// The folder with the blueprint, relative to the repository's root; empty is the root.
    #[serde(skip_serializing_if = "is_root")]
    pub folder: PathBuf,
}

/// The address of a git repository: `https://`, `ssh://` or `file://`, and without a password.
///
/// Other protocols are not spoken: `http` and `git` let anybody on the way change what is fetched, and `ext` runs whatever
/// command the address names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = ADDRESS, "maxLength" = MOST_OF_ADDRESS)))]
#[serde(try_from = "String", into = "String")]
pub struct GitRepository(String);

/// A text that is no address of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseRepositoryError {
    /// It is of another protocol, or of none.
    #[error("a repository is given by an address that begins with `https://`, `ssh://` or `file:///`")]
    Protocol,
    /// It has a password in it, which would be logged.
    #[error("the address of a repository must not have a password or token in it")]
    Password,
    /// It names no host, or something that git would take for an option.
    #[error("the address of a repository names no host that can be asked")]
    Host,
    /// It is too long, or has characters that no address has.
    #[error("the address of a repository has at most {MOST_OF_ADDRESS} visible characters of ASCII")]
    Characters,
}

impl Source {
    /// Returns the folder, where it is one of this machine.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Git(_) => None,
        }
    }

    /// Returns whether it can hold this content: a commit comes from its repository, and what a folder has is a snapshot, known
    /// only when it is read.
    pub fn may_be_of(&self, head: &Head) -> bool {
        match (self, head) {
            (Self::Folder(_), Head::Snapshot(_)) => true,
            (Self::Git(git), Head::Commit(commit)) => git.commit == *commit,
            (Self::Folder(_), Head::Commit(_)) | (Self::Git(_), Head::Snapshot(_)) => false,
        }
    }
}

impl GitRepository {
    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::Git(git) => {
                write!(f, "{}@{}", git.repository.0, git.commit)?;
                match git.folder.as_os_str().is_empty() {
                    true => Ok(()),
                    false => write!(f, ":{}", git.folder.display()),
                }
            }
        }
    }
}

impl FromStr for GitRepository {
    type Err = ParseRepositoryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MOST_OF_ADDRESS || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ParseRepositoryError::Characters);
        }
        if let Some(path) = text.strip_prefix("file://") {
            return match path.starts_with('/') {
                true => Ok(Self(text.to_owned())),
                false => Err(ParseRepositoryError::Protocol),
            };
        }
        let is_ssh = text.starts_with("ssh://");
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("ssh://"));
        let authority = rest.ok_or(ParseRepositoryError::Protocol)?;
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        // To ssh a name is no secret; to https it may be a token.
        if user.contains(':') || (!is_ssh && authority.contains('@')) {
            return Err(ParseRepositoryError::Password);
        }
        if host.is_empty() || [user, host].iter().any(|part| part.starts_with('-')) {
            return Err(ParseRepositoryError::Host);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for GitRepository {
    type Error = ParseRepositoryError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<GitRepository> for String {
    fn from(repository: GitRepository) -> Self {
        repository.0
    }
}

fn is_root(folder: &Path) -> bool {
    folder.as_os_str().is_empty()
}

/// A source as it is written now.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
enum TaggedSource {
    Folder(PathBuf),
    Git(GitSource),
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenSource)
    }
}

/// Reads a source as it may be written: logs of before have the path of a folder.
struct WrittenSource;

impl<'de> Visitor<'de> for WrittenSource {
    type Value = Source;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a source, `folder` or `git`")
    }

    fn visit_str<E: de::Error>(self, folder: &str) -> Result<Source, E> {
        Ok(Source::Folder(folder.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Source, A::Error> {
        let tagged = TaggedSource::deserialize(MapAccessDeserializer::new(map))?;
        Ok(match tagged {
            TaggedSource::Folder(folder) => Source::Folder(folder),
            TaggedSource::Git(git) => Source::Git(git),
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Source {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Source".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let tagged = generator.subschema_for::<TaggedSource>();
        schemars::json_schema!({
            "description": "Where the content of a job comes from. A text is the path of a folder, as earlier versions wrote it.",
            "anyOf": [{ "type": "string" }, tagged],
        })
    }
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct WrittenGit {
    repository: GitRepository,
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = COMMIT)))]
    commit: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = BELOW)))]
    folder: PathBuf,
}

impl TryFrom<WrittenGit> for GitSource {
    type Error = &'static str;

    fn try_from(written: WrittenGit) -> Result<Self, Self::Error> {
        let WrittenGit {
            repository,
            commit,
            folder,
        } = written;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if commit.len() != 40 || !commit.bytes().all(is_digit) {
            return Err("a commit is named by its 40 hexadecimal digits");
        }
        let mut parts = folder.components();
        if !parts.all(|part| matches!(part, Component::Normal(_))) {
            return Err("the folder is relative to the repository's root, and does not lead out of it");
        }
        Ok(Self {
            repository,
            commit,
            folder,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn repositories_are_given_by_addresses_of_protocols_that_are_safe() {
        for address in [
            "https://github.com/kubeflow/trainer",
            "https://git.example.org:8443/a/b.git",
            "ssh://git@github.com/kubeflow/trainer.git",
            "file:///srv/git/trainer.git",
        ] {
            let repository: GitRepository = address.parse().expect(address);
            assert_eq!(repository.as_str(), address);
        }
        use ParseRepositoryError::{Characters, Host, Password, Protocol};
        for (address, why) in [
            ("", Protocol),
            ("-x", Protocol),
            ("--upload-pack=touch", Protocol),
            ("ext::sh", Protocol),
            ("ext::sh -c touch% ran", Characters),
            ("http://github.com/a/b", Protocol),
            ("git://github.com/a/b", Protocol),
            ("github.com:a/b", Protocol),
            ("/srv/git", Protocol),
            ("file://srv/git", Protocol),
            ("https://", Host),
            ("https://-x/a", Host),
            ("ssh://-oProxyCommand=touch/a", Host),
            ("ssh://-oProxyCommand=touch@host/a", Host),
            ("https://ada:secret@github.com/a/b", Password),
            ("https://token@github.com/a/b", Password),
            ("ssh://ada:secret@github.com/a/b", Password),
            ("https://github.com/a\n-c", Characters),
        ] {
            assert_eq!(address.parse::<GitRepository>(), Err(why), "{address}");
        }
    }

    #[test]
    fn the_path_of_a_folder_is_a_source_as_it_was_in_earlier_logs() {
        let source: Source = serde_json::from_str("\"/checkout\"").expect("an earlier version wrote it");
        assert_eq!(source, Source::Folder("/checkout".into()));
        let text = serde_json::to_string(&source).expect("plain data");
        assert_eq!(text, r#"{"folder":"/checkout"}"#);
        assert_eq!(
            serde_json::from_str::<Source>(&text).expect("it comes back"),
            source
        );
    }

    #[test]
    fn a_commit_is_named_whole_and_its_folder_lies_in_it() {
        let written = |commit: &str, folder: &str| {
            let repository = "https://github.com/a/b";
            let git = serde_json::json!({ "repository": repository, "commit": commit, "folder": folder });
            serde_json::from_value::<Source>(serde_json::json!({ "git": git })).ok()
        };
        let source = written(SHA, "examples/nano-lm").expect("it is one");
        assert_eq!(
            source.to_string(),
            format!("https://github.com/a/b@{SHA}:examples/nano-lm")
        );
        let text = serde_json::to_string(&source).expect("plain data");
        assert_eq!(
            serde_json::from_str::<Source>(&text).expect("it comes back"),
            source
        );
        assert!(source.may_be_of(&Head::Commit(SHA.into())));
        assert!(!source.may_be_of(&Head::Commit("1".repeat(40))));
        assert!(!source.may_be_of(&Head::Snapshot("1".repeat(64))));
        for (commit, folder) in [
            ("main", ""),
            (&SHA[..39], ""),
            ("--upload-pack=x", ""),
            (SHA, "../elsewhere"),
            (SHA, "/etc"),
            (SHA, "a/../../b"),
        ] {
            assert_eq!(written(commit, folder), None, "{commit} {folder}");
        }
    }
}
