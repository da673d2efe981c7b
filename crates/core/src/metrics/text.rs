//! A page as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.
//!
//! Written here and not by a library. prometheus-client writes OpenMetrics only, and writes labels as they are, so that a
//! quotation mark in one breaks the page; prometheus and metrics-exporter-prometheus write the other format only, from
//! counters that they keep in registries of their own, where ours are read from the log.

use std::fmt::{self, Display, Write as _};

use super::{Family, Histogram, Page, Value};

/// How a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics' text format, version 1.0.
    OpenMetrics,
}

impl Format {
    /// Returns the media type that a server says.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A page that is being written, metric by metric. Whatever stands in labels, it stays within them.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
}

impl Exposition {
    /// Begins a page.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            text: String::new(),
        }
    }

    /// Begins a metric. Its samples come next, and no other's between them.
    pub fn family(&mut self, family: &Family) {
        let name = match self.format {
            Format::Prometheus => family.name,
            Format::OpenMetrics => family.stem(),
        };
        let _ = writeln!(self.text, "# HELP {name} {}", family.help);
        let _ = writeln!(self.text, "# TYPE {name} {}", family.kind.as_str());
        if let Some(unit) = family.unit().filter(|_| self.format == Format::OpenMetrics) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    /// Adds a sample of a counter or gauge.
    pub fn sample(&mut self, family: &Family, labels: &[(&str, &str)], value: f64) {
        self.line(family.name, "", labels, &Number(value));
    }

    fn histogram(&mut self, family: &Family, labels: &[(&str, &str)], histogram: &Histogram) {
        for (bound, count) in histogram.buckets() {
            let bound = match self.format {
                Format::Prometheus => Number(bound).to_string(),
                Format::OpenMetrics => WithPoint(bound).to_string(),
            };
            let labels = [labels, &[("le", &bound)]].concat();
            self.line(family.name, "_bucket", &labels, &count);
        }
        let sum = Number(histogram.sum().as_secs_f64());
        self.line(family.name, "_sum", labels, &sum);
        self.line(family.name, "_count", labels, &histogram.count());
    }

    fn line(&mut self, name: &str, ending: &str, labels: &[(&str, &str)], value: &dyn Display) {
        // Pushed piece by piece: a page has thousands of these, and formatting is what they would cost.
        let text = &mut self.text;
        text.push_str(name);
        text.push_str(ending);
        let mut separator = '{';
        for (label, value) in labels {
            text.push(separator);
            text.push_str(label);
            text.push_str("=\"");
            push_escaped(text, value);
            text.push('"');
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }

    /// Ends the page, and returns it.
    pub fn finish(self) -> String {
        match self.format {
            Format::Prometheus => self.text,
            Format::OpenMetrics => self.text + "# EOF\n",
        }
    }
}

impl Page {
    /// Returns the page as text.
    pub fn render(&self, format: Format) -> String {
        let mut page = Exposition::new(format);
        self.write(super::families(), &mut page);
        page.finish()
    }

    /// Writes those of these metrics that the page has.
    pub fn write(&self, families: impl Iterator<Item = &'static Family>, page: &mut Exposition) {
        for family in families {
            let mut series = self.series_of(family).peekable();
            if series.peek().is_none() {
                continue;
            }
            page.family(family);
            for (values, value) in series {
                let own = family
                    .labels
                    .iter()
                    .copied()
                    .zip(values.iter().map(String::as_str));
                let labels: Vec<_> = own.chain(family.constant.iter().copied()).collect();
                match value {
                    Value::Number(number) => page.sample(family, &labels, *number),
                    Value::Histogram(histogram) => page.histogram(family, &labels, histogram),
                }
            }
        }
    }
}

/// Adds text within quotation marks. A control character is shown by its number: no name has one, and a terminal would
/// obey it.
fn push_escaped(text: &mut String, value: &str) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if value.bytes().all(is_plain) {
        text.push_str(value);
        return;
    }
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(text, "\\\\u{{{:x}}}", u32::from(c));
            }
            c => text.push(c),
        }
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
