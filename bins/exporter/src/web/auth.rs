//! Passwords, as Basic authentication has them.
//!
//! A wrong password costs a bcrypt; so does an unknown name, which thus takes as long. The last good password of each user
//! is remembered as a digest, so that a scrape costs none.
//!
//! One hash is computed at a time for each user, and one for all unknown names together, so there are never more threads
//! than users and one. A few requests may wait for their turn, for a few seconds; all others are told at once to come again.
//! What one user's hash costs delays nobody else, and nothing is let in that was not checked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
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
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::Web;

/// How many requests of one user may wait for their password to be checked, the one whose turn it is among them.
const WAITING: usize = 8;

/// How long a request waits for its turn: half as long as Prometheus does for all of it.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// The bcrypt hash of each user's password.
pub(super) type Users = BTreeMap<String, String>;

/// Passwords that were good, and those that are being checked.
#[derive(Default)]
pub(super) struct Passwords {
    /// The digest of each user's hash and password, so that a changed hash is a changed password.
    good: Mutex<BTreeMap<String, [u8; 32]>>,
    /// Of each user who gave a password that was not remembered.
    lanes: Mutex<BTreeMap<String, Lane>>,
    of_strangers: Lane,
}

/// Where requests wait whose passwords cost the same.
#[derive(Clone)]
struct Lane {
    /// One place for each request; it is free again when the client goes.
    places: Arc<Semaphore>,
    /// Goes to the thread that computes a hash, which cannot be stopped: until it ends, there is no other.
    turn: Arc<Semaphore>,
}

/// What came of checking a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checked {
    Good,
    Wrong,
    /// It was not checked: too many wait, or it would have taken too long.
    Busy,
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
    let checked = match Credentials::of(request.headers()) {
        Some(given) => web.passwords.check(&rules.users, given).await,
        None => Checked::Wrong,
    };
    match checked {
        Checked::Good => next.run(request).await,
        Checked::Wrong => {
            let asks = "Basic realm=\"blueproof-exporter\", charset=\"UTF-8\"";
            let asks = [(header::WWW_AUTHENTICATE, asks)];
            (StatusCode::UNAUTHORIZED, asks, "Unauthorized\n").into_response()
        }
        Checked::Busy => {
            let later = [(header::RETRY_AFTER, TURN_WITHIN.as_secs().to_string())];
            let why = "Too many passwords of this user are being checked; ask again later\n";
            (StatusCode::SERVICE_UNAVAILABLE, later, why).into_response()
        }
    }
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

impl Default for Lane {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(WAITING)),
            turn: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Passwords {
    async fn check(&self, users: &Users, given: Credentials) -> Checked {
        self.check_within(users, given, TURN_WITHIN).await
    }

    async fn check_within(&self, users: &Users, given: Credentials, within: Duration) -> Checked {
        let Credentials { name, password } = given;
        let (is_known, hash) = match users.get(&name) {
            Some(hash) => (true, hash),
            None => match users.values().next() {
                Some(hash) => (false, hash),
                None => return Checked::Wrong,
            },
        };
        let digest = digest(hash, &password);
        if is_known && self.remembers(&name, &digest) {
            return Checked::Good;
        }
        let lane = self.lane(users, &name);
        let Ok(_place) = lane.places.try_acquire() else {
            return Checked::Busy;
        };
        let Ok(Ok(turn)) = timeout(within, Arc::clone(&lane.turn).acquire_owned()).await else {
            return Checked::Busy;
        };
        // Whoever waited may have waited for the same password.
        if is_known && self.remembers(&name, &digest) {
            return Checked::Good;
        }
        match verify(password, hash.clone(), turn).await {
            Some(true) if is_known => {
                self.good().insert(name, digest);
                Checked::Good
            }
            Some(_) => Checked::Wrong,
            None => Checked::Busy,
        }
    }

    /// Returns where a name's requests wait. Only users have a lane of their own: of unknown names there is no end.
    fn lane(&self, users: &Users, name: &str) -> Lane {
        if !users.contains_key(name) {
            return self.of_strangers.clone();
        }
        let mut lanes = self.lanes.lock().expect("nobody panics while they hold it");
        // Who was taken out of the file and put in again while a hash was computed has two lanes for that long.
        lanes.retain(|user, _| users.contains_key(user));
        lanes.entry(name.to_owned()).or_default().clone()
    }

    fn remembers(&self, name: &str, digest: &[u8; 32]) -> bool {
        let good = self.good();
        good.get(name).is_some_and(|good| good.ct_eq(digest).into())
    }

    fn good(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, [u8; 32]>> {
        self.good.lock().expect("nobody panics while they hold it")
    }
}

/// Compares a password in a thread of its own: those in which pages are written stay free for whoever is let in. Returns
/// `None` where there can be no thread.
async fn verify(password: Vec<u8>, hash: String, turn: OwnedSemaphorePermit) -> Option<bool> {
    let (tells, told) = oneshot::channel();
    let compare = move || {
        let is_good = matches!(bcrypt::verify(&password, &hash), Ok(true));
        drop(turn);
        // The client may have gone.
        let _ = tells.send(is_good);
    };
    let started = thread::Builder::new().name("password".into()).spawn(compare);
    started.ok()?;
    told.await.ok()
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

    fn hash(password: &str) -> String {
        bcrypt::hash(password, 4).expect("a hash")
    }

    #[tokio::test]
    async fn a_good_password_costs_one_bcrypt_and_a_wrong_one_each_time() {
        let users = Users::from([("a".to_owned(), hash("secret"))]);
        let passwords = Passwords::default();
        assert_eq!(passwords.check(&users, given("a", "secret")).await, Checked::Good);

        let lanes = [passwords.lane(&users, "a"), passwords.lane(&users, "b")];
        let turns = lanes.map(|lane| lane.turn.try_acquire_owned().expect("nobody has it"));
        assert_eq!(
            passwords.check(&users, given("a", "secret")).await,
            Checked::Good,
            "nobody waits for what is remembered"
        );
        for (name, password) in [("a", "Secret"), ("b", "secret")] {
            let checked = passwords.check(&users, given(name, password));
            let checked = timeout(Duration::from_millis(1), checked);
            assert!(checked.await.is_err(), "{name} waits for a turn");
        }
        drop(turns);
        for (name, password) in [("a", "Secret"), ("b", "secret")] {
            let checked = passwords.check(&users, given(name, password)).await;
            assert_eq!(checked, Checked::Wrong, "{name}");
        }
    }

    #[tokio::test]
    async fn who_waits_too_long_or_behind_too_many_is_told_to_come_again_and_nobody_else_is() {
        let users = Users::from(["a", "b"].map(|name| (name.to_owned(), hash("secret"))));
        let passwords = Passwords::default();
        let costly = passwords.lane(&users, "a").turn.acquire_owned().await;
        let late = passwords.check_within(&users, given("a", "secret"), Duration::ZERO);
        assert_eq!(late.await, Checked::Busy, "its turn did not come");

        let mut waiting: Vec<_> = (0..WAITING)
            .map(|_| Box::pin(passwords.check(&users, given("a", "wrong"))))
            .collect();
        for one in &mut waiting {
            let waits = timeout(Duration::ZERO, one).await;
            assert!(waits.is_err(), "it waits for its turn");
        }
        let more = passwords.check(&users, given("a", "secret"));
        assert_eq!(more.await, Checked::Busy, "all places are taken");
        let other = passwords.check(&users, given("b", "secret"));
        assert_eq!(other.await, Checked::Good, "another user's cost is nobody's");
        let stranger = passwords.check(&users, given("c", "secret"));
        assert_eq!(stranger.await, Checked::Wrong);

        drop((waiting, costly));
        let after = passwords.check(&users, given("a", "secret"));
        assert_eq!(
            after.await,
            Checked::Good,
            "clients that went gave their places back"
        );
    }

    #[tokio::test]
    async fn a_hash_whose_client_has_gone_keeps_its_turn_until_it_ends() {
        let costly = bcrypt::hash("secret", 8).expect("a hash");
        let users = Users::from([("a".to_owned(), costly)]);
        let passwords = Passwords::default();
        let lane = passwords.lane(&users, "a");
        let gone = passwords.check(&users, given("a", "wrong"));
        let mut gone = Box::pin(gone);
        assert!(timeout(Duration::ZERO, &mut gone).await.is_err());
        drop(gone);

        assert_eq!(lane.places.available_permits(), WAITING);
        assert_eq!(lane.turn.available_permits(), 0, "it is still being computed");
        let next = passwords.check(&users, given("a", "secret"));
        assert_eq!(next.await, Checked::Good);
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
            let wrong = passwords.check(&users, given("a", "other")).await;
            assert_eq!(wrong, Checked::Wrong, "{hash}");
            let good = passwords.check(&users, given("a", password)).await;
            assert_eq!(good, Checked::Good, "{hash}");
        }
    }
}
