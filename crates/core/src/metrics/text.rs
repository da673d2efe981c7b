//! A page as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.
//!
//! Written here and not by a library. prometheus-client writes OpenMetrics only, and writes labels as they are, so that a
//! quotation mark in one breaks the page; prometheus and metrics-exporter-prometheus write the other format only, from
//! counters that they keep in registries of their own, where ours are read from the log.

use std::fmt::{self, Display, Write as _};

use super::{Family, Histogram, Page, Value, families};

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics' text format, version 1.0.
    OpenMetrics,
}

impl Page {
    /// Returns the page as text. Whatever stands in labels, it stays within them.
    pub fn render(&self, format: Format) -> String {
        let mut text = String::new();
        for family in families() {
            self.write(family, format, &mut text)
                .expect("a string takes any text");
        }
        match format {
            Format::Prometheus => text,
            Format::OpenMetrics => text + "# EOF\n",
        }
    }

    fn write(&self, family: &'static Family, format: Format, text: &mut String) -> fmt::Result {
        let mut series = self.series_of(family).peekable();
        if series.peek().is_none() {
            return Ok(());
        }
        write_head(family, format, text)?;
        for (values, value) in series {
            let line = Line { family, values };
            match value {
                Value::Number(number) => line.write(text, "", None, &Number(*number))?,
                Value::Histogram(histogram) => line.write_histogram(text, format, histogram)?,
            }
        }
        Ok(())
    }
}

fn write_head(family: &Family, format: Format, text: &mut String) -> fmt::Result {
    let (name, kind) = match format {
        Format::Prometheus => (family.name, family.kind.as_str()),
        Format::OpenMetrics => (family.stem(), family.kind.as_str()),
    };
    writeln!(text, "# HELP {name} {}", family.help)?;
    writeln!(text, "# TYPE {name} {kind}")?;
    match family.unit().filter(|_| format == Format::OpenMetrics) {
        Some(unit) => writeln!(text, "# UNIT {name} {unit}"),
        None => Ok(()),
    }
}

/// What the lines of a series have in common.
struct Line<'a> {
    family: &'a Family,
    values: &'a [String],
}

impl Line<'_> {
    fn write_histogram(&self, text: &mut String, format: Format, histogram: &Histogram) -> fmt::Result {
        for (bound, count) in histogram.buckets() {
            let bound = match format {
                Format::Prometheus => Number(bound).to_string(),
                Format::OpenMetrics => WithPoint(bound).to_string(),
            };
            self.write(text, "_bucket", Some(&bound), &count)?;
        }
        self.write(text, "_sum", None, &Number(histogram.sum().as_secs_f64()))?;
        self.write(text, "_count", None, &histogram.count())
    }

    fn write(
        &self,
        text: &mut String,
        ending: &str,
        bound: Option<&str>,
        value: &dyn Display,
    ) -> fmt::Result {
        let Family {
            name,
            labels,
            constant,
            ..
        } = self.family;
        let own = labels.iter().copied().zip(self.values.iter().map(String::as_str));
        let labels = own
            .chain(constant.iter().copied())
            .chain(bound.map(|bound| ("le", bound)));
        write!(text, "{name}{ending}")?;
        let mut separator = '{';
        for (label, value) in labels {
            write!(text, "{separator}{label}=\"{}\"", Escaped(value))?;
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        writeln!(text, " {value}")
    }
}

/// Text within quotation marks. A control character is shown by its number: no name has one, and a
/// terminal would obey it.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c if c.is_control() => write!(f, "\\\\u{{{:x}}}", u32::from(c)),
            c => f.write_char(c),
        })
    }
}

/// A number as both formats read it.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            number => write!(f, "{number}"),
        }
    }
}

/// A bound as OpenMetrics wants it: a whole number has its point.
struct WithPoint(f64);

impl Display for WithPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() && self.0.fract() == 0.0 {
            return write!(f, "{:.1}", self.0);
        }
        Number(self.0).fmt(f)
    }
}
