//! What every backend of attempts' output promises.

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::{
    attempt::{AttemptStage, Record, RecordKind},
    domain::{AttemptId, Bytes, RunId},
    ports::{
        ArtifactName, AttemptOutput, OutputError, OutputName, RecordFollower, RecordPosition,
        RemovableOutput, ReportKind, ReportOutput, whole,
    },
};

/// The longest that anything here may take on a slow machine.
const BOUND: Duration = Duration::from_secs(60);

/// The most text of records that one read may return.
const MOST_TEXT: usize = 16 << 20;

/// Writes where a backend reads: the part of agents, and of notebooks that do what they must not.
pub trait OutputWriter: Sync {
    /// Makes a place for an attempt, in which nothing is written yet.
    fn begin(&self, attempt: AttemptId);
    /// Writes records as the attempt's agent does.
    fn append(&self, attempt: AttemptId, records: &[Record]);
    /// Writes the beginning of a record as an agent does that was killed then.
    fn append_part(&self, attempt: AttemptId, record: &Record);
    /// Writes a record as somebody does who is not the agent.
    fn append_foreign(&self, attempt: AttemptId, record: &Record);
    /// Takes the last record away.
    fn cut(&self, attempt: AttemptId);
    /// Puts a file in its place.
    fn put(&self, name: &OutputName, content: &[u8]);
    /// Puts a link to something else in an artifact's place.
    fn put_link(&self, attempt: AttemptId, name: &ArtifactName);
    /// Removes all that is kept of a run, as retention does.
    fn remove(&self, run: RunId);
}

/// Puts a backend that keeps nothing yet to the contract. `writer` writes where it reads.
///
/// # Panics
/// When a promise is not kept.
pub async fn output_keeps_its_promises(output: Arc<dyn AttemptOutput>, writer: &dyn OutputWriter) {
    records_come_in_order_and_resume_anywhere(&output, writer).await;
    a_part_of_a_record_is_not_read(&output, writer).await;
    what_is_not_the_agents_is_an_error(&output, writer).await;
    a_follower_waits_and_loses_nothing(&output, writer).await;
    a_large_log_comes_in_parts(&output, writer).await;
    what_is_not_there_is_said_to_be_missing(&output, writer).await;
    files_are_read_by_name_and_links_are_not_followed(&*output, writer).await;
    all_that_is_kept_is_listed(&*output, writer).await;
}

fn record(text: &str) -> Record {
    Record {
        at: Timestamp::UNIX_EPOCH,
        kind: RecordKind::StageProgress {
            stage: AttemptStage::Run,
            message: text.into(),
        },
    }
}

fn numbered(count: usize) -> Vec<Record> {
    (0..count).map(|number| record(&number.to_string())).collect()
}

async fn records_come_in_order_and_resume_anywhere(
    output: &Arc<dyn AttemptOutput>,
    writer: &dyn OutputWriter,
) {
    let attempt = RunId(1).attempt(1);
    writer.begin(attempt);
    let start = RecordPosition::default();
    let empty = output.records(attempt, &start, 10).await.expect("it reads");
    assert_eq!(
        (empty.records, &empty.next),
        (vec![], &start),
        "nothing is written yet"
    );
    let all = numbered(5);
    writer.append(attempt, &all);
    let mut at = start.clone();
    for (nth, expected) in all.iter().enumerate() {
        let rest = output.records(attempt, &at, usize::MAX).await.expect("it reads");
        assert_eq!(rest.records, all[nth..], "it resumes after {nth}");
        let one = output.records(attempt, &at, 1).await.expect("it reads");
        assert_eq!(
            one.records.as_slice(),
            std::slice::from_ref(expected),
            "no more than asked for"
        );
        // As another process does that was handed the position.
        let kept = serde_json::to_string(&one.next).expect("plain data");
        at = serde_json::from_str(&kept).expect("it was written so");
    }
    let end = output.records(attempt, &at, 10).await.expect("it reads");
    assert_eq!((end.records, &end.next), (vec![], &at), "nothing is new");
    let nonsense = RecordPosition("nonsense".into());
    let refused = output.records(attempt, &nonsense, 10).await;
    assert!(
        matches!(refused, Err(OutputError::Position { .. })),
        "{refused:?}"
    );
}

async fn a_part_of_a_record_is_not_read(output: &Arc<dyn AttemptOutput>, writer: &dyn OutputWriter) {
    let attempt = RunId(1).attempt(2);
    writer.append(attempt, &numbered(1));
    writer.append_part(attempt, &record("unfinished"));
    let read = output.records(attempt, &RecordPosition::default(), 10).await;
    let read = read.expect("it reads");
    assert_eq!(read.records, numbered(1));
    let after = output.records(attempt, &read.next, 10).await.expect("it reads");
    assert_eq!(
        (after.records, after.next),
        (vec![], read.next),
        "it is left for later"
    );
}

async fn what_is_not_the_agents_is_an_error(output: &Arc<dyn AttemptOutput>, writer: &dyn OutputWriter) {
    let (foreign, cut) = (RunId(2).attempt(1), RunId(2).attempt(2));
    for attempt in [foreign, cut] {
        writer.append(attempt, &numbered(2));
    }
    let start = RecordPosition::default();
    let end = output.records(cut, &start, 10).await.expect("it reads").next;
    writer.append_foreign(foreign, &record("passed"));
    writer.cut(cut);
    let read = output
        .records(foreign, &start, 10)
        .await
        .expect("what the agent wrote reads");
    assert_eq!(
        read.records,
        numbered(2),
        "what comes before is the agent's all the same"
    );
    for (attempt, after) in [(foreign, read.next), (cut, end)] {
        let disturbed = output.records(attempt, &after, 10).await;
        assert!(
            matches!(disturbed, Err(OutputError::Disturbed { .. })),
            "{disturbed:?}"
        );
    }
}

async fn a_follower_waits_and_loses_nothing(output: &Arc<dyn AttemptOutput>, writer: &dyn OutputWriter) {
    let attempt = RunId(3).attempt(1);
    let mut follower = RecordFollower::new(output.clone(), attempt);
    assert_eq!(follower.ready().await.expect("it has not begun"), []);
    // It is dropped while it waits, and goes on.
    let waits = tokio::time::timeout(Duration::from_millis(1), follower.next()).await;
    assert!(waits.is_err(), "there is nothing yet: {waits:?}");
    let all = numbered(3);
    for part in all.chunks(1) {
        let (next, ()) = tokio::join!(tokio::time::timeout(BOUND, follower.next()), async {
            tokio::task::yield_now().await;
            writer.append(attempt, part);
        });
        assert_eq!(next.expect("it is woken").expect("it reads"), part);
    }
    let resumed = follower.position().clone();
    writer.append(attempt, &all[..1]);
    let mut resumed = RecordFollower::after(resumed, output.clone(), attempt);
    assert_eq!(resumed.ready().await.expect("it reads"), all[..1]);
}

async fn a_large_log_comes_in_parts(output: &Arc<dyn AttemptOutput>, writer: &dyn OutputWriter) {
    const RECORDS: usize = 24_000;
    let attempt = RunId(4).attempt(1);
    let text = "x".repeat(1 << 10);
    let part: Vec<_> = (0..RECORDS).map(|_| record(&text)).collect();
    writer.append(attempt, &part);
    let mut follower = RecordFollower::new(output.clone(), attempt);
    let mut read = 0;
    loop {
        let records = follower.ready().await.expect("it reads");
        assert!(
            records.len() * text.len() <= MOST_TEXT,
            "{} at once",
            records.len()
        );
        if records.is_empty() {
            break;
        }
        read += records.len();
    }
    assert_eq!(read, RECORDS);
}

async fn what_is_not_there_is_said_to_be_missing(output: &Arc<dyn AttemptOutput>, writer: &dyn OutputWriter) {
    let (never, removed) = (RunId(5).attempt(1), RunId(6).attempt(1));
    let start = RecordPosition::default();
    let missing = output.records(never, &start, 10).await;
    assert!(matches!(missing, Err(OutputError::Missing(_))), "{missing:?}");
    let missing = output.artifacts(never).await;
    assert!(matches!(missing, Err(OutputError::Missing(_))), "{missing:?}");
    assert_eq!(output.kept(never.run, 10).await.expect("it is listed").files, []);
    writer.append(removed, &numbered(1));
    let read = output.records(removed, &start, 10).await.expect("it reads");
    writer.remove(removed.run);
    let gone = output.records(removed, &read.next, 10).await;
    assert!(matches!(gone, Err(OutputError::Removed(_))), "{gone:?}");
}

async fn files_are_read_by_name_and_links_are_not_followed(
    output: &dyn AttemptOutput,
    writer: &dyn OutputWriter,
) {
    let attempt = RunId(7).attempt(1);
    writer.begin(attempt);
    assert_eq!(output.artifacts(attempt).await.expect("it is listed"), []);
    let artifact = |path: &str| ArtifactName::try_from(PathBuf::from(path)).expect("it is below");
    let names = [
        OutputName::Artifact(attempt, artifact("a.txt")),
        OutputName::Artifact(attempt, artifact("deep/b.txt")),
        OutputName::ExecutedNotebook(attempt),
        OutputName::KernelLog(attempt),
    ];
    for name in &names {
        let none = output.file(name).await.expect("it is looked for");
        assert_eq!(none, None, "{name}");
        let none = output.read(name, 0, 1).await;
        assert!(matches!(none, Err(OutputError::NoFile(_))), "{none:?}");
        writer.put(name, b"0123456789");
        let file = output
            .file(name)
            .await
            .expect("it is found")
            .expect("it is there");
        assert_eq!((&file.name, file.size), (name, Bytes(10)));
        assert!(file.link.is_relative(), "{}", file.link.display());
        let part = output.read(name, 2, 3).await.expect("it reads");
        assert_eq!(part, b"234", "{name}");
        assert_eq!(
            output.read(name, 10, 3).await.expect("it reads"),
            b"",
            "{name} ends"
        );
        assert_eq!(whole(output, name, 10).await.expect("it reads"), b"0123456789");
        let large = whole(output, name, 9).await;
        assert!(matches!(large, Err(OutputError::TooLarge { .. })), "{large:?}");
    }
    for link in ["link", "linked/inside"] {
        writer.put_link(attempt, &artifact(link));
        let refused = output
            .read(&OutputName::Artifact(attempt, artifact(link)), 0, 1)
            .await;
        assert!(refused.is_err(), "{link}: {refused:?}");
    }
    let listed = output.artifacts(attempt).await.expect("they are listed");
    let listed: Vec<_> = listed.into_iter().map(|file| file.name).collect();
    assert_eq!(listed, names[..2], "no link is one");
}

/// Puts a backend that takes reports to what it promises of them.
///
/// # Panics
/// When a promise is not kept.
pub async fn reports_keep_their_promises(output: &dyn ReportOutput) {
    let run = RunId(9);
    for content in [&b"first"[..], b"second, and longer"] {
        for kind in ReportKind::ALL {
            output
                .put_report(run, kind, content)
                .await
                .expect("it is written");
            let name = OutputName::Report(run, kind);
            assert_eq!(whole(output, &name, 100).await.expect("it reads"), content);
        }
    }
}

/// Puts a backend that removes what is kept to what it promises of that.
///
/// # Panics
/// When a promise is not kept.
pub async fn removal_keeps_its_promises(output: &dyn RemovableOutput, writer: &dyn OutputWriter) {
    let (run, other) = (RunId(21), RunId(22));
    let notebook = |run: RunId, attempt| OutputName::ExecutedNotebook(run.attempt(attempt));
    let size = async |run| output.size(run).await.expect("it is measured").0;
    assert_eq!(size(run).await, 0);
    output.remove(run, 3).await.expect("nothing is a success");
    for name in [
        notebook(run, 1),
        notebook(run, 2),
        notebook(run, 3),
        notebook(other, 1),
    ] {
        writer.put(&name, b"0123456789");
    }
    let artifact = ArtifactName::try_from(PathBuf::from("a/b")).expect("a name");
    writer.put(&OutputName::Artifact(run.attempt(1), artifact), b"01234");
    writer.put(&OutputName::Report(run, ReportKind::ALL[0]), b"01");
    assert_eq!(size(run).await, 37);
    assert_eq!(size(other).await, 10);

    output.remove(run, 2).await.expect("it is removed");
    assert_eq!(size(run).await, 10, "a later attempt stays");
    output.remove(run, 2).await.expect("it is removed already");
    assert_eq!(size(other).await, 10, "nothing of another run goes");
    let left = output.kept(run, 10).await.expect("it is listed");
    assert_eq!((left.files.len(), left.more), (1, 0), "{left:?}");
    output.remove(run, 3).await.expect("it is removed");
    assert_eq!(size(run).await, 0);
}

async fn all_that_is_kept_is_listed(output: &dyn AttemptOutput, writer: &dyn OutputWriter) {
    let run = RunId(8);
    for kind in ReportKind::ALL {
        writer.put(&OutputName::Report(run, kind), b"a report");
    }
    writer.put(&OutputName::ExecutedNotebook(run.attempt(2)), b"{}");
    let kept = output.kept(run, 10).await.expect("it is listed");
    assert_eq!((kept.files.len(), kept.more), (4, 0), "{kept:?}");
    assert!(kept.files.is_sorted(), "{kept:?}");
    let some = output.kept(run, 3).await.expect("it is listed");
    assert_eq!((&some.files[..], some.more), (&kept.files[..3], 1));
}
