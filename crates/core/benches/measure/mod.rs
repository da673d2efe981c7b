//! Samples of time, and figures made of them: what the benches of this crate have in common.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::Serialize;

/// How long something took, again and again.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

/// One line of output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figure {
    name: String,
    #[serde(flatten)]
    facts: BTreeMap<&'static str, f64>,
}

/// Returns how long `work` takes.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

impl Samples {
    /// Adds one more.
    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Returns the sample below which `percent` of all are, in seconds.
    fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64()
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Self {
        Self(samples.into_iter().collect())
    }
}

impl Figure {
    /// Sums samples up: median and 99th percentile in seconds, and how many go into one second on average.
    pub(crate) fn new(name: &str, samples: &mut Samples) -> Self {
        let total: Duration = samples.0.iter().sum();
        let facts = [
            ("p50", samples.percentile(50)),
            ("p99", samples.percentile(99)),
            ("perSecond", samples.0.len() as f64 / total.as_secs_f64()),
        ];
        Self {
            name: name.into(),
            facts: facts.into(),
        }
    }

    /// Adds what the figure depends on.
    pub(crate) fn with(mut self, fact: &'static str, value: usize) -> Self {
        self.facts.insert(fact, value as f64);
        self
    }

    /// Prints it as one line of JSON.
    pub(crate) fn print(&self) {
        println!("{}", serde_json::to_string(self).expect("plain data"));
    }
}
