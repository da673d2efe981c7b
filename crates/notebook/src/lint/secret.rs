//! Tokens, passwords and keys that stand in a notebook.

use std::sync::LazyLock;

use blueproof_diagnostic::{Code, Diagnostic};
use regex::Regex;

use super::{Subject, placeholder::is_placeholder};
use crate::{analysis::At, text::tokens};

/// What a private key begins with; here it need not be whole.
static ARMOUR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----").expect("the expression is constant")
});
/// A password in an address: `postgres://user:password@host`.
static IN_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"://[^/\s:@{}<>$]+:([^/\s:@{}<>$*]{3,})@[\w.-]+").expect("the expression is constant")
});
/// Names of what is kept secret.
static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(api_?key|access_?key|secret(_?key)?|(auth|access|bearer|api|hf|github|wandb)_?token|^token)$",
    )
    .expect("the expression is constant")
});
static PASSWORD_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)(passw(or)?d|passphrase|pwd)$").expect("the expression is constant"));
/// Passwords of examples, which open nothing.
const HARMLESS: [&str; 9] = [
    "password", "passwd", "secret", "guest", "admin", "root", "postgres", "minio123", "example",
];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let analysis = &subject.analysis;
    let texts = analysis
        .texts
        .iter()
        .map(|(at, name, text)| (*at, name.as_deref(), text.as_str()));
    let keywords = analysis.calls.iter().flat_map(|made| {
        let named = made
            .keywords
            .iter()
            .filter_map(|(name, value)| Some((value.at, Some(name.as_str()), value.text()?)));
        named.collect::<Vec<_>>()
    });
    let commands = analysis
        .shell
        .iter()
        .map(|(at, command)| (*at, None, command.as_str()));
    let comments = analysis
        .disabled
        .iter()
        .map(|(at, name, value)| (*at, Some(name.as_str()), value.trim_matches(['"', '\''])));
    let mut told: Vec<At> = Vec::new();
    let mut found = Vec::new();
    for (at, name, text) in texts.chain(keywords).chain(commands).chain(comments) {
        if !told.contains(&at) && is_secret(name, text) {
            told.push(at);
            found.push(warning(subject, at, name));
        }
    }
    found
}

/// The line itself is not shown: what is shown is stored and copied.
fn warning(subject: &Subject<'_>, at: At, name: Option<&str>) -> Diagnostic {
    let what = name.map_or("a secret stands here".to_owned(), |name| {
        format!("`{name}` is a secret")
    });
    let mut warning = subject
        .warning(Code::SecretInSource, at, format!("{what}, for everybody to read"))
        .hint("take it back where it was issued, and read another one from the environment (`spec.secrets`)");
    if let Some(place) = &mut warning.place {
        place.source = None;
    }
    warning
}

/// Returns whether `text`, given to `name`, looks like a secret that opens something.
fn is_secret(name: Option<&str>, text: &str) -> bool {
    if is_placeholder(name, text) || text.to_ascii_lowercase().contains("xxxx") {
        return false;
    }
    let address = IN_ADDRESS.captures(text).and_then(|found| found.get(1));
    let in_address = address.is_some_and(|password| !HARMLESS.contains(&password.as_str()));
    if !tokens(text).is_empty() || ARMOUR.is_match(text) || in_address {
        return true;
    }
    let Some(name) = name.filter(|_| !text.contains(char::is_whitespace) && !text.contains("://")) else {
        return false;
    };
    let has = |of: fn(&char) -> bool| text.chars().any(|c| of(&c));
    let mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    let opaque = text.len() >= 16
        && mixed
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_+/=.".contains(c));
    let password =
        text.len() >= 6 && (mixed || has(|c| c.is_ascii_punctuation())) && !HARMLESS.contains(&text);
    (SECRET_NAME.is_match(name) && opaque) || (PASSWORD_NAME.is_match(name) && password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_words() {
        let letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6";
        for (name, text) in [
            (None, format!("ghp_{letters}")),
            (None, format!("!huggingface-cli login --token hf_{letters}")),
            (None, format!("AKIA{}", "ABCDEFGH12345678")),
            (None, "-----BEGIN RSA PRIVATE KEY-----".to_owned()),
            (None, "postgres://me:s3cr3t!@db.example.org/x".to_owned()),
            (Some("API_KEY"), letters.to_owned()),
            (Some("password"), "hunter2".to_owned()),
        ] {
            assert!(is_secret(name, &text), "{text}");
        }
        for (name, text) in [
            (Some("pad_token"), "<pad>"),
            (Some("token"), "word"),
            (Some("HF_TOKEN"), "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            (Some("api_key"), "YOUR_API_KEY"),
            (Some("password"), "password"),
            (Some("secret_key"), "MINIO_SECRET_KEY"),
            (None, "https://host:8080/path@2"),
            (None, "sk-learn is a library"),
            (Some("model"), "sentence-transformers/all-MiniLM-L6-v2"),
        ] {
            assert!(!is_secret(name, text), "{text}");
        }
    }
}
