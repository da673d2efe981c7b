//! Passwords, as Basic authentication has them.
//!
//! A wrong password costs a bcrypt, of which one is done at a time; so does an unknown name, which thus takes as long. The
//! last good password of each user is remembered as a digest, so that a scrape costs none.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::Web;

/// The bcrypt hash of each user's password.
pub(super) type Users = BTreeMap<String, String>;

/// Passwords that were good.
#[derive(Default)]
pub(super) struct Passwords {
    /// The digest of each user's hash and password, so that a changed hash is a changed password.
    good: Mutex<BTreeMap<String, [u8; 32]>>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

/// Who somebody says to be. It has no `Debug`: passwords stay out of logs.
struct Credentials {
    name: String,
    password: Vec<u8>,
}

/// Answers only those who have a password, where the file asks for one. That goes for every path, `/health` too.
pub(crate) async fn authorize(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let rules = web.rules().await;
    if rules.users.is_empty() {
        return next.run(request).await;
    }
    let given = Credentials::of(request.headers());
    if let Some(given) = given
        && web.passwords.are_good(&rules.users, given).await
    {
        return next.run(request).await;
    }
    let asks = [(
        header::WWW_AUTHENTICATE,
        "Basic realm=\"blueproof-exporter\", charset=\"UTF-8\"",
    )];
    (StatusCode::UNAUTHORIZED, asks, "Unauthorized\n").into_response()
}

impl Credentials {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, coded) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let bytes = BASE64_STANDARD.decode(coded.trim()).ok()?;
        let colon = bytes.iter().position(|byte| *byte == b':')?;
        Some(Self {
            name: String::from_utf8(bytes[..colon].to_vec()).ok()?,
            password: bytes[colon + 1..].to_vec(),
        })
    }
}

impl Passwords {
    async fn are_good(&self, users: &Users, given: Credentials) -> bool {
        let Credentials { name, password } = given;
        let (is_known, hash) = match users.get(&name) {
            Some(hash) => (true, hash),
            None => match users.values().next() {
                Some(hash) => (false, hash),
                None => return false,
            },
        };
        let digest = digest(hash, &password);
        if is_known && self.remembers(&name, &digest) {
            return true;
        }
        let _turn = self.one_at_a_time.lock().await;
        // Whoever waited may have waited for the same password.
        if is_known && self.remembers(&name, &digest) {
            return true;
        }
        let hash = hash.clone();
        let verified = tokio::task::spawn_blocking(move || bcrypt::verify(&password, &hash));
        let is_good = matches!(verified.await, Ok(Ok(true))) && is_known;
        if is_good {
            self.good().insert(name, digest);
        }
        is_good
    }

    fn remembers(&self, name: &str, digest: &[u8; 32]) -> bool {
        let good = self.good();
        good.get(name).is_some_and(|good| good.ct_eq(digest).into())
    }

    fn good(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, [u8; 32]>> {
        self.good.lock().expect("nobody panics while they hold it")
    }
}

fn digest(hash: &str, password: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update((hash.len() as u64).to_le_bytes());
    digest.update(hash);
    digest.update(password);
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn given(name: &str, password: &str) -> Credentials {
        Credentials {
            name: name.into(),
            password: password.into(),
        }
    }

    #[tokio::test]
    async fn a_good_password_costs_one_bcrypt_and_a_wrong_one_each_time() {
        let hash = bcrypt::hash("secret", 4).expect("a hash");
        let users = Users::from([("a".to_owned(), hash)]);
        let passwords = Passwords::default();
        assert!(passwords.are_good(&users, given("a", "secret")).await);

        let turn = passwords.one_at_a_time.lock().await;
        assert!(
            passwords.are_good(&users, given("a", "secret")).await,
            "nobody waits for what is remembered"
        );
        for (name, password) in [("a", "Secret"), ("b", "secret")] {
            let checked = passwords.are_good(&users, given(name, password));
            let checked = tokio::time::timeout(Duration::from_millis(1), checked);
            assert!(checked.await.is_err(), "{name} waits for a turn");
        }
        drop(turn);
        assert!(!passwords.are_good(&users, given("a", "Secret")).await);
        assert!(!passwords.are_good(&users, given("b", "secret")).await);
    }

    #[tokio::test]
    async fn hashes_that_others_made_are_taken() {
        // From the tests of Go's x/crypto, and of crypt_blowfish, which `htpasswd` uses.
        for (hash, password) in [
            (
                "$2a$10$XajjQvNhvvRt5GSeFk1xFeyqRrsxkhBkUiQeg0dt.wU1qD4aFDcga",
                "allmine",
            ),
            (
                "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
                "U*U",
            ),
        ] {
            let users = Users::from([("a".to_owned(), hash.to_owned())]);
            let passwords = Passwords::default();
            assert!(!passwords.are_good(&users, given("a", "other")).await, "{hash}");
            assert!(passwords.are_good(&users, given("a", password)).await, "{hash}");
        }
    }
}
