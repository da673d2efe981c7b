//! A job's summary as Markdown, for GitHub's step summaries.

use std::fmt::Write as _;

use blueproof_diagnostic::character::is_unseen;
use jiff::Unit;

use super::{
    summary::{DeviceSummary, JobSummary, Silence},
    usage_record::{MemoryOf, Source},
};
use crate::health::{AttemptVerdict, Evidence};

/// What stands where nothing is known.
const UNKNOWN: &str = "–";

/// No model or name is longer; what somebody made up may be.
const NAME_AT_MOST: usize = 80;

/// A share that would be shown as 100 % is all there is.
const ALMOST_ALL: f64 = 0.995;

impl JobSummary {
    /// Returns it as Markdown for a job's step summary. Names from outside can neither format, link, mention nor end a cell.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("### GPU use of {}\n\n", code(&self.holder.0));
        if self.devices.is_empty() {
            text += &without_devices(self);
            return text;
        }
        text += "| device | allocated | busy | peak | peak memory | energy | errors | seen |\n";
        text += "|---|--:|--:|--:|--:|--:|---|--:|\n";
        for device in &self.devices {
            text += &row(device);
        }
        if self.devices.len() > 1 {
            text += &sums(self);
        }
        writeln!(text, "\n{}", figures(self)).expect("a string takes all");
        if let Some(verdict) = self.verdict {
            writeln!(text, "\n{}", judged(verdict)).expect("a string takes all");
            for evidence in &self.evidence {
                writeln!(text, "- {}", evidence_words(evidence)).expect("a string takes all");
            }
        }
        if let Some(note) = cut_short(self) {
            writeln!(text, "\n{note}").expect("a string takes all");
        }
        if let Some(why) = &self.devices_unknown {
            writeln!(text, "\nIt may have had more GPUs: {}.", code(why)).expect("a string takes all");
        }
        if let Some(note) = unseen(self) {
            writeln!(text, "\n{note}").expect("a string takes all");
        }
        for note in notes(self) {
            writeln!(text, "\n{note}").expect("a string takes all");
        }
        text
    }
}

/// Returns that whoever watched was killed.
fn cut_short(job: &JobSummary) -> Option<String> {
    let seen_until = job.seen_until.filter(|_| job.watch_ended_early)?;
    let seen_until = seen_until.round(Unit::Second).unwrap_or(seen_until);
    Some(format!(
        "**The watch ended early.** Whoever watched was killed: what came after {seen_until} nobody saw."
    ))
}

fn without_devices(job: &JobSummary) -> String {
    match &job.devices_unknown {
        Some(why) => format!("It is not known which GPUs it had: {}.\n", code(why)),
        None => "It had no GPU.\n".to_owned(),
    }
}

fn row(device: &DeviceSummary) -> String {
    let cells = [
        name(device),
        seconds(Some(device.allocated_seconds)),
        seconds(device.busy_seconds),
        percent(device.peak_utilization),
        bytes(device.peak_memory_bytes),
        joules(device.energy_joules),
        errors(device),
        percent(device.coverage.busy),
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// Returns who was at fault, in words.
fn judged(verdict: AttemptVerdict) -> &'static str {
    match verdict {
        AttemptVerdict::InfrastructureFault => "**The machine was at fault.**",
        AttemptVerdict::JobFault => "The job made an error on its GPUs.",
        AttemptVerdict::Clean => "No fault of the GPUs was found.",
        AttemptVerdict::Unclear => "No fault of the GPUs was found, and not all of them is known.",
    }
}

fn evidence_words(evidence: &Evidence) -> String {
    match &evidence.device {
        Some(device) => format!("{}: {}", code(&device.0), code(&evidence.words)),
        None => code(&evidence.words),
    }
}

fn sums(job: &JobSummary) -> String {
    let cells = [
        "all".to_owned(),
        seconds(job.allocated_gpu_seconds),
        seconds(job.busy_gpu_seconds),
        percent(job.figures.peak_gpu),
        bytes(job.figures.peak_gpu_memory_bytes),
        joules(job.energy_joules),
        String::new(),
        String::new(),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn figures(job: &JobSummary) -> String {
    let figures = &job.figures;
    format!(
        "Average GPU {} · average CPU {} · queued {} · took {}",
        percent(figures.average_gpu),
        percent(figures.average_cpu),
        seconds(figures.average_queue_seconds),
        seconds(figures.average_build_seconds),
    )
}

fn name(device: &DeviceSummary) -> String {
    let mut name = device.index.map(|index| format!("{index}: ")).unwrap_or_default();
    let words = [&device.model, &device.profile];
    let words: Vec<_> = words.into_iter().flatten().map(|word| code(word)).collect();
    name += &if words.is_empty() {
        code(&device.device.0)
    } else {
        words.join(" ")
    };
    if device.shared {
        name += ", shared";
    }
    name
}

fn errors(device: &DeviceSummary) -> String {
    let count = |(xid, count): (&u64, &u32)| match count {
        1 => format!("XID {xid}"),
        _ => format!("XID {xid} ({count} times)"),
    };
    let mut told: Vec<_> = device.xids.iter().map(count).collect();
    match device.silence {
        Some(Silence::Lost) => told.push("it was lost".to_owned()),
        Some(Silence::Hung) => told.push("it did not answer".to_owned()),
        None => {}
    }
    match (told.is_empty(), device.listened_to) {
        (true, true) => "none".to_owned(),
        (true, false) => UNKNOWN.to_owned(),
        (false, _) => told.join(", "),
    }
}

/// A share of the time for which something was seen.
type Share = fn(&DeviceSummary) -> Option<f64>;

/// Returns of what not all of the time was seen.
fn unseen(job: &JobSummary) -> Option<String> {
    let of: [(&str, Share); 3] = [
        ("how busy a device was", |device| device.coverage.busy),
        ("how full its memory was", |device| device.coverage.memory),
        ("what it drew", |device| device.coverage.energy),
    ];
    let is_short = |of: Share| {
        let mut seen = job.devices.iter().filter_map(of);
        seen.any(|seen| seen < ALMOST_ALL)
    };
    let short = of.into_iter().filter(|(_, of)| is_short(*of));
    let short: Vec<_> = short.map(|(what, _)| what).collect();
    if short.is_empty() {
        return None;
    }
    Some(format!(
        "Not all of the time it was seen {}. What was not seen is in no figure: they are of the rest.",
        short.join(", nor ")
    ))
}

/// Returns what a reader must know to take the figures for what they are.
fn notes(job: &JobSummary) -> Vec<&'static str> {
    let any = |is_so: fn(&DeviceSummary) -> bool| job.devices.iter().any(is_so);
    let notes = [
        (
            any(|device| !device.listened_to),
            "Not all drivers could be listened to all the time: there may have been errors that were not told.",
        ),
        (
            any(|device| device.shared),
            "Shared devices: seconds and joules are this job's share. What a device draws at rest is charged to nobody.",
        ),
        (
            any(|device| matches!(device.busy_source, Some(Source::Moments | Source::Both))),
            "How busy a device was is partly known from single moments only.",
        ),
        (
            any(|device| device.peak_memory_of == Some(MemoryOf::Device)),
            "Peak memory is all that was used on the device, not only by this job's processes.",
        ),
        (
            any(|device| device.reloads > 0),
            "The driver was loaded anew. What was drawn just before is not known.",
        ),
        (
            any(|device| device.coverage.ignored_snapshots + device.coverage.late_edges > 0),
            "The clock went back, or something was told late. Such readings were left out.",
        ),
    ];
    let true_ones = notes.into_iter().filter(|(is_so, _)| *is_so);
    true_ones.map(|(_, note)| note).collect()
}

/// Returns a text from outside so that nothing in it is more than text: not for Markdown, HTML or tables, and, being in a
/// `code`, neither for what GitHub does with mentions, emoji and numbers of issues.
fn code(text: &str) -> String {
    let mut safe = String::from("<code>");
    for char in text.chars().take(NAME_AT_MOST) {
        match char {
            _ if char.is_control() || is_unseen(char) => safe.push('\u{fffd}'),
            ' ' | '-' => safe.push(char),
            _ if char.is_alphanumeric() => safe.push(char),
            _ => write!(safe, "&#{};", u32::from(char)).expect("a string takes all"),
        }
    }
    if text.chars().nth(NAME_AT_MOST).is_some() {
        safe.push('…');
    }
    safe + "</code>"
}

fn seconds(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else {
        return UNKNOWN.to_owned();
    };
    // What would be shown as 60.0 is a minute.
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes} min {seconds:02} s"),
        _ => format!("{hours} h {minutes:02} min"),
    }
}

fn percent(share: Option<f64>) -> String {
    match share {
        // Rounded up it would say that nothing is missing.
        Some(share) if (ALMOST_ALL..1.0).contains(&share) => ">99 %".to_owned(),
        Some(share) => format!("{:.0} %", share * 100.0),
        None => UNKNOWN.to_owned(),
    }
}

fn bytes(bytes: Option<u64>) -> String {
    const GIBIBYTE: f64 = 1_073_741_824.0;
    bytes.map_or(UNKNOWN.to_owned(), |bytes| {
        format!("{:.1} GiB", bytes as f64 / GIBIBYTE)
    })
}

fn joules(joules: Option<f64>) -> String {
    match joules {
        // What would be shown as 1000 J is a kilojoule.
        Some(joules) if joules < 999.5 => format!("{joules:.0} J"),
        Some(joules) => format!("{:.1} kJ", joules / 1e3),
        None => UNKNOWN.to_owned(),
    }
}
