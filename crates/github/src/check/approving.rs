//! What an approval lets run, for whoever is to give one: what it takes, for how long, and what it reaches.

use blueproof_core::{domain::RunState, estimate::LikelyDuration, ports::RunStatus};
use jiff::SignedDuration;

use super::{CheckContext, WorkFact, figures};
use crate::markdown::{Document, code};

/// The most facts of the work that are shown.
const FACTS: usize = 10;

/// Returns what an approval of a run lets run; nothing of one that waits for none.
pub(super) fn of(status: &RunStatus, context: CheckContext<'_>) -> String {
    if status.view.state != RunState::AwaitingApproval {
        return String::new();
    }
    let mut rows = vec![row("asks for", code(&status.view.asked().to_string()))];
    rows.extend(duration(status));
    let facts = context.work.iter().take(FACTS);
    rows.extend(facts.map(|WorkFact { name, value }| row(name, code(value))));
    let mut document = Document::default();
    document.push("**What an approval lets run**");
    document.push(&figures::table(&["".into(), "one attempt".into()], &rows));
    document.finish()
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

/// Returns how long it is likely to take, and how much of GPUs that is.
fn duration(status: &RunStatus) -> Vec<Vec<String>> {
    let known = status.view.outlook.as_ref().and_then(|outlook| outlook.duration);
    let Some(known) = known else {
        return Vec::new();
    };
    let gpus = status.request.job.gang().gpu.0;
    let told = |of: &dyn Fn(SignedDuration) -> Option<String>| match known {
        LikelyDuration::Likely { p50, p90, runs } => Some(format!(
            "{} in half of the cases, {} in nine of ten, by {runs} earlier runs",
            of(p50)?,
            of(p90)?
        )),
        LikelyDuration::AtMost { limit } => {
            Some(format!("at most {}: too few earlier runs to go by", of(limit)?))
        }
    };
    let time = told(&|span| Some(figures::duration(span)));
    let gpu_time = told(&|span| figures::gpu_minutes(span.as_secs_f64() * f64::from(gpus)));
    let rows = [
        time.map(|time| row("time", time)),
        gpu_time.filter(|_| gpus > 0).map(|time| row("GPU time", time)),
    ];
    rows.into_iter().flatten().collect()
}
