//! `docs/metrics.md` lists every metric, and what is left out.
//!
//! `METRICS_DOC=overwrite cargo test -p blueproof-core --test metrics` writes the tables anew; read the difference.

use std::{fmt::Write as _, fs, path::Path};

use blueproof_core::metrics::{Family, KUEUE, Kind, LEFT_OUT, OURS};

#[test]
fn the_page_lists_every_metric_and_what_is_left_out() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let mut wanted = page.clone();
    for (heading, table) in [
        ("## Of runs", families(OURS)),
        ("## Of the queue", families(KUEUE)),
        ("## Left out", left_out()),
    ] {
        wanted = with_table(&wanted, heading, &table);
    }
    if std::env::var("METRICS_DOC").is_ok_and(|value| value == "overwrite") {
        fs::write(&path, &wanted).expect("it can be written");
        return;
    }
    assert!(
        page == wanted,
        "`docs/metrics.md` has other tables than these:\n{wanted}"
    );
}

fn families(families: &[&Family]) -> String {
    let mut table = String::from("| name | kind | labels | meaning |\n|---|---|---|---|\n");
    for family in families {
        let kind = match family.kind {
            Kind::Counter | Kind::Gauge => family.kind.as_str().to_owned(),
            Kind::Histogram(bounds) => format!("histogram, {} bounds", bounds.len()),
        };
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, labels, help) = (family.name, labels.join(", "), family.help);
        writeln!(table, "| `{name}` | {kind} | {labels} | {help} |").expect("a string takes any text");
    }
    table
}

fn left_out() -> String {
    let mut table = String::from("| name | why |\n|---|---|\n");
    for (name, why) in LEFT_OUT {
        writeln!(table, "| `{name}` | {why} |").expect("a string takes any text");
    }
    table
}

/// Returns the page with this table as the first one below a heading.
fn with_table(page: &str, heading: &str, table: &str) -> String {
    let (before, section) = page
        .split_once(&format!("{heading}\n"))
        .expect("the heading is there");
    let (text, rest) = section.split_once("\n| ").expect("there is a table");
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let end = if after.is_empty() {
        String::new()
    } else {
        format!("\n{after}")
    };
    format!("{before}{heading}\n{text}\n{table}{end}")
}
