//! Finds the values of metrics in what a notebook prints and shows, as it comes.

use std::{collections::BTreeMap, ops::Range};

use blueproof_core::{attempt::Stream, domain::MetricResult};
use blueproof_diagnostic::{Code, Diagnostic};
use regex::{Match, Regex, RegexBuilder};
use serde_json::Value;

use super::trace::Trace;
use crate::{
    plan::{Metric, MetricSource},
    text::shown,
};

/// The most bytes that are searched at once. A longer line is searched piece by piece.
const LINE_BYTES: usize = 64 * 1024;
/// How far from the end of such a piece what is found may still go on; it is looked for again with what follows.
const OVERLAP_BYTES: usize = 4 * 1024;
/// The most characters of what is no number that are repeated.
const LONGEST_TEXT: usize = 40;
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
    /// What was found last that is no number at all, neither finite nor not.
    pub no_number: Option<String>,
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
    /// Up to where each metric was looked for already, where the line is a long one.
    searched: Vec<usize>,
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
            unfinished.line.push_str(piece.trim_end_matches(['\n', '\r']));
            if piece.ends_with(['\n', '\r']) {
                unfinished.end(&mut self.metrics, &mut samples);
            } else if unfinished.line.len() > LINE_BYTES {
                unfinished.go_on(&mut self.metrics, &mut samples);
            }
        }
        samples
    }

    /// Takes what was printed last as complete, as it is when a cell has ended, and returns the values in it.
    pub fn cell_ended(&mut self) -> Vec<Sample> {
        let mut samples = Vec::new();
        self.stdout.end(&mut self.metrics, &mut samples);
        self.stderr.end(&mut self.metrics, &mut samples);
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

    /// Takes the values that begin in a range of a line, and returns up to where was searched.
    fn search(&mut self, line: &str, range: Range<usize>, samples: &mut Vec<Sample>) -> usize {
        let Source::Pattern(pattern) = &self.source else {
            return range.end;
        };
        let mut at = range.start;
        let mut values = Vec::new();
        while let Some(found) = (at <= line.len())
            .then(|| pattern.captures_at(line, at))
            .flatten()
        {
            let whole = found.get(0).expect("it was found");
            if whole.start() >= range.end {
                break;
            }
            let text = found.get(1).unwrap_or(whole).as_str();
            let value = number(text);
            if value.is_none() && text.trim().parse::<f64>().is_err() {
                self.summary.no_number = Some(text.chars().take(LONGEST_TEXT).collect());
            }
            values.push(value);
            at = behind(&whole, line);
        }
        samples.extend(values.into_iter().map(|value| self.take(value)));
        at.max(range.end)
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
    /// Looks for what is on the line, which is complete.
    fn end(&mut self, metrics: &mut [Followed], samples: &mut Vec<Sample>) {
        if self.line.is_empty() {
            return;
        }
        self.uncolour();
        self.search(self.line.len() + 1, metrics, samples);
        *self = Self::default();
    }

    /// Looks for what begins on the first part of a long line, and lets go of that.
    fn go_on(&mut self, metrics: &mut [Followed], samples: &mut Vec<Sample>) {
        self.uncolour();
        let until = self.line.len().saturating_sub(OVERLAP_BYTES);
        let until = self.line.floor_char_boundary(until);
        self.search(until, metrics, samples);
        // A character before it stays, so that what follows is not taken for the beginning of a line.
        let gone = self.line.floor_char_boundary(until.saturating_sub(1));
        self.line.drain(..gone);
        for searched in &mut self.searched {
            *searched -= gone;
        }
    }

    fn uncolour(&mut self) {
        if self.line.contains('\x1b') {
            self.line = shown(&self.line);
        }
    }

    /// Finds the values that begin before `until`.
    fn search(&mut self, until: usize, metrics: &mut [Followed], samples: &mut Vec<Sample>) {
        self.searched.resize(metrics.len(), 0);
        for (metric, from) in metrics.iter_mut().zip(&mut self.searched) {
            *from = metric.search(&self.line, *from..until, samples);
        }
    }
}

/// Returns where to search on behind what was found. Behind nothing that is one character on.
fn behind(found: &Match<'_>, line: &str) -> usize {
    let next = line[found.end()..].chars().next();
    match found.is_empty() {
        true => found.end() + next.map_or(1, char::len_utf8),
        false => found.end(),
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

/// Returns the number that Python or a log writes as `text`: digits may be grouped by `_`, and by `,` in threes, and a mark of
/// the sentence may follow. `0,2` is no number: who writes it may mean two tenths.
fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches([',', ';', ':']);
    let grouped = || match text.contains(',') {
        true if !has_thousands(text) => None,
        true | false => text.replace(['_', ','], "").parse().ok(),
    };
    let parsed = text.parse().ok().or_else(grouped);
    parsed.filter(|value: &f64| value.is_finite())
}

/// Returns whether each comma of a number has three digits behind it, as in `-1,234,567.8`.
fn has_thousands(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = unsigned.split(['.', 'e', 'E']).next().unwrap_or_default();
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let commas = |text: &str| text.matches(',').count();
    commas(text) == commas(whole)
        && (1..=3).contains(&first.len())
        && is_digits(first)
        && groups.all(|group| group.len() == 3 && is_digits(group))
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
    fn digits_are_grouped_in_threes_and_a_decimal_comma_is_no_number() {
        for (text, expected) in [
            ("1,234", Some(1234.0)),
            ("-1,234,567.5", Some(-1_234_567.5)),
            ("1_000", Some(1000.0)),
            ("0.5,", Some(0.5)),
            ("7e-1;", Some(0.7)),
            ("0,2", None),
            ("1,23", None),
            ("1234,567", None),
            (",5", None),
            ("0.1,234", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
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
    fn a_line_that_never_ends_takes_bounded_memory_and_is_searched_to_its_end() {
        for length in [1, 700, 4095, 4096, 5000, 70_000] {
            let mut recorder = recorder(&[
                ("loss", MetricSource::Regex(r"loss[:=] ?(\S+)".to_owned())),
                ("first", MetricSource::Regex(r"^loss: (\S+)".to_owned())),
            ]);
            let mut found = recorder.text(Stream::Stdout, "loss: 0 ");
            for step in 1..100 {
                found.extend(recorder.text(Stream::Stdout, &" é".repeat(length / 2)));
                found.extend(recorder.text(Stream::Stdout, &format!(" loss: {step} ")));
                assert!(recorder.stdout.line.len() <= LINE_BYTES, "{length}");
            }
            found.extend(recorder.text(Stream::Stdout, "\nloss: 0.25\n"));
            let of = |name: &str| -> Vec<_> {
                let of = found.iter().filter(|sample| sample.name == name);
                of.map(|sample| sample.value.expect("a number")).collect()
            };
            let expected: Vec<f64> = (0..100).map(f64::from).chain([0.25]).collect();
            assert_eq!(of("loss"), expected, "{length}");
            assert_eq!(of("first"), [0.0, 0.25], "{length}");
        }
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
