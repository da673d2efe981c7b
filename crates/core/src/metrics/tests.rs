//! Pages as they are read: both formats, and what strangers put into labels.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn page() -> Page {
    let mut page = Page::default();
    page.set(&PENDING_WORKLOADS, &["a\"b\\c\nd\u{1b}[2J", "active"], 3.0);
    page.set(
        &CLUSTER_QUEUE_BORROWING_LIMIT,
        &["", "red", "any", "cpu"],
        f64::INFINITY,
    );
    page.set(&COHORT_WEIGHTED_SHARE, &["all"], f64::NAN);
    page.count(&ADMITTED_WORKLOADS, &["red", ""]);
    page.add(&RUN_CPU_SECONDS, &["nano-lm", "smoke"], 0.25);
    for millis in [0, 2500, 2501, 50_000_000] {
        page.observe(
            &WORKLOAD_EVICTION_LATENCY,
            &["red", "Preempted"],
            SignedDuration::from_millis(millis),
        );
    }
    page
}

#[test]
fn the_page_is_prometheus_text() {
    let text = page().render(Format::Prometheus);
    for line in [
        r#"kueue_pending_workloads{cluster_queue="a\"b\\c\nd\\u{1b}[2J",status="active",replica_role="standalone"} 3"#,
        r#"kueue_cluster_queue_borrowing_limit{cohort="",cluster_queue="red",flavor="any",resource="cpu",replica_role="standalone"} +Inf"#,
        r#"kueue_cohort_weighted_share{cohort="all",replica_role="standalone"} NaN"#,
        "# TYPE kueue_admitted_workloads_total counter",
        r#"kueue_admitted_workloads_total{cluster_queue="red",priority_class="",replica_role="standalone"} 1"#,
        r#"kueue_workload_eviction_latency_seconds_bucket{cluster_queue="red",reason="Preempted",replica_role="standalone",le="1"} 1"#,
        r#"kueue_workload_eviction_latency_seconds_bucket{cluster_queue="red",reason="Preempted",replica_role="standalone",le="2.5"} 2"#,
        r#"kueue_workload_eviction_latency_seconds_bucket{cluster_queue="red",reason="Preempted",replica_role="standalone",le="10240"} 3"#,
        r#"kueue_workload_eviction_latency_seconds_bucket{cluster_queue="red",reason="Preempted",replica_role="standalone",le="+Inf"} 4"#,
        r#"kueue_workload_eviction_latency_seconds_sum{cluster_queue="red",reason="Preempted",replica_role="standalone"} 50005.001"#,
        r#"kueue_workload_eviction_latency_seconds_count{cluster_queue="red",reason="Preempted",replica_role="standalone"} 4"#,
        r#"blueproof_run_cpu_seconds_total{blueprint="nano-lm",profile="smoke"} 0.25"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
}

#[test]
fn the_page_is_openmetrics() {
    let text = page().render(Format::OpenMetrics);
    for line in [
        "# TYPE kueue_admitted_workloads counter",
        r#"kueue_admitted_workloads_total{cluster_queue="red",priority_class="",replica_role="standalone"} 1"#,
        "# UNIT kueue_workload_eviction_latency_seconds seconds",
        r#"kueue_workload_eviction_latency_seconds_bucket{cluster_queue="red",reason="Preempted",replica_role="standalone",le="1.0"} 1"#,
        r#"kueue_workload_eviction_latency_seconds_bucket{cluster_queue="red",reason="Preempted",replica_role="standalone",le="+Inf"} 4"#,
        "# UNIT blueproof_run_cpu_seconds seconds",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn a_page_without_values_is_empty() {
    assert_eq!(Page::default().render(Format::Prometheus), "");
    assert_eq!(Page::default().render(Format::OpenMetrics), "# EOF\n");
}

#[test]
fn every_metric_is_named_as_prometheus_wants() {
    let mut samples = BTreeSet::new();
    for family in families() {
        let name = family.name;
        let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(
            is_word(name) && family.labels.iter().all(|label| is_word(label)),
            "{name}"
        );
        assert_eq!(name.ends_with("_total"), family.kind == Kind::Counter, "{name}");
        assert!(!family.labels.contains(&"le"), "{name}");
        // Help is written as it is.
        assert!(
            !family.help.contains(['\\', '"', '\n']) && !family.help.ends_with('.'),
            "{name}"
        );
        let endings: &[&str] = match family.kind {
            Kind::Counter | Kind::Gauge => &[""],
            Kind::Histogram(bounds) => {
                assert!(
                    bounds.is_sorted() && bounds.iter().all(|bound| bound.is_finite()),
                    "{name}"
                );
                assert!(name.ends_with("_seconds"), "{name}");
                &["", "_bucket", "_sum", "_count"]
            }
        };
        // OpenMetrics knows a counter without its ending: neither may be another's name.
        let stem = Some(family.stem().to_owned()).filter(|stem| stem != name);
        for sample in endings.iter().map(|ending| format!("{name}{ending}")).chain(stem) {
            assert!(samples.insert(sample.clone()), "{sample} is there twice");
        }
    }
}

#[test]
fn what_is_left_out_is_not_there() {
    let names: BTreeSet<&str> = families().map(|family| family.name).collect();
    assert!(LEFT_OUT.is_sorted(), "in order");
    for (name, _) in LEFT_OUT {
        assert!(!names.contains(name), "{name}");
    }
}

proptest! {
    /// Whatever stands in a label, the page has the same lines.
    #[test]
    fn a_label_stays_within_its_quotation_marks(hostile in "\\PC*|[\u{0}-\u{1f}\"\\\\{}, =]*") {
        let render = |value: &str| {
            let mut page = Page::default();
            page.set(&PENDING_WORKLOADS, &[value, "active"], 1.0);
            page.render(Format::Prometheus)
        };
        let text = render(&hostile);
        prop_assert_eq!(text.lines().count(), render("red").lines().count());
        let line = text.lines().last().expect("there are some");
        let value = line.strip_prefix("kueue_pending_workloads{cluster_queue=\"").expect("it begins so");
        let value = value.strip_suffix("\",status=\"active\",replica_role=\"standalone\"} 1").expect("it ends so");
        prop_assert!(!value.chars().any(char::is_control));
        // No quotation mark is without its backslash, and no backslash is left over.
        let rest = value.replace("\\\\", "").replace("\\\"", "").replace("\\n", "");
        prop_assert!(!rest.contains(['"', '\\']), "{}", line);
    }
}
