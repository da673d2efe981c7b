//! A page of metrics in Prometheus' text format, read strictly: what Prometheus would forgive is refused here.

use std::collections::BTreeMap;

/// The labels of a series, by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// A page.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    /// The metrics, by name.
    pub(crate) families: BTreeMap<String, Family>,
    /// The metric whose lines are being read.
    current: String,
}

/// A metric.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Family {
    /// Its type.
    pub(crate) kind: String,
    /// What is said of it.
    pub(crate) help: String,
    /// The values of its series.
    pub(crate) series: BTreeMap<Labels, f64>,
}

impl Page {
    /// Reads a page: of each metric its help, its type and then all its series, without an empty line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.strip_suffix('\n').ok_or("the last line does not end")?;
        let mut page = Self::default();
        for (number, line) in lines.split('\n').enumerate() {
            page.line(line)
                .map_err(|why| format!("line {}: {why}: {line}", number + 1))?;
        }
        page.end_family()?;
        Ok(page)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            self.end_family()?;
            let (name, help) = rest.split_once(' ').ok_or("there is no help")?;
            check_name(name, ":")?;
            let family = Family {
                help: help.into(),
                ..Family::default()
            };
            self.current = name.into();
            let known = self.families.insert(name.into(), family);
            return known.map_or(Ok(()), |_| Err("the metric was there before".into()));
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or("there is no type")?;
            let family = self.family(name)?;
            if !family.kind.is_empty() || !["counter", "gauge"].contains(&kind) {
                return Err("a metric has one type, counter or gauge".into());
            }
            kind.clone_into(&mut family.kind);
            return Ok(());
        }
        self.sample(line)
    }

    fn sample(&mut self, line: &str) -> Result<(), String> {
        let end = line.find(['{', ' ']).ok_or("there is no value")?;
        let (name, rest) = line.split_at(end);
        let family = self.family(name)?;
        if family.kind.is_empty() {
            return Err("the type comes before the series".into());
        }
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Labels::new(), rest),
        };
        let value = value.strip_prefix(' ').ok_or("a space comes before the value")?;
        let number: f64 = value.parse().map_err(|_| "the value is no number")?;
        if !number.is_finite() || value.starts_with('+') {
            return Err("the value is no plain number".into());
        }
        let known = family.series.insert(labels, number);
        known.map_or(Ok(()), |_| Err("the series was there before".into()))
    }

    /// Returns the metric that is being read, which must be this one.
    fn family(&mut self, name: &str) -> Result<&mut Family, String> {
        let family = self.families.get_mut(name).filter(|_| self.current == name);
        family.ok_or_else(|| "it stands not with its metric's help".into())
    }

    fn end_family(&self) -> Result<(), String> {
        let family = self.families.get(&self.current);
        if family.is_some_and(|family| family.series.is_empty()) {
            return Err(format!("{} has no series", self.current));
        }
        Ok(())
    }
}

fn check_name(name: &str, more: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || more.contains(c);
    let begins_well = name.starts_with(|c: char| !c.is_ascii_digit());
    if begins_well && name.chars().all(is_allowed) {
        return Ok(());
    }
    Err(format!("{name:?} is no name"))
}

/// Reads labels up to their closing bracket, and returns what comes after it.
fn labels(text: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    let mut rest = text;
    loop {
        let (name, quoted) = rest.split_once("=\"").ok_or("a label has no value")?;
        check_name(name, "")?;
        let (value, after) = unquoted(quoted)?;
        if labels.insert(name.into(), value).is_some() {
            return Err(format!("the label {name} is there twice"));
        }
        match after.split_at_checked(1) {
            Some((",", more)) => rest = more,
            Some(("}", after)) => return Ok((labels, after)),
            _ => return Err("labels are parted by commas and end with a bracket".into()),
        }
    }
}

/// Reads a label's value up to its closing quote.
fn unquoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                _ => return Err("only a backslash, a quote and an n are escaped".into()),
            },
            other => value.push(other),
        }
    }
    Err("a label's value does not end".into())
}

#[test]
fn a_page_is_read_with_what_is_escaped_in_it() {
    let page =
        Page::parse("# HELP a_b What it is\n# TYPE a_b gauge\na_b{x=\"q\\\"\\\\\\n}\",y=\"\"} 1.5\na_b 2\n");
    let page = page.expect("it is well formed");
    let family = &page.families["a_b"];
    assert_eq!(
        (family.kind.as_str(), family.help.as_str()),
        ("gauge", "What it is")
    );
    let labels = [("x", "q\"\\\n}"), ("y", "")].map(|(name, value)| (name.into(), value.into()));
    assert_eq!(
        family.series,
        BTreeMap::from([(Labels::new(), 2.0), (Labels::from(labels), 1.5)])
    );
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let head = "# HELP a What it is\n# TYPE a gauge\n";
    let rows = [
        ("no end of the last line", format!("{head}a 1")),
        ("an empty line", format!("{head}\na 1\n")),
        ("a comment", format!("{head}# so\na 1\n")),
        ("no series", head.into()),
        ("no type", "# HELP a What it is\na 1\n".into()),
        ("no help", "# TYPE a gauge\na 1\n".into()),
        ("another type", "# HELP a What it is\n# TYPE a much\na 1\n".into()),
        ("a metric twice", format!("{head}a 1\n{head}a 1\n")),
        (
            "a series twice",
            format!("{head}a{{x=\"1\"}} 1\na{{x=\"1\"}} 1\n"),
        ),
        ("a series of another metric", format!("{head}a 1\nb 1\n")),
        ("a label twice", format!("{head}a{{x=\"1\",x=\"2\"}} 1\n")),
        ("a label without quotes", format!("{head}a{{x=1}} 1\n")),
        ("a label's name with a dash", format!("{head}a{{x-y=\"1\"}} 1\n")),
        ("a comma at the end", format!("{head}a{{x=\"1\",}} 1\n")),
        ("an unknown escape", format!("{head}a{{x=\"\\t\"}} 1\n")),
        ("no value", format!("{head}a\n")),
        ("two spaces", format!("{head}a  1\n")),
        ("a time after the value", format!("{head}a 1 1700000000\n")),
        ("not a number", format!("{head}a NaN\n")),
    ];
    for (why, text) in rows {
        assert!(Page::parse(&text).is_err(), "{why}: {text}");
    }
}
