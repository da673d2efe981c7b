//! Findings and judgements as a few lines of text, for a terminal of 80 columns. Nothing is decided here.

use std::fmt;

use blueproof_core::gpu::DeviceUuid;

use super::{Answer, AttemptVerdict, Blame, Finding, Findings, Judgement, Leftovers};

const COLUMNS: usize = 80;

/// Returns words behind a heading, broken into lines that stand below each other. What has no blank is not broken.
pub(super) fn wrapped(heading: &str, words: &str) -> String {
    let indent = heading.chars().count();
    let (mut text, mut column) = (heading.to_owned(), indent);
    for (at, word) in words.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > COLUMNS {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        group(
            f,
            "machine",
            &self
                .0
                .iter()
                .filter(|finding| finding.device.is_none())
                .collect::<Vec<_>>(),
        )?;
        for device in self.devices() {
            let of_it = self
                .0
                .iter()
                .filter(|finding| finding.device.as_ref() == Some(device));
            group(f, &device.0, &of_it.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// Writes what was found of one thing: problems and what is unknown in words, the rest by name.
fn group(f: &mut fmt::Formatter<'_>, name: &str, findings: &[&Finding]) -> fmt::Result {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(f, "{name}")?;
    for finding in findings {
        if let Some(severity) = finding.answer.severity() {
            line(f, &severity.to_string(), finding)?;
        }
    }
    for finding in findings {
        if let Answer::Unknown { .. } = finding.answer
            && !finding.answer.is_not_done_here()
        {
            line(f, "unknown", finding)?;
        }
    }
    names(f, "ok", findings.iter().filter(|finding| finding.answer.is_ok()))?;
    let elsewhere = findings
        .iter()
        .filter(|finding| finding.answer.is_not_done_here());
    names(f, "not done", elsewhere)
}

fn line(f: &mut fmt::Formatter<'_>, heading: &str, finding: &Finding) -> fmt::Result {
    let words = format!("{}: {}", finding.check, finding.answer);
    writeln!(f, "{}", wrapped(&format!("  {heading:<10}"), &words))
}

fn names<'a>(
    f: &mut fmt::Formatter<'_>,
    heading: &str,
    findings: impl Iterator<Item = &'a &'a Finding>,
) -> fmt::Result {
    let names = findings.map(|finding| match finding.check.needs() {
        Some(needs) if finding.answer.is_not_done_here() => format!("{} needs {needs}", finding.check),
        Some(_) | None => finding.check.to_string(),
    });
    let names = Vec::from_iter(names).join(", ");
    if names.is_empty() {
        return Ok(());
    }
    writeln!(f, "{}", wrapped(&format!("  {heading:<10}"), &names))
}

impl fmt::Display for AttemptVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfrastructureFault => "infrastructure fault",
            Self::JobFault => "job fault",
            Self::Clean => "clean",
            Self::Unclear => "unclear",
        })
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict)?;
        if self.job_erred_too() {
            let words = "the job erred as well; on a machine with a fault of its own that proves nothing";
            writeln!(f, "{}", wrapped("  ", words))?;
        }
        for evidence in &self.evidence {
            let heading = match evidence.blame {
                Blame::Infrastructure => "machine",
                Blame::Job => "job",
                Blame::Nobody => "note",
            };
            let words = format!("{}{}", of(evidence.device.as_ref()), evidence.words);
            writeln!(f, "{}", wrapped(&format!("  {heading:<10}"), &words))?;
        }
        for finding in &self.unknown {
            let words = format!(
                "{}{}: {}",
                of(finding.device.as_ref()),
                finding.check,
                finding.answer
            );
            writeln!(f, "{}", wrapped("  unknown   ", &words))?;
        }
        self.leftovers.fmt(f)
    }
}

fn of(device: Option<&DeviceUuid>) -> String {
    device.map(|device| format!("{device}: ")).unwrap_or_default()
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for process in &self.processes {
            let memory = match process.memory {
                Some(bytes) => format!("{} MiB", bytes.0 >> 20),
                None => "memory that is not told".to_owned(),
            };
            let words = format!("{}: process {} with {memory}", process.place, process.pid);
            writeln!(f, "{}", wrapped("  left      ", &words))?;
        }
        for memory in &self.memory {
            let (before, after) = (memory.before.0 >> 20, memory.after.0 >> 20);
            let words = format!("{}: {after} MiB in use, and {before} MiB before", memory.place);
            writeln!(f, "{}", wrapped("  left      ", &words))?;
        }
        for unseen in &self.unseen {
            let words = format!("{}: {}", unseen.place, unseen.words);
            writeln!(f, "{}", wrapped("  unknown   ", &words))?;
        }
        Ok(())
    }
}
