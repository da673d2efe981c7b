//! Requests and outcomes to tell stories with.

use std::{collections::BTreeMap, path::PathBuf};

use blueproof_queue::{
    Assignment, Quantity,
    objects::{
        ClusterQueue, FlavorQuotas, LocalQueue, Objects, Preemption, Quota, ReclaimWithinCohort,
        ResourceFlavor, ResourceGroup, WithinClusterQueue,
    },
};
use jiff::Timestamp;

use crate::{
    action::{Action, QuotaRequest, Reservation, ReservedQuota, StartAction},
    domain::{
        Actor, AttemptId, Bytes, ClusterName, Cpus, GitSource, Gpus, Head, Inventory, Isolation, Job,
        Outcome, Placement, PodSets, Priority, Repository, RequestKey, Resources, Retries, RunId, RunRequest,
        Source, Subject, Timeouts, Verdict,
    },
    event::{Event, StopMode},
    policy::Policy,
    scheduler::Scheduler,
};

/// Returns what a small machine has.
pub fn two_cores() -> Resources {
    Resources {
        cpu: Cpus::cores(2),
        memory: "1Gi".parse().expect("an amount"),
        ..Resources::default()
    }
}

/// Returns what the cluster of this machine says that keeps content of strangers apart, and has more than anybody asks for.
pub fn isolating() -> Event {
    let total = Resources {
        cpu: Cpus::cores(1_000_000),
        memory: Bytes(1 << 50),
        gpu: Gpus(1_000_000),
    };
    let inventory = Inventory {
        isolation: Isolation::Sandboxed,
        ..Inventory::of_one_node("memory", total, "a cluster in memory")
    };
    Event::InventoryChanged {
        cluster: ClusterName::default(),
        inventory: Box::new(inventory),
    }
}

/// Returns a local user's request for a run of the blueprint `name`: one core, no workload, no limits.
pub fn request(key: &str, name: &str) -> RunRequest {
    let driver = Resources {
        cpu: Cpus::cores(1),
        memory: Bytes(1 << 20),
        ..Resources::default()
    };
    RunRequest {
        key: RequestKey(key.into()),
        subject: Subject {
            repository: Repository::Local("/checkout".into()),
            pull_request: None,
            base: None,
            head: Head::Snapshot("a".repeat(64)),
            blueprint: name.parse().expect("a name"),
            profile: None,
        },
        revision: None,
        requested_by: Actor::Local("ada".into()),
        author: None,
        asked_from: None,
        queue: "local".parse().expect("a name"),
        priority: Priority(0),
        retries: Retries::default(),
        job: Job {
            source: Source::Folder("/checkout".into()),
            pod_sets: PodSets::of_amounts(driver, Resources::default()),
            timeouts: Timeouts::default(),
            work: serde_json::Value::Null,
        },
    }
}

/// Lets a request ask for a commit of a repository in place of what a folder has.
pub fn ask_for_commit(request: &mut RunRequest, commit: String) {
    let repository = "https://example.org/kubeflow/trainer"
        .parse()
        .expect("an address");
    request.subject.head = Head::Commit(commit.clone());
    request.job.source = Source::Git(GitSource {
        repository,
        commit,
        folder: PathBuf::new(),
    });
}

/// Lets a request ask for so much processor time in place of what its driver asks for.
pub fn ask_for_cpu(request: &mut RunRequest, cpu: Cpus) {
    let driver = Resources {
        cpu,
        ..request.job.driver()
    };
    request.job.pod_sets = PodSets::of_amounts(driver, request.job.pod_sets.workload_resources());
}

/// The queues of [`teams`].
pub const TEAMS: [&str; 3] = ["blue", "red", "slack"];

/// Returns queues for two teams and their slack: each has so many `cpus` of its own and takes them back from whoever
/// borrowed them, all of one cohort; inside a queue they are preempted by the rule `within`.
pub fn teams(cpus: u32, within: WithinClusterQueue) -> Objects {
    let local = |team: &str| LocalQueue {
        cluster_queue: team.to_owned(),
        ..LocalQueue::default()
    };
    Objects {
        flavors: BTreeMap::from([("any".into(), ResourceFlavor::default())]),
        cluster_queues: TEAMS
            .map(|team| (team.to_owned(), team_queue(cpus, within)))
            .into(),
        local_queues: TEAMS.map(|team| (team.to_owned(), local(team))).into(),
        ..Objects::default()
    }
}

fn team_queue(cpus: u32, within: WithinClusterQueue) -> ClusterQueue {
    let quota = |nominal| Quota {
        nominal: Quantity(nominal),
        ..Quota::default()
    };
    let resources = BTreeMap::from([
        ("cpu".into(), quota(i64::from(cpus) * 1000)),
        ("memory".into(), quota(1 << 40)),
    ]);
    ClusterQueue {
        cohort: Some("everybody".into()),
        resource_groups: vec![ResourceGroup {
            flavors: vec![FlavorQuotas {
                name: "any".into(),
                resources,
            }],
        }],
        preemption: Preemption {
            within_cluster_queue: within,
            reclaim_within_cohort: ReclaimWithinCohort::Any,
            borrow_within_cohort: None,
        },
        ..ClusterQueue::default()
    }
}

/// An attempt's end of which nothing but the verdict is told.
pub fn finished(attempt: AttemptId, verdict: Verdict) -> Event {
    Event::Finished {
        attempt,
        outcome: Box::new(outcome(verdict)),
        ended_at: None,
    }
}

/// Returns an outcome with nothing but a verdict.
pub fn outcome(verdict: Verdict) -> Outcome {
    Outcome {
        verdict,
        usage: None,
        metrics: Default::default(),
        notices: Vec::new(),
    }
}

/// Returns the attempts for which a place is to be reserved, in the order of the actions.
pub fn reserved(actions: &[Action]) -> Vec<AttemptId> {
    let reserved = actions.iter().filter_map(|action| match action {
        Action::Reserve(reservation) => Some(reservation.attempt),
        Action::Start(_)
        | Action::Observe { .. }
        | Action::Stop { .. }
        | Action::Release { .. }
        | Action::Report { .. } => None,
    });
    reserved.collect()
}

/// Returns what a driver is asked for the place of an attempt with.
pub fn reservation(attempt: AttemptId, pod_sets: &PodSets) -> Reservation {
    Reservation {
        attempt,
        cluster: ClusterName::default(),
        pod_sets: pod_sets.clone(),
        flavors: BTreeMap::new(),
        quota: ReservedQuota::Assigned(Assignment {
            cluster_queue: "local".into(),
            local_queue: "local".into(),
            pod_sets: Vec::new(),
        }),
    }
}

/// Returns what a driver is asked with for quota and a place for an attempt: through the LocalQueue `local`, for all that its
/// run asks for.
pub fn quota_request(start: &StartAction) -> Reservation {
    let request = QuotaRequest {
        local_queue: "local".into(),
        cluster_queue: "local".into(),
        priority: start.request.priority,
    };
    Reservation {
        quota: ReservedQuota::Requested(request),
        ..reservation(start.attempt, &start.job().pod_sets)
    }
}

/// Returns what a driver is given to start the first attempt of the `number`th run, which is this request's.
///
/// It goes the only way there is: through the gate of a scheduler.
pub fn start_action(number: u64, request: RunRequest) -> StartAction {
    let mut scheduler = Scheduler::new(Policy::local(request.job.gang()));
    let now = Timestamp::UNIX_EPOCH;
    for earlier in 1..number {
        let mut filler = request.clone();
        filler.key = RequestKey(format!("filler-{earlier}"));
        scheduler.handle(
            now,
            Event::Requested {
                request: Box::new(filler),
            },
        );
        let cancel = Event::CancelRequested {
            run: RunId(earlier),
            by: request.requested_by.clone(),
            how: StopMode::Terminate,
            via: None,
        };
        scheduler.handle(now, cancel);
        let attempt = RunId(earlier).attempt(1);
        scheduler.handle(
            now,
            Event::Reserved {
                attempt,
                place: Placement::default(),
            },
        );
        scheduler.handle(now, Event::Released { attempt });
    }
    scheduler.handle(
        now,
        Event::Requested {
            request: Box::new(request),
        },
    );
    let attempt = RunId(number).attempt(1);
    let step = scheduler.handle(
        now,
        Event::Reserved {
            attempt,
            place: Placement::default(),
        },
    );
    let actions = step.actions;
    match actions.into_iter().next() {
        Some(Action::Start(start)) => *start,
        other => panic!("a placed attempt of an approved head is started, not {other:?}"),
    }
}
