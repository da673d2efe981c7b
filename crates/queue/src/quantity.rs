//! Amounts of one resource, in Kueue's units: cpu in thousandths, memory in bytes, everything else in ones.

use std::fmt;

use blueproof_diagnostic::amount::{self, Millis, ParseAmountError, Rounded};
use serde::{Deserialize, Serialize};

/// An amount of one resource, exact, or without a limit.
///
/// Sums and differences keep to the ends of the range instead of passing them, and what is unlimited stays so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantity(pub i64);

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// More than can be counted.
    pub const UNLIMITED: Self = Self(i64::MAX);

    /// Reads an amount of a resource as Kubernetes writes it, such as `1500m`, `2` or `7.25Gi`, rounded up to a whole unit.
    ///
    /// # Errors
    /// What is no amount, is negative, or is more than can be counted.
    pub fn of(resource: &str, text: &str) -> Result<Self, ParseAmountError> {
        let per_one = if resource == "cpu" { 1000 } else { 1 };
        let units = amount::parse(text, per_one)?;
        i64::try_from(units)
            .map(Self)
            .map_err(|_| ParseAmountError::too_large(text))
    }

    /// Returns whether there is no limit.
    pub fn is_unlimited(self) -> bool {
        self == Self::UNLIMITED
    }

    /// Returns the sum; with anything unlimited it is unlimited.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        if self.is_unlimited() || other.is_unlimited() {
            return Self::UNLIMITED;
        }
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, which may be below zero. Taking what is unlimited from what is not leaves the least
    /// there is; taking it from itself leaves nothing.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        match (self.is_unlimited(), other.is_unlimited()) {
            (true, true) => Self::ZERO,
            (true, false) => Self::UNLIMITED,
            (false, true) => Self(i64::MIN),
            (false, false) => Self(self.0.saturating_sub(other.0)),
        }
    }

    /// Returns this, or nothing when it is below zero.
    #[must_use]
    pub fn or_zero(self) -> Self {
        self.max(Self::ZERO)
    }

    /// Returns this amount `count` times.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        if self.is_unlimited() && count > 0 {
            return self;
        }
        Self(self.0.saturating_mul(i64::from(count)))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("unlimited");
        }
        write!(f, "{}", self.0)
    }
}

/// Returns an amount of a resource as people read it: memory with at most one decimal.
pub fn amount_in_words(resource: &str, quantity: Quantity) -> String {
    if quantity.is_unlimited() {
        return quantity.to_string();
    }
    let count = u64::try_from(quantity.0).unwrap_or_default();
    match resource {
        "cpu" => Millis(count).to_string(),
        "memory" | "ephemeral-storage" => Rounded(count).to_string(),
        _ => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_kueues_units() {
        for (resource, text, units) in [
            ("cpu", "1500m", 1500),
            ("cpu", "2", 2000),
            ("memory", "7.25Gi", 7424 << 20),
            ("nvidia.com/gpu", "8", 8),
            ("cpu", "0.0001", 1),
        ] {
            assert_eq!(
                Quantity::of(resource, text),
                Ok(Quantity(units)),
                "{text} {resource}"
            );
        }
        for text in ["", "-1", "many", "9Ei"] {
            assert!(Quantity::of("memory", text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_unlimited_stays_so() {
        let (some, all) = (Quantity(7), Quantity::UNLIMITED);
        assert_eq!(some.plus(all), all);
        assert_eq!(all.minus(some), all);
        assert_eq!(all.minus(all), Quantity::ZERO);
        assert_eq!(some.minus(all), Quantity(i64::MIN));
        assert_eq!(Quantity(i64::MAX - 1).plus(Quantity(9)), all);
        assert_eq!(Quantity(i64::MIN).minus(some), Quantity(i64::MIN));
    }
}
