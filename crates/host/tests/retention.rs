//! What is kept of runs that are over, and for how long.

use blueproof_core::{
    domain::{Bytes, RunId},
    event::Event,
    policy::Policy,
    ports::{AttemptOutput, Batch, OutputName, Seq, Store, StoreClient},
    scheduler::Scheduler,
    testing::{FakeOutput, MemoryStore, contract::OutputWriter, request},
    view::RunView,
};
use blueproof_host::{PrunePlan, Retention, RetentionLimit};
use jiff::{SignedDuration, Timestamp};

fn at(days: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * days)
}

/// A store with runs that ended a day after the other, and ten bytes of output of each.
struct Kept {
    store: MemoryStore,
    output: FakeOutput,
}

impl Kept {
    async fn new(runs: u64) -> Self {
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        for run in 1..=runs {
            let request = Box::new(request(&run.to_string(), "nano-lm"));
            scheduler.handle(Timestamp::UNIX_EPOCH, Event::Requested { request });
        }
        let kept = Self {
            store: MemoryStore::default(),
            output: FakeOutput::default(),
        };
        let views = scheduler.runs().map(|view| RunView {
            settled: true,
            ended_at: Some(at(view.id.0.cast_signed())),
            ..view
        });
        kept.put(views.collect()).await;
        for run in 1..=runs {
            kept.output.put(&report(RunId(run)), b"0123456789");
        }
        kept
    }

    async fn put(&self, views: Vec<RunView>) {
        let batch = Batch {
            views,
            ..Batch::default()
        };
        self.store
            .append(Seq(0), batch)
            .await
            .expect("a store that works");
    }

    async fn plan(&self, retention: Retention, today: i64) -> PrunePlan {
        let plan = retention.plan(&self.store, &self.output, at(today)).await;
        plan.expect("a store that works")
    }

    async fn carry_out(&self, plan: &PrunePlan) -> (Vec<u64>, Bytes) {
        let pruned = plan.carry_out(&self.store, &self.output, at(100), |_| ()).await;
        let pruned = pruned.expect("a store that works");
        assert!(pruned.problems.is_empty());
        (pruned.runs.iter().map(|run| run.0).collect(), pruned.freed)
    }

    async fn runs(&self) -> Vec<u64> {
        let runs = self.store.runs(100).await.expect("a store that works");
        runs.iter().map(|view| view.id.0).collect()
    }

    async fn outputs(&self) -> Vec<u64> {
        let mut there = Vec::new();
        for run in 1..=10 {
            let kept = self.output.kept(RunId(run), 10).await.expect("it is listed");
            there.extend((!kept.files.is_empty()).then_some(run));
        }
        there
    }
}

fn report(run: RunId) -> OutputName {
    OutputName::Report(run, blueproof_core::ports::ReportKind::ALL[0])
}

fn told(plan: &PrunePlan) -> Vec<(u64, RetentionLimit)> {
    let items = plan.items.iter();
    items.map(|item| (item.run.0, item.beyond)).collect()
}

#[tokio::test]
async fn with_no_limit_everything_is_kept() {
    let kept = Kept::new(3).await;
    let plan = kept.plan(Retention::default(), 10_000).await;
    assert_eq!(plan, PrunePlan::default());
}

#[tokio::test]
async fn runs_go_by_age_and_by_number_with_what_they_left() {
    let kept = Kept::new(6).await;
    let retention = Retention {
        age: Some(SignedDuration::from_hours(24 * 4)),
        runs: Some(3),
        output: None,
    };
    let plan = kept.plan(retention, 6).await;
    use RetentionLimit::{Age, Runs};
    assert_eq!(
        told(&plan),
        [(1, Age), (2, Runs), (3, Runs)],
        "a limit is not beyond itself"
    );
    assert_eq!(
        (plan.kept_runs, plan.kept_output, plan.freed()),
        (3, None, Bytes(30))
    );
    assert_eq!(kept.runs().await.len(), 6, "a plan removes nothing");

    assert_eq!(kept.carry_out(&plan).await, (vec![1, 2, 3], Bytes(30)));
    assert_eq!(kept.runs().await, [6, 5, 4]);
    assert_eq!(kept.outputs().await, [4, 5, 6]);
    assert_eq!(kept.carry_out(&plan).await, (vec![], Bytes(0)), "once");
    assert_eq!(told(&kept.plan(retention, 6).await), []);
}

#[tokio::test]
async fn output_goes_by_its_size_and_its_run_stays() {
    let kept = Kept::new(4).await;
    let retention = Retention {
        output: Some(Bytes(25)),
        ..Retention::default()
    };
    let plan = kept.plan(retention, 6).await;
    use RetentionLimit::Output;
    assert_eq!(told(&plan), [(1, Output), (2, Output)]);
    assert_eq!((plan.kept_runs, plan.kept_output), (4, Some(Bytes(20))));
    assert_eq!(kept.carry_out(&plan).await, (vec![], Bytes(20)));
    assert_eq!(kept.runs().await, [4, 3, 2, 1]);
    assert_eq!(kept.outputs().await, [3, 4]);
    assert_eq!(told(&kept.plan(retention, 6).await), []);
}

#[tokio::test]
async fn what_goes_on_or_is_tried_again_meanwhile_stays() {
    let kept = Kept::new(3).await;
    let mut views = kept.store.runs(10).await.expect("a store that works");
    let first = views.remove(2);
    let goes_on = |view: &RunView| RunView {
        settled: false,
        ..view.clone()
    };
    kept.put(vec![goes_on(&first)]).await;
    let retention = Retention {
        runs: Some(0),
        ..Retention::default()
    };
    let plan = kept.plan(retention, 6).await;
    assert_eq!(
        told(&plan),
        [(2, RetentionLimit::Runs), (3, RetentionLimit::Runs)]
    );

    kept.put(vec![goes_on(&views[1])]).await;
    assert_eq!(kept.carry_out(&plan).await.0, [3]);
    assert_eq!(kept.runs().await, [2, 1]);
    assert_eq!(kept.outputs().await, [1, 2]);
}
