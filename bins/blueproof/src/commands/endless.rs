//! What is said where queues, in virtual time, come to no end.

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_simulation::History;

use crate::{
    exit::{Exit, Problem},
    show::{comparison::Play, text::duration},
};

/// Refuses figures of what was cut short: they are of a beginning that has no end.
pub(super) fn refuse(plays: &[Play]) -> Result<Exit, Problem> {
    let endless = plays.iter().filter(|play| play.history.cut_short);
    let errors: Vec<Diagnostic> = endless.map(|play| error(&play.name, &play.history)).collect();
    if errors.is_empty() {
        return Ok(Exit::Ok);
    }
    Err(errors.into())
}

fn error(name: &str, history: &History) -> Diagnostic {
    let at = duration(history.end);
    let queues: Vec<String> = history
        .by_turns
        .iter()
        .map(|queue| format!("`{queue}`"))
        .collect();
    let message = match &queues[..] {
        [] => format!("`{name}` was cut short at {at}: evictions or restarts went round for ever"),
        [queue] => format!(
            "`{name}` was cut short at {at}: jobs of the ClusterQueue {queue} evict each other for ever while no time passes"
        ),
        queues => format!(
            "`{name}` was cut short at {at}: jobs of the ClusterQueues {} evict each other for ever while no time passes",
            queues.join(", ")
        ),
    };
    Diagnostic::error(Code::QueuesByTurns, message)
        .because("Kueue's rules allow it; in a cluster each eviction takes the time that pods need to stop")
        .hint("let jobs have a `grace`, or a Simulation a `spec.protectedRunTime`")
        .hint(
            "or let queues evict less: `reclaimWithinCohort: LowerPriority`, or `withinClusterQueue: Never`",
        )
}
