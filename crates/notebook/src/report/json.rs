//! The report for programs: everything but what the cells hold, which the executed notebook has.

use serde::Serialize;

use super::Report;
use crate::text::harmless_json;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'r> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    report: &'r Report,
}

/// Returns the report as JSON that does no harm where it is shown: a step of a CI job may well `cat` it.
pub(super) fn render(report: &Report) -> String {
    let document = Document {
        api_version: "blueproof.dev/v1alpha1",
        kind: "Report",
        report,
    };
    let json = serde_json::to_string_pretty(&document).expect("a report has string keys");
    harmless_json(&json) + "\n"
}
