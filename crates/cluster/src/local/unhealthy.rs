//! Which devices are unhealthy, so that no attempt is given them.
//!
//! Some are found unhealthy by a check of the present. Others failed under an attempt in a manner that only a reset ends and
//! that no later check finds: these are quarantined by a note beside the files that say which attempt has which device. The
//! note holds until the next boot, or until it is removed.

use std::{collections::BTreeMap, fs, io};

use blueproof_core::{attempt::read_regular, domain::AttemptId, gpu::DeviceUuid, ports::CallError};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use super::{
    devices::{Claims, Devices, LONGEST_CLAIM, is_foreign},
    files::{self, cannot},
};

/// What the kernel makes up anew at each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Returns which of these devices are unhealthy or quarantined, and why, as of the last check.
pub(super) fn unhealthy(
    units: &[DeviceUuid],
    seen: &Devices,
    claims: &Claims<'_>,
) -> Result<BTreeMap<DeviceUuid, Diagnostic>, CallError> {
    let mut unhealthy = BTreeMap::new();
    for unit in units {
        let is_listed = seen.units.as_ref().is_none_or(|units| units.contains(unit));
        let diagnostic = match seen.unhealthy.get(unit) {
            Some(why) => Some(seen_unhealthy(unit, why)),
            None if !is_listed => Some(seen_unhealthy(unit, "its driver does not list it any more")),
            None => claims.quarantined(unit)?,
        };
        unhealthy.extend(diagnostic.map(|diagnostic| (unit.clone(), diagnostic)));
    }
    Ok(unhealthy)
}

impl Claims<'_> {
    /// Quarantines a device: it failed under this attempt. Repeating it changes nothing.
    pub(super) fn quarantine(
        &self,
        attempt: AttemptId,
        unit: &DeviceUuid,
        at: Timestamp,
        why: &str,
    ) -> Result<(), CallError> {
        let _lock = self.lock()?;
        let path = self.note(unit);
        let note = format!("{}\nit failed under {attempt} at {at:.0}: {why}\n", boot());
        files::write_whole(&path, note.as_bytes()).map_err(|error| cannot("write", &path, &error))
    }

    /// Returns why a device is quarantined, if it is.
    fn quarantined(&self, unit: &DeviceUuid) -> Result<Option<Diagnostic>, CallError> {
        let path = self.note(unit);
        let note = match read_regular(&path, LONGEST_CLAIM) {
            Ok(note) => String::from_utf8_lossy(&note).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound || is_foreign(&error) => return Ok(None),
            Err(error) => return Err(cannot("read", &path, &error)),
        };
        let (noted_in, why) = note.split_once('\n').unwrap_or_default();
        Ok((noted_in == boot()).then(|| {
            let path = path.display();
            not_given(unit, why.trim()).hint(format!(
                "it is given again after the next boot; if it was reset meanwhile, remove {path}"
            ))
        }))
    }
}

fn seen_unhealthy(unit: &DeviceUuid, why: &str) -> Diagnostic {
    not_given(unit, why)
        .hint("see `nvidia-smi -q` and `dmesg`; it is given again as soon as its driver says that it is well")
}

fn not_given(unit: &DeviceUuid, why: &str) -> Diagnostic {
    Diagnostic::warning(Code::DevicesUnhealthy, format!("{unit} is given to no attempt")).because(why)
}

/// Returns which boot this is. A kernel that does not say has had one only.
fn boot() -> String {
    let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
    boot.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::RunId;

    use super::*;

    fn all() -> Vec<DeviceUuid> {
        ["GPU-0", "GPU-1", "MIG-2/0"]
            .map(|unit| DeviceUuid(unit.into()))
            .into()
    }

    fn seen(listed: Option<Vec<DeviceUuid>>, unhealthy: &[(&DeviceUuid, &str)]) -> Devices {
        let unhealthy = unhealthy
            .iter()
            .map(|(unit, why)| ((*unit).clone(), (*why).to_owned()));
        Devices {
            units: listed,
            unhealthy: unhealthy.collect(),
            description: String::new(),
        }
    }

    /// Returns what keeps each device from attempts: its cause.
    fn causes(seen: &Devices, claims: &Claims<'_>) -> Vec<(String, String)> {
        let unhealthy = unhealthy(&all(), seen, claims).expect("it can be read");
        let causes = unhealthy.into_iter();
        causes
            .map(|(unit, diagnostic)| (unit.0, diagnostic.causes.join("; ")))
            .collect()
    }

    #[test]
    fn a_device_that_is_seen_unhealthy_or_missing_is_left_out_and_one_that_is_not_seen_is_not() {
        let runs = tempfile::tempdir().expect("a folder");
        let claims = Claims::below(runs.path());
        let all = all();
        assert_eq!(causes(&seen(Some(all.clone()), &[]), &claims), []);
        assert_eq!(causes(&seen(None, &[]), &claims), [], "a driver may only be slow");
        let some = seen(Some(all[..2].to_vec()), &[(&all[0], "it is lost")]);
        let expected = [
            ("GPU-0".into(), "it is lost".into()),
            ("MIG-2/0".into(), "its driver does not list it any more".into()),
        ];
        assert_eq!(causes(&some, &claims), expected);
    }

    #[test]
    fn a_device_that_failed_is_quarantined_until_the_next_boot_or_until_its_note_is_removed() {
        let runs = tempfile::tempdir().expect("a folder");
        let claims = Claims::below(runs.path());
        let (all, at) = (all(), Timestamp::from_second(60).expect("small"));
        let well = seen(Some(all.clone()), &[]);
        let failed = RunId(7).attempt(2);
        for _ in 0..2 {
            let quarantined = claims.quarantine(failed, &all[2], at, "xids: XID 79");
            quarantined.expect("it can be written");
        }
        let why = "it failed under r-7.2 at 1970-01-01T00:01:00Z: xids: XID 79";
        assert_eq!(causes(&well, &claims), [("MIG-2/0".into(), why.into())]);

        let note = claims.note(&all[2]);
        let text = fs::read_to_string(&note).expect("it is there");
        fs::write(&note, text.replace(&boot(), "another boot")).expect("it is ours");
        assert_eq!(causes(&well, &claims), [], "it was booted again");
        fs::write(&note, &text).expect("it is ours");
        assert_eq!(causes(&well, &claims).len(), 1);
        fs::remove_file(note).expect("it is ours");
        assert_eq!(causes(&well, &claims), []);
    }
}
