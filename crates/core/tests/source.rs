//! What a run is made from, and what was approved: one and the same, or nothing runs.

use std::sync::Arc;

use blueproof_core::{
    domain::{GitSource, Head, RequestKey, Source},
    engine::{Engine, Ports},
    policy::Policy,
    ports::{Answer, Clock as _, Clusters, Command, Store, StoreClient as _},
    scheduler::Scheduler,
    testing::{FakeClock, FakeCluster, MemoryStore, request, two_cores},
};
use blueproof_diagnostic::Code;

fn git(commit: &str) -> Source {
    Source::Git(GitSource {
        repository: "https://github.com/kubeflow/trainer".parse().expect("an address"),
        commit: commit.repeat(40),
        folder: "examples".into(),
    })
}

/// Returns the code with which a request is refused before anybody can approve it, if it is.
async fn refused(head: Head, source: Source) -> Option<Code> {
    let store = Arc::<MemoryStore>::default();
    let clock = Arc::<FakeClock>::default();
    let mut asked = request("a", "nano-lm");
    asked.subject.head = head;
    asked.job.source = source;
    let request = Box::new(asked);
    let submitted = store.submit(clock.now(), Command::Run { request }).await;
    submitted.expect("a store that works");
    let ports = Ports {
        store: store.clone() as Arc<dyn Store>,
        clusters: Clusters::one(Arc::new(FakeCluster::passing(two_cores()))),
        reporters: Vec::new(),
        clock,
    };
    let mut engine = Engine::open(ports, Policy::local(two_cores()))
        .await
        .expect("a store that works");
    engine.run_until(Scheduler::is_idle).await.expect("it decides");
    let stored = store.command(&RequestKey("a".into())).await.expect("a read");
    match stored.expect("it was left").answer {
        Some(Answer::Refused(problem)) => {
            assert_eq!(engine.scheduler().runs().count(), 0, "no run comes of it");
            Some(problem.code)
        }
        Some(Answer::Taken) => None,
        other => panic!("it was not decided about: {other:?}"),
    }
}

#[tokio::test]
async fn a_source_that_cannot_have_the_head_is_refused_before_anybody_approves_it() {
    let commit = |digit: &str| Head::Commit(digit.repeat(40));
    let snapshot = Head::Snapshot("a".repeat(64));
    let folder = Source::Folder("/checkout".into());
    let refusal = Some(Code::HeadChanged);
    assert_eq!(refused(commit("a"), git("a")).await, None);
    assert_eq!(refused(snapshot.clone(), folder.clone()).await, None);
    assert_eq!(refused(commit("b"), git("a")).await, refusal, "another commit");
    assert_eq!(
        refused(snapshot, git("a")).await,
        refusal,
        "a commit is no snapshot"
    );
    assert_eq!(
        refused(commit("a"), folder).await,
        refusal,
        "a folder is no commit, whatever is checked out in it"
    );
}
