//! The words of stories about approvals, holds and pull requests.

use std::collections::BTreeSet;

use super::{Options, actor, head, repository, time};
use crate::{
    approval::{Approval, ApprovalTarget, HoldTarget, RevocationTarget, Scope, Selection},
    domain::{Actor, BaseRef, PullRequest, RunId, RunRequest},
    event::Event,
};

/// Reads what happens to a pull request or to what was said about it; `None` where the verb is no such word.
pub(super) fn event(verb: &str, words: &[&str]) -> Result<Option<Event>, String> {
    let options = Options(words);
    let via = None;
    let event = match verb {
        "push" => Event::Synchronized {
            pull_request: pull_request(&options)?,
            head: head(options.word("head").ok_or("push needs `head X`")?),
            via,
        },
        "base" => Event::BaseChanged {
            pull_request: pull_request(&options)?,
            base: base(&options)?.ok_or("base needs `base X`")?,
            via,
        },
        "close" => Event::PullRequestClosed {
            pull_request: pull_request(&options)?,
            via,
        },
        "reopen" => Event::PullRequestReopened {
            pull_request: pull_request(&options)?,
            via,
        },
        "hold" => Event::HoldRequested {
            target: hold_target(words)?,
            by: by(&options),
            via,
        },
        "resume" => Event::ResumeRequested {
            target: hold_target(words)?,
            by: by(&options),
            via,
        },
        "revoke" => Event::RevokeRequested {
            target: RevocationTarget {
                repository: repository(),
                pull_request: options.number("pr")?,
                head: options.word("head").map(head),
            },
            by: by(&options),
            via,
        },
        "entitle" => Event::EntitlementChanged {
            repository: Some(repository()),
            approvers: approvers(words),
            source: "story".into(),
            policy: options.word("policy").map(str::to_owned),
            via,
        },
        "approve" if words.first() == Some(&"pr") => Event::Approved {
            approval: approval(target(&options)?, words)?,
        },
        _ => return Ok(None),
    };
    Ok(Some(event))
}

/// Returns the approval of what one run is of and nothing else, as the words have it.
pub(in crate::testing::scenario) fn approval_of(
    request: &RunRequest,
    words: &[String],
) -> Result<Approval, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut target = ApprovalTarget::of(&request.subject);
    if words.contains(&"only-this-job") {
        target.scope.jobs = Selection::one(request.job.digest());
    }
    approval(target, &words)
}

fn approval(target: ApprovalTarget, words: &[&str]) -> Result<Approval, String> {
    let options = Options(words);
    let expires_at = options.word("expires");
    let expires_at = expires_at.map(|at| time(at).ok_or(format!("`{at}` is no time")));
    Ok(Approval {
        target,
        policy: options.word("policy").unwrap_or("story").into(),
        by: by(&options),
        at: None,
        expires_at: expires_at.transpose()?,
        via: None,
    })
}

fn target(options: &Options<'_>) -> Result<ApprovalTarget, String> {
    let name = |text: &str| format!("`{text}` is no name");
    let blueprint = options
        .word("blueprint")
        .map(|text| text.parse().map_err(|_| name(text)));
    let profile = options
        .word("profile")
        .map(|text| text.parse().map(Some).map_err(|_| name(text)));
    let PullRequest { repository, number } = pull_request(options)?;
    Ok(ApprovalTarget {
        repository,
        pull_request: Some(number),
        head: head(options.word("head").ok_or("approve needs `head X`")?),
        base: base(options)?,
        scope: Scope {
            blueprints: Selection::named_or_all(blueprint.transpose()?),
            profiles: Selection::named_or_all(profile.transpose()?),
            jobs: Selection::All,
        },
    })
}

/// Reads the branch that a pull request is to be merged into.
pub(super) fn base(options: &Options<'_>) -> Result<Option<BaseRef>, String> {
    let named = options.word("base").map(str::parse);
    named.transpose().map_err(|error| format!("{error}"))
}

fn pull_request(options: &Options<'_>) -> Result<PullRequest, String> {
    let number = options.number("pr")?.ok_or("a pull request is named by `pr N`")?;
    Ok(PullRequest {
        repository: repository(),
        number,
    })
}

fn hold_target(words: &[&str]) -> Result<HoldTarget, String> {
    match words.first() {
        Some(&"pr") => pull_request(&Options(words)).map(HoldTarget::PullRequest),
        Some(run) => {
            let run: Result<RunId, String> = super::run_id(run);
            run.map(HoldTarget::Run)
        }
        None => Err("what is held is `pr N` or a run".into()),
    }
}

/// Returns who is named after `by`; mostly it is Ada.
fn by(options: &Options<'_>) -> Actor {
    actor(options.word("by").unwrap_or("ada"))
}

/// Returns all who are named, in place of everybody that was entitled before.
fn approvers(words: &[&str]) -> BTreeSet<Actor> {
    let named = words.iter().take_while(|word| **word != "policy");
    let named = named.filter(|word| **word != "nobody");
    named.map(|name| actor(name)).collect()
}
