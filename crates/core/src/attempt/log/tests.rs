//! A log is read as its agent wrote it, and what anybody else writes there is noticed.

use std::{fs, io::Write, os::unix::fs::symlink, path::Path};

use super::*;
use crate::{
    attempt::{AttemptStage, RecordKind},
    domain::RunId,
};

fn record(message: &str) -> Record {
    Record {
        at: jiff::Timestamp::UNIX_EPOCH,
        kind: RecordKind::StageProgress {
            stage: AttemptStage::Env,
            message: message.into(),
        },
    }
}

fn key() -> LogKey {
    LogKey::of(&[1; 32], RunId(1).attempt(1))
}

/// A log with these records, its writer, and the folder that keeps both.
fn log_of(messages: &[&str]) -> (tempfile::TempDir, PathBuf, LogWriter) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.ndjson");
    let mut writer = LogWriter::open(&path, key()).expect("a file").0;
    for message in messages {
        writer.append(&record(message)).expect("it is written");
    }
    (folder, path, writer)
}

fn read(path: &Path) -> Result<Vec<Record>, LogError> {
    let read = LogReader::verified(path, key()).read_all(LogCursor::default());
    read.map(|(records, _)| records)
}

fn append(path: &Path, text: &[u8]) {
    let file = File::options().append(true).open(path);
    file.and_then(|mut file| file.write_all(text))
        .expect("it is ours");
}

#[test]
fn a_log_is_read_on_from_where_the_reader_stopped() {
    let (_folder, path, mut writer) = log_of(&[]);
    let reader = LogReader::verified(&path, key());
    let start = LogCursor::default();
    assert_eq!(reader.read_from(start).expect("it reads"), (vec![], start));
    writer.append(&record("one")).expect("it is written");
    let (records, cursor) = reader.read_from(start).expect("it reads");
    assert_eq!(records, [record("one")]);
    writer.append(&record("two")).expect("it is written");
    let (records, cursor) = reader.read_from(cursor).expect("it reads");
    assert_eq!(records, [record("two")]);
    assert_eq!(reader.read_from(cursor).expect("it reads"), (vec![], cursor));
}

#[test]
fn each_line_is_one_json_object_that_anybody_can_read() {
    let (_folder, path, _writer) = log_of(&["one", "two"]);
    let text = fs::read_to_string(&path).expect("it is text");
    for line in text.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        assert_eq!(object["kind"], "stageProgress");
    }
    let (records, _) = LogReader::open(&path)
        .read_all(LogCursor::default())
        .expect("it reads");
    assert_eq!(records, [record("one"), record("two")]);
}

#[test]
fn a_long_log_is_read_a_part_at_a_time_and_a_line_is_never_cut() {
    let (_folder, path, mut writer) = log_of(&[]);
    let (long, longest) = ("x".repeat(1 << 20), "y".repeat(9 << 20));
    for message in [&long, &long, &long, &longest, &long] {
        writer.append(&record(message)).expect("it is written");
    }
    let reader = LogReader::verified(&path, key());
    let (first, _) = reader.read_from(LogCursor::default()).expect("it reads");
    assert_eq!(first.len(), 3, "no more than a few MiB at once");
    assert_eq!(read(&path).expect("it reads").len(), 5);
}

#[test]
fn what_a_killed_agent_left_of_a_line_is_waited_for_and_then_taken_away() {
    let (_folder, path, writer) = log_of(&["one", "two"]);
    drop(writer);
    let whole = fs::read(&path).expect("a file");
    fs::write(&path, &whole[..whole.len() - 9]).expect("a file");
    assert_eq!(read(&path).expect("it reads"), [record("one")]);
    let mut next = LogWriter::open(&path, key()).expect("a file").0;
    assert_eq!(next.disturbance(), None);
    next.append(&record("three")).expect("it is written");
    assert_eq!(read(&path).expect("it reads"), [record("one"), record("three")]);
}

#[test]
fn nothing_that_somebody_else_writes_is_a_record() {
    let (_folder, path, _writer) = log_of(&["one", "two", "three"]);
    let whole = fs::read_to_string(&path).expect("it is text");
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let unsigned = serde_json::to_string(&record("four")).expect("plain data") + "\n";
    let (signed_by_another, _) = LogKey::of(&[2; 32], RunId(1).attempt(1)).sign(
        Chain::default(),
        &serde_json::to_vec(&record("four")).expect("plain data"),
    );
    let rows: [(&str, String); 8] = [
        ("a line without a signature", whole.clone() + &unsigned),
        ("a line that is no JSON", whole.clone() + "x\n"),
        ("an empty line", whole.clone() + "\n"),
        ("a line twice", whole.clone() + lines[2]),
        ("lines in another order", [lines[0], lines[2], lines[1]].concat()),
        ("a line less", [lines[0], lines[2]].concat()),
        ("a word changed", whole.replace("two", "2wo")),
        (
            "a line of another attempt",
            whole.clone() + &String::from_utf8(signed_by_another).expect("it is text") + "\n",
        ),
    ];
    for (what, text) in rows {
        fs::write(&path, text).expect("a file");
        let error = read(&path).expect_err(what);
        assert!(matches!(error, LogError::Foreign { .. }), "{what}: {error:?}");
        let kept = LogWriter::open(&path, key()).expect("a file").0;
        assert!(kept.disturbance().is_some(), "{what}");
        let left = read(&path).expect("what is the agent's stays");
        assert_eq!(
            left,
            [record("one"), record("two"), record("three")][..left.len()]
        );
    }
}

/// What is done, how it is called, what is left, and how it is done.
type Row<'a> = (&'a str, Disturbance, &'a [Record], fn(&Path));

#[test]
fn a_writer_notices_what_others_do_to_its_log_and_keeps_what_is_its_own() {
    let all = [record("one"), record("two")];
    let rows: [Row<'_>; 9] = [
        ("a line more", Disturbance::Appended, &all, |path| {
            append(path, b"{}\n");
        }),
        ("half a line", Disturbance::Appended, &all, |path| {
            append(path, b"{");
        }),
        ("a terabyte of nothing", Disturbance::Appended, &all, |path| {
            File::options()
                .write(true)
                .open(path)
                .expect("ours")
                .set_len(1 << 40)
                .expect("sparse");
        }),
        ("emptied", Disturbance::CutOff, &[], |path| {
            fs::write(path, "").expect("ours");
        }),
        ("written over", Disturbance::Changed, &all[..1], |path| {
            let text = fs::read_to_string(path).expect("text").replace("two", "2wo");
            fs::write(path, text).expect("ours");
        }),
        ("removed", Disturbance::Replaced, &all, |path| {
            fs::remove_file(path).expect("ours");
        }),
        ("another file", Disturbance::Replaced, &all, |path| {
            fs::write(path.with_extension("x"), "{}\n").expect("ours");
            fs::rename(path.with_extension("x"), path).expect("ours");
        }),
        ("a link", Disturbance::Replaced, &all, |path| {
            fs::remove_file(path).expect("ours");
            symlink("/etc/passwd", path).expect("ours");
        }),
        ("a folder", Disturbance::Replaced, &all, |path| {
            fs::remove_file(path).expect("ours");
            fs::create_dir_all(path.join("below")).expect("ours");
        }),
    ];
    for (what, expected, left, disturb) in rows {
        let (_folder, path, mut writer) = log_of(&["one", "two"]);
        disturb(&path);
        assert_eq!(
            writer.reclaim().expect("it can be mended"),
            Some(expected),
            "{what}"
        );
        writer.append(&record("end")).expect("it is written");
        let mut expected = left.to_vec();
        expected.push(record("end"));
        assert_eq!(read(&path).expect("all of it is the agent's"), expected, "{what}");
    }
    let (_folder, path, mut writer) = log_of(&["one", "two"]);
    assert_eq!(writer.reclaim().expect("it reads"), None);
    assert_eq!(read(&path).expect("it reads"), all);
}

#[test]
fn a_pipe_or_a_folder_in_the_place_of_a_log_keeps_nobody_waiting() {
    let (_folder, path, _writer) = log_of(&["one"]);
    fs::remove_file(&path).expect("it is ours");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).expect("a pipe");
    assert!(matches!(read(&path), Err(LogError::Foreign { at: 0 })));
    let writer = LogWriter::open(&path, key()).expect("a file in its place").0;
    assert_eq!(writer.disturbance(), Some(Disturbance::Replaced));
    assert_eq!(read(&path).expect("it reads"), []);
}
