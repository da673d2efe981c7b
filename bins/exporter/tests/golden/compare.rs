//! What differs between two pages, each thing in a line of its own.

use std::{collections::BTreeSet, fmt::Debug};

use crate::page::{Family, Labels, Page};

/// Returns what differs: the metric, its labels, what was expected and what is there. Of `varying` metrics the values may.
pub(crate) fn differences(expected: &Page, actual: &Page, varying: &[&str]) -> Vec<String> {
    let names: BTreeSet<_> = expected.families.keys().chain(actual.families.keys()).collect();
    let mut told = Vec::new();
    for name in names {
        match (expected.families.get(name), actual.families.get(name)) {
            (Some(expected), Some(actual)) => {
                of_metric(
                    name,
                    expected,
                    actual,
                    varying.contains(&name.as_str()),
                    &mut told,
                );
            }
            (Some(_), None) => told.push(format!("{name}: expected, and not there")),
            (None, _) => told.push(format!("{name}: there, and not expected")),
        }
    }
    told
}

fn of_metric(name: &str, expected: &Family, actual: &Family, varies: bool, told: &mut Vec<String>) {
    told.extend(difference(&format!("{name}, type"), &expected.kind, &actual.kind));
    told.extend(difference(&format!("{name}, help"), &expected.help, &actual.help));
    let all: BTreeSet<_> = expected.series.keys().chain(actual.series.keys()).collect();
    for labels in all {
        let series = format!("{name}{}", written(labels));
        match (expected.series.get(labels), actual.series.get(labels)) {
            (Some(_), Some(_)) if varies => {}
            (Some(expected), Some(actual)) => told.extend(difference(&series, expected, actual)),
            (Some(expected), None) => told.push(format!("{series}: expected {expected:?}, and not there")),
            (None, actual) => told.push(format!(
                "{series}: not expected, is {:?}",
                actual.copied().unwrap_or_default()
            )),
        }
    }
}

fn difference<T: PartialEq + Debug>(what: &str, expected: &T, actual: &T) -> Option<String> {
    (expected != actual).then(|| format!("{what}: expected {expected:?}, is {actual:?}"))
}

fn written(labels: &Labels) -> String {
    let labels: Vec<_> = labels
        .iter()
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    format!("{{{}}}", labels.join(","))
}

#[test]
fn each_difference_names_the_metric_its_labels_and_both_values() {
    let page = |text| Page::parse(text).expect("it is well formed");
    let expected = page(
        "# HELP a Help\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n# HELP b B\n# TYPE b gauge\nb 1\n# HELP t T\n# TYPE t gauge\nt 1\n",
    );
    let actual = page(
        "# HELP a Help\n# TYPE a counter\na{x=\"1\"} 1.5\na{x=\"3\"} 3\n# HELP c C\n# TYPE c gauge\nc 1\n# HELP t T\n# TYPE t gauge\nt 9\n",
    );
    assert_eq!(
        differences(&expected, &actual, &["t"]),
        [
            "a, type: expected \"gauge\", is \"counter\"",
            "a{x=\"1\"}: expected 1.0, is 1.5",
            "a{x=\"2\"}: expected 2.0, and not there",
            "a{x=\"3\"}: not expected, is 3.0",
            "b: expected, and not there",
            "c: there, and not expected",
        ]
    );
    assert_eq!(differences(&expected, &expected, &[]), [""; 0]);
}
