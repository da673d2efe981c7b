//! What happened in a simulation, one line each: when, who, and why.

use blueproof_queue::amount_in_words;
use blueproof_simulation::{EventKind, EvictionCause, Fewer, History, HistoryEvent, Scenario, retry::Reason};
use jiff::SignedDuration;

use super::comparison::amounts;
use crate::output::line;

/// Returns a history as people read it.
pub(crate) fn transcript(scenario: &Scenario, history: &History) -> String {
    let told = Told { scenario, history };
    let lines = history.events.iter().map(|moment| told.line(moment));
    let left = told
        .left()
        .map(|line| format!("{:>8}  {line}\n", clock(history.end)));
    lines.chain(left).collect()
}

struct Told<'a> {
    scenario: &'a Scenario,
    history: &'a History,
}

impl Told<'_> {
    fn line(&self, moment: &HistoryEvent) -> String {
        let what = match &moment.what {
            EventKind::Remark { text } => return format!("\n{}\n", line(text)),
            EventKind::Arrived { job } => format!("{} asks in {}", self.name(*job), self.queue(*job)),
            EventKind::Admitted { job } => self.admitted(*job, moment.at),
            EventKind::Evicted { job, cause } => {
                format!("{} has to go {}", self.name(*job), self.cause(cause))
            }
            EventKind::Pending { job } => {
                format!("{} finds no nodes with room for all its pods", self.name(*job))
            }
            EventKind::Running { job } => format!("the pods of {} run", self.name(*job)),
            EventKind::PodFailed { job, exit_code } => {
                format!("a pod of {} fails with exit code {exit_code}", self.name(*job))
            }
            EventKind::Reset { job, reason } => format!(
                "{} is deleted, to be created again: {} ({reason:?})",
                self.name(*job),
                fault(*reason)
            ),
            EventKind::Failed { job, reason } => {
                format!("{} is given up: {} ({reason:?})", self.name(*job), fault(*reason))
            }
            EventKind::Requeued { job } => format!("{} waits again", self.name(*job)),
            EventKind::Done { job } => format!("{} is done", self.name(*job)),
            EventKind::GaveUp { job } => format!("{} gives up", self.name(*job)),
            EventKind::Deactivated { job } => format!("{} is not tried again", self.name(*job)),
            EventKind::QuotaChanged => "other queues hold".into(),
            EventKind::NodeFailed { node } => format!("{} fails", line(node)),
            EventKind::NodeRecovered { node } => format!("{} is well again", line(node)),
            EventKind::LendingLimit {
                flavor: _,
                resource,
                limit,
            } => self.lending(resource, *limit),
        };
        format!("{:>8}  {what}\n", clock(moment.at))
    }

    fn admitted(&self, job: usize, at: SignedDuration) -> String {
        let fate = &self.history.job_records[job];
        let stay = fate.periods.iter().find(|stay| stay.since == at);
        let held = stay.map(|stay| amounts(&stay.held)).unwrap_or_default();
        let fewer = stay.and_then(|stay| stay.fewer.as_ref()).map(|fewer| {
            let Fewer { pod_set, pods, of } = fewer;
            format!(", with {pods} of {of} pods of {}", line(pod_set))
        });
        format!("{} runs on {held}{}", self.name(job), fewer.unwrap_or_default())
    }

    fn cause(&self, cause: &EvictionCause) -> String {
        match cause {
            EvictionCause::Preempted { by, reason, .. } => {
                let words = reason.as_words();
                format!("for {}: {words} ({})", self.name(*by), reason.as_str())
            }
            EvictionCause::Drained => "because its queue is drained".into(),
            EvictionCause::MaximumExecutionTimeExceeded => {
                "because it had quota for as long as it may (MaximumExecutionTimeExceeded)".into()
            }
        }
    }

    fn lending(&self, resource: &str, limit: Option<blueproof_queue::Quantity>) -> String {
        let slack = self.scenario.slack.as_deref().unwrap_or_default();
        match limit {
            Some(limit) => format!(
                "{} lends at most {} {resource}",
                line(slack),
                amount_in_words(resource, limit)
            ),
            None => format!("{} lends all of its {resource}", line(slack)),
        }
    }

    /// Returns who still waits at the end.
    fn left(&self) -> impl Iterator<Item = String> {
        let job_records = self.history.job_records.iter().enumerate();
        let waiting = job_records.filter(|(_, fate)| {
            let holds = fate.periods.last().is_some_and(|stay| stay.until.is_none());
            fate.arrived.is_some()
                && fate.done.is_none()
                && fate.gave_up.is_none()
                && fate.failed.is_none()
                && fate.deactivated.is_none()
                && !holds
        });
        waiting.map(
            |(job, _)| match self.history.unadmitted.iter().find(|never| never.job == job) {
                Some(never) => format!("{} still waits: {}", self.name(job), line(&never.to_string())),
                None => format!("{} still waits", self.name(job)),
            },
        )
    }

    fn name(&self, job: usize) -> String {
        line(&self.scenario.jobs[job].name)
    }

    fn queue(&self, job: usize) -> String {
        line(&self.scenario.jobs[job].queue)
    }
}

fn fault(reason: Reason) -> &'static str {
    match reason {
        Reason::CreateFailed => "it could not be created",
        Reason::MissingComponent => "a part of it is gone",
        Reason::FailedComponent => "a part of it has failed",
        Reason::FoundFailedPods => "a pod has failed",
        Reason::AutopilotNoExecute => "a node under it is bad",
        Reason::InsufficientPodsReady => "too few of its pods run",
    }
}

/// Returns a time as people read it, exactly: `45s`, `1.250s`, `16m40s`, `13h40m00s`.
fn clock(at: SignedDuration) -> String {
    let (minutes, millis) = (at.as_millis() / 60_000, at.as_millis() % 60_000);
    let (seconds, fraction) = (millis / 1000, millis % 1000);
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{fraction:03}")
    };
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, minutes) => format!("{minutes}m{seconds:02}{fraction}s"),
        (hours, minutes) => format!("{hours}h{minutes:02}m{seconds:02}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_hours_minutes_and_seconds_and_loses_nothing() {
        for (millis, text) in [
            (0, "0s"),
            (1250, "1.250s"),
            (45_000, "45s"),
            (60_000, "1m00s"),
            (49_200_000, "13h40m00s"),
            (3_600_001, "1h00m00.001s"),
        ] {
            assert_eq!(clock(SignedDuration::from_millis(millis)), text);
        }
    }
}
