//! The rules that hold after every event.

use super::{
    Scheduler, gate,
    run::{AttemptPhase, Phase, Report, Run},
};

impl Scheduler {
    /// Panics when a rule is broken.
    ///
    /// Tests call it after every event; it takes time in proportion to all that is known.
    ///
    /// # Panics
    /// When an attempt lives without an approval of its head, or goes on under one that was revoked, something is admitted that
    /// is held, quota is promised to what is gone or held by what is
    /// not known, a run is in two places at once, or work is left that nobody would carry out, or tried
    /// again that nobody needs.
    pub fn check(&self) {
        self.queue.check();
        self.check_remembered();
        for run in self.runs.values() {
            self.check_place(run);
            self.check_attempts(run);
            self.check_gate(run);
            self.check_request(run);
        }
        for run in self.failing_calls.keys() {
            assert!(
                self.unsettled.contains(run),
                "{run}: nothing fails for a run that is settled"
            );
        }
        for holder in self.queue.holders() {
            let attempt = self
                .runs
                .get(&holder.run)
                .and_then(|run| run.attempt(holder.number));
            assert!(attempt.is_some(), "{holder}: whoever holds quota is known");
        }
    }

    /// A run is in one place, and that place knows it.
    fn check_place(&self, run: &Run) {
        let live = run.attempts.iter().filter(|attempt| attempt.is_live()).count();
        assert_eq!(
            live,
            usize::from(run.phase == Phase::Active),
            "{}: one live attempt when active",
            run.id
        );
        let queued = matches!(run.phase, Phase::Queued { .. });
        assert_eq!(
            self.queue.holds_waiting(run.id),
            queued,
            "{}: in the queue when queued",
            run.id
        );
        let awaits = self
            .awaiting
            .get(&gate::origin(&run.request.subject))
            .is_some_and(|waiting| waiting.contains(&run.id));
        assert_eq!(
            awaits,
            matches!(run.phase, Phase::AwaitingApproval { .. }),
            "{}: at the gate when awaiting",
            run.id
        );
        let ended = matches!(run.phase, Phase::Ended(_));
        assert_eq!(
            run.report == Report::NotDue,
            !ended,
            "{}: a report when ended",
            run.id
        );
        assert_eq!(run.ended_at.is_some(), ended, "{}: an end when ended", run.id);
        assert_eq!(
            self.unsettled.contains(&run.id),
            !run.is_settled(),
            "{}: unsettled is known",
            run.id
        );
        assert_eq!(
            self.settled.contains(run),
            run.is_settled(),
            "{}: settled is known",
            run.id
        );
    }

    /// Whatever runs under an approval that was revoked is told to end, and nothing is admitted that is held.
    fn check_gate(&self, run: &Run) {
        let (id, subject) = (run.id, &run.request.subject);
        if let Some(attempt) = run.active()
            && self.gate.approved_by(&run.request, self.now).is_none()
            && self.gate.is_revoked(subject, attempt.head.by())
        {
            assert!(
                attempt.stop.is_some(),
                "{}: goes on under a revoked approval",
                attempt.id
            );
        }
        if self.gate.hold_of(id, subject).is_some() {
            let before = run.attempts_when_held.expect("a hold is noted");
            assert_eq!(run.attempts.len(), before, "{id}: admitted while it is held");
            let queued = matches!(run.phase, Phase::Queued { .. });
            assert!(!queued, "{id}: in the queue while it is held");
        }
    }

    fn check_attempts(&self, run: &Run) {
        for attempt in &run.attempts {
            assert_eq!(
                attempt.head.head(),
                &run.request.subject.head,
                "{}: of its approved head",
                attempt.id
            );
            let promised = self.queue.promised(attempt.id);
            let expected = (attempt.phase != AttemptPhase::Gone).then_some(run.gang);
            assert_eq!(promised, expected, "{}: holds quota until it is gone", attempt.id);
            assert_eq!(
                attempt.outcome.is_some(),
                !attempt.is_live(),
                "{}: an outcome when over",
                attempt.id
            );
        }
    }
}
