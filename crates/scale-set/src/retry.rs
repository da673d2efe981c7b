//! What may be repeated, how often, and after how long.

use std::time::Duration;

use reqwest::StatusCode;

use crate::{
    error::{Cause, Error},
    transport::Delivery,
};

/// How calls are repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a call is repeated after its first try.
    pub repeats: u32,
    /// The pause before the first repeat; each one after it is twice as long.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// The longest pause that the service may ask for. A call that would have to wait longer fails at once, with what was asked.
    pub retry_after_at_most: Duration,
}

/// What a repeat of a call does when the first one was carried out after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotency {
    /// Nothing: it reads, or the second time changes nothing.
    Repeatable,
    /// Harm, or it is refused: it makes something. It is repeated only where the first one cannot have been carried out.
    Once,
    /// Nothing, and a refusal of the token is repeated, too: a new registration token is not known everywhere at once.
    Registration,
}

impl Default for RetryPolicy {
    /// As GitHub's own client does it: four repeats after one second to thirty.
    fn default() -> Self {
        Self {
            repeats: 4,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            retry_after_at_most: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// A policy that repeats nothing, for callers that have one of their own.
    pub fn none() -> Self {
        Self {
            repeats: 0,
            ..Self::default()
        }
    }

    /// Returns how long to wait before a call is repeated that has been repeated `n_repeats` times; `None` is not to repeat it.
    pub fn pause(&self, class: Idempotency, error: &Error, n_repeats: u32) -> Option<Duration> {
        if n_repeats >= self.repeats || !class.may_repeat(error) {
            return None;
        }
        let asked = error.refusal().and_then(|refusal| refusal.retry_after);
        match asked {
            Some(asked) => (asked <= self.retry_after_at_most).then_some(asked),
            None => Some(self.backoff(n_repeats)),
        }
    }

    /// Returns the pause before repeat number `n`, counted from zero.
    pub fn backoff(&self, n: u32) -> Duration {
        let factor = 2_u32.saturating_pow(n);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }
}

impl Idempotency {
    fn may_repeat(self, error: &Error) -> bool {
        match error.cause() {
            Cause::Transport(error) => self != Idempotency::Once || error.delivery == Delivery::NotSent,
            Cause::Refused(refusal) => self.may_repeat_status(refusal.status),
            Cause::EmptyBody
            | Cause::Unreadable(_)
            | Cause::Credentials(_)
            | Cause::SessionClosed
            | Cause::Ambiguous { .. }
            | Cause::NameTaken { .. } => false,
        }
    }

    fn may_repeat_status(self, status: StatusCode) -> bool {
        let is_too_many = status == StatusCode::TOO_MANY_REQUESTS;
        let is_broken = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        match self {
            Idempotency::Repeatable => is_too_many || is_broken,
            Idempotency::Once => is_too_many,
            Idempotency::Registration => is_too_many || is_broken || is_refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::{Correlation, Refusal, RefusalKind},
        transport::TransportError,
    };

    fn refused(status: u16, retry_after: Option<u64>) -> Error {
        let refusal = Refusal {
            status: StatusCode::from_u16(status).expect("a status"),
            kind: RefusalKind::Unknown,
            message: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
        };
        Error::new("try", Correlation::default(), Cause::Refused(refusal))
    }

    fn broken(delivery: Delivery) -> Error {
        let error = TransportError {
            delivery,
            source: "reset".into(),
        };
        Error::new("try", Correlation::default(), Cause::Transport(error))
    }

    #[test]
    fn only_what_does_no_harm_is_repeated() {
        use Idempotency::{Once, Registration, Repeatable};
        for (why, class, error, repeats) in [
            ("a server in trouble", Repeatable, refused(502, None), true),
            (
                "it will never be implemented",
                Repeatable,
                refused(501, None),
                false,
            ),
            ("a limit", Once, refused(429, None), true),
            ("it may have been carried out", Once, refused(502, None), false),
            (
                "it may have been carried out",
                Once,
                broken(Delivery::Unknown),
                false,
            ),
            ("nothing was sent", Once, broken(Delivery::NotSent), true),
            (
                "a second time changes nothing",
                Repeatable,
                broken(Delivery::Unknown),
                true,
            ),
            ("the token is new", Registration, refused(401, None), true),
            ("the token is new", Registration, refused(403, None), true),
            ("the token is not new", Repeatable, refused(401, None), false),
            ("the caller's mistake", Repeatable, refused(400, None), false),
        ] {
            let pause = RetryPolicy::default().pause(class, &error, 0);
            assert_eq!(pause.is_some(), repeats, "{why}: {class:?} {error:?}");
        }
    }

    #[test]
    fn pauses_double_to_a_bound_and_end_after_the_last_repeat() {
        let policy = RetryPolicy::default();
        let error = refused(503, None);
        let pauses: Vec<_> = (0..6)
            .map(|n| policy.pause(Idempotency::Repeatable, &error, n))
            .collect();
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(
            pauses,
            [seconds(1), seconds(2), seconds(4), seconds(8), None, None]
        );
        assert_eq!(policy.backoff(40), Duration::from_secs(30));
    }

    #[test]
    fn what_the_service_asks_for_is_kept_to_a_bound() {
        let policy = RetryPolicy::default();
        let pause = |seconds| policy.pause(Idempotency::Once, &refused(429, Some(seconds)), 0);
        assert_eq!(pause(7), Some(Duration::from_secs(7)));
        assert_eq!(pause(3600), None);
    }
}
