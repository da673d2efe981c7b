//! PromQL, in which metrics are named by their entries in the tables.

use blueproof_core::metrics::Family;

/// What PromQL can name: a metric, or what a rule of ours records.
pub(crate) trait Named {
    fn name(&self) -> &'static str;
    fn help(&self) -> &'static str;
}

impl Named for Family {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }
}

/// An expression, and what the metrics in it mean.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) text: String,
    /// Each metric's sentence once, in the order in which they are named.
    pub(crate) about: Vec<&'static str>,
}

/// Puts names into PromQL, in place of each `#` in turn.
pub(crate) fn expr(template: &str, names: &[&dyn Named]) -> Expr {
    let mut parts = template.split('#');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut about = Vec::new();
    let mut names = names.iter();
    for part in parts {
        let named = names
            .next()
            .unwrap_or_else(|| panic!("a name for each # of `{template}`"));
        text += named.name();
        text += part;
        if !about.contains(&named.help()) {
            about.push(named.help());
        }
    }
    assert!(names.next().is_none(), "a # for each name in `{template}`");
    Expr { text, about }
}
