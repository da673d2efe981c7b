//! Amounts as people say them: binary sizes and core-seconds.

use blueproof_core::domain::Bytes;
use jiff::SignedDuration;

/// Returns a size as `118 MiB`: a tenth below ten units, none above.
pub(crate) fn size(bytes: Bytes) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes.0 < 1024 {
        return format!("{} B", bytes.0);
    }
    // In tenths, so that rounding up to 1024 goes on to the next unit.
    let mut tenths = u128::from(bytes.0) * 10;
    let mut unit = None;
    for name in UNITS {
        tenths = (tenths + 512) / 1024;
        unit = Some(name);
        if tenths < 10_235 {
            break;
        }
    }
    let unit = unit.expect("there are units");
    if tenths < 100 {
        return format!("{}.{} {unit}", tenths / 10, tenths % 10);
    }
    format!("{} {unit}", (tenths + 5) / 10)
}

/// Returns processor time as `1.2 cpu-s`.
pub(crate) fn seconds(time: SignedDuration) -> String {
    format!("{:.1} cpu-s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (118 << 20, "118 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(size(Bytes(bytes)), text);
        }
    }
}
