//! `blueproof why RUN`.

use std::collections::BTreeMap;

use blueproof_core::{engine::replay, pending::PendingReason, policy::LocalApproval};
use jiff::Timestamp;

use crate::{
    backend::Backend,
    cli::Why,
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document},
    reading::{self, Reading},
    show::explanation::{self, Explanation},
};

pub(crate) fn why(arguments: &Why, flags: &ConfigFlags) -> Result<Exit, Problem> {
    reading::block_on(explain(arguments, flags))
}

async fn explain(arguments: &Why, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let store = reading.store_with(&arguments.run)?;
    let view = arguments.run.resolve(&**store).await?;
    let mut others = BTreeMap::new();
    for run in explanation::awaited(&view) {
        others.extend(store.run(run).await?.map(|other| (run, other.state)));
    }
    let explanation = Explanation::of(&view, &others, Timestamp::now());
    let answer = match arguments.output {
        Some(format) => output::encode(&Document::new("RunExplanation", &explanation), format.into())?,
        None => explanation.to_string(),
    };
    output::print(&answer)?;
    if let Some(PendingReason::AwaitingApproval { .. }) = view.waits() {
        say_who_may_approve(store).await?;
    }
    reading::say_who_is_left_alone(store, std::slice::from_ref(&view))?;
    Ok(Exit::Ok)
}

/// Says by which rule a run needs an approval, and who may give it: that is the leader's policy, and not the configuration of
/// whoever asks.
async fn say_who_may_approve(store: &Backend) -> Result<(), Problem> {
    let (scheduler, _) = replay(&**store).await?;
    let Some(policy) = scheduler.policy() else {
        return Ok(());
    };
    let approvers: Vec<String> = policy.gate.approvers.iter().map(ToString::to_string).collect();
    let approvers = match approvers.is_empty() {
        true => "names no approver (`local.approvers`)".to_owned(),
        false => format!("names as approvers: {}", output::line(&approvers.join(", "))),
    };
    output::note(&format!(
        "the policy of this store's leader, or of its last one, {approvers}"
    ));
    if policy.gate.local == LocalApproval::Required {
        output::note(
            "it has runs of this machine approved, too (`local.selfApprove: false`); a leader whose configuration sets that changes it",
        );
    }
    Ok(())
}
