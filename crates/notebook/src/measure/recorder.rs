//! Finds the values of metrics in what a notebook prints and shows, as it comes.

use std::collections::BTreeMap;

use blueproof_core::{
    attempt::Stream,
    diagnostic::{Code, Diagnostic},
    domain::MetricResult,
};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::trace::Trace;
use crate::{
    plan::{Metric, MetricSource},
    text::shown,
};

/// The most bytes of one line that are searched; the rest of a longer line is passed over.
const LINE_BYTES: usize = 64 * 1024;
/// The most memory that a compiled pattern may take, and its cache while it searches.
const PATTERN_BYTES: usize = 1024 * 1024;

/// Follows the metrics of an attempt.
#[derive(Debug)]
pub struct Recorder {
    metrics: Vec<Followed>,
    stdout: Unfinished,
    stderr: Unfinished,
}

/// A value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The metric's name.
    pub name: String,
    /// The value; `None` is no finite number.
    pub value: Option<f64>,
}

/// What was seen of a metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// How many values there were, those that are no finite number included.
    pub count: u64,
    /// How many of them are no finite number.
    pub not_finite: u64,
    /// The first value. The outer `None` says that there is none; the inner one that it is no finite number.
    pub first: Option<Option<f64>>,
    /// The last value, likewise.
    pub last: Option<Option<f64>>,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The largest finite value.
    pub max: Option<f64>,
}

#[derive(Debug)]
struct Followed {
    name: String,
    source: Source,
    summary: Summary,
    trace: Trace,
}

#[derive(Debug)]
enum Source {
    Pattern(Regex),
    /// A MIME type.
    Payload(String),
}

/// The line that a stream has not ended yet.
#[derive(Debug, Default)]
struct Unfinished {
    line: String,
    /// More came than is searched: what follows is passed over up to the line's end.
    overlong: bool,
}

impl Recorder {
    /// Returns a recorder that has seen nothing.
    ///
    /// # Errors
    /// A pattern that is no regular expression, or one whose automaton would take too much memory.
    pub fn new(metrics: &[Metric]) -> Result<Self, Box<Diagnostic>> {
        let metrics = metrics.iter().map(Followed::new).collect::<Result<_, _>>()?;
        Ok(Self {
            metrics,
            stdout: Unfinished::default(),
            stderr: Unfinished::default(),
        })
    }

    /// Takes in printed text, in chunks cut anywhere, and returns the values on the lines that it completes.
    ///
    /// A `\r` ends a line too: each state of a progress bar is one. Colours are not part of a line.
    pub fn text(&mut self, stream: Stream, text: &str) -> Vec<Sample> {
        let mut samples = Vec::new();
        for piece in text.split_inclusive(['\n', '\r']) {
            let unfinished = match stream {
                Stream::Stdout => &mut self.stdout,
                Stream::Stderr => &mut self.stderr,
            };
            unfinished.add(piece.trim_end_matches(['\n', '\r']));
            if piece.ends_with(['\n', '\r']) {
                let line = unfinished.take();
                self.search(&line, &mut samples);
            }
        }
        samples
    }

    /// Takes what was printed last as complete, as it is when a cell has ended, and returns the values in it.
    pub fn cell_ended(&mut self) -> Vec<Sample> {
        let lines = [self.stdout.take(), self.stderr.take()];
        let mut samples = Vec::new();
        for line in lines {
            self.search(&line, &mut samples);
        }
        samples
    }

    /// Takes in a Jupyter output object and returns the values in its display payloads.
    pub fn display(&mut self, output: &Value) -> Vec<Sample> {
        let mut samples = Vec::new();
        for metric in &mut self.metrics {
            let Source::Payload(mime) = &metric.source else {
                continue;
            };
            let Some(value) = output
                .pointer("/data")
                .and_then(|data| data.get(mime)?.get(&metric.name))
            else {
                continue;
            };
            samples.push(metric.take(value.as_f64()));
        }
        samples
    }

    /// Returns what was seen so far, by name.
    pub fn summaries(&self) -> BTreeMap<String, Summary> {
        let summary = |metric: &Followed| (metric.name.clone(), metric.summary.clone());
        self.metrics.iter().map(summary).collect()
    }

    /// Returns what was seen of each metric that has a value at all, by name.
    pub fn finish(&self) -> BTreeMap<String, MetricResult> {
        let seen = self.metrics.iter().filter(|metric| metric.summary.count > 0);
        let result = |metric: &Followed| MetricResult {
            last: metric.summary.last.flatten(),
            count: metric.summary.count,
            trace: metric.trace.values(),
        };
        seen.map(|metric| (metric.name.clone(), result(metric))).collect()
    }

    fn search(&mut self, line: &str, samples: &mut Vec<Sample>) {
        if line.is_empty() {
            return;
        }
        let uncoloured = line.contains('\x1b').then(|| shown(line));
        let line = uncoloured.as_deref().unwrap_or(line);
        for metric in &mut self.metrics {
            let Source::Pattern(pattern) = &metric.source else {
                continue;
            };
            let values: Vec<Option<f64>> = pattern
                .captures_iter(line)
                .map(|found| {
                    number(
                        found
                            .get(1)
                            .or_else(|| found.get(0))
                            .map_or("", |text| text.as_str()),
                    )
                })
                .collect();
            samples.extend(values.into_iter().map(|value| metric.take(value)));
        }
    }
}

impl Followed {
    fn new(metric: &Metric) -> Result<Self, Box<Diagnostic>> {
        let source = match &metric.from {
            MetricSource::Regex(pattern) => Source::Pattern(compile(&metric.name, pattern)?),
            MetricSource::Display(name) => Source::Payload(format!("application/vnd.blueproof.{name}+json")),
        };
        Ok(Self {
            name: metric.name.clone(),
            source,
            summary: Summary::default(),
            trace: Trace::default(),
        })
    }

    fn take(&mut self, value: Option<f64>) -> Sample {
        let value = value.filter(|value| value.is_finite());
        let summary = &mut self.summary;
        summary.first.get_or_insert(value);
        summary.last = Some(value);
        match value {
            Some(value) => {
                summary.min = Some(summary.min.map_or(value, |min| min.min(value)));
                summary.max = Some(summary.max.map_or(value, |max| max.max(value)));
                self.trace.push(summary.count, value);
            }
            None => summary.not_finite += 1,
        }
        summary.count += 1;
        Sample {
            name: self.name.clone(),
            value,
        }
    }
}

impl Unfinished {
    fn add(&mut self, piece: &str) {
        if self.overlong {
            return;
        }
        let room = LINE_BYTES - self.line.len();
        self.overlong = piece.len() > room;
        self.line.push_str(&piece[..piece.floor_char_boundary(room)]);
    }

    fn take(&mut self) -> String {
        std::mem::take(self).line
    }
}

fn compile(name: &str, pattern: &str) -> Result<Regex, Box<Diagnostic>> {
    let compiled = RegexBuilder::new(pattern)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build();
    compiled.map_err(|error| {
        let message = format!("the pattern of metric `{name}` is no regular expression");
        let hint = "patterns are in RE2's syntax: no look-around and no back-references";
        Box::new(
            Diagnostic::error(Code::MetricPattern, message)
                .caused_by(&error)
                .hint(hint),
        )
    })
}

/// Returns the number that Python or a log writes as `text`; digits may be grouped by `_` or `,`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let parsed = text
        .parse()
        .ok()
        .or_else(|| text.replace(['_', ','], "").parse().ok());
    parsed.filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(metrics: &[(&str, MetricSource)]) -> Recorder {
        let metrics: Vec<Metric> = metrics
            .iter()
            .map(|(name, from)| Metric {
                name: (*name).to_owned(),
                from: from.clone(),
            })
            .collect();
        Recorder::new(&metrics).expect("the patterns are fine")
    }

    fn loss() -> Recorder {
        recorder(&[("loss", MetricSource::Regex(r"loss[:=] ?(\S+)".to_owned()))])
    }

    fn values(samples: &[Sample]) -> Vec<Option<f64>> {
        samples.iter().map(|sample| sample.value).collect()
    }

    #[test]
    fn values_are_found_wherever_chunks_are_cut_and_on_progress_bars() {
        let text = "start\nloss: 0.9\r\n 10% loss=0.8\r 20% loss=7e-1\r\n\x1b[32mloss\x1b[0m: 1_000 loss: nan\nloss: 0.5";
        for size in 1..=text.len() {
            let mut recorder = loss();
            let mut found = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                let chunk = std::str::from_utf8(chunk).expect("the text is ASCII");
                found.extend(recorder.text(Stream::Stdout, chunk));
            }
            found.extend(recorder.cell_ended());
            let expected = [Some(0.9), Some(0.8), Some(0.7), Some(1000.0), None, Some(0.5)];
            assert_eq!(values(&found), expected, "chunks of {size}");
        }
    }

    #[test]
    fn lines_of_the_two_streams_do_not_mix() {
        let mut recorder = loss();
        recorder.text(Stream::Stdout, "loss: 0.");
        recorder.text(Stream::Stderr, "warning\n");
        assert_eq!(values(&recorder.text(Stream::Stdout, "25\n")), [Some(0.25)]);
    }

    #[test]
    fn a_payload_gives_the_number_under_the_metrics_name_and_nothing_else() {
        let mut recorder = recorder(&[("tokens_per_s", MetricSource::Display("metrics".to_owned()))]);
        let shown = |value: Value| {
            serde_json::json!({"output_type": "display_data", "data": {
                "text/plain": "x", "application/vnd.blueproof.metrics+json": value}})
        };
        assert_eq!(
            values(&recorder.display(&shown(serde_json::json!({"tokens_per_s": 12, "other": 1})))),
            [Some(12.0)]
        );
        assert_eq!(
            values(&recorder.display(&shown(serde_json::json!({"tokens_per_s": null})))),
            [None]
        );
        assert_eq!(recorder.display(&shown(serde_json::json!({"other": 1}))), []);
        assert_eq!(recorder.display(&serde_json::json!({"data": []})), []);
        assert_eq!(recorder.finish()["tokens_per_s"].count, 2);
    }

    #[test]
    fn a_summary_tells_extremes_of_finite_values_and_counts_the_others() {
        let mut recorder = loss();
        recorder.text(
            Stream::Stdout,
            "loss: inf\nloss: 3\nloss: -1\nloss: 2\nloss: NaN\n",
        );
        let summary = &recorder.summaries()["loss"];

        assert_eq!((summary.count, summary.not_finite), (5, 2));
        assert_eq!((summary.first, summary.last), (Some(None), Some(None)));
        assert_eq!((summary.min, summary.max), (Some(-1.0), Some(3.0)));
        let result = &recorder.finish()["loss"];
        assert_eq!(
            (result.last, result.count, result.trace.as_slice()),
            (None, 5, &[3.0, -1.0, 2.0][..])
        );
    }

    #[test]
    fn a_line_that_never_ends_takes_bounded_memory() {
        let mut recorder = loss();
        recorder.text(Stream::Stdout, "loss: 0.5 ");
        for _ in 0..100 {
            recorder.text(Stream::Stdout, &"é".repeat(5000));
        }
        assert!(recorder.stdout.line.len() <= LINE_BYTES);
        assert_eq!(
            values(&recorder.text(Stream::Stdout, "\nloss: 0.25\n")),
            [Some(0.5), Some(0.25)]
        );
    }

    #[test]
    fn a_pattern_that_is_none_or_too_large_is_refused_by_name() {
        for pattern in ["loss: (", r"(?<=x)y", r"(\w{1000}){1000}"] {
            let metric = Metric {
                name: "loss".to_owned(),
                from: MetricSource::Regex(pattern.to_owned()),
            };
            let error = Recorder::new(&[metric]).expect_err("it is refused");
            assert_eq!(error.code, Code::MetricPattern);
            assert!(error.message.contains("`loss`"));
        }
    }
}
