//! The cgroup that an attempt's kernel and all that it starts are in, and what is limited there.
//!
//! An attempt runs without one, too: whatever keeps a cgroup or a limit from being made is remembered, and told where it
//! matters. The agent itself stays outside, so that it outlives what it has to tell of.

mod home;
mod limits;

use std::io;

use blueproof_core::{
    attempt::Cgroup,
    domain::{Bytes, Resources},
};

use home::Home;
use limits::Limit;
pub(crate) use limits::Unlimited;

/// How many processes and threads an attempt may have at once: as many as OpenShift allows a pod (`podPidsLimit`).
pub(crate) const PROCESSES_AT_MOST: u64 = 4096;

/// An attempt's cgroup, or why it has none.
#[derive(Debug)]
pub(crate) struct Confinement {
    home: Option<Home>,
    cgroup: Option<Cgroup>,
    unlimited: Unlimited,
}

/// What a limit did to an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LimitsHit {
    /// The limit of memory at which processes were killed.
    pub(crate) memory: Option<Bytes>,
    /// The limit of processes at which no more were started.
    pub(crate) processes: Option<u64>,
    /// The limit of a sandbox's files at which it was ended.
    pub(crate) disk: Option<Bytes>,
}

impl Confinement {
    /// Looks where a cgroup of this name can be made. Nothing is made.
    pub(crate) fn plan(name: &str) -> Self {
        match Home::find() {
            Ok(home) => Self {
                cgroup: Some(home.cgroup(name)),
                home: Some(home),
                unlimited: Unlimited::default(),
            },
            Err(why) => Self::none(&why),
        }
    }

    /// Returns what an attempt without a cgroup has.
    pub(crate) fn none(why: &str) -> Self {
        Self {
            home: None,
            cgroup: None,
            unlimited: Unlimited::all(why),
        }
    }

    /// Returns the cgroup, where there is one or is to be one.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Returns what is not limited, and why not.
    pub(crate) fn unlimited(&self) -> &Unlimited {
        &self.unlimited
    }

    /// Makes the cgroup, with limits of what was granted. What an earlier attempt of this name left in it is ended.
    pub(crate) fn make(&mut self, granted: &Resources) {
        let (Some(home), Some(cgroup)) = (&self.home, &self.cgroup) else {
            return;
        };
        match home.make(cgroup) {
            Ok(()) => self.unlimited = limits::set(home, cgroup, &Limit::of(granted)),
            Err(error) => *self = Self::none(&format!("no cgroup can be made: {error}")),
        }
    }

    /// Sees that the kernel has entered its cgroup. One that has not is ended as it would be without one.
    pub(crate) fn expect(&mut self, kernel: u32) {
        if self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.holds(kernel)) {
            self.unlimited = Unlimited::all("the kernel could not enter its cgroup");
        }
    }

    /// Returns which limits were hit so far.
    pub(crate) fn hit(&self, granted: &Resources) -> LimitsHit {
        let happened = |controller: &str, event: &str| {
            let count = |cgroup: &Cgroup| cgroup.count(controller, event);
            self.cgroup.as_ref().map_or(0, count) > 0
        };
        let (killed, refused) = (happened("memory", "oom_kill"), happened("pids", "max"));
        LimitsHit {
            memory: (killed && self.unlimited.memory.is_none()).then_some(granted.memory),
            processes: refused.then_some(PROCESSES_AT_MOST),
            disk: None,
        }
    }

    /// Ends what is in the cgroup, and removes it.
    ///
    /// # Errors
    ///
    /// When something in it stays.
    pub(crate) fn end(&self) -> io::Result<()> {
        self.cgroup.as_ref().map_or(Ok(()), Cgroup::end)
    }
}
