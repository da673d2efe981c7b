//! How devices fare, for a person who asks, or as labels of a node.
//!
//! The labels go to a file, from which node-feature-discovery makes labels of the node: so nothing here needs rights in a
//! cluster. Whoever reads them moves work at each change, so they change only when something is sure.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_gpu::{
    collect::{Collected, Collector},
    health::{CheckId, CheckPolicy, Health, LabelChange, LabelPolicy, Labels},
};
use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::json;

use crate::{
    INFRASTRUCTURE,
    cli::{self, HealthFormat},
    exporter::open,
    files::{cannot, write_whole},
    health::HealthWatch,
    signals::DriverSignals,
    tell,
};

/// How long a look waits for a driver: one that nobody uses has to be loaded first.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// How much time there is between the readings of a single look.
const APART: Duration = Duration::from_millis(500);

/// So many looks may fail before labels expire, and so long may it take until somebody reads them: by default
/// node-feature-discovery does each minute.
const LOOKS: u32 = 3;
const BETWEEN_READS: Duration = Duration::from_secs(60);

/// The exit code for a machine that has a problem.
const PROBLEM: u8 = 1;

/// Looks once and says what is found, or again and again and keeps labels.
pub(crate) fn run(arguments: &cli::Health) -> Result<ExitCode, Diagnostic> {
    let collector = Collector::start(open(arguments.library.clone()));
    let watch = HealthWatch::by(policy(arguments.expect));
    match &arguments.labels {
        Some(path) => keep(&collector, &watch, path, arguments),
        None => Ok(look(&collector, &watch, arguments.output)),
    }
}

/// Returns what devices are held against. Where nobody says how many there should be, their number decides nothing.
fn policy(expect: Option<u32>) -> CheckPolicy {
    let mut policy = CheckPolicy {
        expected_devices: expect,
        ..CheckPolicy::default()
    };
    if expect.is_none() {
        policy.counting.remove(&CheckId::DeviceCount);
    }
    policy
}

/// Reads as often as the checks want, and prints what they find.
fn look(collector: &Collector, watch: &HealthWatch, format: HealthFormat) -> ExitCode {
    let more = watch.readings() - 1;
    let lasts = APART * u32::try_from(more).unwrap_or(u32::MAX);
    eprintln!("looking at the devices for {lasts:?} …");
    let mut collected = collector.collect(LOOK_WITHIN);
    let mut findings = watch.findings(&collected);
    for _ in 0..more {
        if let Some(Err(error)) = collected.reading.as_deref() {
            tell(&error.diagnostic);
            break;
        }
        thread::sleep(APART);
        collected = collector.collect(LOOK_WITHIN);
        findings = watch.findings(&collected);
    }
    let health = findings.health(watch.counting());
    let text = match format {
        HealthFormat::Text => format!("{findings}all in all: {health}\n"),
        HealthFormat::Json => format!("{:#}\n", json!({"health": health, "findings": findings})),
    };
    // Whoever closed the pipe has seen enough.
    let _ = io::stdout().write_all(text.as_bytes());
    match health {
        Health::Ok => ExitCode::SUCCESS,
        Health::Problem => ExitCode::from(PROBLEM),
        Health::Unknown => ExitCode::from(INFRASTRUCTURE),
    }
}

/// Keeps the labels in a file until the process is ended.
fn keep(
    collector: &Collector,
    watch: &HealthWatch,
    path: &Path,
    arguments: &cli::Health,
) -> Result<ExitCode, Diagnostic> {
    let every = Duration::from_secs(arguments.every.into());
    let mut signals = DriverSignals::listen().map_err(|error| {
        Diagnostic::error(Code::GpuReleased, "signals cannot be listened to").caused_by(&error)
    })?;
    let mut shown = kept(path)?;
    let mut policy = LabelPolicy {
        counting: watch.counting().clone(),
        ..LabelPolicy::default()
    };
    policy.ok.lasting = SignedDuration::from_secs(arguments.pass_after.into());
    // Labels hold for so long, whatever the clock is set to meanwhile.
    let (begun_at, begun) = (Timestamp::now(), Instant::now());
    let mut labels = Labels::resume(policy, begun_at, &shown);
    let holds_for = every * LOOKS + LOOK_WITHIN + BETWEEN_READS;
    let mut told = None;
    loop {
        let collected = collector.collect(LOOK_WITHIN);
        say_once(&collected, &mut told);
        let findings = watch.findings(&collected);
        let changes = labels.next(begun_at + begun.elapsed(), &findings);
        let new = changes
            .iter()
            .map(|change| (change.key.to_owned(), change.value.to_owned()));
        shown.extend(new);
        write_whole(path, written(&shown, Timestamp::now() + holds_for).as_bytes())?;
        changes.iter().for_each(say);
        signals.wait(every, collector);
    }
}

/// Says why nothing can be read, when that is so for another reason than before.
fn say_once(collected: &Collected, told: &mut Option<Code>) {
    let blind = collected
        .reading
        .as_deref()
        .and_then(|reading| reading.as_ref().err());
    let code = blind.map(|blind| blind.diagnostic.code);
    if let Some(blind) = blind.filter(|_| *told != code) {
        tell(&blind.diagnostic);
    }
    *told = code;
}

/// Returns the labels that stand in a file, which need not be there yet.
fn kept(path: &Path) -> Result<BTreeMap<String, String>, Diagnostic> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(parsed(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

/// Says what changed. Where nobody listens any more, the file is kept all the same.
fn say(LabelChange { key, value, why }: &LabelChange) {
    let _ = writeln!(io::stdout(), "{key}={value}: {why}");
}

fn parsed(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let labels = lines.filter_map(|line| line.split_once('='));
    labels
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the file as node-feature-discovery reads it. It makes labels of no line below the time at which they expire, so
/// that they go by themselves where nobody looks at devices any more.
fn written(labels: &BTreeMap<String, String>, expire_at: Timestamp) -> String {
    let lines = labels.iter().map(|(key, value)| format!("{key}={value}\n"));
    let expire_at = expire_at.round(Unit::Second).unwrap_or(expire_at);
    format!("# +expiry-time={expire_at}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_expire_by_themselves() {
        let labels = BTreeMap::from([("blueproof.dev/gpu-health".to_owned(), "ok".to_owned())]);
        let expire_at = Timestamp::from_millisecond(1_767_225_600_250).expect("it is a time");
        assert_eq!(
            written(&labels, expire_at),
            "# +expiry-time=2026-01-01T00:00:00Z\nblueproof.dev/gpu-health=ok\n"
        );
    }

    #[test]
    fn what_is_written_is_read_again_and_comments_are_not() {
        let labels = [
            ("autopilot.ibm.com/gpuhealth", ""),
            ("blueproof.dev/gpu-health", "unknown"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = BTreeMap::from(labels);
        let written = written(&labels, Timestamp::UNIX_EPOCH);
        assert_eq!(parsed(&written), labels);
        assert_eq!(parsed(&format!("# a=b\n\n{written}")), labels);
    }
}
