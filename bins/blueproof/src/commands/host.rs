//! `blueproof host`: drives for those who do not stay.
//!
//! Nobody sees how it ends, and nobody comes after it. So a store that cannot be used, as on a disk that is full for a
//! moment, is tried again, and what was wrong stands in a log.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use blueproof_host::Pauses;
use jiff::Timestamp;

use crate::{
    config::Config,
    exit::{Exit, Problem},
    output,
    session::Session,
};

/// The log's name, in the folder of all runs.
const LOG: &str = "host.log";

pub(super) async fn host(config: &Config) -> Result<Exit, Problem> {
    let mut log = Log {
        file: config.runs().join(LOG),
        unwritten: String::new(),
    };
    let (mut session, mut pauses) = (None, Pauses::default());
    loop {
        let began = Instant::now();
        let Err(problem) = drive(&mut session, config).await else {
            if pauses.has_failed() {
                log.say("nothing remains to be done");
            }
            return Ok(Exit::Ok);
        };
        // What was opened and is not there any more was taken away.
        let is_gone = session.is_some() && !config.store.value.exists();
        let pause = pauses.after(began, Instant::now());
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
