//! What the audit tells of a log.

use super::*;
use crate::{
    approval::Approval,
    domain::PullRequest,
    event::StopMode,
    policy::{GatePolicy, LocalApproval, Policy},
    ports::Command,
    scheduler::Scheduler,
    testing::{isolating, request},
};

fn user(id: u64, login: &str) -> Actor {
    Actor::GitHub {
        id,
        login: login.into(),
    }
}

fn pull_request() -> PullRequest {
    PullRequest {
        repository: Repository::GitHub(7),
        number: 12,
    }
}

/// Returns what the audit tells of commands that come a second apart, and the subject that they are about.
fn audit(commands: impl FnOnce(&Subject) -> Vec<Command>) -> (Vec<AuditEntry>, Subject) {
    let mut asked = request("ask", "nano-lm");
    asked.subject.repository = pull_request().repository;
    asked.subject.pull_request = Some(12);
    asked.requested_by = user(9, "bob");
    let subject = asked.subject.clone();
    let gate = GatePolicy {
        digest: "p".into(),
        local: LocalApproval::Required,
        approvers: [user(1, "ada")].into(),
    };
    let mut scheduler = Scheduler::new(Policy {
        gate,
        ..Policy::local(asked.job.gang())
    });
    scheduler.handle(Timestamp::UNIX_EPOCH, isolating());
    let first = Command::Run {
        request: Box::new(asked),
    };
    let (mut audit, mut entries, mut seq) = (Audit::default(), Vec::new(), 0);
    for (second, command) in std::iter::once(first).chain(commands(&subject)).enumerate() {
        let at = Timestamp::from_second(i64::try_from(second).expect("few")).expect("small");
        for fact in scheduler.handle(at, command.into()).facts {
            seq += 1;
            entries.extend(audit.entry(&LoggedFact {
                seq: Seq(seq),
                at,
                fact,
            }));
        }
    }
    (entries, subject)
}

fn approve(key: &str, subject: &Subject, by: Actor) -> Command {
    Command::Approve {
        key: RequestKey(key.into()),
        approval: Box::new(Approval::new(ApprovalTarget::whole_head_of(subject), "p", by)),
    }
}

#[test]
fn it_says_who_did_what_when_why_and_by_which_command() {
    let key = |key: &str| RequestKey(key.into());
    let (entries, subject) = audit(|subject| {
        let hold = HoldTarget::PullRequest(pull_request());
        vec![
            approve("one", subject, user(2, "mallory")),
            approve("two", subject, user(1, "ada")),
            Command::Hold {
                key: key("three"),
                target: hold.clone(),
                by: user(9, "bob"),
            },
            Command::Resume {
                key: key("four"),
                target: hold,
                by: user(2, "mallory"),
            },
            Command::ClosePullRequest {
                key: key("five"),
                pull_request: pull_request(),
            },
            Command::Cancel {
                key: key("six"),
                run: RunId(1),
                by: user(1, "ada"),
                how: StopMode::Terminate,
            },
        ]
    });
    let told: Vec<String> = entries
        .iter()
        .map(|entry| {
            let by = entry.by.as_ref().map_or_else(|| "-".into(), ToString::to_string);
            let via = entry.via.as_ref().map_or("-", |key| &key.0);
            let reason = entry.reason.as_deref().unwrap_or("-");
            format!("{:.0} {} {by} {via}: {reason}", entry.at, entry.action)
        })
        .collect();
    let expected = [
        "1970-01-01T00:00:01Z approvalRefused @mallory one: whoever gave it may not approve",
        "1970-01-01T00:00:02Z approvalAccepted @ada two: -",
        "1970-01-01T00:00:02Z admitted @ada -: by whose approval it runs",
        "1970-01-01T00:00:03Z held @bob three: -",
        "1970-01-01T00:00:04Z resumeRefused @mallory four: whoever gave it may not approve",
        "1970-01-01T00:00:05Z stopRequested - five: the pull request was closed",
        "1970-01-01T00:00:05Z approvalRevoked - five: the pull request was closed",
        "1970-01-01T00:00:06Z cancelRequested @ada six: -",
    ];
    assert_eq!(told, expected);
    assert!(entries.iter().all(|entry| entry.concerns_run(RunId(1), &subject)));
    let text = serde_json::to_string(&entries).expect("plain data");
    assert_eq!(
        serde_json::from_str::<Vec<AuditEntry>>(&text).expect("it comes back"),
        entries
    );
}

#[test]
fn it_is_asked_for_one_run_or_one_pull_request() {
    let (entries, subject) = audit(|subject| {
        let mut elsewhere = subject.clone();
        elsewhere.pull_request = Some(13);
        vec![
            approve("one", subject, user(1, "ada")),
            approve("two", &elsewhere, user(1, "ada")),
        ]
    });
    let actions = |wanted: &dyn Fn(&AuditEntry) -> bool| {
        let found = entries.iter().filter(|entry| wanted(entry));
        found.map(|entry| entry.action.as_str()).collect::<Vec<_>>()
    };
    let subject_of = |run| (run == RunId(1)).then(|| subject.clone());
    let of_first = ["approvalAccepted", "admitted"];
    assert_eq!(
        actions(&|entry| entry.concerns_pull_request(12, subject_of)),
        of_first
    );
    assert_eq!(
        actions(&|entry| entry.concerns_pull_request(13, subject_of)),
        ["approvalAccepted"]
    );
    assert_eq!(actions(&|entry| entry.concerns_run(RunId(1), &subject)), of_first);
    assert_eq!(
        actions(&|entry| entry.concerns_run(RunId(2), &subject)),
        ["approvalAccepted"]
    );
}
