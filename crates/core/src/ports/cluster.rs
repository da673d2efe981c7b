//! Where attempts run.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::CallError;
use crate::{
    action::{Reservation, StartAction},
    domain::{AttemptId, ClusterName, EvictionReason, Inventory, Outcome, Placement},
    event::{Call, StopMode},
};

/// How much news may wait to be taken. A driver waits where there is no room, and loses nothing.
pub const NEWS_AT_MOST: usize = 256;

/// A kind of cluster that attempts run on: this machine is one, too.
///
/// A call hands something over and returns at once: it never waits for a place, for an attempt to begin or to end, nor for
/// others. What becomes of it is [news](Self::news). Every call may be repeated, after a crash as well, and none of them
/// decides whether something is tried again. Calls about one run come in order, each after the one before has returned.
#[async_trait]
pub trait ClusterDriver: Send + Sync {
    /// Returns the news of this cluster from now on, until it is dropped. Several may listen; each is told everything.
    ///
    /// First comes the inventory, as soon as it is known, and then each change of it. Nothing is told of an attempt before a call names it. News may be late, come twice, and come of an attempt that was
    /// released meanwhile.
    fn news(&self) -> mpsc::Receiver<News>;

    /// Asks for a place for an attempt whose quota is promised, or for both where the cluster decides about quota
    /// ([`ReservedQuota::Requested`](crate::action::ReservedQuota)). Told is [`Pending`](AttemptNews::Pending) while it waits,
    /// then [`Reserved`](AttemptNews::Reserved), the same one each time that it is asked again, with the flavors where the
    /// cluster assigned them. A driver whose cluster decides about no quota refuses such a request for good. Where others have what it needs the error says [`WhenFree`](super::Retry::WhenFree), and it is called again once an attempt has been released.
    async fn reserve(&self, reservation: &Reservation) -> Result<(), CallError>;

    /// Starts an attempt in its place. Told is [`Running`](AttemptNews::Running), and then how it ended. Repeating it starts
    /// no second one, not even when the first one is already over.
    async fn start(&self, start: &StartAction) -> Result<(), CallError>;

    /// Has it told how a started attempt stands, and each change from then on: what a driver knew is lost with its process.
    /// One whose traces are lost has ended, with an infrastructure failure.
    async fn observe(&self, attempt: AttemptId) -> Result<(), CallError>;

    /// Asks an attempt to end. One that is already over is a success.
    async fn stop(&self, attempt: AttemptId, how: StopMode) -> Result<(), CallError>;

    /// Removes whatever is left of an attempt, in whichever phase it is: one that still waits for a place waits no more. Told
    /// is [`Released`](AttemptNews::Released), also of one that never was. What retention keeps (its log, notebook and
    /// artifacts) stays.
    async fn release(&self, attempt: AttemptId) -> Result<(), CallError>;
}

/// Something that a cluster tells.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// What it has.
    Inventory(Arc<Inventory>),
    /// Something of an attempt.
    Attempt {
        /// Of which one.
        attempt: AttemptId,
        /// What.
        news: AttemptNews,
    },
}

/// The clusters that an engine works with, by their names.
#[derive(Clone, Default)]
pub struct Clusters(BTreeMap<ClusterName, Arc<dyn ClusterDriver>>);

impl Clusters {
    /// Returns one cluster, under the usual name.
    pub fn one(driver: Arc<dyn ClusterDriver>) -> Self {
        Self::default().with(ClusterName::default(), driver)
    }

    /// Adds a cluster, in the place of one that had its name.
    pub fn with(mut self, name: ClusterName, driver: Arc<dyn ClusterDriver>) -> Self {
        self.0.insert(name, driver);
        self
    }

    /// Returns the cluster of a name.
    pub fn get(&self, name: &ClusterName) -> Option<&Arc<dyn ClusterDriver>> {
        self.0.get(name)
    }

    /// Returns all of them, by their names.
    pub fn iter(&self) -> impl Iterator<Item = (&ClusterName, &Arc<dyn ClusterDriver>)> {
        self.0.iter()
    }
}

/// Something to tell of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptNews {
    /// It waits for a place.
    Pending {
        /// Why, in the cluster's own word: Kueue's reasons are passed on as they are.
        reason: String,
        /// Why, in words.
        message: String,
    },
    /// It has a place.
    Reserved(Placement),
    /// It runs.
    Running,
    /// It is over, and everything that it started is gone.
    Finished {
        /// How it ended.
        outcome: Box<Outcome>,
        /// When, if it says so itself.
        ended_at: Option<Timestamp>,
    },
    /// It has to give its quota back: it is asked to end, and released then. Its cluster keeps the quota for it until then.
    Evicted {
        /// Why, in Kueue's word where it has one.
        reason: EvictionReason,
        /// Why, in words.
        message: String,
    },
    /// The cluster has lost it: nothing more is to be learnt of it, and what may be left of it is released.
    Lost {
        /// How, in words.
        message: String,
    },
    /// Nothing of it is left.
    Released,
    /// What a call handed over did not succeed.
    Failed {
        /// The call.
        call: Call,
        /// Why.
        error: CallError,
    },
}
