//! The report for programs: everything but what the cells hold, which the executed notebook has.

use serde::Serialize;

use super::Report;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'r> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    report: &'r Report,
}

/// Returns the report as JSON.
pub(super) fn render(report: &Report) -> String {
    let document = Document {
        api_version: "blueproof.dev/v1alpha1",
        kind: "Report",
        report,
    };
    serde_json::to_string_pretty(&document).expect("a report has string keys") + "\n"
}
