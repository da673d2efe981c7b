//! How something goes that may take long: what is said of it on stderr meanwhile, and how long its parts took.
//!
//! Times are of this machine and this moment, so they stand beside an answer and never in it.

use std::{
    fmt,
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

use blueproof_simulation::Watch;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What takes less is not spoken of.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is said how far it is.
const SAY_AGAIN: Duration = Duration::from_millis(100);

/// Something that may take long. Once it has taken a second a terminal shows how far it is; that goes away with this.
pub(crate) struct Pace {
    doing: &'static str,
    begun: Instant,
    count: u64,
    bar: Option<ProgressBar>,
    /// When it is said next how far it is, from the beginning on.
    say_at: Duration,
    cycle_begun: Option<Instant>,
    cycles: Vec<Duration>,
}

/// How long a queue took to decide.
pub(crate) struct Timing {
    admitted: u64,
    /// From the shortest on.
    cycles: Vec<Duration>,
}

impl Pace {
    /// Begins it: `doing` is what is done to each of what is counted, such as `events read`.
    pub(crate) fn new(doing: &'static str) -> Self {
        Self {
            doing,
            begun: Instant::now(),
            count: 0,
            bar: None,
            say_at: PATIENCE,
            cycle_begun: None,
            cycles: Vec::new(),
        }
    }

    /// Counts so many more.
    pub(crate) fn add(&mut self, count: u64) {
        self.count += count;
        let elapsed = self.begun.elapsed();
        if elapsed >= self.say_at {
            self.say_at = elapsed + SAY_AGAIN;
            let bar = self.bar.get_or_insert_with(bar);
            bar.set_message(format!("{} {}", HumanCount(self.count), self.doing));
            bar.tick();
        }
    }

    /// Ends it, and tells how long the queues took.
    pub(crate) fn timing(mut self) -> Timing {
        let mut cycles = std::mem::take(&mut self.cycles);
        cycles.sort_unstable();
        Timing {
            admitted: self.count,
            cycles,
        }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Pace {
    fn cycle_begins(&mut self) {
        self.cycle_begun = Some(Instant::now());
    }

    fn cycle_ended(&mut self, admitted: usize) {
        self.cycles
            .extend(self.cycle_begun.take().map(|begun| begun.elapsed()));
        self.add(admitted as u64);
    }
}

/// Returns a line on a terminal, and nothing elsewhere.
fn bar() -> ProgressBar {
    let target = if stderr().is_terminal() && std::env::var_os("CI").is_none() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("a template that is fixed");
    bar.set_style(style);
    bar
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spent: Duration = self.cycles.iter().sum();
        let a_second = self.admitted as f64 / spent.as_secs_f64().max(f64::MIN_POSITIVE);
        let p99 = self
            .cycles
            .get((self.cycles.len() * 99).div_ceil(100).saturating_sub(1));
        write!(
            f,
            "{} admissions in {} cycles, {:.3} s: {} a second; a cycle takes {:.3} ms at p99",
            HumanCount(self.admitted),
            HumanCount(self.cycles.len() as u64),
            spent.as_secs_f64(),
            HumanCount(a_second as u64),
            p99.copied().unwrap_or_default().as_secs_f64() * 1e3,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_told_by_the_second_and_the_slowest_cycles_count() {
        let timing = Timing {
            admitted: 3000,
            cycles: [
                vec![Duration::from_micros(500); 99],
                vec![Duration::from_micros(10_500)],
            ]
            .concat(),
        };
        let told = "3,000 admissions in 100 cycles, 0.060 s: 50,000 a second; a cycle takes 0.500 ms at p99";
        assert_eq!(timing.to_string(), told);
    }

    #[test]
    fn nothing_at_all_is_told_too() {
        let told = "0 admissions in 0 cycles, 0.000 s: 0 a second; a cycle takes 0.000 ms at p99";
        assert_eq!(Pace::new("admissions").timing().to_string(), told);
    }
}
