//! What can go wrong at the service, each as it was seen to.

use std::collections::BTreeMap;

/// Something that goes wrong, the next few times that it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The refresh of a session finds none: it is lost.
    RefreshNotFound,
    /// A poll is answered 200 without a body.
    EmptyBody,
    /// Statistics are zero.
    ZeroStatistics,
    /// A job is said to be completed as soon as it started.
    CompletedWhileRunning,
    /// The closing of a session is not carried out, as where its client was killed.
    StaleSession,
    /// A scale set is not found, as in an outage.
    ScaleSetNotFound,
    /// A registration token is not accepted yet: 401.
    RegistrationUnauthorized,
    /// A registration token is not accepted yet: 403.
    RegistrationForbidden,
    /// The service answers 502.
    ServerError,
    /// The service answers 429 with `Retry-After: 1`.
    TooManyRequests,
    /// A message comes again under another number.
    DuplicateMessage,
    /// The events of a message are in reverse order.
    OutOfOrder,
    /// A webhook is not sent. The model has none: whoever composes it with one asks [`Model::take`](super::Model::take).
    WebhookLost,
    /// An answer begins with a byte order mark.
    ByteOrderMark,
    /// Only the first of several jobs is granted.
    PartialAcquire,
    /// The queue's token is not accepted any more.
    QueueTokenExpired,
    /// The request is carried out, and its answer lost.
    AnswerLost,
}

/// How often each fault is still to come.
#[derive(Debug, Default)]
pub(super) struct Faults(BTreeMap<Fault, u32>);

impl Faults {
    pub(super) fn inject(&mut self, fault: Fault, times: u32) {
        *self.0.entry(fault).or_default() += times;
    }

    pub(super) fn take(&mut self, fault: Fault) -> bool {
        match self.0.get_mut(&fault) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        }
    }
}
