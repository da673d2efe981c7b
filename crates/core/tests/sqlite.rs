//! What the store in SQLite promises beyond the contract: to those who only read, and about who leads.

use blueproof_core::{
    domain::Actor,
    event::Event,
    fact::Fact,
    ports::{Batch, Leadership, Seq, Store, StoreClient, StoreError},
    sqlite::SqliteStore,
    testing::{FakeLease, contract},
};
use blueproof_diagnostic::Code;
use blueproof_queue::objects::Objects;
use jiff::Timestamp;

#[test]
fn whoever_only_reads_makes_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("below/b.db");
    assert!(SqliteStore::open_existing(&path).expect("no error").is_none());
    assert!(!folder.path().join("below").exists());
    drop(SqliteStore::open(&path).expect("a store"));
    assert!(SqliteStore::open_existing(&path).expect("no error").is_some());
}

#[test]
fn many_may_make_a_store_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..20 {
        let path = folder.path().join(format!("{round}.db"));
        std::thread::scope(|scope| {
            let open = || scope.spawn(|| SqliteStore::open(&path).map(drop));
            let opened: Vec<_> = std::iter::repeat_with(open).take(8).collect();
            for thread in opened {
                thread.join().expect("no panic").expect("a store");
            }
        });
    }
}

#[test]
fn a_store_that_is_not_made_yet_is_none_and_what_is_no_file_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    std::fs::write(&path, "").expect("a file");
    assert!(SqliteStore::open_existing(&path).expect("no error").is_none());
    assert_eq!(
        std::fs::metadata(&path).expect("a file").len(),
        0,
        "it was not touched"
    );
    let error = SqliteStore::open_existing(folder.path()).expect_err("a folder is no store");
    assert_eq!(error.diagnostic.code, Code::StoreBroken);
}

#[test]
fn what_can_never_be_a_store_is_said_to_be_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("a file");
    for (path, what) in [
        (folder.path().to_owned(), "it is a folder"),
        (file.join("below/b.db"), "is no folder, so nothing is below it"),
        ("/dev/null".into(), "it is no regular file"),
    ] {
        for refused in [
            SqliteStore::open(&path).err(),
            SqliteStore::open_existing(&path).err(),
        ] {
            let told = refused.expect("it is no store").diagnostic;
            assert_eq!(told.code, Code::StoreBroken);
            assert!(told.causes[0].ends_with(what), "{told:?}");
            assert!(told.hints.iter().all(|hint| !hint.contains("disk")), "{told:?}");
        }
    }
}

#[tokio::test]
async fn who_leads_can_be_asked_without_leading() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("b.db")).expect("a store");
    assert!(!store.is_led().expect("no error"));
    let leadership = store.try_lead().await.expect("no error").expect("it is free");
    assert!(store.is_led().expect("no error"));
    assert!(store.try_lead().await.expect("no error").is_none());
    drop(leadership);
    assert!(!store.is_led().expect("no error"));
    assert!(store.try_lead().await.expect("no error").is_some());
}

#[test]
fn a_pipe_in_the_place_of_a_store_keeps_nobody_waiting() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("b.db");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let opened = [
        SqliteStore::open(&pipe).err(),
        SqliteStore::open_existing(&pipe).err(),
        SqliteStore::glance(&pipe, 1).err(),
    ];
    for opened in opened {
        let error = opened.expect("it is no store");
        assert_eq!(error.diagnostic.code, blueproof_diagnostic::Code::StoreBroken);
    }
}

#[tokio::test]
async fn one_leads_by_whatever_name_the_store_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (real, alias, hard) = ["b.db", "alias.db", "hard.db"]
        .map(|name| folder.path().join(name))
        .into();
    let store = SqliteStore::open(&real).expect("a store");
    std::os::unix::fs::symlink(&real, &alias).expect("a link");
    std::fs::hard_link(&real, &hard).expect("a link");
    let leadership = store.try_lead().await.expect("no error").expect("it is free");
    for name in [&alias, &hard] {
        let other = SqliteStore::open(name).expect("the same store");
        assert!(other.is_led().expect("no error"), "{}", name.display());
        assert!(other.try_lead().await.expect("no error").is_none());
    }
    let names = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let locks = names.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "lock"));
    assert_eq!(
        locks.count(),
        0,
        "there is no lock file that somebody could remove"
    );
    drop(leadership);
    assert!(store.try_lead().await.expect("no error").is_some());
}

#[tokio::test]
async fn the_queues_that_were_applied_last_are_found_without_a_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("b.db")).expect("a store");
    assert_eq!(store.applied_quota().await.expect("a read"), None);
    let applied = |priority| {
        let mut objects = Objects::default();
        objects.priority_classes.insert("high".into(), priority);
        let by = Actor::Local("ada".into());
        Event::QuotaApplied {
            objects: Box::new(objects),
            by,
        }
    };
    let inputs = [applied(1), applied(2), Event::Tick];
    let batch = Batch {
        facts: inputs
            .map(|input| (Timestamp::UNIX_EPOCH, Fact::Input(input)))
            .into(),
        ..Batch::default()
    };
    store.append(Seq(0), batch).await.expect("it takes facts");
    let found = store.applied_quota().await.expect("a read").expect("some were");
    assert_eq!(found.priority_classes["high"], 2);
}

#[tokio::test]
async fn a_fact_that_cannot_be_understood_is_refused_with_its_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.db");
    let store = SqliteStore::open(&path).expect("a store");
    let tick = (Timestamp::UNIX_EPOCH, Fact::Input(Event::Tick));
    let batch = Batch {
        facts: vec![tick.clone(), tick],
        ..Batch::default()
    };
    store.append(Seq(0), batch).await.expect("it takes facts");
    let damages = [
        "UPDATE fact SET kind = 'dreamt', body = '{\"decision\":{\"kind\":\"dreamt\"}}' WHERE seq = 2",
        "UPDATE fact SET kind = 'dreamt', body = '{' WHERE seq = 2",
        "UPDATE fact SET kind = 'dreamt', at = 'yesterday' WHERE seq = 2",
    ];
    for damage in damages {
        let other = rusqlite::Connection::open(&path).expect("a file");
        other.execute(damage, []).expect("a row");
        let error = store.facts(Seq(0), 10).await.expect_err("it cannot be read");
        assert_eq!(error.diagnostic.code, Code::FactUnreadable, "{damage}");
        let message = "fact 2 of the log, of kind `dreamt`, cannot be understood";
        assert_eq!(error.diagnostic.message, message);
        assert!(!error.diagnostic.causes.is_empty() && !error.diagnostic.hints.is_empty());
        assert_eq!(store.facts(Seq(0), 1).await.expect("the first is whole").len(), 1);
    }
}

#[tokio::test]
async fn one_leads_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("blueproof.db");
    let [one, other] = [(); 2].map(|()| SqliteStore::open(&path).expect("a store"));
    contract::leadership_keeps_its_promises(&one, &other).await;
    let lease = FakeLease::default();
    contract::leadership_keeps_its_promises(&lease, &lease.clone()).await;
}

#[tokio::test]
async fn a_store_whose_file_is_gone_or_replaced_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, aside) = (folder.path().join("b.db"), folder.path().join("aside.db"));
    let store = SqliteStore::open(&path).expect("a store");
    let write = async || store.append(Seq(0), Batch::default()).await.map(drop);
    let read = async || store.facts(Seq(0), 1).await.map(drop);
    let gone = |done: Result<(), StoreError>| {
        let error = done.expect_err("nobody else finds this file");
        assert_eq!(error.diagnostic.code, Code::StoreBroken);
        assert!(error.diagnostic.message.contains("was removed"), "{error}");
    };
    read().await.expect("it is there");
    std::fs::rename(&path, &aside).expect("it is moved");
    gone(read().await);
    gone(write().await);
    std::fs::copy(&aside, &path).expect("another comes into its place");
    gone(read().await);
    gone(write().await);
    std::fs::rename(&aside, &path).expect("it is put back");
    read().await.expect("it is there again");
    write().await.expect("it is there again");
}
