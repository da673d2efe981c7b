//! Times and sizes as the page writes them.

use blueproof_core::domain::Bytes;
use jiff::Timestamp;

pub(super) use crate::text::duration;

pub(super) fn size(bytes: Bytes) -> String {
    let mut amount = bytes.0 as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].iter();
    let mut unit = units.next().expect("there are units");
    while amount >= 1024.0
        && let Some(larger) = units.next()
    {
        amount /= 1024.0;
        unit = larger;
    }
    if *unit == "B" {
        format!("{amount} B")
    } else {
        format!("{amount:.1} {unit}")
    }
}

/// Returns a share of one, in percent.
pub(super) fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

pub(super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
