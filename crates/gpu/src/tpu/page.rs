//! The plugin's page: Prometheus' text format 0.0.4, of which five metrics are looked at.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>. The parsers that there are take values of labels apart at
//! commas, and a pod's labels may have them.

use std::collections::BTreeMap;

/// A device, and what the page says of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tpu {
    pub(super) id: String,
    pub(super) model: String,
    /// In percent.
    pub(super) duty_cycle: Option<f64>,
    /// In percent.
    pub(super) tensorcore_utilization: Option<f64>,
    /// In percent.
    pub(super) memory_bandwidth_utilization: Option<f64>,
    /// In bytes.
    pub(super) memory_used: Option<f64>,
    /// In bytes.
    pub(super) memory_total: Option<f64>,
}

/// A series and its value.
struct Line<'a> {
    name: &'a str,
    labels: BTreeMap<&'a str, String>,
    value: f64,
}

/// Returns the TPUs of a page, in the order of their names, or the number of the first line that is none.
///
/// The GPUs' plugin serves such a page, too: its devices are none of these.
pub(super) fn tpus(page: &str) -> Result<Vec<Tpu>, usize> {
    let mut found: BTreeMap<String, Tpu> = BTreeMap::new();
    for (number, text) in (1_usize..).zip(page.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let line = Line::read(text).ok_or(number)?;
        let is_tpu = line.labels.get("make").is_some_and(|make| make == "cloud-tpu");
        let id = line
            .labels
            .get("accelerator_id")
            .filter(|id| is_tpu && !id.is_empty());
        let Some(id) = id else { continue };
        let tpu = found.entry(id.clone()).or_insert_with(|| Tpu {
            id: id.clone(),
            ..Tpu::default()
        });
        if let Some(model) = line.labels.get("model") {
            tpu.model.clone_from(model);
        }
        tpu.note(line.name, line.value);
    }
    Ok(found.into_values().collect())
}

impl Tpu {
    /// Notes a figure. Several pods may have had a device since the plugin began: of those it says, the busiest has it.
    fn note(&mut self, name: &str, value: f64) {
        let place = match name {
            "duty_cycle" => &mut self.duty_cycle,
            "tensorcore_utilization" => &mut self.tensorcore_utilization,
            "memory_bandwidth_utilization" => &mut self.memory_bandwidth_utilization,
            "memory_used" => &mut self.memory_used,
            "memory_total" => &mut self.memory_total,
            _ => return,
        };
        if value.is_finite() && value >= 0.0 {
            *place = Some(place.map_or(value, |known| known.max(value)));
        }
    }
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
        let (name, mut rest) = text.split_at(end);
        let mut labels = BTreeMap::new();
        rest = rest.trim_start();
        if let Some(inside) = rest.strip_prefix('{') {
            (labels, rest) = read_labels(inside)?;
        }
        let value = rest.split_whitespace().next()?.parse().ok()?;
        (!name.is_empty()).then_some(Self { name, labels, value })
    }
}

/// Reads labels up to the bracket that closes them, and returns what follows it.
fn read_labels(mut text: &str) -> Option<(BTreeMap<&str, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        text = text.trim_start_matches([' ', ',']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = read_value(rest.trim_start().strip_prefix('"')?)?;
        labels.insert(name.trim(), value);
        text = rest;
    }
}

/// Reads a value up to the quote that ends it, and returns what follows it.
fn read_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                escaped => escaped,
            }),
            plain => value.push(plain),
        }
    }
    None
}
