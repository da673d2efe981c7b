//! Tokens: what of them is kept is a digest, from which none can be made again.
//!
//! A token has 256 random bits, so that one round of SHA-256 is enough: there is nothing to guess. The file is read again
//! whenever it has changed, so that a token that is removed counts no more from the next request on.

use std::{
    fs::{self, Metadata},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use blueproof_core::hex::hex;
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use jiff::Timestamp;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{ApiError, Caller, Role};

/// What every token begins with, so that one that was committed by mistake is found.
const PREFIX: &str = "bps_";

/// The most that a file of tokens may have.
const FILE_AT_MOST: u64 = 1 << 20;

/// The most characters of a token's name.
const NAME_AT_MOST: usize = 64;

/// A file of tokens.
#[derive(Debug)]
pub struct Tokens {
    /// `None` where nobody is let in by a token.
    path: Option<PathBuf>,
    read: Mutex<Option<(Stamp, Arc<[Token]>)>>,
    /// What was logged last of a file that cannot be used.
    logged: Mutex<Option<Diagnostic>>,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Token {
    /// Who asks with it.
    pub name: String,
    /// What it may.
    pub role: Role,
    /// The SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// From when on it counts no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// What tells a version of the file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tokens: Vec<Token>,
}

impl Tokens {
    /// Lets in nobody by a token.
    pub fn none() -> Self {
        Self {
            path: None,
            read: Mutex::default(),
            logged: Mutex::default(),
        }
    }

    /// Goes by the file at `path`, which is read when somebody asks.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            read: Mutex::default(),
            logged: Mutex::default(),
        }
    }

    /// Returns all of them. Where there is no file there are none.
    pub fn list(&self) -> Result<Arc<[Token]>, Diagnostic> {
        let Some(path) = &self.path else {
            return Ok(Arc::default());
        };
        let stamp = match fs::metadata(path) {
            Ok(metadata) => Stamp::of(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(unreadable(path, &error)),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, tokens)) = &*read
            && *at == stamp
        {
            return Ok(Arc::clone(tokens));
        }
        let tokens = Arc::from(parse(path)?);
        *read = Some((stamp, Arc::clone(&tokens)));
        Ok(tokens)
    }

    /// Makes a token and puts its digest into the file, which is made where there is none. The token is returned, and is told
    /// nowhere else. One of a name that there is already is refused.
    pub fn create(&self, name: &str, role: Role, expires: Option<Timestamp>) -> Result<String, Diagnostic> {
        let path = self.path.as_deref().ok_or_else(no_file)?;
        check_name(name)?;
        let mut tokens = self.list()?.to_vec();
        if tokens.iter().any(|token| token.name == name) {
            let message = format!("there is a token called `{name}` already");
            let taken = Diagnostic::error(Code::Usage, message);
            return Err(taken.hint(
                "choose another name, or remove that one first: `blueproof-scheduler token remove NAME`",
            ));
        }
        let text = new_token().map_err(|error| unreadable(path, &error))?;
        tokens.push(Token {
            name: name.into(),
            role,
            sha256: digest(&text),
            expires,
        });
        write(path, tokens)?;
        Ok(text)
    }

    /// Removes a token. Returns whether there was one of this name.
    pub fn remove(&self, name: &str) -> Result<bool, Diagnostic> {
        let path = self.path.as_deref().ok_or_else(no_file)?;
        let mut tokens = self.list()?.to_vec();
        let before = tokens.len();
        tokens.retain(|token| token.name != name);
        let is_removed = tokens.len() < before;
        if is_removed {
            write(path, tokens)?;
        }
        Ok(is_removed)
    }

    /// Returns who asks with this token; `None` where it is not known, or has expired.
    pub(super) fn caller(&self, text: &str, now: Timestamp) -> Result<Option<Caller>, ApiError> {
        let tokens = self.list().map_err(|problem| self.unusable(&problem))?;
        let given = digest(text);
        let mut known = None;
        // All of them, so that it takes as long whichever it is.
        for token in tokens.iter() {
            if bool::from(token.sha256.as_bytes().ct_eq(given.as_bytes())) {
                known = Some(token);
            }
        }
        let counts = known.filter(|token| token.expires.is_none_or(|expires| now < expires));
        Ok(counts.map(|token| Caller {
            name: token.name.clone(),
            role: token.role,
            is_owner: false,
        }))
    }

    /// Logs why no token counts, once for each reason: what a file has in it is not for those who ask.
    fn unusable(&self, problem: &Diagnostic) -> ApiError {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.as_ref() != Some(problem) {
            tracing::error!(code = %problem.code, causes = ?problem.causes, "{}", problem.message);
            *logged = Some(problem.clone());
        }
        let diagnostic = Diagnostic::error(problem.code, "no token counts at the moment");
        ApiError::unavailable(
            diagnostic.hint("the scheduler's log says why; an admin has to look at its file of tokens"),
        )
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

fn parse(path: &Path) -> Result<Vec<Token>, Diagnostic> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    let wrong = |why: String, hint: &str| {
        let diagnostic = Diagnostic::error(Code::TokensUnreadable, "the file of tokens is not used");
        let diagnostic = diagnostic.at(SourceLocation::file(path.display().to_string()));
        diagnostic.because(why).hint(hint)
    };
    if !metadata.is_file() || metadata.len() > FILE_AT_MOST {
        return Err(wrong("it is no file of tokens".into(), "name another file"));
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        let why = format!("others may write it: its mode is {mode:03o}");
        return Err(wrong(why, &format!("`chmod 600 {}`", path.display())));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let file: File = serde_saphyr::from_str(&text).map_err(|error| {
        let hint = "`blueproof-scheduler token create` writes it; remove what it did not write";
        wrong(error.to_string(), hint)
    })?;
    Ok(file.tokens)
}

/// Puts a new file into the place of the old one: who reads sees the one or the other.
fn write(path: &Path, tokens: Vec<Token>) -> Result<(), Diagnostic> {
    let failed = |error: io::Error| unreadable(path, &error);
    let text = serde_saphyr::to_string(&File { tokens }).map_err(|error| failed(io::Error::other(error)))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    // For its owner only, as every temporary file.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A token's name is the user that its requests are logged as.
fn check_name(name: &str) -> Result<(), Diagnostic> {
    let is_usual = |character: char| character.is_ascii_alphanumeric() || "-_.@".contains(character);
    if (1..=NAME_AT_MOST).contains(&name.len()) && name.chars().all(is_usual) {
        return Ok(());
    }
    let message = format!("{name:?} is no name of a token");
    let refused = Diagnostic::error(Code::Usage, message);
    Err(refused.hint(format!(
        "a name has 1 to {NAME_AT_MOST} letters, digits, `-`, `_`, `.` and `@`: who asks is known by it"
    )))
}

fn new_token() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::TokensUnreadable, "the file of tokens cannot be used")
        .at(SourceLocation::file(path.display().to_string()))
        .because(error.to_string())
}

fn no_file() -> Diagnostic {
    Diagnostic::error(Code::Usage, "no file of tokens is named").hint("name one with `--tokens FILE`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, Tokens) {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::at(folder.path().join("below/tokens.yaml"));
        (folder, tokens)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn a_token_lets_in_until_it_expires_or_is_removed_and_stands_nowhere() {
        let (_folder, tokens) = file();
        let text = tokens.create("ci", Role::Run, Some(at(100))).expect("a token");
        let known = |now| tokens.caller(&text, now).expect("a file");
        let caller = known(at(99)).expect("it counts");
        assert_eq!(
            (caller.name.as_str(), caller.role, caller.is_owner),
            ("ci", Role::Run, false)
        );
        assert_eq!(known(at(100)), None, "it has expired");
        let path = tokens.path.as_deref().expect("a file");
        let kept = fs::read_to_string(path).expect("a file");
        assert!(!kept.contains(&text) && kept.contains("sha256"), "{kept}");
        assert_eq!(fs::metadata(path).expect("a file").mode() & 0o777, 0o600);
        assert!(tokens.remove("ci").expect("a file"));
        assert_eq!(known(at(99)), None, "it was removed");
        assert!(!tokens.remove("ci").expect("a file"));
    }

    #[test]
    fn each_has_a_name_of_its_own_and_what_is_not_a_token_lets_in_nobody() {
        let (_folder, tokens) = file();
        let one = tokens.create("one", Role::Read, None).expect("a token");
        tokens
            .create("one", Role::Admin, None)
            .expect_err("the name is taken");
        let other = tokens.create("other", Role::Admin, None).expect("a token");
        assert_ne!(one, other);
        for text in [
            "",
            "bps_",
            &one[..one.len() - 1],
            &format!("{one} "),
            &digest(&one),
        ] {
            assert_eq!(tokens.caller(text, at(0)).expect("a file"), None, "{text}");
        }
    }

    #[test]
    fn a_file_that_others_may_write_or_that_is_something_else_lets_in_nobody() {
        let (_folder, tokens) = file();
        let text = tokens.create("one", Role::Read, None).expect("a token");
        let path = tokens.path.clone().expect("a file");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        mode(0o662);
        // The version that was read before is known by its stamp, which a mode does not change.
        let afresh = Tokens::at(path.clone());
        let error = afresh.list().expect_err("others may write it");
        assert_eq!(error.code, Code::TokensUnreadable);
        mode(0o600);
        fs::write(&path, "tokens: [{name: x}]").expect("it is ours");
        let error = tokens
            .caller(&text, at(0))
            .expect_err("nobody knows whom it would let in");
        let told = format!("{error:?}");
        assert!(!told.contains("tokens.yaml") && !told.contains("line"), "{told}");
    }

    #[test]
    fn a_name_is_one_word() {
        let (_folder, tokens) = file();
        for name in ["", "x\ny", "../x y", "ä", &"n".repeat(NAME_AT_MOST + 1)] {
            let error = tokens.create(name, Role::Read, None).expect_err("it is no name");
            assert_eq!(error.code, Code::Usage, "{name:?}");
        }
        tokens
            .create("ci@example.org", Role::Read, None)
            .expect("a token");
    }
}
