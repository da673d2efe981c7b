//! The files are those in the repository, and name only what is exposed or recorded.

use std::{collections::BTreeSet, path::Path, sync::LazyLock};

use blueproof_core::metrics::{self, Family, Kind};
use blueproof_gpu::{
    health::{XidClass, xid_class},
    pages::{dcgm, native},
};
use regex::Regex;

use crate::{alerts, dashboards, files, readme, recorded};

/// What PromQL has words for, of that which we use.
const WORDS: [&str; 18] = [
    "absent",
    "avg",
    "avg_over_time",
    "by",
    "clamp_min",
    "count",
    "group_left",
    "histogram_quantile",
    "increase",
    "max",
    "max_over_time",
    "min",
    "on",
    "or",
    "rate",
    "sort_desc",
    "sum",
    "time",
];

/// What Prometheus itself adds.
const ADDED: [&str; 3] = ["instance", "job", "le"];

fn families() -> impl Iterator<Item = &'static Family> {
    metrics::families()
        .chain(native::families())
        .chain(dcgm::families())
}

/// The series that may be named.
fn series() -> BTreeSet<String> {
    let exposed = families().flat_map(|family| {
        let endings: &[&str] = match family.kind {
            Kind::Counter | Kind::Gauge => &[""],
            Kind::Histogram(_) => &["_bucket", "_sum", "_count"],
        };
        endings.iter().map(|ending| format!("{}{ending}", family.name))
    });
    let recorded = recorded::all().map(|recorded| recorded.name.to_owned());
    exposed.chain(recorded).chain(["up".to_owned()]).collect()
}

/// The labels that may be named.
fn labels() -> BTreeSet<&'static str> {
    families()
        .flat_map(|family| family.labels)
        .copied()
        .chain(ADDED)
        .collect()
}

/// Returns the names in PromQL that are neither its words nor known.
fn unknown(promql: &str) -> Vec<String> {
    static TEXT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""[^"]*"|\[[^\]]*\]"#).expect("a pattern"));
    static LISTS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{([^}]*)\}|\b(?:by|on|group_left)\s*\(([^)]*)\)").expect("a pattern"));
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b[a-zA-Z_:][a-zA-Z0-9_:]*").expect("a pattern"));
    let promql = TEXT.replace_all(promql, "");
    let (series, labels) = (series(), labels());
    let names = |text: &str| -> Vec<String> {
        NAME.find_iter(text)
            .map(|name| name.as_str().to_owned())
            .collect()
    };
    let lists = LISTS.captures_iter(&promql).flat_map(|list| {
        let list = list.get(1).or_else(|| list.get(2));
        names(list.map_or("", |list| list.as_str()))
    });
    let mut unknown: Vec<_> = lists.filter(|label| !labels.contains(label.as_str())).collect();
    let rest = names(&LISTS.replace_all(&promql, " "));
    unknown.extend(
        rest.into_iter()
            .filter(|name| !series.contains(name) && !WORDS.contains(&name.as_str())),
    );
    unknown
}

/// Every expression that stands in a file.
fn expressions() -> Vec<String> {
    let mut all: Vec<String> = recorded::all().map(|recorded| (recorded.expr)().text).collect();
    let alerts = alerts::of_runs().into_iter().chain(alerts::of_devices());
    all.extend(alerts.map(|alert| alert.expr.text));
    for dashboard in dashboards::all() {
        all.extend(dashboard.variables.into_iter().map(|variable| variable.of.text));
        let panels = dashboard.rows.into_iter().flat_map(|row| row.panels);
        all.extend(panels.flat_map(|panel| panel.queries).map(|(expr, _)| expr.text));
    }
    all
}

#[test]
fn the_files_in_the_repository_are_what_the_tables_come_to() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring");
    let files = files::all();
    let differing = files::differing(&files, &folder);
    assert_eq!(differing, [""; 0], "write them with `cargo xtask dashboards`");
}

#[test]
fn what_is_written_is_as_it_should_be_until_somebody_changes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files::all();
    files::write(&files, folder.path()).expect("it can be written to");
    assert_eq!(files::differing(&files, folder.path()), [""; 0]);
    std::fs::write(folder.path().join("alerts-runs.yaml"), "groups: []\n").expect("it can be written to");
    std::fs::remove_file(folder.path().join("dashboards/blueproof-gpu.json")).expect("it is there");
    let changed = ["alerts-runs.yaml", "dashboards/blueproof-gpu.json"];
    assert_eq!(files::differing(&files, folder.path()), changed);
}

#[test]
fn every_expression_names_only_what_is_exposed_or_recorded() {
    for promql in expressions() {
        assert_eq!(unknown(&promql), [""; 0], "{promql}");
    }
}

#[test]
fn a_name_that_nothing_exposes_is_found() {
    for (promql, expected) in [
        ("sum(blueproof_runs)", vec!["blueproof_runs"]),
        ("rate(blueproof_run_seconds[5m])", vec!["blueproof_run_seconds"]),
        (
            "sum by (gate) (blueproof_runs_total{verdict=\"gone\",runner=~\"x\"})",
            vec!["gate", "runner"],
        ),
        (
            "blueproof:run:seconds2d > 36 * 3600",
            vec!["blueproof:run:seconds2d"],
        ),
        ("DCGM_FI_DEV_GPU_UTIL == 0 or on (job) up", vec![]),
    ] {
        assert_eq!(unknown(promql), expected, "{promql}");
    }
}

#[test]
fn alerts_are_about_the_errors_that_our_list_says_it_of() {
    static NUMBERS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"xid=~"([0-9|]*)""#).expect("a pattern"));
    let alerts = alerts::of_devices();
    for (name, class) in [
        ("BlueproofGpuXidCritical", XidClass::Reset),
        ("BlueproofGpuXidContained", XidClass::Contained),
    ] {
        let alert = alerts.iter().find(|alert| alert.name == name);
        let promql = &alert.expect("it is there").expr.text;
        let numbers = NUMBERS.captures(promql).expect("it names them");
        let numbers: Vec<u64> = numbers[1]
            .split('|')
            .map(|number| number.parse().expect("a number"))
            .collect();
        // Past the greatest number that anybody reports.
        let expected: Vec<_> = (0..1000).filter(|xid| xid_class(*xid) == class).collect();
        assert_eq!(numbers, expected, "{name}");
    }
}

#[test]
fn nothing_is_there_twice() {
    let recorded = recorded::all().map(|recorded| recorded.name);
    let alerts = alerts::of_runs()
        .into_iter()
        .chain(alerts::of_devices())
        .map(|alert| alert.name);
    let uids = dashboards::all().into_iter().map(|dashboard| dashboard.uid);
    let mut seen = BTreeSet::new();
    for name in recorded.chain(alerts).chain(uids) {
        assert!(seen.insert(name), "{name}");
    }
}

#[test]
fn panels_lie_beside_and_below_each_other() {
    for dashboard in dashboards::all() {
        let json = dashboard.json();
        let panels = json["panels"].as_array().expect("a list");
        let mut taken = BTreeSet::new();
        for panel in panels {
            let at = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
            for x in at("x")..at("x") + at("w") {
                for y in at("y")..at("y") + at("h") {
                    assert!(x < 24 && taken.insert((x, y)), "{panel}");
                }
            }
        }
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
        assert_eq!(ids.len(), panels.len(), "{}", dashboard.uid);
    }
}

#[test]
fn the_page_beside_the_files_has_no_gap() {
    let text = readme::text();
    assert!(!text.contains("{{"), "{text}");
}
