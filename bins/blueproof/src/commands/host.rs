//! `blueproof host`: drives for those who do not stay.
//!
//! Nobody sees how it ends, and nobody comes after it. So a store that cannot be used, as on a disk that is full for a
//! moment, is tried again, and what was wrong stands in a log.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use crate::{
    config::Config,
    exit::{Exit, Problem},
    output,
    session::Session,
};

/// How long it is tried to drive before nobody tries any more: long enough for a person to make room on a disk.
const TRIED_FOR: Duration = Duration::from_secs(15 * 60);

/// How long it waits between two tries at most; less at first.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The log's name, in the folder of all runs.
const LOG: &str = "host.log";

pub(super) async fn host(config: &Config) -> Result<Exit, Problem> {
    let mut log = Log {
        file: config.runs().join(LOG),
        unwritten: String::new(),
    };
    let (mut session, mut trouble) = (None, Trouble::default());
    loop {
        let began = Instant::now();
        let Err(problem) = drive(&mut session, config).await else {
            if trouble.since.is_some() {
                log.say("nothing remains to be done");
            }
            return Ok(Exit::Ok);
        };
        // What was opened and is not there any more was taken away.
        let is_gone = session.is_some() && !config.store.value.exists();
        let pause = trouble.pause(began, Instant::now());
        match pause.filter(|_| problem.exit == Exit::Infrastructure && !is_gone) {
            Some(pause) => {
                log.say(&format!(
                    "{}; tries again in {} s",
                    told(&problem),
                    pause.as_secs()
                ));
                tokio::time::sleep(pause).await;
            }
            None => {
                log.say(&format!("{}; drives no more", told(&problem)));
                return Err(problem);
            }
        }
    }
}

async fn drive(session: &mut Option<Session>, config: &Config) -> Result<(), Problem> {
    let open = match session.take() {
        Some(open) => open,
        None => Session::open(config).await?,
    };
    session.insert(open).until_idle().await
}

/// Returns what is wrong, in one line.
fn told(problem: &Problem) -> String {
    let diagnostics = problem.diagnostics.iter().map(|diagnostic| {
        let causes = diagnostic
            .causes
            .iter()
            .map(|cause| format!(": {}", output::line(cause)));
        format!("{}{}", output::joined(diagnostic), causes.collect::<String>())
    });
    diagnostics.collect::<Vec<_>>().join("; ")
}

/// For how long it has not gone well.
#[derive(Debug, Default)]
struct Trouble {
    /// When the first of the tries began that failed one after the other.
    since: Option<Instant>,
    pause: Duration,
}

impl Trouble {
    /// Returns how long to wait after a try that has failed; `None` when it was tried for long enough.
    fn pause(&mut self, began: Instant, failed: Instant) -> Option<Duration> {
        // What went well for longer than that had nothing to do with the trouble before.
        let is_new = failed.duration_since(began) > LONGEST_PAUSE;
        if is_new || self.since.is_none() {
            *self = Self {
                since: Some(failed),
                pause: Duration::from_secs(1),
            };
        } else {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        let tried_for = failed.duration_since(self.since?);
        (tried_for < TRIED_FOR).then_some(self.pause)
    }
}

/// Where a host says what is wrong: on stderr, and where there is a folder of runs, in a file in it.
struct Log {
    file: PathBuf,
    /// What a disk that is full has not taken yet.
    unwritten: String,
}

impl Log {
    fn say(&mut self, text: &str) {
        let line = format!(
            "{} host {}: {text}",
            output::absolute(Timestamp::now()),
            std::process::id()
        );
        output::note(&line);
        self.unwritten.push_str(&format!("{line}\n"));
        if append(&self.file, &self.unwritten).is_ok() {
            self.unwritten.clear();
        }
    }
}

/// Makes no folder: one that is not marked as a folder of runs would be a part of the checkout that it may lie in.
fn append(file: &Path, lines: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_ever_more_rarely_and_not_for_ever() {
        let mut trouble = Trouble::default();
        let (first, mut pauses) = (Instant::now(), Vec::new());
        let mut now = first;
        while let Some(pause) = trouble.pause(now, now) {
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses[..6], [1, 2, 4, 8, 15, 15]);
        let tried_for = now - first;
        assert!(
            tried_for >= TRIED_FOR && tried_for < TRIED_FOR + LONGEST_PAUSE,
            "{tried_for:?}"
        );
    }

    #[test]
    fn what_fails_after_it_went_well_is_tried_for_as_long_again() {
        let mut trouble = Trouble::default();
        let mut now = Instant::now();
        while let Some(pause) = trouble.pause(now, now) {
            now += pause;
        }
        let went_well_until = now + LONGEST_PAUSE * 2;
        assert_eq!(trouble.pause(now, went_well_until), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_the_log_did_not_take_stands_before_what_it_takes() {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = folder.path().join("runs");
        let mut log = Log {
            file: runs.join(LOG),
            unwritten: String::new(),
        };
        log.say("one");
        assert!(!runs.exists(), "it makes no folder");
        std::fs::create_dir(&runs).expect("a folder");
        log.say("two");
        log.say("three");
        let written = std::fs::read_to_string(runs.join(LOG)).expect("it is there");
        let texts: Vec<_> = written
            .lines()
            .filter_map(|line| line.rsplit(": ").next())
            .collect();
        assert_eq!(texts, ["one", "two", "three"]);
    }
}
