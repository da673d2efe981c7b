//! The page that lies beside the files: how to load them, and what is in them.

use crate::{
    alerts::{self, Alert},
    dashboards, recorded,
};

const PAGE: &str = include_str!("readme.md");

/// Returns the page, with its tables.
pub(crate) fn text() -> String {
    let (runs, devices) = (alerts::of_runs(), alerts::of_devices());
    let tables = [
        ("DASHBOARDS", of_dashboards()),
        ("RECORDED", of_recorded()),
        ("ALERTS_RUNS", of_alerts(&runs)),
        ("ALERTS_DEVICES", of_alerts(&devices)),
        ("LEFT_OUT", of_left_out()),
    ];
    tables.into_iter().fold(PAGE.to_owned(), |page, (name, rows)| {
        page.replace(&format!("{{{{{name}}}}}\n"), &rows)
    })
}

fn of_dashboards() -> String {
    let all = dashboards::all().into_iter();
    all.map(|dashboard| {
        let (uid, title, description) = (dashboard.uid, dashboard.title, dashboard.description);
        format!("| `dashboards/{uid}.json` | {title} | {description} |\n")
    })
    .collect()
}

fn of_recorded() -> String {
    recorded::all()
        .map(|recorded| format!("| `{}` | {} |\n", recorded.name, recorded.help))
        .collect()
}

fn of_alerts(alerts: &[Alert]) -> String {
    alerts.iter().map(row).collect()
}

fn row(alert: &Alert) -> String {
    let lasts = match alert.lasts {
        "0m" => "at once",
        lasts => lasts,
    };
    let summary = alert.summary.replace("{{ $labels.", "*").replace(" }}", "*");
    let severity = alert.severity.as_str();
    format!("| `{}` | {severity} | {lasts} | {summary} |\n", alert.name)
}

fn of_left_out() -> String {
    let left_out = alerts::LEFT_OUT.iter();
    left_out
        .map(|(what, why)| format!("| {what} | {why} |\n"))
        .collect()
}
