//! Where the time of our own scrapes goes: requests of the same server that have more and more done for them.

use anyhow::{Context, Result};

use super::{SIZES, named, scenario, scrape::Coding, sides::Sides, turn, warm_up};
use crate::bench::figures::{Quantity, Row, Table, percentile};

/// The requests, each of which has all done for it that the one before has.
const REQUESTS: [(&str, Coding); 4] = [
    // It is answered with one word.
    ("/health", Coding::Identity),
    // Devices are read for it.
    ("/ready", Coding::Identity),
    // A page is written of what was read.
    ("/metrics", Coding::Identity),
    ("/metrics", Coding::Gzip),
];

/// What each request has more than the one before.
const STAGES: [&str; 4] = [
    "HTTP and connection",
    "reading devices",
    "writing the page",
    "compressing it",
];

/// What the requests take at one size, at the median and in their order.
#[derive(Debug, Clone, Copy)]
struct Taken {
    devices: u32,
    requests: [f64; 4],
}

/// Measures the requests by turns, at each size.
pub(super) fn measure(sides: &Sides, rounds: usize) -> Result<Table> {
    let taken: Vec<_> = SIZES
        .iter()
        .map(|devices| of_size(sides, *devices, rounds))
        .collect::<Result<_>>()?;
    Ok(table(&taken))
}

fn of_size(sides: &Sides, devices: u32, rounds: usize) -> Result<Taken> {
    let driver = sides.driver(&scenario::of(devices))?;
    let server = sides.ours.start(&driver)?;
    warm_up(&server)?;
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        for ((path, coding), times) in REQUESTS.iter().zip(&mut times) {
            times.extend(turn(&server, path, *coding)?);
        }
    }
    let mut requests = [0.0; 4];
    for (request, mut times) in requests.iter_mut().zip(times) {
        times.sort_by(f64::total_cmp);
        *request = percentile(&times, 50).context("nothing was asked for")?;
    }
    Ok(Taken { devices, requests })
}

impl Taken {
    /// Returns what each stage takes: what the request takes longer than the one before.
    fn stages(&self) -> [f64; 4] {
        let [http, read, written, compressed] = self.requests;
        let stages = [http, read - http, written - read, compressed - written];
        // What costs less than requests differ by may seem to cost less than nothing.
        stages.map(|stage| stage.max(0.0))
    }

    /// Says what takes most of a scrape.
    fn limit(&self) -> String {
        let stages = STAGES.iter().zip(self.stages());
        let most = stages.max_by(|a, b| a.1.total_cmp(&b.1));
        let (name, took) = most.expect("there are some");
        let share = took / self.stages().iter().sum::<f64>() * 100.0;
        format!("the limit with {}: {name}, {share:.0} %", named(self.devices))
    }
}

fn table(taken: &[Taken]) -> Table {
    let rows = STAGES.iter().enumerate().map(|(place, name)| {
        let stages = taken
            .iter()
            .map(|taken| Some(Quantity::seconds(taken.stages()[place])));
        Row::of(*name, stages.collect())
    });
    Table {
        title: "GPU exporter, where time goes".into(),
        columns: taken.iter().map(|taken| named(taken.devices)).collect(),
        rows: rows.collect(),
        notes: taken.iter().map(Taken::limit).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_stage_that_takes_most() {
        let table = table(&[Taken {
            devices: 8,
            requests: [0.001, 0.007, 0.010, 0.0099],
        }]);
        let expected = "
GPU exporter, where time goes                    8 devices  ratio  limit
  HTTP and connection                               1.0 ms
  reading devices                                   6.0 ms
  writing the page                                  3.0 ms
  compressing it                                      0 ns
  the limit with 8 devices: reading devices, 60 %
";
        assert_eq!(format!("\n{table}"), expected);
    }
}
