//! One output of a cell as markup: the best form of it that can do no harm.

use serde_json::Value;

use super::{ansi::printed, image, markdown::markdown, markup::Html, table::table};
use crate::{ipynb::joined, text::shown};

/// Returns a Jupyter output object as markup, empty where there is nothing to see.
pub(super) fn output(output: &Value) -> Html {
    let text = |key: &str| output.get(key).map(joined).unwrap_or_default();
    match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => {
            let class = if text("name") == "stderr" {
                "printed stderr"
            } else {
                "printed"
            };
            pre(class, &text("text"))
        }
        Some("error") => error(output),
        Some("display_data" | "execute_result") => display(output.get("data").unwrap_or(&Value::Null)),
        _ => note("an output of a kind that is not known"),
    }
}

fn error(output: &Value) -> Html {
    let lines: Vec<&str> = output
        .get("traceback")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !lines.is_empty() {
        return pre("printed error", &lines.join("\n"));
    }
    let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
    pre("printed error", &format!("{}: {}", text("ename"), text("evalue")))
}

/// Returns the first form that can be shown, the richest first.
fn display(data: &Value) -> Html {
    let text = |mime: &str| data.get(mime).map(joined).filter(|text| !text.is_empty());
    let mut refused = None;
    for mime in ["image/png", "image/jpeg"] {
        match text(mime).map(|encoded| image::raster(mime, &encoded)) {
            Some(Ok(address)) => return picture(&address, text("text/plain").as_deref()),
            Some(Err(why)) => refused = Some(why),
            None => {}
        }
    }
    match text("image/svg+xml").map(|svg| image::svg(&svg)) {
        Some(Ok(address)) => return picture(&address, text("text/plain").as_deref()),
        Some(Err(why)) => refused = Some(why),
        None => {}
    }
    if let Some(table) = text("text/html").and_then(|html| table(&html)) {
        let mut html = Html::default();
        html.push_markup(format_args!("<div class=\"table\">{table}</div>"));
        return html;
    }
    if let Some(prose) = text("text/markdown") {
        let laid_out = markdown(&prose);
        if laid_out.len() > prose.len() * 7 / 5 + 4096 {
            return pre("printed", &prose);
        }
        let mut html = Html::default();
        html.push_markup(format_args!("<div class=\"prose\">{laid_out}</div>"));
        return html;
    }
    // What a formula is called in Python says less than its source.
    let is_object = |text: &String| text.starts_with('<') && text.trim_end().ends_with("object>");
    let latex = text("text/latex");
    let plain = text("text/plain").filter(|text| latex.is_none() || !is_object(text));
    let plain = plain.or(latex);
    let json = || data.get("application/json").map(|value| format!("{value:#}"));
    match (plain.or_else(json), refused) {
        (Some(text), None) => pre("printed", &text),
        (Some(text), Some(why)) => {
            let mut html = note(why);
            html.push(&pre("printed", &text));
            html
        }
        (None, Some(why)) => note(why),
        (None, None) if is_payload(data) => Html::default(),
        (None, None) => note("an output that only a running notebook can show"),
    }
}

/// Whether this is nothing but values for metrics, which stand in the charts.
fn is_payload(data: &Value) -> bool {
    let members = data.as_object().into_iter().flatten();
    let mut kinds = members
        .map(|(mime, _)| mime.starts_with("application/vnd.blueproof."))
        .peekable();
    kinds.peek().is_some() && kinds.all(|ours| ours)
}

fn picture(address: &str, alternative: Option<&str>) -> Html {
    let alternative = shown(alternative.unwrap_or("an image that the cell shows"));
    let brief: String = alternative.chars().filter(|c| *c != '"').take(120).collect();
    let mut html = Html::default();
    html.push_markup(format_args!(
        "<img src=\"{address}\" alt=\"{}\">",
        Html::text(&brief)
    ));
    html
}

fn pre(class: &str, text: &str) -> Html {
    let mut html = Html::default();
    html.push_markup(format_args!("<pre class=\"{class}\">{}</pre>", printed(text)));
    html
}

fn note(text: &str) -> Html {
    let mut html = Html::default();
    html.push_markup(format_args!(
        "<p class=\"note\">{}: see the executed notebook</p>",
        Html::text(text)
    ));
    html
}
