//! Texts that are shaped like the tokens and keys of well-known issuers, whoever's they are.
//!
//! Only forms that the issuer has made recognisable are looked for: a fixed beginning, an alphabet, a length. The sources:
//!
//! - GitHub: <https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/>
//! - GitLab: <https://docs.gitlab.com/security/tokens/#token-prefixes>
//! - Hugging Face: <https://huggingface.co/docs/hub/security-tokens>
//! - AWS: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>
//! - OpenAI, Anthropic, Google, Stripe, npm, PyPI, Docker, and the lengths of all of them:
//!   <https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml>
//! - Slack: <https://docs.slack.dev/authentication/tokens>
//! - JSON Web Tokens: RFC 7519; private keys: RFC 7468.

use std::{ops::Range, sync::LazyLock};

use regex::{Captures, Regex};

/// The longest private key that is looked for: one of RSA with 16384 bits.
const LONGEST_KEY: usize = 16 << 10;
/// The longest of the others.
const LONGEST: usize = 4 << 10;
/// A token of fewer different characters is a placeholder, such as `hf_xxxx`.
const FEWEST_DIFFERENT: usize = 6;

/// What AWS' own programs and libraries call what is secret.
const AWS_NAMES: [&str; 4] = [
    "aws_secret_access_key",
    "aws_session_token",
    "secretaccesskey",
    "sessiontoken",
];

const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";

/// One issuer's form.
struct Form {
    /// Whose it is, as it is told.
    name: &'static str,
    /// What it begins with, one or the other.
    begins: &'static [&'static str],
    /// What follows, as an expression.
    follows: &'static str,
}

const FORMS: [Form; 17] = [
    form(
        "a GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        "[A-Za-z0-9]{36,}",
    ),
    form(
        "a GitHub token",
        &["github_pat_"],
        "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    ),
    form("a GitLab token", &["glpat-"], r"[\w.-]{20,}"),
    form("a Hugging Face token", &["hf_"], "[A-Za-z0-9]{30,40}"),
    form("an AWS access key", &["AKIA", "ASIA"], "[0-9A-Z]{16}"),
    form("an Anthropic key", &["sk-ant-"], "[A-Za-z0-9_-]{20,}"),
    form(
        "an OpenAI key",
        &["sk-proj-", "sk-svcacct-", "sk-admin-"],
        "[A-Za-z0-9_-]{20,}",
    ),
    form("an OpenAI key", &["sk-"], "[A-Za-z0-9]{32,64}"),
    form(
        "a Slack token",
        &[
            "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-",
        ],
        "[0-9A-Za-z-]{10,}",
    ),
    form(
        "a Slack webhook",
        &["hooks.slack.com/services/"],
        r"T\w{5,20}/B\w{5,20}/\w{15,50}",
    ),
    form("a Google API key", &["AIza"], "[0-9A-Za-z_-]{35}"),
    form("a Google token", &["ya29.", "GOCSPX-"], "[0-9A-Za-z_-]{28,}"),
    form("a Stripe key", &["sk_live_", "rk_live_"], "[0-9A-Za-z]{20,}"),
    form("an npm token", &["npm_"], "[A-Za-z0-9]{36}"),
    form("a PyPI token", &["pypi-"], "[A-Za-z0-9_-]{50,}"),
    form("a Docker token", &["dckr_pat_"], "[A-Za-z0-9_-]{20,}"),
    form(
        "a JSON Web Token",
        &["eyJ"],
        r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    ),
];

const fn form(name: &'static str, begins: &'static [&'static str], follows: &'static str) -> Form {
    Form {
        name,
        begins,
        follows,
    }
}

/// Every form, each as the group of its number.
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    let forms = FORMS.iter().map(|form| {
        let begins: Vec<String> = form.begins.iter().map(|text| regex::escape(text)).collect();
        format!(r"\b((?:{}){})", begins.join("|"), form.follows)
    });
    compiled(&format!("(?-u){}", forms.collect::<Vec<_>>().join("|")))
});

/// A secret key of AWS has no beginning of its own: its name gives it away.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    let names = AWS_NAMES.join("|");
    compiled(&format!(
        r#"(?i:{names})["']?\s{{0,3}}[:=,]\s{{0,3}}["']?([A-Za-z0-9/+=]{{40,}})"#
    ))
});

/// A private key in its armour, also where its lines are joined by `\n`, and where its end is missing.
static KEY: LazyLock<Regex> = LazyLock::new(|| {
    const BREAK: &str = r"(?:\s|\\[nr])";
    const END: &str = r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----";
    compiled(&format!(
        r"-----BEGIN (?:[A-Z0-9]+ ){{0,3}}PRIVATE KEY(?: BLOCK)?-----(?:{BREAK}+[A-Za-z-]+: [^\n]{{0,100}})*((?:{BREAK}+[A-Za-z0-9+/=]{{16,}})*(?:{BREAK}*[A-Za-z0-9+/=]{{0,76}}{BREAK}*{END})?)"
    ))
});

/// The end of a text that may be the beginning of a token.
static UNDECIDED: LazyLock<Regex> = LazyLock::new(|| {
    let mut begins: Vec<String> = Vec::new();
    for begin in FORMS.iter().flat_map(|form| form.begins) {
        begins.push(format!(r"{}[\w./-]*", regex::escape(begin)));
        begins.extend((1..begin.len()).map(|length| regex::escape(&begin[..length])));
    }
    for name in AWS_NAMES {
        begins.extend((1..name.len()).map(|length| format!("(?i:{})", &name[..length])));
    }
    let aws = r#"["']?\s{0,3}(?:[:=,]\s{0,3}["']?[A-Za-z0-9/+=]*)?"#;
    begins.push(format!("(?i:{}){aws}", AWS_NAMES.join("|")));
    compiled(&format!(r"(?-u)\b(?:{})\z", begins.join("|")))
});

fn compiled(expression: &str) -> Regex {
    Regex::new(expression).expect("the expression is constant")
}

/// A token that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is, such as `a GitHub token`.
    pub(crate) name: &'static str,
    /// Where it stands.
    pub(crate) at: Range<usize>,
    /// Where it stands with what gives it away.
    pub(super) within: Range<usize>,
}

/// Returns the tokens in a text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let forms = WHOLE.captures_iter(text).filter_map(|captures| {
        let form = (0..FORMS.len()).find(|form| captures.get(form + 1).is_some())?;
        Token::of(FORMS[form].name, &captures, form + 1)
    });
    let named = NAMED.captures_iter(text);
    let named = named.filter_map(|captures| Token::of("an AWS secret key", &captures, 1));
    let keys = KEY.captures_iter(text);
    let keys = keys.filter_map(|captures| Token::of("a private key", &captures, 1));
    forms.chain(named).chain(keys).collect()
}

impl Token {
    fn of(name: &'static str, captures: &Captures<'_>, group: usize) -> Option<Self> {
        let token = captures.get(group)?;
        has_substance(token.as_str()).then(|| Self {
            name,
            at: token.range(),
            within: captures.get_match().range(),
        })
    }
}

/// Returns a source without the tokens that stand in it, its lines where they were.
pub(crate) fn without_tokens(source: &str) -> String {
    let mut clean = String::with_capacity(source.len());
    let mut from = 0;
    let mut found = tokens(source);
    found.sort_by_key(|token| token.at.start);
    for token in found.into_iter().filter(|token| !token.at.is_empty()) {
        if token.at.start < from {
            continue;
        }
        clean.push_str(&source[from..token.at.start]);
        clean.push_str("***");
        clean.extend(source[token.at.clone()].matches('\n'));
        from = token.at.end;
    }
    clean.push_str(&source[from..]);
    clean
}

/// Returns where the end of `text` begins that may be the beginning of a token.
pub(super) fn undecided(text: &str) -> usize {
    let key = text.rfind(KEY_BEGINS).filter(|at| {
        let rest = &text[*at..];
        let is_ended = |at: usize| rest[at + KEY_ENDS.len()..].contains("-----");
        rest.len() < LONGEST_KEY && !rest.find(KEY_ENDS).is_some_and(is_ended)
    });
    let key = key.or_else(|| {
        let lengths = (1..KEY_BEGINS.len()).rev();
        lengths
            .filter(|length| text.ends_with(&KEY_BEGINS[..*length]))
            .map(|length| text.len() - length)
            .next()
    });
    let from = text.floor_char_boundary(text.len().saturating_sub(LONGEST));
    let token = UNDECIDED.find(&text[from..]).map(|found| from + found.start());
    [key, token].into_iter().flatten().min().unwrap_or(text.len())
}

/// Returns whether it is more than a placeholder.
fn has_substance(token: &str) -> bool {
    let mut seen: Vec<char> = token
        .chars()
        .rev()
        .take(200)
        .filter(|c| c.is_alphanumeric())
        .collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() >= FEWEST_DIFFERENT && !token.to_ascii_lowercase().contains("xxxxxx")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: &str = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6";

    fn key() -> String {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\nMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SupF=\n-----END RSA PRIVATE KEY-----"
        )
    }

    #[test]
    fn each_form_is_found_wherever_it_stands() {
        let rows = [
            ("a GitHub token", format!("ghp_{LETTERS}")),
            (
                "a GitHub token",
                format!("github_pat_{}_{}", &LETTERS[..22], &LETTERS.repeat(2)[..59]),
            ),
            ("a GitLab token", format!("glpat-{}", &LETTERS[..20])),
            ("a Hugging Face token", format!("hf_{}", &LETTERS[..34])),
            ("an AWS access key", "AKIAIOSFODNN7EXAMPLE".to_owned()),
            ("an Anthropic key", format!("sk-ant-api03-{LETTERS}")),
            ("an OpenAI key", format!("sk-proj-{LETTERS}")),
            ("an OpenAI key", format!("sk-{LETTERS}{}", &LETTERS[..12])),
            (
                "a Slack token",
                format!("xoxb-123456789012-1234567890123-{}", &LETTERS[..24]),
            ),
            ("a Google API key", format!("AIza{}", &LETTERS[..35])),
            (
                "a Slack webhook",
                format!("hooks.slack.com/services/T0aB3dE6/B0gH9jK2/{}", &LETTERS[..24]),
            ),
            ("a Google token", format!("ya29.{LETTERS}")),
            ("a Google token", format!("GOCSPX-{}", &LETTERS[..28])),
            ("a Stripe key", format!("sk_live_{}", &LETTERS[..24])),
            ("an npm token", format!("npm_{LETTERS}")),
            ("a PyPI token", format!("pypi-{LETTERS}{LETTERS}")),
            ("a Docker token", format!("dckr_pat_{}", &LETTERS[..27])),
            (
                "a JSON Web Token",
                format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{LETTERS}"),
            ),
            ("a private key", key()),
        ];
        for (name, token) in rows {
            for text in [
                token.clone(),
                format!("url=https://x/{token}/y"),
                format!("{{'a': '{token}'}}"),
            ] {
                let found = tokens(&text);
                assert_eq!(found.len(), 1, "{text}");
                assert_eq!(found[0].name, name, "{text}");
            }
        }
        let named = format!("AWS_SECRET_ACCESS_KEY=\"{LETTERS}/+AB\"");
        assert_eq!(tokens(&named)[0].name, "an AWS secret key");
    }

    #[test]
    fn words_paths_and_placeholders_are_no_tokens() {
        for text in [
            "hf_hub_download from sklearn sk-learn-contrib and task-oriented",
            "hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ghp_000000000000000000000000000000000000",
            "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "uuid 123e4567-e89b-12d3-a456-426614174000, step_ghp_1, AKIA, eyJ.a.b",
            "look for -----BEGIN PRIVATE KEY----- in the file and leave it alone",
            "sentence-transformers/all-MiniLM-L6-v2 risk-adjusted-return-over-many-periods-of-time",
        ] {
            assert_eq!(tokens(text), [], "{text}");
        }
    }

    #[test]
    fn a_source_without_its_tokens_has_as_many_lines() {
        let source = format!("a = 'ghp_{LETTERS}'\nkey = \"\"\"{}\"\"\"\nb", key());
        let clean = without_tokens(&source);
        assert!(clean.starts_with("a = '***'\nkey = "), "{clean}");
        assert!(clean.ends_with("\nb") && !clean.contains("MII"), "{clean}");
        assert_eq!(clean.lines().count(), source.lines().count());
    }

    #[test]
    fn text_that_cannot_become_a_token_is_decided() {
        for text in [
            "step 10 loss 0.3\n",
            "a line that ends with words.",
            "50% ",
            "résumé ✓",
        ] {
            assert_eq!(undecided(text), text.len(), "{text}");
        }
        assert_eq!(undecided("x ghp_abc"), 2);
        assert_eq!(undecided("x -----BEG"), 2);
        let open = format!("x {}", &key()[..100]);
        assert_eq!(undecided(&open), 2);
    }
}
