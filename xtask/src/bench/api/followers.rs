//! Many that follow streams of server-sent events, each on a connection of its own.

use std::{
    io::{BufRead as _, BufReader, ErrorKind, Write as _},
    net::TcpStream,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::Value;

use super::scheduler::Scheduler;

/// How long a follower waits for a byte before it looks whether it is to end.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// How long it may take until each has news: an environment may have to be made first.
const NEWS_WITHIN: Duration = Duration::from_secs(180);

/// What a follower needs of its thread's stack.
const STACK: usize = 256 << 10;

/// A stream of the API.
#[derive(Debug, Clone)]
pub(super) enum Stream {
    /// The records of a run's first attempt.
    Records {
        /// The run.
        run: String,
    },
    /// The log, after the fact at this position.
    Facts {
        /// The position.
        after: u64,
    },
}

/// How soon news of a kind came.
pub(super) struct News {
    pub(super) what: &'static str,
    /// The age of each when it came, the youngest first.
    pub(super) seconds: Vec<f64>,
}

/// All that follow.
pub(super) struct Followers {
    threads: Vec<(&'static str, JoinHandle<Result<Vec<f64>>>)>,
    state: Arc<Shared>,
}

/// What followers and whoever waits for them share.
#[derive(Default)]
struct Shared {
    /// How many have heard something.
    have_news: AtomicUsize,
    /// From when on news count.
    counts_from: OnceLock<Timestamp>,
    ends: AtomicBool,
}

impl Stream {
    fn what(&self) -> &'static str {
        match self {
            Stream::Records { .. } => "records",
            Stream::Facts { .. } => "facts",
        }
    }

    fn path(&self) -> String {
        match self {
            Stream::Records { run } => format!("/api/v1/attempts/{run}.1/records/stream"),
            Stream::Facts { after } => format!("/api/v1/facts/stream?after={after}"),
        }
    }
}

impl Followers {
    /// Has so many follow each stream.
    pub(super) fn start(scheduler: &Scheduler, streams: &[(Stream, usize)]) -> Result<Self> {
        let mut followers = Self {
            threads: Vec::new(),
            state: Arc::default(),
        };
        for (stream, count) in streams {
            let request = format!(
                "GET {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
                stream.path(),
                scheduler.address,
                scheduler.token
            );
            for _ in 0..*count {
                let (address, request) = (scheduler.address.clone(), request.clone());
                let state = Arc::clone(&followers.state);
                let follows = move || follow(&address, &request, &state);
                let thread = thread::Builder::new().stack_size(STACK).spawn(follows);
                let thread = thread.context("a thread for a follower cannot be made")?;
                followers.threads.push((stream.what(), thread));
            }
        }
        Ok(followers)
    }

    /// Waits until each has heard something. What happens from then on counts.
    pub(super) fn await_news(&self) -> Result<()> {
        let begun = Instant::now();
        while self.state.have_news.load(Ordering::Relaxed) < self.threads.len() {
            let are_there = self.threads.iter().all(|(_, thread)| !thread.is_finished());
            ensure!(
                are_there && begun.elapsed() < NEWS_WITHIN,
                "not every follower has news"
            );
            thread::sleep(LOOKS_EVERY);
        }
        self.state.counts_from.get_or_init(Timestamp::now);
        Ok(())
    }

    /// Ends all of them, and returns how soon news came.
    pub(super) fn end(self) -> Result<Vec<News>> {
        self.state.ends.store(true, Ordering::Relaxed);
        let mut all: Vec<News> = Vec::new();
        for (what, thread) in self.threads {
            let ages = thread.join().expect("following does not panic");
            let ages = ages.with_context(|| format!("a follower of {what} failed"))?;
            match all.iter_mut().find(|news| news.what == what) {
                Some(news) => news.seconds.extend(ages),
                None => all.push(News { what, seconds: ages }),
            }
        }
        for news in &mut all {
            news.seconds.sort_by(f64::total_cmp);
        }
        Ok(all)
    }
}

/// Follows until it is to end, and returns the age of all that counted.
fn follow(address: &str, request: &str, state: &Shared) -> Result<Vec<f64>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LOOKS_EVERY))?;
    stream.write_all(request.as_bytes())?;
    let (mut stream, mut line) = (BufReader::new(stream), Vec::new());
    let (mut ages, mut has_news) = (Vec::new(), false);
    while !state.ends.load(Ordering::Relaxed) {
        match stream.read_until(b'\n', &mut line) {
            Ok(0) => anyhow::bail!("the stream has ended"),
            Ok(_) => {}
            // What was read of a line stays in it.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error).context("the stream broke"),
        }
        let times = times(&line);
        line.clear();
        if times.is_empty() {
            continue;
        }
        if let Some(from) = state.counts_from.get() {
            let now = Timestamp::now();
            let count = times.iter().filter(|at| *at >= from);
            ages.extend(count.map(|at| now.duration_since(*at).as_secs_f64()));
        }
        if !std::mem::replace(&mut has_news, true) {
            state.have_news.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(ages)
}

/// Returns the times of what a line of an event tells: one fact, or several records.
fn times(line: &[u8]) -> Vec<Timestamp> {
    let Some(data) = line.strip_prefix(b"data: ") else {
        return Vec::new();
    };
    let told = match serde_json::from_slice(data) {
        Ok(Value::Array(records)) => records,
        Ok(fact) => vec![fact],
        Err(_) => Vec::new(),
    };
    let at = told.iter().filter_map(|told| told["at"].as_str()?.parse().ok());
    at.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_tells_of_one_fact_or_of_several_records() {
        let record = r#"{"at":"1970-01-01T00:00:01Z","kind":"text"}"#;
        assert_eq!(times(format!("data: {record}\n").as_bytes()).len(), 1);
        assert_eq!(times(format!("data: [{record},{record}]\n").as_bytes()).len(), 2);
        assert_eq!(times(b"event: records\n"), []);
        assert_eq!(times(b"data: \n"), []);
    }
}
