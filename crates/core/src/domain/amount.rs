//! Amounts of what is counted in the queue, as integers, read and written as Kubernetes quantities.
//!
//! The grammar is Kubernetes' `resource.Quantity`; as there, what is finer than the unit is rounded up.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Processor time, in thousandths of a core: `500m`, `2`, `1.5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(u64);

/// Memory or disk, in bytes: `512Mi`, `2Gi`, `1G`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// A text that is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an amount: {why}")]
pub struct ParseAmountError {
    text: String,
    why: &'static str,
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
        Rounded(self)
    }
}

/// An amount of memory or disk in the largest unit of which there is one: to a tenth below a hundred of it, and whole above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounded(Bytes);

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
        if self.0.is_multiple_of(1000) {
            write!(f, "{}", self.0 / 1000)
        } else {
            write!(f, "{}m", self.0)
        }
    }
}

impl fmt::Display for Bytes {
    /// Writes the exact amount in the largest unit in which it has at most two decimals: `7.25Gi` and not `7424Mi`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let amount = u128::from(self.0);
        let fits =
            |power: &usize| amount >= 1 << (10 * power) && (amount * 100).is_multiple_of(1 << (10 * power));
        let power = (1..UNITS.len()).rev().find(fits).unwrap_or(0);
        let hundredths = (amount * 100) >> (10 * power);
        let (whole, fraction) = (hundredths / 100, format!("{:02}", hundredths % 100));
        let point = if fraction == "00" { "" } else { "." };
        write!(
            f,
            "{whole}{point}{}{}",
            fraction.trim_end_matches('0'),
            UNITS[power]
        )
    }
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let bytes = u128::from(self.0.0);
        if bytes == 0 {
            return f.write_str("0");
        }
        if bytes < 1024 {
            return write!(f, "{bytes} B");
        }
        // One that rounds up to 1024 of a unit is one of the next.
        let tenths = |power: usize| (bytes * 10 + (1 << (10 * power - 1))) >> (10 * power);
        let power = (1..UNITS.len()).find(|power| tenths(*power) < 10_235);
        let power = power.unwrap_or(UNITS.len());
        let unit = UNITS[power - 1];
        match tenths(power) {
            tenths @ 1000.. => write!(f, "{}{unit}", (tenths + 5) / 10),
            tenths if tenths % 10 == 0 => write!(f, "{}{unit}", tenths / 10),
            tenths => write!(f, "{}.{}{unit}", tenths / 10, tenths % 10),
        }
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
    u64::try_from(quantity(text, per_one)?).map_err(|_| too_large(text))
}

/// Reads a quantity and returns it in units of one `per_one`th, rounded up.
pub(crate) fn quantity(text: &str, per_one: u128) -> Result<u128, ParseAmountError> {
    let refuse = |why| ParseAmountError {
        text: text.into(),
        why,
    };
    if text.starts_with('-') {
        return Err(refuse("it is negative"));
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let number_ends = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_ends);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return Err(refuse(
            "it must be a number with an optional unit, such as 2, 500m, 1.5 or 512Mi",
        ));
    }
    let (up, down) = factor(suffix)
        .ok_or_else(|| refuse("the unit must be one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei"))?;
    let scaled = || {
        let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        let below = 10_u128
            .checked_pow(u32::try_from(fraction.len()).ok()?)?
            .checked_mul(down)?;
        let above = digits.checked_mul(up)?.checked_mul(per_one)?;
        Some(above.div_ceil(below))
    };
    scaled().ok_or_else(|| refuse(TOO_LARGE))
}

/// Returns what is said of an amount that cannot be counted.
pub(crate) fn too_large(text: &str) -> ParseAmountError {
    ParseAmountError {
        text: text.into(),
        why: TOO_LARGE,
    }
}

const TOO_LARGE: &str = "it is too large";

/// Returns what a unit multiplies with and divides by.
fn factor(suffix: &str) -> Option<(u128, u128)> {
    let binary = |power: u32| Some((1024_u128.pow(power), 1));
    let decimal = |power: u32| Some((1000_u128.pow(power), 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => exponential(exponent),
    }
}

fn exponential(suffix: &str) -> Option<(u128, u128)> {
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let ten = 10_u128.checked_pow(power.unsigned_abs())?;
    Some(if power < 0 { (1, ten) } else { (ten, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        for (text, millis) in [
            ("2", 2000),
            ("500m", 500),
            ("1.5", 1500),
            (".5", 500),
            ("0.0001", 1), // finer than the unit: rounded up
            ("1e3", 1_000_000),
            ("1E-1", 100),
            ("+2.", 2000),
        ] {
            assert_eq!(text.parse(), Ok(Cpus::millis(millis)), "{text}");
        }
        for (text, bytes) in [
            ("512Mi", 512 << 20),
            ("1G", 1_000_000_000),
            ("1.5Ki", 1536),
            ("0", 0),
            ("1m", 1),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn people_read_memory_with_at_most_one_decimal() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023 B"),
            (1024, "1Ki"),
            (1536, "1.5Ki"),
            (118 << 20, "118Mi"),
            ((1 << 20) - 1, "1Mi"),
            (1_048_000, "1023Ki"),
            (1_048_200, "1Mi"),
            (7424 << 20, "7.3Gi"),
            (11776 << 20, "11.5Gi"),
            (24_684_092 << 10, "23.5Gi"),
            (3 << 30, "3Gi"),
            (1000 << 20, "1000Mi"),
            (u64::MAX, "16Ei"),
        ] {
            assert_eq!(Bytes(bytes).rounded().to_string(), text, "{bytes}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "", "-1", "1 Gi", "Gi", "1.2.3", "1gb", "1KI", "99Ei", "1e99", "+-1", "0x10",
        ] {
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
