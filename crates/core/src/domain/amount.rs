//! Amounts of what is counted in the queue, as integers, read and written as Kubernetes quantities.
//!
//! How they are written is not here: [`blueproof_diagnostic::amount`] reads and writes them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use blueproof_diagnostic::amount::{self, Binary, Millis, ParseAmountError, Rounded};
use blueproof_queue::{Quantity, amount_in_words};
use serde::{Deserialize, Serialize};

/// Processor time, in thousandths of a core: `500m`, `2`, `1.5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^([0-9]{1,6}|[0-9]{1,6}\.[0-9]{1,3}|[0-9]{1,9}m)$")))]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(u64);

/// Memory or disk, in bytes: `512Mi`, `2Gi`, `1G`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^([0-9]{1,15}|[0-9]{1,12}(Ki|k)|[0-9]{1,9}(Mi|M)|[0-9]{1,6}(Gi|G)|[0-9]{1,4}(Ti|T))$")))]
#[serde(try_from = "String", into = "String")]
pub struct Bytes(pub u64);

/// A count of GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gpus(pub u32);

/// What somebody asks for, is promised, or has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resources {
    /// Processor time.
    pub cpu: Cpus,
    /// Memory.
    pub memory: Bytes,
    /// GPUs.
    #[serde(default)]
    pub gpu: Gpus,
}

impl Cpus {
    /// Returns `cores` whole cores.
    pub const fn cores(cores: u32) -> Self {
        Self(cores as u64 * 1000)
    }

    /// Returns an amount of thousandths of a core.
    pub const fn millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Returns the amount in thousandths of a core.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the amount in cores.
    #[expect(clippy::cast_precision_loss, reason = "no machine has that many")]
    pub fn as_cores(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Returns how many threads may run at once on this, at least one.
    pub fn threads(self) -> u64 {
        (self.0 / 1000).max(1)
    }
}

impl Bytes {
    /// Returns the amount as people read it, with at most one decimal: `512Mi`, `7.3Gi`, `118Mi`. What is to be read back
    /// by a program is written with `Display`, which is exact.
    pub fn rounded(self) -> Rounded {
        Rounded(self.0)
    }
}

impl Resources {
    /// Returns the sum, or `None` when it is more than can be counted.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            cpu: Cpus(self.cpu.0.checked_add(other.cpu.0)?),
            memory: Bytes(self.memory.0.checked_add(other.memory.0)?),
            gpu: Gpus(self.gpu.0.checked_add(other.gpu.0)?),
        })
    }

    /// Returns the difference, or `None` when `other` is more than this in any kind.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self {
            cpu: Cpus(self.cpu.0.checked_sub(other.cpu.0)?),
            memory: Bytes(self.memory.0.checked_sub(other.memory.0)?),
            gpu: Gpus(self.gpu.0.checked_sub(other.gpu.0)?),
        })
    }

    /// Returns what is left of this after taking `other` away, kind by kind, never less than nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            cpu: Cpus(self.cpu.0.saturating_sub(other.cpu.0)),
            memory: Bytes(self.memory.0.saturating_sub(other.memory.0)),
            gpu: Gpus(self.gpu.0.saturating_sub(other.gpu.0)),
        }
    }

    /// Returns the sum, or the most that can be counted of each kind.
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            cpu: Cpus(self.cpu.0.saturating_add(other.cpu.0)),
            memory: Bytes(self.memory.0.saturating_add(other.memory.0)),
            gpu: Gpus(self.gpu.0.saturating_add(other.gpu.0)),
        }
    }

    /// Returns this amount `count` times, or `None` when it is more than can be counted.
    pub fn checked_mul(self, count: u32) -> Option<Self> {
        Some(Self {
            cpu: Cpus(self.cpu.0.checked_mul(u64::from(count))?),
            memory: Bytes(self.memory.0.checked_mul(u64::from(count))?),
            gpu: Gpus(self.gpu.0.checked_mul(count)?),
        })
    }

    /// Returns whether `available` holds at least this much of every kind.
    pub fn fits(self, available: Self) -> bool {
        available.checked_sub(self).is_some()
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Millis(self.0).fmt(f)
    }
}

impl fmt::Display for Bytes {
    /// Writes the exact amount in the largest unit in which it has at most two decimals: `7.25Gi` and not `7424Mi`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Binary(self.0).fmt(f)
    }
}

impl fmt::Display for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Resources {
    /// Writes `2 cpu, 512Mi memory, 1 gpu`; GPUs only where there are some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cpu, {} memory", self.cpu, self.memory.rounded())?;
        match self.gpu {
            Gpus(0) => Ok(()),
            some => write!(f, ", {some} gpu"),
        }
    }
}

/// Amounts of what every machine has, and of further resources, to be told in words.
#[derive(Debug, Clone, Copy)]
pub struct Amounts<'a> {
    /// Of what every machine has.
    pub resources: Resources,
    /// Of further resources, by their Kubernetes names, in Kueue's units.
    pub further: &'a BTreeMap<String, Quantity>,
}

impl fmt::Display for Amounts<'_> {
    /// Writes `2 cpu, 512Mi memory, 1 gpu, 2 amd.com/gpu`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.resources)?;
        for (resource, amount) in self.further {
            write!(f, ", {} {resource}", amount_in_words(resource, *amount))?;
        }
        Ok(())
    }
}

impl FromStr for Cpus {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        counted(text, 1000).map(Self)
    }
}

impl FromStr for Bytes {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        counted(text, 1).map(Self)
    }
}

impl TryFrom<String> for Cpus {
    type Error = ParseAmountError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<String> for Bytes {
    type Error = ParseAmountError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Cpus> for String {
    fn from(amount: Cpus) -> Self {
        amount.to_string()
    }
}

impl From<Bytes> for String {
    fn from(amount: Bytes) -> Self {
        amount.to_string()
    }
}

fn counted(text: &str, per_one: u128) -> Result<u64, ParseAmountError> {
    u64::try_from(amount::parse(text, per_one)?).map_err(|_| ParseAmountError::too_large(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_can_be_counted_is_refused() {
        for text in ["99Ei", "-1", "1e99"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_read_back_what_they_print() {
        for bytes in [0, 1, 1023, 1024, 3 << 30, u64::MAX] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        for (bytes, text) in [
            (7424 << 20, "7.25Gi"),
            (11_776 << 20, "11.5Gi"),
            (512 << 20, "512Mi"),
            (1025 << 20, "1025Mi"),
            (1000, "1000"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
        for millis in [0, 1, 999, 1000, 1500] {
            assert_eq!(Cpus::millis(millis).to_string().parse(), Ok(Cpus::millis(millis)));
        }
    }

    #[test]
    fn further_resources_are_told_by_their_names() {
        let further = [("amd.com/gpu", 2), ("ephemeral-storage", 10 << 30)];
        let further = further.map(|(resource, amount)| (resource.to_owned(), Quantity(amount)));
        let asked = Amounts {
            resources: Resources {
                cpu: Cpus::cores(1),
                memory: Bytes(1 << 30),
                gpu: Gpus(0),
            },
            further: &further.into(),
        };
        assert_eq!(
            asked.to_string(),
            "1 cpu, 1Gi memory, 2 amd.com/gpu, 10Gi ephemeral-storage"
        );
    }

    #[test]
    fn a_sum_that_cannot_be_counted_is_none() {
        let most = Resources {
            memory: Bytes(u64::MAX),
            ..Resources::default()
        };
        assert_eq!(
            most.checked_add(Resources {
                memory: Bytes(1),
                ..Resources::default()
            }),
            None
        );
        assert!(!most.fits(Resources::default()));
    }
}
