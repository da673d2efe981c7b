//! What the store in SQLite promises beyond the contract: to those who only read, and about who leads.

use blueproof_core::{diagnostic::Code, sqlite::SqliteStore};

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
fn who_leads_can_be_asked_without_leading() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("b.db")).expect("a store");
    assert!(!store.is_led().expect("no error"));
    assert!(!folder.path().join("b.lock").exists(), "asking makes no file");
    let leadership = store.try_lead().expect("no error").expect("it is free");
    assert!(store.is_led().expect("no error"));
    assert!(store.try_lead().expect("no error").is_none());
    drop(leadership);
    assert!(!store.is_led().expect("no error"));
    assert!(store.try_lead().expect("no error").is_some());
}
