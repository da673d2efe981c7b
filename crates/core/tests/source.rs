//! What a run is made from, and what was approved: one and the same, or nothing runs.

use blueproof_core::{
    domain::{Ending, GitSource, Head, RunId, RunState, Source},
    event::Event,
    policy::Policy,
    scheduler::Scheduler,
    testing::{request, two_cores},
};
use blueproof_diagnostic::Code;
use jiff::Timestamp;

fn state(head: Head, commit: String) -> (RunState, Option<Code>) {
    let mut request = Box::new(request("a", "nano-lm"));
    request.subject.head = head;
    request.job.source = Source::Git(GitSource {
        repository: "https://github.com/kubeflow/trainer".parse().expect("an address"),
        commit,
        folder: "examples".into(),
    });
    let mut scheduler = Scheduler::new(Policy::local(two_cores()));
    scheduler.handle(Timestamp::UNIX_EPOCH, Event::Requested { request });
    scheduler.check();
    let view = scheduler.view(RunId(1)).expect("it is known");
    (view.state, view.failure.map(|failure| failure.diagnostic.code))
}

#[test]
fn a_source_at_another_commit_than_the_head_is_refused_before_anybody_approves_it() {
    let commit = |digit: &str| digit.repeat(40);
    let refused = (RunState::Ended(Ending::Refused), Some(Code::HeadChanged));
    assert_eq!(
        state(Head::Commit(commit("a")), commit("a")),
        (RunState::Reserved, None)
    );
    assert_eq!(state(Head::Commit(commit("b")), commit("a")), refused);
    assert_eq!(state(Head::Snapshot("a".repeat(64)), commit("a")), refused);
}
