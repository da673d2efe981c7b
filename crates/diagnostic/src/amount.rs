//! Amounts as Kubernetes writes them: `500m`, `1.5`, `7.25Gi`.
//!
//! The grammar is Kubernetes' `resource.Quantity`; as there, what is finer than the unit is rounded up. What is counted is
//! the caller's matter: here are numbers.

use std::fmt;

/// A text that is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an amount: {why}")]
pub struct ParseAmountError {
    text: String,
    why: &'static str,
}

const TOO_LARGE: &str = "it is too large";

/// An amount in thousandths, exact: `2`, `500m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Millis(pub u64);

/// An amount in ones, exact, in the largest of the units `Ki` to `Ei` in which it has at most two decimals: `7.25Gi` and not
/// `7424Mi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary(pub u64);

/// An amount of memory or disk in the largest unit of which there is one: to a tenth below a hundred of it, and whole above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounded(pub u64);

/// Reads a quantity and returns it in units of one `per_one`th, rounded up.
pub fn parse(text: &str, per_one: u128) -> Result<u128, ParseAmountError> {
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

impl ParseAmountError {
    /// Returns what is said of an amount that cannot be counted.
    pub fn too_large(text: &str) -> Self {
        Self {
            text: text.into(),
            why: TOO_LARGE,
        }
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{}", self.0 / 1000)
        } else {
            write!(f, "{}m", self.0)
        }
    }
}

impl fmt::Display for Binary {
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
        let bytes = u128::from(self.0);
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
            assert_eq!(parse(text, 1000), Ok(millis), "{text}");
        }
        for (text, bytes) in [
            ("512Mi", 512 << 20),
            ("1G", 1_000_000_000),
            ("1.5Ki", 1536),
            ("0", 0),
            ("1m", 1),
        ] {
            assert_eq!(parse(text, 1), Ok(bytes), "{text}");
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
            assert_eq!(Rounded(bytes).to_string(), text, "{bytes}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "", "-1", "1 Gi", "Gi", "1.2.3", "1gb", "1KI", "1e99", "+-1", "0x10",
        ] {
            assert!(parse(text, 1).is_err(), "{text}");
        }
    }

    #[test]
    fn an_exact_amount_has_the_largest_unit_that_it_can_have() {
        for (millis, text) in [(0, "0"), (500, "500m"), (1500, "1500m"), (2000, "2")] {
            assert_eq!(Millis(millis).to_string(), text);
        }
        for (bytes, text) in [(1000, "1000"), (7424 << 20, "7.25Gi"), (1025 << 20, "1025Mi")] {
            assert_eq!(Binary(bytes).to_string(), text);
        }
    }
}
