//! Values, by metric and labels.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{Family, Histogram, Kind, families};

/// The values of metrics at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    series: BTreeMap<&'static str, Series>,
}

/// A metric's values by those of its labels.
pub(super) type Series = BTreeMap<Vec<String>, Value>;

/// A value of one series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Histogram(Histogram),
}

impl Page {
    /// Sets a gauge. The labels' values are in the order of the metric's labels.
    pub fn set(&mut self, family: &'static Family, labels: &[&str], value: f64) {
        *self.number(family, labels) = value;
    }

    /// Adds to a counter or gauge, which was zero before it was named.
    pub fn add(&mut self, family: &'static Family, labels: &[&str], more: f64) {
        *self.number(family, labels) += more;
    }

    /// Adds one to a counter.
    pub fn count(&mut self, family: &'static Family, labels: &[&str]) {
        self.add(family, labels, 1.0);
    }

    /// Counts a time in a histogram.
    pub fn observe(&mut self, family: &'static Family, labels: &[&str], took: SignedDuration) {
        match self.at(family, labels) {
            Value::Histogram(histogram) => histogram.observe(took),
            Value::Number(_) => panic!("{} is no histogram", family.name),
        }
    }

    fn number(&mut self, family: &'static Family, labels: &[&str]) -> &mut f64 {
        match self.at(family, labels) {
            Value::Number(number) => number,
            Value::Histogram(_) => panic!("{} is a histogram", family.name),
        }
    }

    fn at(&mut self, family: &'static Family, labels: &[&str]) -> &mut Value {
        assert_eq!(
            labels.len(),
            family.labels.len(),
            "{}: a value for each label",
            family.name
        );
        let series = self.series.entry(family.name).or_default();
        let labels = labels.iter().map(|value| (*value).to_owned()).collect();
        series.entry(labels).or_insert_with(|| match family.kind {
            Kind::Counter | Kind::Gauge => Value::Number(0.0),
            Kind::Histogram(bounds) => Value::Histogram(Histogram::new(bounds)),
        })
    }

    /// Forgets the series with such a value of a label.
    pub fn forget(&mut self, label: &str, is_gone: impl Fn(&str) -> bool) {
        for family in super::families() {
            let at = family.labels.iter().position(|name| *name == label);
            if let (Some(at), Some(series)) = (at, self.series.get_mut(family.name)) {
                series.retain(|values, _| !is_gone(&values[at]));
            }
        }
    }

    /// Returns a value.
    pub fn get(&self, family: &'static Family, labels: &[&str]) -> Option<&Value> {
        let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
        self.series.get(family.name)?.get(&labels)
    }

    /// Returns a metric's series: the values of its labels, and its own.
    pub fn series_of(&self, family: &'static Family) -> impl Iterator<Item = (&[String], &Value)> {
        let series = self.series.get(family.name).into_iter().flatten();
        series.map(|(labels, value)| (labels.as_slice(), value))
    }
}

/// A value of a page that is written down: a number by its bits, which decimals do not always keep.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Saved {
    Number(u64),
    Histogram(Vec<u64>, SignedDuration),
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.series.iter().flat_map(|(name, series)| {
            series.iter().map(move |(labels, value)| {
                let saved = match value {
                    Value::Number(number) => Saved::Number(number.to_bits()),
                    Value::Histogram(histogram) => {
                        Saved::Histogram(histogram.counts().to_vec(), histogram.sum())
                    }
                };
                (name, labels, saved)
            })
        });
        serializer.collect_seq(all)
    }
}

impl<'de> Deserialize<'de> for Page {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all: Vec<(String, Vec<String>, Saved)> = Vec::deserialize(deserializer)?;
        let mut page = Self::default();
        for (name, labels, saved) in all {
            let family = families().find(|family| family.name == name);
            let family = family.ok_or_else(|| D::Error::custom(format!("there is no metric `{name}`")))?;
            if family.labels.len() != labels.len() {
                return Err(D::Error::custom(format!("`{name}` has other labels")));
            }
            let value = match (saved, family.kind) {
                (Saved::Number(bits), Kind::Counter | Kind::Gauge) => {
                    Some(Value::Number(f64::from_bits(bits)))
                }
                (Saved::Histogram(counts, sum), Kind::Histogram(bounds)) => {
                    Histogram::from_counts(bounds, counts, sum).map(Value::Histogram)
                }
                (Saved::Number(_), Kind::Histogram(_))
                | (Saved::Histogram(..), Kind::Counter | Kind::Gauge) => None,
            };
            let value = value.ok_or_else(|| D::Error::custom(format!("`{name}` is of another kind")))?;
            page.series.entry(family.name).or_default().insert(labels, value);
        }
        Ok(page)
    }
}
