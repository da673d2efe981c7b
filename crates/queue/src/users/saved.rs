//! Usage as it is written down, to the bit: it decides who goes first.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Meter, Users};
use crate::{Quantity, objects::Objects};

/// What the users of a ClusterQueue had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsersSnapshot {
    /// The users by their numbers.
    users: Vec<UserSnapshot>,
    settled_at: Option<Timestamp>,
    left: Bits,
    changes: Vec<(usize, String, Quantity)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserSnapshot {
    local_queue: String,
    user: Option<String>,
    /// What was consumed and what is held of each resource.
    meters: Vec<(String, Bits, Quantity)>,
}

/// A double by its bits, which decimals do not always keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Bits(u64);

impl Bits {
    fn of(value: f64) -> Self {
        Self(value.to_bits())
    }

    fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl Users {
    pub(crate) fn snapshot(&self) -> UsersSnapshot {
        let users = self.users.iter().map(|user| {
            let meters = user.meters.iter();
            UserSnapshot {
                local_queue: user.name.0.clone(),
                user: user.name.1.clone(),
                meters: meters
                    .map(|(resource, meter)| (resource.clone(), Bits::of(meter.consumed), meter.held))
                    .collect(),
            }
        });
        UsersSnapshot {
            users: users.collect(),
            settled_at: self.settled_at,
            left: Bits::of(self.left),
            changes: self.changes.clone(),
        }
    }

    /// Numbers the users as they were numbered, before any workload of theirs is there.
    pub(crate) fn number_all(&mut self, saved: &UsersSnapshot, objects: &Objects) {
        for user in &saved.users {
            self.number_of((user.local_queue.clone(), user.user.clone()), objects);
        }
    }

    /// Sets what each user had, of whom all have their numbers.
    pub(crate) fn restore(&mut self, saved: UsersSnapshot) {
        for (user, saved) in self.users.iter_mut().zip(saved.users) {
            let meters = saved.meters.into_iter().map(|(resource, consumed, held)| {
                let consumed = consumed.value();
                (resource, Meter { consumed, held })
            });
            user.meters = meters.collect();
        }
        self.settled_at = saved.settled_at;
        self.left = saved.left.value();
        self.changes = saved.changes;
        self.changes.retain(|(user, ..)| *user < self.users.len());
    }
}
