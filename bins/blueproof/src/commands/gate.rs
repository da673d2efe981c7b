//! `blueproof approve`, `revoke`, `hold` and `resume`: what is said about content before it runs.

mod asked_job;
mod content;

use std::collections::BTreeSet;

use blueproof_core::{
    approval::{Approval, ApprovalTarget, HoldTarget, RevocationTarget},
    domain::{PullRequest, RunState},
    engine::replay,
    pending::PendingReason,
    ports::Command,
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use super::with_session;
use crate::{
    cli::{Approve, Hold, Holdable, Resume, Revoke},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output,
    session::{Session, local_user, new_key},
};
use content::Named;

/// Approves heads, one after the other, and has a process drive what may run now.
pub(super) fn approve(arguments: &Approve, flags: &ConfigFlags) -> Result<Exit, Problem> {
    with_session(flags, async |session| leave_approve(session, arguments).await)
}

async fn leave_approve(session: &Session, arguments: &Approve) -> Result<Exit, Problem> {
    let now = Timestamp::now();
    let expires_at = arguments.expires_after.map(|span| now.saturating_add(span));
    let expires_at = expires_at.transpose().expect("a time span");
    let mut exit = Exit::Ok;
    for named in content::find(session, &arguments.contents).await? {
        let (target, jobs) = content::to_approve(session, &named, arguments).await?;
        let told = content::in_words(&target);
        output::print(&format!("{told}\n{}", content::listed(&jobs)))?;
        if arguments.dry_run {
            continue;
        }
        let policy = named.own_policy(&target);
        let policy = policy.unwrap_or(&session.policy().gate.digest).to_owned();
        let approval = Approval {
            at: Some(now),
            expires_at,
            ..Approval::new(target.clone(), policy, local_user())
        };
        let key = new_key();
        session
            .submit(Command::Approve {
                key: key.clone(),
                approval: Box::new(approval),
            })
            .await?;
        session.until_taken_up(&key).await?;
        output::print(&format!("approved {told}\n"))?;
        if tell_who_awaits_approval(session, &named, &target).await? == Awaits::Approval {
            exit = Exit::Refused;
        }
    }
    if !arguments.dry_run {
        session.spawn_host()?;
    }
    Ok(exit)
}

/// Whether runs that somebody approved still wait at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// None does, or one that is held does.
    Nothing,
    /// One does, because the approval does not count for it.
    Approval,
}

/// Says which of the runs that were meant do not go on, and why: an approval does not count for the approver's own content.
async fn tell_who_awaits_approval(
    session: &Session,
    named: &Named,
    target: &ApprovalTarget,
) -> Result<Awaits, Problem> {
    let mut awaits = Awaits::Nothing;
    for id in named.runs_in(target) {
        let Some(view) = session.store.run(id).await? else {
            continue;
        };
        if view.state != RunState::AwaitingApproval {
            continue;
        }
        if let Some(PendingReason::Held(hold)) = view.waits() {
            let by = output::line(&hold.by.to_string());
            output::note(&format!(
                "{id} waits: it is held by {by}, and `blueproof resume` ends that"
            ));
            continue;
        }
        awaits = Awaits::Approval;
        output::note(&format!(
            "{id} still awaits an approval: this one does not count for what its own author asks for; somebody else has to approve it"
        ));
    }
    Ok(awaits)
}

pub(super) fn revoke(arguments: &Revoke, flags: &ConfigFlags) -> Result<Exit, Problem> {
    with_session(flags, async |session| leave_revoke(session, arguments).await)
}

async fn leave_revoke(session: &Session, arguments: &Revoke) -> Result<Exit, Problem> {
    for named in content::find(session, &arguments.contents).await? {
        let told = content::in_words(&named.target);
        let key = new_key();
        let target = RevocationTarget {
            repository: named.target.repository,
            pull_request: named.target.pull_request,
            head: Some(named.target.head),
        };
        let counted = replay(&*session.store).await?.0.n_approvals(&target);
        let by = local_user();
        session
            .submit(Command::Revoke {
                key: key.clone(),
                target,
                by,
            })
            .await?;
        session.until_taken_up(&key).await?;
        match counted {
            0 => output::note(&format!(
                "no approval of {told} counts: there is nothing to revoke"
            )),
            _ => output::print(&format!("revoked the approvals of {told}\n"))?,
        }
    }
    session.spawn_host()?;
    Ok(Exit::Ok)
}

pub(super) fn hold(arguments: &Hold, flags: &ConfigFlags) -> Result<Exit, Problem> {
    with_session(flags, async |session| leave_hold(session, arguments).await)
}

async fn leave_hold(session: &Session, arguments: &Hold) -> Result<Exit, Problem> {
    let (key, target) = (new_key(), holdable(session, &arguments.what).await?);
    let told = output::line(&target.to_string());
    if let HoldTarget::Run(run) = &target
        && let Some(view) = session.store.run(*run).await?
        && let RunState::Ended(ending) = view.state
    {
        output::note(&format!("{run} is already over, and is not held: {ending}"));
        return Ok(Exit::Ok);
    }
    let state = replay(&*session.store).await?.0;
    if let Some(hold) = state.hold_on(&target) {
        let by = output::line(&hold.by.to_string());
        output::note(&format!("{told} is held already, by {by}"));
        return Ok(Exit::Ok);
    }
    let by = local_user();
    session
        .submit(Command::Hold {
            key: key.clone(),
            target,
            by,
        })
        .await?;
    session.until_taken_up(&key).await?;
    output::print(&format!("held {told}\n"))?;
    Ok(Exit::Ok)
}

pub(super) fn resume(arguments: &Resume, flags: &ConfigFlags) -> Result<Exit, Problem> {
    with_session(flags, async |session| leave_resume(session, arguments).await)
}

async fn leave_resume(session: &Session, arguments: &Resume) -> Result<Exit, Problem> {
    let (key, target) = (new_key(), holdable(session, &arguments.what).await?);
    let told = output::line(&target.to_string());
    if replay(&*session.store).await?.0.hold_on(&target).is_none() {
        output::note(&format!("there is no hold on {told}"));
        return Ok(Exit::Ok);
    }
    let by = local_user();
    session
        .submit(Command::Resume {
            key: key.clone(),
            target,
            by,
        })
        .await?;
    session.until_taken_up(&key).await?;
    output::print(&format!("resumed {told}\n"))?;
    session.spawn_host()?;
    Ok(Exit::Ok)
}

async fn holdable(session: &Session, arguments: &Holdable) -> Result<HoldTarget, Problem> {
    let Some(number) = arguments.pull_request else {
        let run = arguments.run.as_ref().expect("the group needs one of them");
        let view = run.resolve_to_change(&*session.store).await?;
        return Ok(HoldTarget::Run(view.id));
    };
    let pull_request = pull_request(&session.runs().await?, number).map_err(Problem::usage)?;
    Ok(HoldTarget::PullRequest(pull_request))
}

/// Returns the pull request of a number that has runs.
fn pull_request(runs: &[RunView], number: u64) -> Result<PullRequest, Diagnostic> {
    let known = runs.iter().filter_map(|run| run.subject.of_pull_request());
    let known: BTreeSet<PullRequest> = known.filter(|known| known.number == number).collect();
    match <[PullRequest; 1]>::try_from(Vec::from_iter(known)) {
        Ok([only]) => Ok(only),
        Err(none) if none.is_empty() => {
            let unknown = Diagnostic::error(Code::NoSuchRun, format!("no run is of pull request {number}"));
            Err(unknown.hint("`blueproof get runs` lists those that there are"))
        }
        Err(several) => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            let unclear = Diagnostic::error(
                Code::Usage,
                format!("several repositories have a pull request {number}"),
            );
            Err(unclear
                .because(several.join("; "))
                .hint("hold its runs one by one, by their ids"))
        }
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::{
        domain::{Head, Repository},
        event::Event,
        policy::Policy,
        scheduler::Scheduler,
        testing::request,
    };

    use super::*;

    /// Returns runs of pull requests of repositories, all of one head.
    pub(super) fn runs(of: &[(u64, u64)]) -> (Vec<RunView>, Head) {
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        for (repository, number) in of {
            let mut asked = request(&format!("{repository}-{number}"), "nano-lm");
            asked.subject.repository = Repository::GitHub(*repository);
            asked.subject.pull_request = Some(*number);
            scheduler.handle(
                Timestamp::UNIX_EPOCH,
                Event::Requested {
                    request: Box::new(asked),
                },
            );
        }
        let head = request("any", "nano-lm").subject.head;
        (scheduler.runs().collect(), head)
    }

    #[test]
    fn a_pull_request_is_held_by_its_number_where_that_is_of_one_repository() {
        let (runs, _) = runs(&[(7, 12), (8, 12), (7, 13)]);
        assert_eq!(
            pull_request(&runs, 13).map(|found| found.repository),
            Ok(Repository::GitHub(7))
        );
        assert_eq!(
            pull_request(&runs, 12).expect_err("two have it").code,
            Code::Usage
        );
        assert_eq!(
            pull_request(&runs, 14).expect_err("none has it").code,
            Code::NoSuchRun
        );
    }
}
