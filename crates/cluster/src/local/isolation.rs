//! Whether attempts on this machine are kept apart from it, and which are.
//!
//! How that is done is up to the agent, and whether it can be done is tried by whoever makes the driver: here is only what
//! follows from it. The gate gives a machine that does not isolate no head of a stranger; this driver refuses one all the same.

use std::{fmt, sync::Arc};

use blueproof_core::{
    attempt::SandboxMode,
    domain::{Isolation, Subject},
};
use blueproof_diagnostic::{Code, Diagnostic};

/// Which notebooks run in a sandbox, as the machine's admin has configured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IsolationPolicy {
    /// Those of strangers; where no sandbox can be made, they do not run.
    #[default]
    Strangers,
    /// All of them.
    Always,
    /// None: nothing on this machine needs protection, and it is made anew after each run, or often.
    Disposable,
}

impl IsolationPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Strangers, Self::Always, Self::Disposable];

    /// Returns its word in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strangers => "strangers",
            Self::Always => "always",
            Self::Disposable => "disposable",
        }
    }
}

/// Tries whether this machine can make a sandbox, and says why not. It may block.
#[derive(Clone)]
pub struct TryIsolation(pub Arc<dyn Fn() -> Result<(), Box<Diagnostic>> + Send + Sync>);

impl fmt::Debug for TryIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TryIsolation")
    }
}

impl Default for TryIsolation {
    fn default() -> Self {
        Self(Arc::new(|| {
            let message = "whether this machine can run the code of pull requests apart is not tried";
            Err(Box::new(Diagnostic::error(Code::SandboxUnavailable, message)))
        }))
    }
}

/// What of isolation a driver is made with.
#[derive(Debug, Clone, Default)]
pub(super) struct IsolationRules {
    pub(super) policy: IsolationPolicy,
    pub(super) attempt: TryIsolation,
}

impl IsolationRules {
    /// Returns what this machine is. It may block.
    pub(super) fn look(&self) -> Isolation {
        match self.policy {
            IsolationPolicy::Disposable => Isolation::Disposable,
            IsolationPolicy::Strangers | IsolationPolicy::Always => match (self.attempt.0)() {
                Ok(()) => Isolation::Sandboxed,
                Err(diagnostic) => Isolation::Missing { diagnostic },
            },
        }
    }

    /// Returns whether a notebook runs in a sandbox.
    pub(super) fn sandbox_for(&self, subject: &Subject) -> SandboxMode {
        match (self.policy, subject.is_of_stranger()) {
            (IsolationPolicy::Disposable, _) | (IsolationPolicy::Strangers, false) => SandboxMode::Off,
            (IsolationPolicy::Strangers | IsolationPolicy::Always, true) => SandboxMode::Required,
            (IsolationPolicy::Always, false) => SandboxMode::Requested,
        }
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::testing::request;

    use super::*;

    #[test]
    fn strangers_are_in_a_sandbox_with_limits_unless_the_machine_is_disposable() {
        let own = request("one", "nano-lm").subject;
        let mut stranger = own.clone();
        stranger.pull_request = Some(12);
        let modes = |policy| {
            let rules = IsolationRules {
                policy,
                ..IsolationRules::default()
            };
            (rules.sandbox_for(&own), rules.sandbox_for(&stranger))
        };
        assert_eq!(
            modes(IsolationPolicy::Strangers),
            (SandboxMode::Off, SandboxMode::Required)
        );
        assert_eq!(
            modes(IsolationPolicy::Always),
            (SandboxMode::Requested, SandboxMode::Required)
        );
        assert_eq!(
            modes(IsolationPolicy::Disposable),
            (SandboxMode::Off, SandboxMode::Off)
        );
    }

    #[test]
    fn a_machine_isolates_only_where_that_was_tried_and_a_disposable_one_says_so() {
        let look = |policy, attempt| IsolationRules { policy, attempt }.look();
        let works = || TryIsolation(Arc::new(|| Ok(())));
        assert_eq!(look(IsolationPolicy::Strangers, works()), Isolation::Sandboxed);
        assert_eq!(
            look(IsolationPolicy::Disposable, TryIsolation::default()),
            Isolation::Disposable
        );
        let untried = look(IsolationPolicy::Always, TryIsolation::default());
        assert!(!untried.admits_strangers(), "{untried:?}");
    }
}
