//! What is kept in folders is read as every backend promises, and nothing that a notebook puts there leads out of them.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, symlink},
    sync::Arc,
};

use blueproof_core::{
    attempt::{LogKey, LogWriter, Record, StoreIdentity},
    testing::contract::{
        OutputWriter, output_keeps_its_promises, removal_keeps_its_promises, reports_keep_their_promises,
    },
};

use super::*;

/// Writes what agents and notebooks leave.
struct Folders {
    _home: tempfile::TempDir,
    output: LocalOutput,
}

impl Folders {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let store = StoreIdentity {
            id: "a-store".into(),
            folder: "a-store".into(),
            secret: [7; 32],
        };
        let output = LocalOutput::new(RunsFolder::new(home.path(), store));
        Self { _home: home, output }
    }

    fn writer(&self, attempt: AttemptId, key: LogKey) -> LogWriter {
        self.begin(attempt);
        let log = self.output.layout(attempt).log();
        LogWriter::open(&log, key).expect("a log").0
    }

    fn append_text(&self, attempt: AttemptId, text: &[u8]) {
        let log = self.output.layout(attempt).log();
        let mut file = fs::File::options().append(true).open(log).expect("a log");
        file.write_all(text).expect("it is ours");
    }
}

impl OutputWriter for Folders {
    fn begin(&self, attempt: AttemptId) {
        files::make(self.output.layout(attempt).root()).expect("a folder");
    }

    fn append(&self, attempt: AttemptId, records: &[Record]) {
        let mut writer = self.writer(attempt, self.output.runs.log_key(attempt));
        for record in records {
            writer.append(record).expect("it is written");
        }
    }

    fn append_part(&self, attempt: AttemptId, record: &Record) {
        let text = serde_json::to_vec(record).expect("plain data");
        self.append_text(attempt, &text);
    }

    fn append_foreign(&self, attempt: AttemptId, record: &Record) {
        let mut text = serde_json::to_vec(record).expect("plain data");
        text.push(b'\n');
        self.append_text(attempt, &text);
    }

    fn cut(&self, attempt: AttemptId) {
        let log = self.output.layout(attempt).log();
        let text = fs::read_to_string(&log).expect("a log");
        let (rest, _) = text.trim_end().rsplit_once('\n').expect("two records");
        fs::write(log, format!("{rest}\n")).expect("it is ours");
    }

    fn put(&self, name: &OutputName, content: &[u8]) {
        let path = self.output.path(name);
        files::make(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("it is ours");
    }

    fn put_link(&self, attempt: AttemptId, name: &ArtifactName) {
        let elsewhere = self.output.runs.root().join("elsewhere");
        files::make(&elsewhere).expect("a folder");
        fs::write(elsewhere.join("inside"), "a secret").expect("it is ours");
        let artifacts = self.output.layout(attempt).artifacts();
        files::make(&artifacts).expect("a folder");
        let (first, rest) = match name.path().components().next() {
            Some(first) => (artifacts.join(first), name.path().components().count() > 1),
            None => unreachable!("a name has a part"),
        };
        let target = if rest { elsewhere } else { elsewhere.join("inside") };
        symlink(target, first).expect("a link");
    }

    fn remove(&self, run: RunId) {
        fs::remove_dir_all(self.output.runs.run(run)).expect("it is ours");
    }
}

#[tokio::test]
async fn folders_keep_the_contract() {
    let folders = Folders::new();
    output_keeps_its_promises(Arc::new(folders.output.clone()), &folders).await;
    reports_keep_their_promises(&folders.output).await;
    removal_keeps_its_promises(&folders.output, &folders).await;
}

#[tokio::test]
async fn a_log_in_place_of_another_is_an_error_wherever_it_is_gone_on_from() {
    let folders = Folders::new();
    let (attempt, other) = (RunId(1).attempt(1), RunId(1).attempt(2));
    let record = |message: &str| Record {
        at: "2026-01-01T00:00:00Z".parse().expect("a time"),
        kind: blueproof_core::attempt::RecordKind::StageProgress {
            stage: blueproof_core::attempt::AttemptStage::Run,
            message: message.into(),
        },
    };
    for of in [attempt, other] {
        folders.append(of, &[record("one"), record("two")]);
    }
    let start = RecordPosition::default();
    let read = folders
        .output
        .records(attempt, &start, 1)
        .await
        .expect("it reads");
    fs::copy(
        folders.output.layout(other).log(),
        folders.output.layout(attempt).log(),
    )
    .expect("it is ours");
    for after in [start, read.next] {
        let replaced = folders.output.records(attempt, &after, 10).await;
        assert!(matches!(replaced, Err(OutputError::Disturbed { at, .. }) if at == 0 || !after.is_start()));
    }
    fs::remove_file(folders.output.layout(attempt).log()).expect("it is ours");
    let log = folders.output.layout(attempt).log();
    symlink(folders.output.layout(other).log(), log).expect("a link");
    let linked = folders
        .output
        .records(attempt, &RecordPosition::default(), 10)
        .await;
    assert!(matches!(linked, Err(OutputError::Disturbed { .. })), "{linked:?}");
}

#[tokio::test]
async fn folders_that_are_links_lead_nowhere() {
    let folders = Folders::new();
    let (real, linked) = (RunId(1).attempt(1), RunId(1).attempt(2));
    let name = ArtifactName::try_from(PathBuf::from("a.txt")).expect("plain");
    folders.put(&OutputName::Artifact(real, name.clone()), b"text");
    folders.begin(linked);
    let artifacts = |attempt| folders.output.layout(attempt).artifacts();
    symlink(artifacts(real), artifacts(linked)).expect("a link");
    assert_eq!(folders.output.artifacts(linked).await.expect("listed"), []);
    let through = OutputName::Artifact(linked, name);
    let read = folders.output.read(&through, 0, 9).await;
    assert!(matches!(read, Err(OutputError::NoFile(_))), "{read:?}");
    assert_eq!(folders.output.file(&through).await.expect("looked for"), None);
}

#[tokio::test]
async fn reports_are_for_their_owner_alone_and_replace_whatever_lies_there() {
    let folders = Folders::new();
    let run = RunId(1);
    let report = OutputName::Report(run, ReportKind::Html);
    files::make(&folders.output.path(&report)).expect("a folder in its place");
    let put = folders.output.put_report(run, ReportKind::Html, b"<p>").await;
    put.expect("it is written");
    let file = folders
        .output
        .file(&report)
        .await
        .expect("looked for")
        .expect("there");
    let path = file.location.expect("it is on this machine");
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    let folders = path.ancestors().skip(1).take(2);
    for folder in folders {
        assert_eq!(mode(folder), 0o700, "{folder:?}");
    }
    assert_eq!(
        (fs::read(path).expect("it reads"), file.link),
        (b"<p>".to_vec(), "report.html".into())
    );
}

#[tokio::test]
async fn nothing_is_removed_or_measured_behind_a_link() {
    let folders = Folders::new();
    let (run, precious) = (RunId(4), tempfile::tempdir().expect("a folder"));
    let kept = precious.path().join("1");
    fs::create_dir(&kept).expect("a folder");
    fs::write(kept.join("thesis"), "all of it").expect("a file");
    let of_run = folders.output.runs.run(run);
    files::make(&of_run).expect("a folder");
    symlink(precious.path(), of_run.join("attempts")).expect("a link");

    assert_eq!(folders.output.size(run).await.expect("it is measured"), Bytes(0));
    folders
        .output
        .remove(run, 2)
        .await
        .expect("there is nothing of ours");
    assert!(kept.join("thesis").is_file());
}

#[tokio::test]
async fn a_sparse_file_counts_as_much_as_it_takes() {
    let folders = Folders::new();
    let attempt = RunId(4).attempt(1);
    folders.begin(attempt);
    let large = fs::File::create(folders.output.layout(attempt).root().join("large"));
    large
        .and_then(|file| file.set_len(1 << 40))
        .expect("a file system with holes");
    assert_eq!(
        folders.output.size(RunId(4)).await.expect("it is measured"),
        Bytes(0)
    );
}
