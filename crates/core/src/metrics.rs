//! Figures for Prometheus: which there are, and how a page of them is written.
//!
//! [`families`] is the one table: pages, documentation and the comparison with Kueue's own code go by it. The embedded
//! queue's figures have Kueue's names, so that a dashboard made for a cluster works here; what only we know is called
//! `blueproof_…`. Nothing is counted here: [`crate::scheduler::Scheduler::metrics`] fills the page.
//!
//! A figure that cannot be measured is left out, never zero.

mod histogram;
mod kueue;
mod ours;
mod page;
mod text;

pub use histogram::Histogram;
pub use kueue::*;
pub use ours::*;
pub use page::{Page, Value};
pub use text::{Exposition, Format};

/// A metric: its name, what it means, and by which labels its series are told apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Its name in full: a counter's ends in `_total`, and where there is one unit the name says which.
    pub name: &'static str,
    /// What kind of figure it is.
    pub kind: Kind,
    /// The labels that differ from series to series, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// Labels that every series has, with their value.
    pub constant: &'static [(&'static str, &'static str)],
    /// What it means, in one sentence.
    pub help: &'static str,
}

/// What kind of figure a metric is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It is as it is now.
    Gauge,
    /// How often something took at most so many seconds; the bounds, the least first, without the infinite one.
    Histogram(&'static [f64]),
}

/// The units that names end in.
const UNITS: [&str; 7] = ["bytes", "celsius", "hertz", "joules", "ratio", "seconds", "watts"];

impl Family {
    /// Returns the name without the ending that says that it counts.
    pub fn stem(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram(_) => self.name,
        }
    }

    /// Returns the unit, where the name has one.
    pub fn unit(&self) -> Option<&'static str> {
        let ending = self.stem().rsplit('_').next()?;
        UNITS.iter().copied().find(|unit| *unit == ending)
    }
}

impl Kind {
    /// Returns Prometheus' word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// Returns every metric: Kueue's, then ours.
pub fn families() -> impl Iterator<Item = &'static Family> {
    KUEUE.iter().chain(OURS).copied()
}

/// Defines metrics, and the table that lists them.
macro_rules! table {
    (
        $(#[$doc:meta])* $table:ident, constant $constant:expr;
        $($family:ident = $kind:expr, $name:literal [$($label:literal)*] $help:literal;)+
    ) => {
        $(#[$doc])*
        pub static $table: &[&$crate::metrics::Family] = &[$(&$family),+];

        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub static $family: $crate::metrics::Family = $crate::metrics::Family {
                name: $name,
                kind: $kind,
                labels: &[$($label),*],
                constant: $constant,
                help: $help,
            };
        )+
    };
}
use table;

#[cfg(test)]
mod tests;
