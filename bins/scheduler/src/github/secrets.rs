//! Files with secrets. What is in them is shown nowhere, nor is a part of it.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_github::{
    rest::ApiToken,
    webhook::{WebhookSecret, WebhookSecrets},
};
use blueproof_scale_set::AppKey;

/// The most bytes of a file.
const LARGEST: u64 = 1 << 20;

/// Reads a file that people write. A link is followed: Kubernetes mounts secrets so.
pub(crate) fn text(path: &Path) -> Result<String, Diagnostic> {
    read(path).map_err(|error| unreadable(path, &error))
}

/// Reads a file with a token.
pub(super) fn token(path: &Path) -> Result<ApiToken, Diagnostic> {
    plain_token(path).map(ApiToken::new)
}

/// Reads a file with a token, which is still a plain text then.
pub(crate) fn plain_token(path: &Path) -> Result<String, Diagnostic> {
    let token = secret(path)?;
    // It becomes part of a header.
    match token.bytes().all(|byte| byte.is_ascii_graphic()) && !token.is_empty() {
        true => Ok(token),
        false => Err(wrong(path, "it does not have one token in one line")),
    }
}

/// Reads a file with the private key of an App.
pub(crate) fn app_key(path: &Path) -> Result<AppKey, Diagnostic> {
    AppKey::from_pem(&secret(path)?).map_err(|error| wrong(path, &error.to_string()))
}

/// Reads the files with the secrets of a webhook.
pub(super) fn of_webhook(connection: &Path, files: &[PathBuf]) -> Result<WebhookSecrets, Diagnostic> {
    let mut all: Option<WebhookSecrets> = None;
    for file in files {
        let read = WebhookSecret::new(secret(file)?).map_err(|error| wrong(file, &error.to_string()))?;
        all = Some(match all {
            None => WebhookSecrets::one(read),
            Some(secrets) => secrets.or(read),
        });
    }
    all.ok_or_else(|| {
        wrong(
            connection,
            "`spec.webhook.secretFiles` names no file: anybody could send deliveries",
        )
    })
}

/// Reads a secret without the line break that an editor puts after it.
fn secret(path: &Path) -> Result<String, Diagnostic> {
    let mode = path
        .metadata()
        .map_err(|error| unreadable(path, &error))?
        .permissions()
        .mode();
    if mode & 0o007 != 0 {
        return Err(wrong(path, "every user of this machine may read it")
            .hint(format!("chmod 600 {}", path.display())));
    }
    Ok(text(path)?.trim_end_matches(['\r', '\n']).to_owned())
}

fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LARGEST {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {LARGEST} bytes"),
        )),
        false => Ok(text),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    wrong(path, &error.to_string())
}

fn wrong(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error(Code::Usage, "a file of the connection to GitHub cannot be used")
        .at(SourceLocation::file(path.display().to_string()))
        .because(why.to_owned())
}
