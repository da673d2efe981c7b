//! Scrapes of the GPU exporter: how long they take, what they cost and what it holds, beside exporters in Python and Go.
//!
//! All run on the same fake driver, whose calls cost next to nothing: what is compared is everything but the driver. A real
//! one takes longer, and the same on each side.

mod scenario;
mod scrape;
mod server;
mod sides;
mod stages;

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    scrape::{Coding, page, scrape, series, value},
    server::{Server, tick},
    sides::Sides,
};
use super::{
    figures::{Quantity, Row, Table, percentile},
    memory::Memory,
};
use crate::{process::print_line, workspace::Workspace};

/// How many devices there are.
const SIZES: [u32; 3] = [1, 8, 16];
/// The size that the promise about time is of: the most that one machine usually has.
const PROMISED: u32 = 8;

/// The most that the exporter may hold: it runs on every machine with devices, beside what they are there for.
const RESIDENT_AT_MOST: u64 = 32 << 20;
/// The most that it may ever hold while so many scrape it at once, and how often each does.
const RESIDENT_WITH_MANY_AT_MOST: u64 = 40 << 20;
const MANY: usize = 50;
const TIMES_OF_MANY: usize = 20;
/// The most that a scrape may take.
const P99_AT_MOST: f64 = 0.010;
/// The most that it may take while a call of one device hangs, once that has been noticed: nobody waits for that device any more.
const HANGING_AT_MOST: f64 = 0.050;

/// How long each side is scraped in a round, and how often at least.
const TURN: Duration = Duration::from_millis(300);
const TURN_AT_LEAST: usize = 20;

/// How long the driver hangs, from which second on, and how many scrapes are made meanwhile.
const HANGS_MS: u64 = 30_000;
const HANGS_FROM: f64 = 2.0;
const MEANWHILE: usize = 20;
/// How many seconds later whoever reads has noticed: ours waits three seconds for a device, and then for it no more.
const HANGS_FOR_SURE_AFTER: f64 = 5.0;

/// What a side's scrapes were like.
#[derive(Debug, Clone)]
struct Scraped {
    devices: u32,
    side: &'static str,
    p50: f64,
    p99: f64,
    /// Processor time of one.
    cost: f64,
    memory: Memory,
    /// How many series the page has.
    series: usize,
}

/// Measures all sides by turns, then where our time goes, and what happens when a call hangs.
pub(super) fn measure(workspace: &Workspace, rounds: usize) -> Result<Vec<Table>> {
    let sides = Sides::prepare(workspace)?;
    let mut scraped = Vec::new();
    for devices in SIZES {
        scraped.extend(by_turns(&sides, devices, rounds)?);
        print_line(&format!("gpu: {} measured", named(devices)));
    }
    let hanging = hanging(&sides)?;
    let peak_with_many = with_many(&sides)?;
    let mut tables: Vec<_> = sides
        .others
        .iter()
        .map(|other| beside(other.name, &scraped))
        .collect::<Result<_>>()?;
    let mut promises = promises(&scraped, &hanging, peak_with_many)?;
    promises.notes.extend(sides.missing.iter().cloned());
    tables.push(promises);
    tables.push(stages::measure(&sides, rounds)?);
    Ok(tables)
}

fn by_turns(sides: &Sides, devices: u32, rounds: usize) -> Result<Vec<Scraped>> {
    let driver = sides.driver(&scenario::of(devices))?;
    let servers: Vec<_> = sides
        .all()
        .map(|side| Ok((side, side.start(&driver)?)))
        .collect::<Result<_>>()?;
    let tick = tick();
    for (_, server) in &servers {
        warm_up(server)?;
    }
    let before: Vec<_> = servers
        .iter()
        .map(|(_, server)| server.processor_time(tick))
        .collect::<Result<_>>()?;
    let mut times = vec![Vec::new(); servers.len()];
    for _ in 0..rounds {
        for ((_, server), times) in servers.iter().zip(&mut times) {
            times.extend(turn(server, "/metrics", Coding::Gzip)?);
        }
    }
    let measured = servers.iter().zip(before).zip(times);
    measured
        .map(|(((side, server), before), mut times)| {
            times.sort_by(f64::total_cmp);
            let spent = server.processor_time(tick)?.saturating_sub(before);
            let percentile = |percent| percentile(&times, percent).context("nothing was scraped");
            Ok(Scraped {
                devices,
                side: side.name,
                p50: percentile(50)?,
                p99: percentile(99)?,
                cost: spent.as_secs_f64() / times.len() as f64,
                memory: server.memory()?,
                series: series(&whole_page(server)?),
            })
        })
        .collect()
}

/// Has a server read devices twice, so far apart that performance monitors tell something.
fn warm_up(server: &Server) -> Result<()> {
    for _ in 0..3 {
        scrape(&server.address, "/metrics", Coding::Gzip)?;
        thread::sleep(Duration::from_millis(150));
    }
    Ok(())
}

/// Scrapes one side for its turn.
fn turn(server: &Server, path: &str, coding: Coding) -> Result<Vec<f64>> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < TURN || times.len() < TURN_AT_LEAST {
        times.push(scrape(&server.address, path, coding)?.as_secs_f64());
    }
    Ok(times)
}

/// Returns a page, read so long after the last that performance monitors tell something.
fn whole_page(server: &Server) -> Result<String> {
    thread::sleep(Duration::from_millis(150));
    let page = page(&server.address, Duration::from_secs(60))?;
    Ok(page.context("there is no page in a minute")?.0)
}

/// What was seen while a driver hung.
#[derive(Debug)]
struct Hanging {
    /// How long ours took each time, sorted.
    times: Vec<f64>,
    /// The sides that answered nothing within a second.
    silent: Vec<&'static str>,
}

fn hanging(sides: &Sides) -> Result<Hanging> {
    let driver = sides.driver(&scenario::hanging(PROMISED, HANGS_FROM, HANGS_MS))?;
    let mut silent = Vec::new();
    for other in &sides.others {
        if !answers_while_it_hangs(&other.start(&driver)?)? {
            silent.push(other.name);
        }
    }
    let ours = sides.ours.start(&driver)?;
    let late = "ours did not answer while the driver hung";
    ensure!(answers_while_it_hangs(&ours)?, late);
    let mut times = Vec::new();
    for _ in 0..MEANWHILE {
        let (page, took) = page(&ours.address, Duration::from_secs(1))?.context(late)?;
        let is_new = value(&page, "blueproof_gpu_collection_cached") == Some(0.0);
        ensure!(is_new, "the page is of before");
        let told = page
            .lines()
            .filter(|line| line.starts_with("blueproof_gpu_power_watts{"));
        let others = PROMISED as usize - 1;
        ensure!(told.count() == others, "the page is not of {others} devices");
        times.push(took.as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(Hanging { times, silent })
}

/// Returns the most that ours ever held while many scraped it at once, packed and not, with the most devices.
fn with_many(sides: &Sides) -> Result<u64> {
    let most = SIZES.into_iter().max().unwrap_or(PROMISED);
    let driver = sides.driver(&scenario::of(most))?;
    let server = sides.ours.start(&driver)?;
    let address = server.address.as_str();
    thread::scope(|scope| {
        let scrapers: Vec<_> = (0..MANY)
            .map(|number| {
                let path = ["/metrics/native", "/metrics/dcgm"][number % 2];
                let coding = [Coding::Gzip, Coding::Gzip, Coding::Identity][number % 3];
                scope.spawn(move || -> Result<()> {
                    (0..TIMES_OF_MANY).try_for_each(|_| scrape(address, path, coding).map(drop))
                })
            })
            .collect();
        let mut ended = scrapers.into_iter().map(|scraper| scraper.join());
        ended.try_for_each(|ended| ended.unwrap_or_else(|_| bail!("a scraper panicked")))
    })?;
    print_line(&format!("gpu: {MANY} scrapers at once measured"));
    Ok(server.memory()?.peak)
}

/// Scrapes ten times a second until the driver hangs for sure; returns whether there was always an answer.
fn answers_while_it_hangs(server: &Server) -> Result<bool> {
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < HANGS_FROM + HANGS_FOR_SURE_AFTER {
        if page(&server.address, Duration::from_secs(1))?.is_none() {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(true)
}

fn named(devices: u32) -> String {
    let plural = if devices == 1 { "" } else { "s" };
    format!("{devices} device{plural}")
}

/// Compares us with one other.
fn beside(other: &str, scraped: &[Scraped]) -> Result<Table> {
    let mut rows = Vec::new();
    let mut n_series = Vec::new();
    for devices in SIZES {
        let of = |side: &str| {
            let mut of_size = scraped.iter().filter(|scraped| scraped.devices == devices);
            of_size
                .find(|scraped| scraped.side == side)
                .with_context(|| format!("{side} was not measured with {devices}"))
        };
        let (ours, theirs) = (of("blueproof")?, of(other)?);
        let row = |what: &str, ours: Quantity, theirs: Quantity| {
            let name = format!("{}, {what}", named(devices));
            Row::of(name, vec![Some(ours), Some(theirs)]).ratio(ours.ratio(theirs))
        };
        let times = |what, of: fn(&Scraped) -> f64| {
            row(what, Quantity::seconds(of(ours)), Quantity::seconds(of(theirs)))
        };
        let bytes =
            |what, of: fn(&Scraped) -> u64| row(what, Quantity::bytes(of(ours)), Quantity::bytes(of(theirs)));
        rows.extend([
            times("p50", |of| of.p50),
            times("p99", |of| of.p99),
            times("processor", |of| of.cost),
            bytes("resident", |of| of.memory.resident),
            bytes("its own", |of| of.memory.anonymous),
        ]);
        n_series.push(format!("{} and {}", ours.series, theirs.series));
    }
    Ok(Table {
        title: "GPU exporter, a scrape".into(),
        columns: vec!["blueproof".into(), other.into()],
        rows,
        notes: vec![
            format!(
                "each device in {} parts; by turns, on the same fake driver",
                scenario::PARTS
            ),
            format!("series on the pages: {}", n_series.join(", ")),
        ],
    })
}

/// Says whether we keep what we promise.
fn promises(scraped: &[Scraped], hanging: &Hanging, peak_with_many: u64) -> Result<Table> {
    let ours = || scraped.iter().filter(|scraped| scraped.side == "blueproof");
    let most = ours().map(|ours| ours.memory.resident).max();
    let promised = ours().find(|ours| ours.devices == PROMISED);
    let promised = promised.context("ours was not measured")?;
    let mut notes = vec![format!(
        "while reading power of one device hangs for {} s, all of {MEANWHILE} pages had the other {} as they were then",
        HANGS_MS / 1000,
        PROMISED - 1
    )];
    if !hanging.silent.is_empty() {
        notes.push(format!(
            "no answer in a second meanwhile: {}",
            hanging.silent.join(", ")
        ));
    }
    let while_it_hangs = |percent| percentile(&hanging.times, percent).map(Quantity::seconds);
    Ok(Table {
        title: "GPU exporter, promises".into(),
        columns: vec!["blueproof".into()],
        rows: vec![
            Row::of("resident, the most of all sizes", vec![most.map(Quantity::bytes)])
                .bytes_at_most(RESIDENT_AT_MOST),
            Row::of(
                format!("peak, {MANY} scrapers at once"),
                vec![Some(Quantity::bytes(peak_with_many))],
            )
            .bytes_at_most(RESIDENT_WITH_MANY_AT_MOST),
            Row::of(
                format!("p99, {}", named(PROMISED)),
                vec![Some(Quantity::seconds(promised.p99))],
            )
            .seconds_at_most(P99_AT_MOST),
            Row::of("p50 while a call hangs", vec![while_it_hangs(50)]),
            Row::of("slowest while a call hangs", vec![while_it_hangs(100)]).seconds_at_most(HANGING_AT_MOST),
        ],
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scraped(side: &'static str, devices: u32, p99: f64) -> Scraped {
        Scraped {
            devices,
            side,
            p50: p99 / 2.0,
            p99,
            cost: p99 / 4.0,
            memory: Memory {
                resident: 8 << 20,
                anonymous: 1 << 20,
                peak: 8 << 20,
            },
            series: 150,
        }
    }

    #[test]
    fn each_size_is_compared_and_ours_comes_first() {
        let all: Vec<_> = SIZES
            .iter()
            .flat_map(|devices| {
                [
                    scraped("blueproof", *devices, 0.002),
                    scraped("Go", *devices, 0.008),
                ]
            })
            .collect();
        let table = beside("Go", &all).expect("all were measured").to_string();
        assert!(
            table.contains("  1 device, p99                          2.0 ms     8.0 ms   0.25\n"),
            "{table}"
        );
        assert!(
            table.contains("  16 devices, resident                  8.0 MiB    8.0 MiB   1.00\n"),
            "{table}"
        );
        assert!(beside("Python", &all).is_err());
    }

    #[test]
    fn a_promise_that_is_not_kept_breaks_its_limit() {
        let table = |p99, slowest, peak| {
            let all = [scraped("blueproof", PROMISED, p99)];
            let silent = vec!["Go"];
            let times = vec![0.041, slowest];
            promises(&all, &Hanging { times, silent }, peak).expect("ours was measured")
        };
        let within = |p99, slowest, peak| {
            table(p99, slowest, peak)
                .rows
                .iter()
                .map(Row::is_within)
                .collect::<Vec<_>>()
        };
        let (little, much) = (39 << 20, 41 << 20);
        assert_eq!(within(0.009, 0.045, little), [true; 5]);
        assert_eq!(within(0.011, 0.051, much), [true, false, false, true, false]);
        assert!(
            table(0.009, 0.045, little)
                .to_string()
                .contains("no answer in a second meanwhile: Go")
        );
    }
}
