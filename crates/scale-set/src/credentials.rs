//! Who we are to GitHub: an App with its key, or a token.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::{SignedDuration, Timestamp};
use ring::{rand::SystemRandom, rsa::KeyPair, signature::RSA_PKCS1_SHA256};
use serde_json::json;

use crate::secret::Secret;

/// A clock that runs ahead of GitHub's makes tokens that are not valid yet: they are dated back by this much.
const DATED_BACK: SignedDuration = SignedDuration::from_secs(60);

/// How long a token of an App is valid; GitHub accepts ten minutes.
const VALID_FOR: SignedDuration = SignedDuration::from_mins(9);

/// Who asks for runners.
#[derive(Debug)]
pub enum Credentials {
    /// An installation of a GitHub App.
    App(AppInstallation),
    /// A personal access token, or any other that may register runners.
    Token(Secret),
}

/// An installation of a GitHub App.
#[derive(Debug)]
pub struct AppInstallation {
    /// The App's client id, or its number.
    pub issuer: String,
    /// The installation's number.
    pub installation: i64,
    /// The App's private key.
    pub key: AppKey,
}

/// An App's private key. Its `Debug` shows nothing of it.
pub struct AppKey(Box<KeyPair>);

/// A text that is no private key of an App.
#[derive(Debug, thiserror::Error)]
#[error(
    "the App's private key cannot be used: {0}; GitHub gives it as a file that begins with `-----BEGIN RSA PRIVATE KEY-----`"
)]
pub struct KeyError(&'static str);

impl AppKey {
    /// Reads a key in PEM, as PKCS #1 (which GitHub gives) or PKCS #8.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let (label, der) = parse_pem(pem)?;
        let pair = match label {
            "RSA PRIVATE KEY" => KeyPair::from_der(&der),
            "PRIVATE KEY" => KeyPair::from_pkcs8(&der),
            _ => return Err(KeyError("it is another kind of key")),
        };
        pair.map(|pair| Self(Box::new(pair)))
            .map_err(|_| KeyError("it is no RSA key of 2048 bits or more"))
    }

    /// Signs a text.
    fn sign(&self, text: &str) -> Result<Vec<u8>, ring::error::Unspecified> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            text.as_bytes(),
            &mut signature,
        )?;
        Ok(signature)
    }
}

impl std::fmt::Debug for AppKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AppKey(…)")
    }
}

/// Returns the label and the content of the first block.
fn parse_pem(pem: &str) -> Result<(&str, Vec<u8>), KeyError> {
    let no_pem = KeyError("it is no PEM");
    let Some((_, rest)) = pem.split_once("-----BEGIN ") else {
        return Err(no_pem);
    };
    let Some((label, rest)) = rest.split_once("-----") else {
        return Err(no_pem);
    };
    let Some((content, _)) = rest.split_once("-----END ") else {
        return Err(KeyError("it has no end"));
    };
    let content: String = content.split_ascii_whitespace().collect();
    let der = STANDARD
        .decode(content)
        .map_err(|_| KeyError("it is cut off, or encrypted"))?;
    Ok((label, der))
}

impl AppInstallation {
    /// Returns a token by which the App asks for one of its installation: a JSON Web Token, good for some minutes.
    ///
    /// # Errors
    ///
    /// The key does not sign.
    pub fn token(&self, now: Timestamp) -> Result<Secret, KeyError> {
        let issued = now - DATED_BACK;
        let claims = json!({
            "iat": issued.as_second(),
            "exp": (issued + VALID_FOR).as_second(),
            "iss": self.issuer,
        });
        let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
        let header = encode(json!({"alg": "RS256", "typ": "JWT"}).to_string());
        let signed = format!("{header}.{}", encode(claims.to_string()));
        let signature =
            URL_SAFE_NO_PAD.encode(self.key.sign(&signed).map_err(|_| KeyError("it does not sign"))?);
        Ok(Secret::new(format!("{signed}.{signature}")))
    }
}

/// Returns when a token of the service expires, by its own claim. Its signature is the service's to check.
pub(crate) fn expiry(token: &Secret) -> Option<Timestamp> {
    let claims = token.expose().split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    let second = claims.get("exp")?.as_f64()?;
    // Fractions are allowed, and of no use here.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number out of range is no time, and is refused below"
    )]
    Timestamp::from_second(second as i64).ok()
}

#[cfg(test)]
mod tests {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    const PKCS1: &str = include_str!("testing/app-key.pem");
    const PKCS8: &str = include_str!("testing/app-key-pkcs8.pem");

    fn installation(pem: &str, issuer: &str) -> AppInstallation {
        AppInstallation {
            issuer: issuer.into(),
            installation: 7,
            key: AppKey::from_pem(pem).expect("a key"),
        }
    }

    #[test]
    fn a_token_is_signed_by_the_key_and_says_who_and_until_when() {
        let now: Timestamp = "2026-11-25T10:00:00Z".parse().expect("a time");
        for (pem, issuer) in [(PKCS1, "1234"), (PKCS8, "Iv23li")] {
            let app = installation(pem, issuer);
            let token = app.token(now).expect("it is signed");
            let (signed, signature) = token.expose().rsplit_once('.').expect("three parts");
            let signature = URL_SAFE_NO_PAD.decode(signature).expect("Base64");
            let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, app.key.0.public().as_ref());
            public
                .verify(signed.as_bytes(), &signature)
                .expect("the key's signature");
            let claims = URL_SAFE_NO_PAD
                .decode(signed.split('.').nth(1).expect("claims"))
                .expect("Base64");
            let second = now.as_second();
            let expected = json!({"iat": second - 60, "exp": second + 480, "iss": issuer});
            assert_eq!(
                serde_json::from_slice::<serde_json::Value>(&claims).expect("JSON"),
                expected
            );
            assert_eq!(expiry(&token).map(Timestamp::as_second), Some(second + 480));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_and_never_shown() {
        let cut = &PKCS1[..400];
        let encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let public = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
        for bad in ["", "ghp_abc", cut, encrypted, public] {
            let error = AppKey::from_pem(bad).expect_err("no key").to_string();
            assert!(
                error.starts_with("the App's private key cannot be used"),
                "{error}"
            );
            assert!(!error.contains("MII") && !error.contains("ghp_abc"), "{error}");
        }
        assert_eq!(
            format!("{:?}", AppKey::from_pem(PKCS1).expect("a key")),
            "AppKey(…)"
        );
    }

    #[test]
    fn a_token_without_a_readable_expiry_has_none() {
        for text in ["", "a.b.c", "opaque", "a.e30.c", "x.eyJleHAiOiJzb29uIn0.y"] {
            assert_eq!(expiry(&Secret::new(text)), None, "{text}");
        }
    }
}
