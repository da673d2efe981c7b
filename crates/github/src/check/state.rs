//! How a run stands in GitHub's words, and which buttons it has then.

use blueproof_core::{
    domain::{Ending, RunState},
    pending::PendingReason,
    view::RunView,
};

use super::InfrastructureConclusion;
use crate::api::{CheckAction, CheckConclusion, CheckRunState};

/// Returns how a run stands.
pub(super) fn of(view: &RunView, infrastructure: InfrastructureConclusion) -> CheckRunState {
    match view.state {
        // A check run that is completed so is the only one whose buttons GitHub shows at the pull request.
        RunState::AwaitingApproval => CheckRunState::Completed {
            conclusion: CheckConclusion::ActionRequired,
            at: view.waiting_since(),
        },
        RunState::Queued => CheckRunState::Queued,
        RunState::Reserved | RunState::Starting | RunState::Running => CheckRunState::InProgress,
        RunState::Ended(ending) => CheckRunState::Completed {
            conclusion: conclusion(ending, infrastructure),
            at: view.ended_at.unwrap_or_else(|| view.waiting_since()),
        },
    }
}

fn conclusion(ending: Ending, infrastructure: InfrastructureConclusion) -> CheckConclusion {
    match ending {
        Ending::Passed => CheckConclusion::Success,
        Ending::Failed | Ending::Refused => CheckConclusion::Failure,
        Ending::InfrastructureFailed => match infrastructure {
            InfrastructureConclusion::Neutral => CheckConclusion::Neutral,
            InfrastructureConclusion::Failure => CheckConclusion::Failure,
        },
        Ending::TimedOut => CheckConclusion::TimedOut,
        Ending::Cancelled | Ending::Superseded => CheckConclusion::Cancelled,
    }
}

/// Returns the buttons: what would be refused has none.
pub(super) fn actions(view: &RunView) -> Vec<CheckAction> {
    match view.state {
        RunState::AwaitingApproval => match view.waits() {
            // While it is held no approval counts, and what only waits for a machine has one.
            Some(PendingReason::Held(_) | PendingReason::WaitingForIsolation(_)) => vec![CheckAction::Cancel],
            Some(_) | None => vec![CheckAction::Approve, CheckAction::Cancel],
        },
        RunState::Queued | RunState::Reserved | RunState::Starting | RunState::Running => {
            vec![CheckAction::Cancel]
        }
        RunState::Ended(ending) => match ending {
            Ending::Passed
            | Ending::Failed
            | Ending::InfrastructureFailed
            | Ending::TimedOut
            | Ending::Cancelled => vec![CheckAction::Retry],
            Ending::Refused | Ending::Superseded => Vec::new(),
        },
    }
}
