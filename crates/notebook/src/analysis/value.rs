//! What can be known of a value without running anything.

use std::{cmp::Ordering, rc::Rc};

/// How deep values may hold each other. A notebook that nests deeper does it to bring us down.
const DEEPEST: u32 = 48;
/// How many values a search looks at: the same value may be held many times over.
const MOST_SEARCHED: u32 = 10_000;
/// How long a text may grow by being added to itself.
const LONGEST_TEXT: usize = 1 << 16;
/// How many entries a dictionary may grow to by being put into itself.
pub(super) const MOST_ENTRIES: usize = 4096;

/// A line of a cell, both counted from one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) cell: u32,
    pub(crate) line: u32,
}

/// A value, where it stands, and the variable that it is the value of.
#[derive(Debug, Clone)]
pub(crate) struct Traced {
    pub(crate) value: Value,
    pub(crate) at: At,
    /// The first variable that held exactly this value.
    pub(crate) via: Option<String>,
    depth: u32,
}

/// What is known of a value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Unknown,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Rc<Vec<Traced>>),
    Dict(Rc<Vec<(String, Traced)>>),
    /// What a call returned.
    Made(Rc<Made>),
    /// Something known by its name only, such as an import; with dots.
    Symbol(String),
}

/// A call and its arguments.
#[derive(Debug)]
pub(crate) struct Made {
    /// The last part of the function's name: `train` of `client.train(...)`.
    pub(crate) function: String,
    /// What stands before it.
    pub(crate) receiver: Option<Traced>,
    pub(crate) arguments: Vec<Traced>,
    pub(crate) keywords: Vec<(String, Traced)>,
    pub(crate) at: At,
    /// Where the notebook itself stands that comes to it: the call of the function in which it is made, if it is in one.
    pub(crate) from: At,
    pub(crate) reached: Reached,
}

/// Whether what stands in a cell is done whenever the cell is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It is.
    Surely,
    /// It depends on a condition, or may fail and be caught.
    Perhaps,
}

impl Traced {
    pub(crate) fn new(value: Value, at: At) -> Self {
        let (held, fits) = match &value {
            Value::Text(text) | Value::Symbol(text) => (None, text.len() <= LONGEST_TEXT),
            Value::List(items) => (deepest(items.iter()), true),
            Value::Dict(entries) => (
                deepest(entries.iter().map(|(_, value)| value)),
                entries.len() <= MOST_ENTRIES,
            ),
            Value::Made(made) => (deepest(made.parts()), made.keywords.len() <= MOST_ENTRIES),
            Value::Unknown | Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => (None, true),
        };
        let depth = held.map_or(0, |held| held + 1);
        let (value, depth) = if depth <= DEEPEST && fits {
            (value, depth)
        } else {
            (Value::Unknown, 0)
        };
        Self {
            value,
            at,
            via: None,
            depth,
        }
    }

    /// Puts an entry into a dictionary, in place of one that has its key.
    pub(crate) fn put(&mut self, key: &str, value: Traced) {
        let Value::Dict(entries) = &mut self.value else {
            return;
        };
        if value.depth >= DEEPEST || entries.len() >= MOST_ENTRIES {
            return;
        }
        self.depth = self.depth.max(value.depth + 1);
        let entries = Rc::make_mut(entries);
        entries.retain(|(known, _)| known != key);
        entries.push((key.to_owned(), value));
    }

    pub(crate) fn text(&self) -> Option<&str> {
        let Value::Text(text) = &self.value else {
            return None;
        };
        Some(text)
    }

    pub(crate) fn symbol(&self) -> Option<&str> {
        let Value::Symbol(symbol) = &self.value else {
            return None;
        };
        Some(symbol)
    }

    pub(crate) fn made(&self) -> Option<&Rc<Made>> {
        let Value::Made(made) = &self.value else {
            return None;
        };
        Some(made)
    }

    pub(crate) fn items(&self) -> &[Traced] {
        let Value::List(items) = &self.value else {
            return &[];
        };
        items
    }

    pub(crate) fn entries(&self) -> &[(String, Traced)] {
        let Value::Dict(entries) = &self.value else {
            return &[];
        };
        entries
    }

    pub(crate) fn int(&self) -> Option<i64> {
        let Value::Int(number) = self.value else {
            return None;
        };
        Some(number)
    }

    pub(crate) fn float(&self) -> Option<f64> {
        let Value::Float(number) = self.value else {
            return None;
        };
        Some(number)
    }

    /// Returns the value as `str()` writes it, where that is known.
    pub(crate) fn written(&self) -> Option<String> {
        let text = self.text().map(str::to_owned);
        let int = || self.int().map(|number| number.to_string());
        let float = || self.float().map(|number| number.to_string());
        text.or_else(int).or_else(float)
    }

    /// Returns the number that this is, as an `int()` of it would.
    pub(crate) fn number(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts and seconds are small")]
        let int = self.int().map(|number| number as f64);
        let text = || self.text()?.trim().parse().ok();
        int.or_else(|| self.float()).or_else(text)
    }

    /// Returns which of two values is the larger one, where both are known and of one kind.
    pub(crate) fn order(&self, other: &Traced) -> Option<Ordering> {
        let texts = self.text().zip(other.text()).map(|(a, b)| a.cmp(b));
        let ints = || self.int().zip(other.int()).map(|(a, b)| a.cmp(&b));
        texts.or_else(ints)
    }

    /// Returns whether an `if` takes this for true, where that is known.
    pub(crate) fn truth(&self) -> Option<bool> {
        match &self.value {
            Value::None => Some(false),
            Value::Bool(value) => Some(*value),
            Value::Int(number) => Some(*number != 0),
            Value::Float(number) => Some(*number != 0.0),
            Value::Text(text) => Some(!text.is_empty()),
            Value::List(items) => Some(!items.is_empty()),
            Value::Dict(entries) => Some(!entries.is_empty()),
            Value::Unknown | Value::Made(_) | Value::Symbol(_) => None,
        }
    }

    /// Finds the first value under one of `names`, in a dictionary or among keywords, at any depth.
    pub(crate) fn find(&self, names: &[&str]) -> Option<&Traced> {
        let mut left = MOST_SEARCHED;
        self.search(names, &mut left)
    }

    fn search(&self, names: &[&str], left: &mut u32) -> Option<&Traced> {
        *left = left.checked_sub(1)?;
        let fields = self.fields();
        if let Some((_, own)) = fields.iter().find(|(name, _)| names.contains(&name.as_str())) {
            return Some(own);
        }
        let arguments = self.made().map(|made| made.arguments.as_slice());
        let held = fields.iter().map(|(_, value)| value);
        held.chain(self.items())
            .chain(arguments.unwrap_or_default())
            .find_map(|value| value.search(names, left))
    }

    /// Returns what it holds under names: the entries of a dictionary, or the keywords of a call.
    fn fields(&self) -> &[(String, Traced)] {
        match self.made() {
            Some(made) => &made.keywords,
            None => self.entries(),
        }
    }
}

impl Made {
    fn parts(&self) -> impl Iterator<Item = &Traced> {
        let keywords = self.keywords.iter().map(|(_, value)| value);
        self.receiver.iter().chain(&self.arguments).chain(keywords)
    }

    /// Returns the argument that is given by this keyword, or else at this position.
    pub(crate) fn argument(&self, keyword: &str, position: usize) -> Option<&Traced> {
        let named = self.keywords.iter().find(|(name, _)| name == keyword);
        named
            .map(|(_, value)| value)
            .or_else(|| self.arguments.get(position))
    }
}

fn deepest<'v>(values: impl Iterator<Item = &'v Traced>) -> Option<u32> {
    values.map(|value| value.depth).max()
}
