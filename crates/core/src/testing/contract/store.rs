//! What every store promises.

use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use super::super::samples::request;
use crate::{
    domain::{Actor, RequestKey, Resources, RunId, RunRequest},
    event::{Event, StopMode},
    fact::Fact,
    pending::PendingReason,
    policy::Policy,
    ports::{Answer, Batch, Command, Seq, Store},
    scheduler::Scheduler,
    view::{OutlookView, RunView},
};

/// Puts an empty store to everything that the port promises.
///
/// # Panics
/// When a promise is not kept.
pub async fn store_keeps_its_promises(store: &dyn Store) {
    it_gives_back_what_was_appended(store).await;
    it_keeps_the_latest_view_of_each_run(store).await;
    it_keeps_how_runs_stand_beside_them(store).await;
    it_appends_only_where_the_log_still_ends(store).await;
    it_keeps_the_newest_snapshots(store).await;
    it_takes_each_command_once(store).await;
    it_refuses_a_key_of_another_command(store).await;
    it_tells_what_became_of_commands(store).await;
    it_tells_of_changes(store).await;
    it_tells_what_a_run_was_asked_for_with(store).await;
    it_prunes_what_is_settled_and_nothing_else(store).await;
}

/// Returns a fact that changes nothing.
fn reported() -> Fact {
    let (run, attempts) = (RunId(99), 1);
    Fact::Input(Event::Reported { run, attempts })
}

async fn it_gives_back_what_was_appended(store: &dyn Store) {
    let at = Timestamp::from_nanosecond(1_500_000_001).expect("small");
    let requested = Event::Requested {
        request: Box::new(request("log", "nano-lm")),
    };
    let requested = Fact::Input(requested);
    let facts = vec![(at, reported()), (at, requested.clone())];
    let batch = Batch {
        facts,
        ..Batch::default()
    };
    let last = store.append(Seq(0), batch).await.expect("an append");
    assert_eq!(last, Seq(2), "the position of the last fact is told");
    let all = store.facts(Seq(0), 100).await.expect("a read");
    let seqs: Vec<_> = all.iter().map(|logged| logged.seq).collect();
    assert_eq!(seqs, [Seq(1), Seq(2)], "positions count from one");
    assert_eq!(
        (&all[1].fact, all[1].at),
        (&requested, at),
        "facts come back as they were, to the nanosecond"
    );
    assert_eq!(
        store.facts(Seq(1), 100).await.expect("a read"),
        all[1..],
        "reading goes on after a position"
    );
    assert_eq!(
        store.facts(Seq(0), 1).await.expect("a read"),
        all[..1],
        "no more than asked"
    );
    assert_eq!(
        store.facts(Seq(2), 100).await.expect("a read"),
        [],
        "after the last there is nothing"
    );
}

async fn it_keeps_the_latest_view_of_each_run(store: &dyn Store) {
    let (first, second) = views();
    let both = Batch {
        views: vec![first.clone(), second.clone()],
        ..Batch::default()
    };
    store.append(Seq(2), both).await.expect("an append");
    let mut later = first.clone();
    later.settled = true;
    store
        .append(
            Seq(2),
            Batch {
                views: vec![later.clone()],
                ..Batch::default()
            },
        )
        .await
        .expect("an append");
    assert_eq!(
        store.run(first.id).await.expect("a read"),
        Some(later.clone()),
        "the latest view counts"
    );
    for unknown in [99, u64::MAX] {
        assert_eq!(
            store.run(RunId(unknown)).await.expect("a read"),
            None,
            "what is not known is not there"
        );
    }
    assert_eq!(
        store.run_of(&second.request_key).await.expect("a read"),
        Some(second.clone())
    );
    assert_eq!(
        store.runs(10).await.expect("a read"),
        [second.clone(), later.clone()],
        "the newest first"
    );
    let before = async |run| store.runs_before(Some(run), 10).await.expect("a read");
    assert_eq!(before(second.id).await, [later], "those before it");
    assert_eq!(before(first.id).await, [], "nothing is older than the oldest");
    assert_eq!(
        store.runs(1).await.expect("a read"),
        [second],
        "no more than asked"
    );
}

async fn it_keeps_how_runs_stand_beside_them(store: &dyn Store) {
    let view = store.runs(1).await.expect("a read").pop().expect("one is there");
    assert_eq!(view.outlook, None, "nothing is known before it was put");
    let outlook = OutlookView {
        as_of: Timestamp::UNIX_EPOCH,
        reason: Some(PendingReason::BeingPlaced),
        position: None,
        unblocked_by: Vec::new(),
        estimate: None,
        duration: None,
    };
    let puts = |after| {
        store.put_outlooks(
            after,
            vec![(view.id, outlook.clone()), (RunId(99), outlook.clone())],
        )
    };
    let refused = puts(Seq(1)).await.expect_err("the log has gone on");
    assert!(refused.is_overtaken(), "{refused}");
    let of_run = async || {
        store
            .run(view.id)
            .await
            .expect("a read")
            .expect("it is there")
            .outlook
    };
    assert_eq!(of_run().await, None, "nothing of it was written");
    puts(Seq(2)).await.expect("a write");
    assert_eq!(of_run().await, Some(Box::new(outlook.clone())));
    assert_eq!(
        store.run(RunId(99)).await.expect("a read"),
        None,
        "it makes no row"
    );
    let listed = store.runs(1).await.expect("a read").pop().expect("one is there");
    assert_eq!(listed.outlook, Some(Box::new(outlook)), "lists have it, too");
    let batch = Batch {
        views: vec![view.clone()],
        ..Batch::default()
    };
    store.append(Seq(2), batch).await.expect("an append");
    assert_eq!(of_run().await, None, "a view that has none takes it away");
}

async fn it_prunes_what_is_settled_and_nothing_else(store: &dyn Store) {
    let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
    for key in ["prune-1", "prune-2", "prune-3"] {
        let request = Box::new(request(key, "nano-lm"));
        scheduler.handle(Timestamp::UNIX_EPOCH, Event::Requested { request });
    }
    let mut views: Vec<RunView> = scheduler.runs().collect();
    for (view, id) in views.iter_mut().zip(701..) {
        (view.id, view.settled) = (RunId(id), id != 702);
    }
    let facts = store.facts(Seq(0), 10_000).await.expect("a read");
    let batch = Batch {
        views,
        ..Batch::default()
    };
    store
        .append(Seq(facts.len() as u64), batch)
        .await
        .expect("an append");
    let asked = [701, 702, 799].map(RunId);
    let pruned = store.prune(Timestamp::UNIX_EPOCH, &asked).await.expect("a write");
    assert_eq!(pruned, [RunId(701)], "only what is settled and there");
    let again = store.prune(Timestamp::UNIX_EPOCH, &asked).await.expect("a write");
    assert_eq!(again, [], "once");
    let left = store.runs_before(Some(RunId(704)), 2).await.expect("a read");
    assert_eq!(left.iter().map(|view| view.id.0).collect::<Vec<_>>(), [703, 702]);
    assert_eq!(store.run(RunId(701)).await.expect("a read"), None);
    let key = RequestKey("prune-1".into());
    assert_eq!(store.run_of(&key).await.expect("a read"), None);
    let after = store.facts(Seq(0), 10_000).await.expect("a read");
    assert_eq!(after.len(), facts.len(), "the log stays");
}

async fn it_appends_only_where_the_log_still_ends(store: &dyn Store) {
    let view = store.runs(1).await.expect("a read").pop().expect("one is there");
    let mut changed = view.clone();
    changed.settled = !view.settled;
    let command = Command::Run {
        request: Box::new(request("overtaken", "nano-lm")),
    };
    store
        .submit(Timestamp::UNIX_EPOCH, command)
        .await
        .expect("a command");
    let left = store.commands().await.expect("a read");
    let batch = Batch {
        facts: vec![(Timestamp::UNIX_EPOCH, reported())],
        views: vec![changed],
        taken: vec![(left[0].0, Answer::Taken)],
    };
    for stale in [Seq(0), Seq(1), Seq(3)] {
        let refused = store
            .append(stale, batch.clone())
            .await
            .expect_err("it ends at 2");
        assert!(refused.is_overtaken(), "{stale:?}: {refused}");
    }
    assert_eq!(store.facts(Seq(0), 100).await.expect("a read").len(), 2);
    assert_eq!(
        store.run(view.id).await.expect("a read"),
        Some(view),
        "nothing of it was written"
    );
    assert_eq!(
        store.commands().await.expect("a read"),
        left,
        "and no command taken"
    );
    let tick = Batch {
        taken: vec![(left[0].0, Answer::Taken)],
        views: Vec::new(),
        ..batch
    };
    assert_eq!(store.append(Seq(2), tick).await.expect("an append"), Seq(3));
}

async fn it_keeps_the_newest_snapshots(store: &dyn Store) {
    assert_eq!(
        store.snapshot(7).await.expect("a read"),
        None,
        "there is none yet"
    );
    let bytes = |text: &str| text.as_bytes().to_vec();
    let put = async |at, version, text| {
        let put = store.put_snapshot(Seq(at), version, bytes(text));
        put.await.expect("a write");
    };
    put(1, 7, "first").await;
    put(2, 8, "of another shape").await;
    let first = Some((Seq(1), bytes("first")));
    assert_eq!(
        store.snapshot(7).await.expect("a read"),
        first,
        "that of its own version"
    );
    put(2, 7, "second").await;
    let second = Some((Seq(2), bytes("second")));
    assert_eq!(store.snapshot(7).await.expect("a read"), second, "the newest");
    assert_eq!(
        store.snapshot(8).await.expect("a read"),
        None,
        "one for each place in the log"
    );
    put(99, 7, "ahead").await;
    assert_eq!(
        store.snapshot(7).await.expect("a read"),
        second,
        "what the log does not have is not trusted"
    );
    put(100, 7, "ahead, too").await;
    assert_eq!(
        store.snapshot(7).await.expect("a read"),
        None,
        "no more than two are kept"
    );
}

async fn it_takes_each_command_once(store: &dyn Store) {
    let command = Command::Run {
        request: Box::new(request("command", "nano-lm")),
    };
    store
        .submit(Timestamp::UNIX_EPOCH, command.clone())
        .await
        .expect("a command");
    store
        .submit(Timestamp::UNIX_EPOCH, command.clone())
        .await
        .expect("the same command");
    let waiting = store.commands().await.expect("a read");
    assert_eq!(
        waiting.len(),
        1,
        "a command whose key was left before changes nothing"
    );
    assert_eq!(waiting[0].1.as_ref(), Ok(&command));
    store
        .append(
            Seq(3),
            Batch {
                taken: vec![(waiting[0].0, Answer::Taken)],
                ..Batch::default()
            },
        )
        .await
        .expect("an append");
    assert_eq!(
        store.commands().await.expect("a read"),
        [],
        "what is taken up is gone"
    );
    store
        .submit(Timestamp::UNIX_EPOCH, command)
        .await
        .expect("the same command, late");
    assert_eq!(store.commands().await.expect("a read"), [], "not even late");
}

async fn it_refuses_a_key_of_another_command(store: &dyn Store) {
    let command = |run: u64| Command::Cancel {
        key: RequestKey("reused".into()),
        run: RunId(run),
        by: Actor::Local("ada".into()),
        how: StopMode::Terminate,
    };
    let at = Timestamp::UNIX_EPOCH;
    store.submit(at, command(1)).await.expect("a command");
    let before = store.commands().await.expect("a read");
    let refused = store.submit(at, command(2)).await.expect_err("another run");
    assert_eq!(refused.diagnostic.code, Code::KeyReused);
    assert_eq!(store.commands().await.expect("a read"), before);
    let taken = Batch {
        taken: vec![(before[0].0, Answer::Taken)],
        ..Batch::default()
    };
    store.append(Seq(3), taken).await.expect("an append");
    let late = store.submit(at, command(2)).await;
    let late = late.expect_err("after the first was taken up");
    assert_eq!(late.diagnostic.code, Code::KeyReused);
}

async fn it_tells_what_became_of_commands(store: &dyn Store) {
    let problem = || {
        Box::new(Diagnostic::error(
            Code::CommandQuarantined,
            "the contract says so",
        ))
    };
    let answers = [
        Answer::Taken,
        Answer::Refused(problem()),
        Answer::Quarantined(problem()),
    ];
    let at = Timestamp::from_second(7).expect("small");
    let mut keys = Vec::new();
    for answer in &answers {
        let key = RequestKey(format!("answer-{}", keys.len()));
        let command = Command::Cancel {
            key: key.clone(),
            run: RunId(1),
            by: Actor::Local("ada".into()),
            how: StopMode::Terminate,
        };
        store.submit(at, command).await.expect("a command");
        let left = store.commands().await.expect("a read");
        assert_eq!(left.len(), 1, "what was answered waits no more");
        let stored = store.command(&key).await.expect("a read").expect("it was left");
        assert_eq!(
            (stored.at, stored.kind.as_str(), stored.answer),
            (at, "cancel", None)
        );
        let batch = Batch {
            taken: vec![(left[0].0, answer.clone())],
            ..Batch::default()
        };
        store.append(Seq(3), batch).await.expect("an append");
        keys.push(key);
    }
    assert_eq!(store.commands().await.expect("a read"), []);
    for (key, answer) in keys.iter().zip(&answers) {
        let stored = store.command(key).await.expect("a read").expect("it was left");
        assert_eq!(stored.answer.as_ref(), Some(answer));
    }
    let unknown = RequestKey("nobody left it".into());
    assert_eq!(store.command(&unknown).await.expect("a read"), None);
    let newest = store.all_commands(2).await.expect("a read");
    let newest: Vec<_> = newest.into_iter().map(|stored| stored.key).collect();
    assert_eq!(
        newest,
        [keys[2].clone(), keys[1].clone()],
        "the newest first, no more than asked"
    );
}

async fn it_tells_of_changes(store: &dyn Store) {
    let before = store.changed(None).await;
    let tick = Batch {
        facts: vec![(Timestamp::UNIX_EPOCH, reported())],
        ..Batch::default()
    };
    let (after, appended) = tokio::join!(store.changed(Some(before)), store.append(Seq(3), tick));
    appended.expect("an append");
    assert_ne!(before, after, "an append is a change");
}

async fn it_tells_what_a_run_was_asked_for_with(store: &dyn Store) {
    let (first, second) = views();
    let asked = request("view-1", "nano-lm");
    let again = request("view-1", "another");
    let requested = |request: &RunRequest| {
        let request = Box::new(request.clone());
        (Timestamp::UNIX_EPOCH, Fact::Input(Event::Requested { request }))
    };
    let facts = Batch {
        facts: vec![requested(&asked), requested(&again)],
        ..Batch::default()
    };
    store.append(Seq(4), facts).await.expect("an append");
    assert_eq!(
        store.request(first.id).await.expect("a read"),
        Some(asked),
        "of several of one key the first made the run"
    );
    for without in [second.id, RunId(99), RunId(u64::MAX)] {
        assert_eq!(store.request(without).await.expect("a read"), None, "{without}");
    }
}

fn views() -> (RunView, RunView) {
    let mut scheduler = Scheduler::new(Policy::local(Resources::default()));
    for key in ["view-1", "view-2"] {
        let request = Box::new(request(key, "nano-lm"));
        scheduler.handle(Timestamp::UNIX_EPOCH, Event::Requested { request });
    }
    let view = |key: &str| {
        let run = scheduler.run_of(&RequestKey(key.into())).expect("requested");
        scheduler.view(run).expect("requested")
    };
    (view("view-1"), view("view-2"))
}
