//! A job's summary as OpenTelemetry has it: the JSON of OTLP over HTTP, in which 64-bit integers are text.
//!
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, and the words of the semantic conventions for
//! hardware (`hw.id`, `hw.name`). What is not known is left out.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{DeviceSummary, JobSummary};

/// An amount that only grows while a job goes on, and how it is read of a device.
type Amount = (
    &'static str,
    &'static str,
    &'static str,
    fn(&DeviceSummary) -> Option<f64>,
);

const AMOUNTS: [Amount; 3] = [
    (
        "blueproof.job.gpu.allocated",
        "s",
        "GPU-seconds for which a device was there for the job",
        |device| Some(device.allocated_seconds),
    ),
    (
        "blueproof.job.gpu.busy",
        "s",
        "GPU-seconds in which a device worked for the job, of what was seen",
        |device| device.busy_seconds,
    ),
    (
        "blueproof.job.gpu.energy",
        "J",
        "What a device drew for the job, of what was seen",
        |device| device.energy_joules,
    ),
];

const PEAKS: [Amount; 2] = [
    (
        "blueproof.job.gpu.utilization.peak",
        "1",
        "How busy a device was at most in one of the driver's periods",
        |device| device.peak_utilization,
    ),
    (
        "blueproof.job.gpu.memory.peak",
        "By",
        "How much memory of a device was used at most",
        |device| device.peak_memory_bytes.map(|bytes| bytes as f64),
    ),
];

impl JobSummary {
    /// Returns it as the body of a request to `/v1/metrics`, told at `now` by a program of this version. `about` are
    /// attributes of whatever the job is a part of.
    pub fn to_otlp(&self, now: Timestamp, version: &str, about: &[(&str, &str)]) -> Value {
        let (from, until) = (self.from, self.until.unwrap_or(now));
        let points = |read: fn(&DeviceSummary) -> Option<f64>| -> Vec<Value> {
            let of = |device: &DeviceSummary| Some(point(from, until, read(device)?, &of_device(device)));
            self.devices.iter().filter_map(of).collect()
        };
        let sums = AMOUNTS.map(|(name, unit, description, read)| {
            // 2 is AGGREGATION_TEMPORALITY_CUMULATIVE.
            let sum = json!({"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points(read)});
            json!({"name": name, "unit": unit, "description": description, "sum": sum})
        });
        let peaks =
            PEAKS.map(|(name, unit, description, read)| gauge(name, unit, description, &points(read)));
        let figures = [
            (
                "blueproof.job.duration",
                "s",
                "How long the job took",
                self.figures.average_build_seconds,
            ),
            (
                "blueproof.job.cpu.utilization",
                "1",
                "Which share of the processors worked",
                self.figures.average_cpu,
            ),
            (
                "blueproof.job.gpu.utilization",
                "1",
                "Which share of the GPUs worked",
                self.figures.average_gpu,
            ),
        ];
        let figures = figures.map(|(name, unit, description, value)| {
            let point = value.map(|value| point(from, until, value, &[]));
            gauge(name, unit, description, point.as_slice())
        });
        let metrics = sums.into_iter().chain(peaks).chain(figures).filter(has_points);
        let own = [
            ("service.name", "blueproof-exporter"),
            ("service.version", version),
            ("blueproof.job.name", &self.holder.0),
        ];
        json!({"resourceMetrics": [{
            "resource": {"attributes": attributes(own.iter().chain(about))},
            "scopeMetrics": [{
                "scope": {"name": "blueproof", "version": version},
                "metrics": metrics.collect::<Vec<_>>(),
            }],
        }]})
    }
}

fn gauge(name: &str, unit: &str, description: &str, points: &[Value]) -> Value {
    json!({"name": name, "unit": unit, "description": description, "gauge": {"dataPoints": points}})
}

/// Returns whether there is anything to tell: a metric without a point is refused by some.
fn has_points(metric: &Value) -> bool {
    ["sum", "gauge"].iter().any(|kind| {
        let points = metric[kind]["dataPoints"].as_array();
        points.is_some_and(|points| !points.is_empty())
    })
}

fn point(from: Timestamp, until: Timestamp, value: f64, about: &[(&str, &str)]) -> Value {
    json!({
        "startTimeUnixNano": from.as_nanosecond().to_string(),
        "timeUnixNano": until.as_nanosecond().to_string(),
        "asDouble": value,
        "attributes": attributes(about.iter()),
    })
}

fn of_device(device: &DeviceSummary) -> Vec<(&str, &str)> {
    let model = device.model.as_deref().map(|model| ("hw.name", model));
    [("hw.type", "gpu"), ("hw.id", &device.device.0)]
        .into_iter()
        .chain(model)
        .collect()
}

fn attributes<'a>(pairs: impl Iterator<Item = &'a (&'a str, &'a str)>) -> Vec<Value> {
    pairs
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect()
}
