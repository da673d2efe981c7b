//! Dashboards as Grafana reads them.
//!
//! A panel says what it shows and of what kind that is; places, colours and the rest follow.

use serde_json::{Value, json};

use crate::expr::Expr;

/// A version of Grafana's own format that all since Grafana 10.2 can read; newer ones bring it up to date.
const SCHEMA: u32 = 39;

/// How many columns a row has in Grafana.
const COLUMNS: u32 = 24;

/// A dashboard.
#[derive(Debug)]
pub(crate) struct Dashboard {
    /// It stays as it is, so that links to the dashboard do.
    pub(crate) uid: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) variables: Vec<Variable>,
    pub(crate) rows: Vec<Row>,
}

/// What a reader can choose: values of a label.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) label: &'static str,
    /// The series that have the label.
    pub(crate) of: Expr,
}

/// Panels under a heading.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) title: &'static str,
    pub(crate) panels: Vec<Panel>,
}

/// A panel.
#[derive(Debug)]
pub(crate) struct Panel {
    title: &'static str,
    view: View,
    unit: Unit,
    /// From which value on it wants to be looked at, and from which on it is bad.
    limits: Option<(f64, f64)>,
    pub(crate) queries: Vec<(Expr, &'static str)>,
}

/// How figures are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// As one number, or a few.
    Number,
    /// As lines over time.
    Lines,
    /// As areas over time that add up.
    Areas,
    /// As a table of what is so now.
    Table,
}

/// In what they are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Ones,
    /// 1 where something is bad, else 0.
    Fault,
    /// 1 where all is well, else 0.
    Wellness,
    Seconds,
    /// A share: one is all.
    Share,
    Bytes,
    BytesPerSecond,
    Watts,
    Joules,
    Celsius,
    Hertz,
}

impl Panel {
    pub(crate) fn new(title: &'static str, view: View, unit: Unit) -> Self {
        Self {
            title,
            view,
            unit,
            limits: None,
            queries: Vec::new(),
        }
    }

    /// Says from which value on it wants to be looked at, and from which on it is bad.
    pub(crate) fn limits(mut self, look: f64, bad: f64) -> Self {
        self.limits = Some((look, bad));
        self
    }

    /// Adds a query, and what each of its series is called.
    pub(crate) fn show(mut self, legend: &'static str, expr: Expr) -> Self {
        self.queries.push((expr, legend));
        self
    }

    /// Returns what the metrics that it shows mean, in the words of their tables.
    fn description(&self) -> String {
        let mut sentences: Vec<&str> = Vec::new();
        for sentence in self.queries.iter().flat_map(|(expr, _)| &expr.about) {
            if !sentences.contains(sentence) {
                sentences.push(sentence);
            }
        }
        sentences.join(".\n\n") + "."
    }

    /// Returns its width and height.
    fn size(&self) -> (u32, u32) {
        match self.view {
            View::Number => (4, 4),
            View::Lines | View::Areas => (12, 8),
            View::Table => (24, 8),
        }
    }

    fn json(&self, id: u32, (x, y): (u32, u32)) -> Value {
        let (width, height) = self.size();
        let targets = self.queries.iter().zip('A'..);
        let targets: Vec<_> = targets.map(|(query, name)| self.target(query, name)).collect();
        let mut panel = json!({
            "id": id,
            "type": self.view.as_str(),
            "title": self.title,
            "description": self.description(),
            "datasource": datasource(),
            "gridPos": { "x": x, "y": y, "w": width, "h": height },
            "fieldConfig": { "defaults": self.defaults(), "overrides": [] },
            "options": self.view.options(),
            "targets": targets,
        });
        if self.view == View::Table {
            let hidden = json!({ "Time": true, "__name__": true });
            panel["transformations"] = json!([{ "id": "organize", "options": { "excludeByName": hidden } }]);
        }
        panel
    }

    fn target(&self, (expr, legend): &(Expr, &'static str), name: char) -> Value {
        let is_table = self.view == View::Table;
        json!({
            "refId": name.to_string(),
            "datasource": datasource(),
            "expr": expr.text,
            "legendFormat": legend,
            "format": if is_table { "table" } else { "time_series" },
            "instant": is_table,
            "range": !is_table,
        })
    }

    fn defaults(&self) -> Value {
        let limits = self.limits.or(self.unit.limits());
        let mut defaults = json!({
            "unit": self.unit.as_str(),
            "thresholds": { "mode": "absolute", "steps": self.unit.steps(limits) },
            "mappings": self.unit.mappings(),
            "color": { "mode": if self.is_coloured() { "thresholds" } else { "palette-classic" } },
        });
        if let Unit::Share = self.unit {
            // Not at most one: a queue may borrow more than it has, and a holder of a shared device use what others leave.
            defaults["min"] = json!(0);
        }
        match self.view {
            View::Number => {}
            View::Table => defaults["custom"] = json!({ "cellOptions": { "type": "color-text" } }),
            View::Lines => {
                // Where there is a limit, it is drawn.
                let style = if limits.is_some() { "dashed" } else { "off" };
                defaults["custom"] = json!({
                    "fillOpacity": 0, "showPoints": "never", "thresholdsStyle": { "mode": style },
                });
            }
            View::Areas => {
                let stacking = json!({ "mode": "normal", "group": "A" });
                defaults["custom"] =
                    json!({ "fillOpacity": 30, "showPoints": "never", "stacking": stacking });
            }
        }
        defaults
    }
}

impl Panel {
    /// Returns whether the value decides on the colour: series over time are told apart by it.
    fn is_coloured(&self) -> bool {
        matches!(self.view, View::Number | View::Table)
    }
}

/// What states and flags are shown as.
const OK: &str = "green";
const LOOK: &str = "orange";
const BAD: &str = "red";

impl Unit {
    /// Returns the limits of whatever is counted so.
    fn limits(self) -> Option<(f64, f64)> {
        match self {
            // Cards slow themselves down between 83 and 95 degrees.
            Self::Celsius => Some((80.0, 90.0)),
            Self::Fault => Some((1.0, 1.0)),
            Self::Ones
            | Self::Wellness
            | Self::Seconds
            | Self::Share
            | Self::Bytes
            | Self::BytesPerSecond
            | Self::Watts
            | Self::Joules
            | Self::Hertz => None,
        }
    }

    /// Returns Grafana's steps: from which value on which colour holds.
    fn steps(self, limits: Option<(f64, f64)>) -> Value {
        if let Self::Wellness = self {
            return json!([{ "color": BAD, "value": null }, { "color": OK, "value": 1 }]);
        }
        let mut steps = vec![json!({ "color": OK, "value": null })];
        if let Some((look, bad)) = limits {
            if look < bad {
                steps.push(json!({ "color": LOOK, "value": look }));
            }
            steps.push(json!({ "color": BAD, "value": bad }));
        }
        steps.into()
    }

    /// Returns which words stand for which values: of flags, and of states in tables.
    fn mappings(self) -> Value {
        let words = match self {
            Self::Fault => json!({
                "0": { "text": "no", "color": OK, "index": 0 },
                "1": { "text": "yes", "color": BAD, "index": 1 },
            }),
            Self::Wellness => json!({
                "0": { "text": "no", "color": BAD, "index": 0 },
                "1": { "text": "yes", "color": OK, "index": 1 },
            }),
            Self::Ones
            | Self::Seconds
            | Self::Share
            | Self::Bytes
            | Self::BytesPerSecond
            | Self::Watts
            | Self::Joules
            | Self::Celsius
            | Self::Hertz => json!({
                "ok": { "text": "ok", "color": OK, "index": 0 },
                "unknown": { "text": "unknown", "color": LOOK, "index": 1 },
                "problem": { "text": "problem", "color": BAD, "index": 2 },
            }),
        };
        json!([{ "type": "value", "options": words }])
    }
}

impl View {
    fn as_str(self) -> &'static str {
        match self {
            Self::Number => "stat",
            Self::Lines | Self::Areas => "timeseries",
            Self::Table => "table",
        }
    }

    fn options(self) -> Value {
        match self {
            Self::Number => json!({ "reduceOptions": { "calcs": ["lastNotNull"] }, "graphMode": "area" }),
            Self::Lines | Self::Areas => json!({
                "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true },
                "tooltip": { "mode": "multi", "sort": "desc" },
            }),
            Self::Table => json!({ "showHeader": true }),
        }
    }
}

impl Unit {
    /// Returns Grafana's word.
    fn as_str(self) -> &'static str {
        match self {
            Self::Ones | Self::Fault | Self::Wellness => "short",
            Self::Seconds => "s",
            Self::Share => "percentunit",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "Bps",
            Self::Watts => "watt",
            Self::Joules => "joule",
            Self::Celsius => "celsius",
            Self::Hertz => "hertz",
        }
    }
}

impl Dashboard {
    /// Returns it as a file that Grafana imports.
    pub(crate) fn json(&self) -> Value {
        json!({
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["blueproof"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": true,
            "graphTooltip": 1,
            "refresh": "1m",
            "time": { "from": "now-24h", "to": "now" },
            "timezone": "",
            "templating": { "list": self.variables() },
            "annotations": { "list": [] },
            "links": links(),
            "panels": self.panels(),
        })
    }

    fn variables(&self) -> Vec<Value> {
        let source = json!({ "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus" });
        let of = self.variables.iter().map(Variable::json);
        std::iter::once(source).chain(of).collect()
    }

    /// Puts panels beside each other while there is room, and begins below where there is none.
    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let mut y = 0;
        for row in &self.rows {
            let id = panels.len() as u32 + 1;
            let place = json!({ "x": 0, "y": y, "w": COLUMNS, "h": 1 });
            panels.push(json!({ "id": id, "type": "row", "title": row.title, "collapsed": false, "gridPos": place, "panels": [] }));
            y += 1;
            let (mut x, mut tallest) = (0, 0);
            for panel in &row.panels {
                let (width, height) = panel.size();
                if x + width > COLUMNS {
                    (x, y, tallest) = (0, y + tallest, 0);
                }
                panels.push(panel.json(panels.len() as u32 + 1, (x, y)));
                (x, tallest) = (x + width, tallest.max(height));
            }
            y += tallest;
        }
        panels
    }
}

impl Variable {
    fn json(&self) -> Value {
        let Self { label, of } = self;
        let query = format!("label_values({}, {label})", of.text);
        json!({
            "name": label,
            "type": "query",
            "datasource": datasource(),
            "definition": query,
            "query": { "query": query, "refId": label },
            "refresh": 2,
            "sort": 1,
            "multi": true,
            "includeAll": true,
            "allValue": ".*",
            "current": { "text": "All", "value": "$__all" },
        })
    }
}

fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// Leads from each of our dashboards to the others.
fn links() -> Value {
    json!([{
        "type": "dashboards",
        "title": "blueproof",
        "tags": ["blueproof"],
        "asDropdown": false,
        "includeVars": false,
        "keepTime": true,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboards;

    /// Returns every panel of every dashboard, and the defaults of its fields as Grafana reads them.
    fn panels() -> impl Iterator<Item = (Panel, Value)> {
        let rows = dashboards::all().into_iter().flat_map(|dashboard| dashboard.rows);
        let panels = rows.flat_map(|row| row.panels);
        panels.map(|panel| {
            let json = panel.json(1, (0, 0));
            (panel, json["fieldConfig"]["defaults"].clone())
        })
    }

    #[test]
    fn flags_are_shown_as_words_and_the_bad_one_in_red() {
        let mut n_flags = 0;
        for (panel, defaults) in panels() {
            if !matches!(panel.unit, Unit::Fault | Unit::Wellness) {
                continue;
            }
            n_flags += 1;
            let bad = if matches!(panel.unit, Unit::Fault) {
                "1"
            } else {
                "0"
            };
            let words = &defaults["mappings"][0]["options"];
            for (value, word) in [("0", "no"), ("1", "yes")] {
                assert_eq!(words[value]["text"], word, "{}", panel.title);
                let is_red = words[value]["color"] == BAD;
                assert_eq!(is_red, value == bad, "{}", panel.title);
            }
        }
        assert!(n_flags > 0, "there are panels of flags");
    }

    #[test]
    fn what_is_so_or_not_so_is_shown_as_a_flag() {
        for (panel, _) in panels() {
            // Of how many it is so is a number.
            let is_flag = |expr: &Expr| {
                let is_counted = ["sum", "count"].iter().any(|word| expr.text.starts_with(word));
                !is_counted && expr.about.iter().all(|about| about.starts_with("Whether "))
            };
            if panel.queries.iter().all(|(expr, _)| is_flag(expr)) {
                assert!(
                    matches!(panel.unit, Unit::Fault | Unit::Wellness),
                    "{} says 0 or 1",
                    panel.title
                );
            }
        }
    }

    #[test]
    fn numbers_and_tables_have_colours_by_value() {
        for (panel, defaults) in panels() {
            if !matches!(panel.view, View::Number | View::Table) {
                continue;
            }
            assert_eq!(defaults["color"]["mode"], "thresholds", "{}", panel.title);
            let steps = defaults["thresholds"]["steps"].as_array().expect("a list");
            assert!(
                steps.first().is_some_and(|step| step["value"].is_null()),
                "{} has no colour for the least: {steps:?}",
                panel.title
            );
            assert!(
                steps.iter().all(|step| step["color"].is_string()),
                "{}: {steps:?}",
                panel.title
            );
        }
    }

    #[test]
    fn temperatures_have_a_limit_from_which_they_are_looked_at_and_one_from_which_they_are_bad() {
        let hot: Vec<_> = panels()
            .filter(|(panel, _)| matches!(panel.unit, Unit::Celsius))
            .collect();
        assert!(!hot.is_empty());
        for (panel, defaults) in hot {
            let steps = defaults["thresholds"]["steps"].as_array().expect("a list");
            let colours: Vec<_> = steps.iter().map(|step| step["color"].clone()).collect();
            assert_eq!(colours, [OK, LOOK, BAD], "{}", panel.title);
            let from: Vec<_> = steps.iter().filter_map(|step| step["value"].as_f64()).collect();
            assert!(from.is_sorted_by(|a, b| a < b), "{}: {from:?}", panel.title);
            if panel.view == View::Lines {
                let drawn = &defaults["custom"]["thresholdsStyle"]["mode"];
                assert_ne!(drawn, "off", "{}", panel.title);
            }
        }
    }
}
