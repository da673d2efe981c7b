//! Texts that are shaped like tokens of well-known issuers, left out of all that is sent to GitHub.
//!
//! The agent has redacted the secrets that it knows, and tokens by their form, before anything was stored. This is the second net: it
//! is cast over all that comes from outside, error texts of clusters among it, which no agent has seen. Only forms that an issuer has
//! made recognisable are looked for.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// What stands in place of a token.
const LEFT_OUT: &str = "***";

/// The forms. Sources: GitHub's blog on token formats, <https://huggingface.co/docs/hub/security-tokens>, AWS' reference of
/// identifiers, and the list of gitleaks.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    const FORMS: [&str; 11] = [
        "gh[opusr]_[A-Za-z0-9]{36,}",
        "github_pat_[A-Za-z0-9_]{60,}",
        r"glpat-[\w.-]{20,}",
        "hf_[A-Za-z0-9]{30,}",
        "(?:AKIA|ASIA)[0-9A-Z]{16}",
        "sk-[A-Za-z0-9_-]{20,}",
        "xox[a-z]-[0-9A-Za-z-]{10,}",
        "AIza[0-9A-Za-z_-]{35}",
        "npm_[A-Za-z0-9]{36}",
        "pypi-[A-Za-z0-9_-]{50,}",
        r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    ];
    let tokens = FORMS.join("|");
    let key = r"-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]*-----)?";
    Regex::new(&format!("(?-u){tokens}|{key}")).expect("the expression is constant")
});

/// Returns a text without the tokens in it.
pub(super) fn without_tokens(text: &str) -> Cow<'_, str> {
    TOKENS.replace_all(text, LEFT_OUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_left_out_and_what_only_begins_like_one_is_not() {
        // In two parts each, so that no scanner takes them for real ones.
        let tokens = [
            ["ghp", "_0123456789abcdefghijABCDEFGHIJ012345"],
            ["hf", "_0123456789abcdefghijABCDEFGHIJ"],
            ["AKIA", "0123456789ABCDEF"],
            [
                "github",
                "_pat_0123456789abcdefghijAB_0123456789012345678901234567890123456789012345678901234567a",
            ],
        ];
        for token in tokens.map(|parts| parts.concat()) {
            assert_eq!(without_tokens(&format!("key={token}, x")), "key=***, x");
        }
        let key = format!(
            "a {}BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----b",
            "-".repeat(5)
        );
        assert_eq!(without_tokens(&key), "a ***b");
        for plain in ["hf_xxxx", "ghp_short", "task-1234567", "AKIA", "disk-full"] {
            assert_eq!(without_tokens(plain), plain);
        }
    }
}
