//! How patient the retry machine is, and which failures it takes as final: AppWrapper's annotations and defaults.

use std::collections::BTreeSet;

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::SignedDuration;

use super::{Pod, PodPhase};

/// What the annotations' keys begin with.
const PREFIX: &str = "workload.codeflare.dev.appwrapper/";

/// The longest that a workload's objects are kept after it has succeeded.
const LONGEST_SUCCESS_TTL: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The terms of one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultTolerance {
    /// How long components may take to be created, and to create their pods.
    pub admission_grace: SignedDuration,
    /// How long pods that exist may take to run.
    pub warmup_grace: SignedDuration,
    /// How long a failed pod may take to be replaced by its controller.
    pub failure_grace: SignedDuration,
    /// How long to wait between a failure and the next try.
    pub retry_pause: SignedDuration,
    /// How many times it is tried again.
    pub retry_limit: u32,
    /// How long a deletion may take before what is left is deleted without grace.
    pub forceful_deletion_grace: SignedDuration,
    /// How long the objects of a failed workload are kept, with its quota, for somebody to look at.
    pub deletion_delay: SignedDuration,
    /// How long the objects of a workload that succeeded are kept.
    pub success_ttl: SignedDuration,
    /// Exit codes after which it is not tried again.
    pub terminal_exit_codes: ExitCodes,
    /// If there are any: the only exit codes after which it is tried again.
    pub retryable_exit_codes: ExitCodes,
}

/// Exit codes, none twice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitCodes(BTreeSet<i32>);

/// Whether trying again could help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Retryable,
    Terminal,
}

impl Default for FaultTolerance {
    fn default() -> Self {
        Self {
            admission_grace: SignedDuration::from_mins(1),
            warmup_grace: SignedDuration::from_mins(5),
            failure_grace: SignedDuration::from_mins(1),
            retry_pause: SignedDuration::from_secs(90),
            retry_limit: 3,
            forceful_deletion_grace: SignedDuration::from_mins(10),
            deletion_delay: SignedDuration::ZERO,
            success_ttl: LONGEST_SUCCESS_TTL,
            terminal_exit_codes: ExitCodes::default(),
            retryable_exit_codes: ExitCodes::default(),
        }
    }
}

impl FaultTolerance {
    /// The longest grace. An annotation that says more is cut: a workload must not hold its quota for ever.
    pub const LONGEST_GRACE: SignedDuration = SignedDuration::from_hours(24);

    /// Returns the terms that a workload's annotations say, by default AppWrapper's; annotations of others are not
    /// looked at. Each one that cannot be used is told.
    pub fn annotated<'a>(
        annotations: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut terms = Self::default();
        let mut wrong = Vec::new();
        for (key, value) in annotations {
            let Some(name) = key.strip_prefix(PREFIX) else {
                continue;
            };
            if let Err(cause) = terms.set(name, value) {
                wrong.push(cause.on(key, value));
            }
        }
        if wrong.is_empty() { Ok(terms) } else { Err(wrong) }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Unusable> {
        match name {
            "admissionGracePeriodDuration" => self.admission_grace = grace(value)?,
            "warmupGracePeriodDuration" => self.warmup_grace = grace(value)?,
            "failureGracePeriodDuration" => self.failure_grace = grace(value)?,
            "retryPausePeriodDuration" => self.retry_pause = grace(value)?,
            "retryLimit" => self.retry_limit = value.trim().parse().map_err(|_| Unusable::Count)?,
            "forcefulDeletionGracePeriodDuration" => self.forceful_deletion_grace = grace(value)?,
            "deletionOnFailureGracePeriodDuration" => self.deletion_delay = grace(value)?,
            "successTTLDuration" => self.success_ttl = success_ttl(value)?,
            "terminalExitCodes" => self.terminal_exit_codes = ExitCodes::read(value)?,
            "retryableExitCodes" => self.retryable_exit_codes = ExitCodes::read(value)?,
            _ => return Err(Unusable::Name),
        }
        Ok(())
    }

    /// Returns whether the pods that failed say that trying again is of no use. An exit code of 0 says nothing.
    pub(super) fn verdict_on(&self, pods: &[Pod]) -> Verdict {
        let failed = pods.iter().filter(|pod| pod.phase == PodPhase::Failed);
        let mut codes = failed.flat_map(|pod| &pod.exit_codes).filter(|code| **code != 0);
        if codes.any(|code| self.is_terminal(*code)) {
            Verdict::Terminal
        } else {
            Verdict::Retryable
        }
    }

    fn is_terminal(&self, code: i32) -> bool {
        let ExitCodes(terminal) = &self.terminal_exit_codes;
        let ExitCodes(retryable) = &self.retryable_exit_codes;
        terminal.contains(&code) || !retryable.is_empty() && !retryable.contains(&code)
    }
}

impl ExitCodes {
    /// Reads a list such as `1, 2`; an empty text is an empty list.
    fn read(text: &str) -> Result<Self, Unusable> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let codes = text.split(',').map(|code| code.trim().parse());
        let codes = codes.collect::<Result<_, _>>().map_err(|_| Unusable::Codes)?;
        Ok(Self(codes))
    }
}

impl FromIterator<i32> for ExitCodes {
    fn from_iter<T: IntoIterator<Item = i32>>(codes: T) -> Self {
        Self(codes.into_iter().collect())
    }
}

/// Reads a grace; what is too long or below zero is cut, as AppWrapper does.
fn grace(text: &str) -> Result<SignedDuration, Unusable> {
    Ok(duration(text)?.clamp(SignedDuration::ZERO, FaultTolerance::LONGEST_GRACE))
}

/// Reads how long a success is kept; it can only be made shorter, as in AppWrapper.
fn success_ttl(text: &str) -> Result<SignedDuration, Unusable> {
    let asked = duration(text)?;
    Ok(if asked.is_positive() {
        asked.min(LONGEST_SUCCESS_TTL)
    } else {
        LONGEST_SUCCESS_TTL
    })
}

fn duration(text: &str) -> Result<SignedDuration, Unusable> {
    let text = text.trim();
    // The one duration that Go writes without a unit.
    if text == "0" {
        return Ok(SignedDuration::ZERO);
    }
    text.parse().map_err(|_| Unusable::Duration)
}

/// Why an annotation cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unusable {
    Name,
    Duration,
    Count,
    Codes,
}

impl Unusable {
    fn on(self, key: &str, value: &str) -> Diagnostic {
        let wrong = Diagnostic::error(
            Code::RetryTerms,
            format!("the annotation `{key}` cannot have the value `{value}`"),
        );
        match self {
            Self::Name => Diagnostic::error(Code::RetryTerms, format!("there is no annotation `{key}`"))
                .hint("take it away, or compare its spelling with `blueproof explain BP0810`"),
            Self::Duration => wrong
                .because("it is not a duration")
                .hint("write a number with a unit, such as `90s`, `5m` or `1h30m`"),
            Self::Count => wrong
                .because("it is not a whole number of retries")
                .hint("write a number such as `3`; with `0` it is never tried again"),
            Self::Codes => wrong
                .because("it is not a list of exit codes")
                .hint("write numbers with commas between them, such as `1, 2`"),
        }
    }
}
