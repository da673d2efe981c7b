//! A pull request of somebody who may not approve their own: what the gate waits for, in small.

use blueproof_core::{
    approval::{Approval, ApprovalTarget},
    domain::{Actor, Head, PullRequest, Repository, RequestKey, RunRequest, Subject},
    ports::Command,
};

/// The pull request's number.
pub const PULL_REQUEST: u64 = 7;

/// The name of the policy under which the maintainer approves; one's own machine has this one.
pub const POLICY: &str = "local";

/// Returns the one who may approve.
pub fn maintainer() -> Actor {
    Actor::GitHub {
        id: 1,
        login: "maintainer".into(),
    }
}

/// Returns a contributor's request for what `request` asks for, by a pull request.
pub fn from_contributor(request: RunRequest) -> RunRequest {
    let subject = Subject {
        pull_request: Some(PULL_REQUEST),
        ..request.subject
    };
    let requested_by = Actor::GitHub {
        id: 2,
        login: "contributor".into(),
    };
    RunRequest {
        subject,
        requested_by,
        ..request
    }
}

/// Returns the maintainer's approval of all that the subject's head has.
pub fn approve(subject: &Subject) -> Command {
    let approval = Approval::new(ApprovalTarget::whole_head_of(subject), POLICY, maintainer());
    Command::Approve {
        key: RequestKey("approval".into()),
        approval: Box::new(approval),
    }
}

/// Returns the news that the pull request has another head than any that was tested.
pub fn push(repository: Repository) -> Command {
    Command::Synchronize {
        key: RequestKey("push".into()),
        pull_request: PullRequest {
            repository,
            number: PULL_REQUEST,
        },
        head: Head::Commit("f".repeat(40)),
    }
}
