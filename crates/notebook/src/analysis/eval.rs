//! What can be known of the value of an expression.

use std::{cmp::Ordering, rc::Rc};

use super::{
    own::part_of_path,
    value::{At, MOST_ENTRIES, Made, Reached, Traced, Value},
    walk::{MOST_FACTS, Walk},
};
use crate::python::syntax::{Arithmetic, Call, Comparison, Expr, Function, Kind, Operator};

/// How far calls of the notebook's own functions are followed; also what ends a recursion.
const DEEPEST_CALL: u32 = 4;
/// How many calls are followed in all, so that functions that call each other twice come to an end.
const MOST_FOLLOWED: u32 = 200;
/// The longest text that any rule is about.
const LONGEST_FACT: usize = 2048;

impl Walk {
    pub(super) fn eval(&mut self, expr: &Expr) -> Traced {
        let at = self.at(expr.line);
        let value = match &expr.kind {
            Kind::None => Value::None,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(number) => Value::Int(*number),
            Kind::Float(number) => Value::Float(*number),
            Kind::Text(text) => {
                if text.len() <= LONGEST_FACT && self.analysis.texts.len() < MOST_FACTS {
                    self.analysis
                        .texts
                        .push((at, self.given_to.clone(), text.clone()));
                }
                Value::Text(text.clone())
            }
            Kind::Format(parts) => return self.format(at, parts),
            Kind::Name(name) => return self.name(at, name),
            Kind::List(items) if items.len() > MOST_ENTRIES => {
                items.iter().for_each(|item| {
                    self.eval(item);
                });
                Value::Unknown
            }
            Kind::List(items) => Value::List(Rc::new(items.iter().map(|item| self.eval(item)).collect())),
            Kind::Dict(entries) => self.dict(entries),
            Kind::Call(call) => return self.call(at, call),
            Kind::Attribute(of, name) => {
                let of = self.eval(of);
                let parent = (name == "parent")
                    .then(|| part_of_path(&of, name, None))
                    .flatten();
                parent.unwrap_or_else(|| match of.symbol() {
                    Some(symbol) => Value::Symbol(format!("{symbol}.{name}")),
                    None => Value::Symbol(name.clone()),
                })
            }
            Kind::Subscript(of, key) => return self.subscript(at, of, key),
            Kind::Binary(left, operator, right) => self.binary(left, *operator, right),
            Kind::Not(of) => match self.eval(of).truth() {
                Some(truth) => Value::Bool(!truth),
                None => Value::Unknown,
            },
            Kind::Either(parts) => {
                self.guarded += 1;
                parts.iter().for_each(|part| {
                    self.eval(part);
                });
                self.guarded -= 1;
                Value::Unknown
            }
            Kind::Other(parts) => {
                parts.iter().for_each(|part| {
                    self.eval(part);
                });
                Value::Unknown
            }
        };
        Traced::new(value, at)
    }

    fn name(&mut self, at: At, name: &str) -> Traced {
        if let Some(held) = self.names.get(name) {
            let mut held = held.clone();
            held.via.get_or_insert_with(|| name.to_owned());
            return held;
        }
        Traced::new(Value::Symbol(name.to_owned()), at)
    }

    fn format(&mut self, at: At, parts: &[Expr]) -> Traced {
        let values: Vec<Traced> = parts.iter().map(|part| self.eval(part)).collect();
        if let [only] = values.as_slice() {
            return only.clone();
        }
        match values.iter().map(Traced::written).collect::<Option<String>>() {
            Some(text) => Traced::new(Value::Text(text), at),
            None => Traced::new(Value::Unknown, at),
        }
    }

    fn dict(&mut self, entries: &[(Expr, Expr)]) -> Value {
        let mut held = Vec::new();
        for (key, value) in entries {
            let key = self.eval(key);
            let value = self.eval(value);
            match key.text() {
                Some("**") if held.len() <= MOST_ENTRIES => held.extend(value.entries().iter().cloned()),
                Some("**") => {}
                Some(key) => held.push((key.to_owned(), value)),
                None => {}
            }
        }
        Value::Dict(Rc::new(held))
    }

    /// Notes `os.environ["NAME"]`, and what does the same.
    fn read_environment(&mut self, of: &Traced, name: &Traced) {
        if let (Some("os.environ" | "environ" | "os.getenv" | "getenv"), Some(text)) =
            (of.symbol(), name.text())
        {
            self.analysis.environment.push((name.at, text.to_owned()));
        }
    }

    fn subscript(&mut self, at: At, of: &Expr, key: &Expr) -> Traced {
        let of = self.eval(of);
        let key = self.eval(key);
        self.read_environment(&of, &key);
        let entry = key
            .text()
            .and_then(|key| of.entries().iter().find(|(known, _)| known == key));
        let index = key.int().and_then(|index| usize::try_from(index).ok());
        let found = entry.map(|(_, value)| value).or_else(|| of.items().get(index?));
        found.cloned().unwrap_or_else(|| Traced::new(Value::Unknown, at))
    }

    fn binary(&mut self, left: &Expr, operator: Operator, right: &Expr) -> Value {
        let a = self.eval(left);
        let may_be_left_out = u32::from(matches!(operator, Operator::Or | Operator::And));
        self.guarded += may_be_left_out;
        let b = self.eval(right);
        self.guarded -= may_be_left_out;
        if operator == Operator::Compare(Comparison::Equal) {
            self.compared_runtime(left, &b);
        }
        match operator {
            Operator::Or | Operator::And => {
                let left_counts = a.truth().map(|truth| truth == (operator == Operator::Or));
                left_counts.map_or(Value::Unknown, |left| if left { a.value } else { b.value })
            }
            Operator::Compute(Arithmetic::Divide) if a.made().is_some() => {
                part_of_path(&a, "joinpath", Some(&b)).unwrap_or(Value::Unknown)
            }
            Operator::Compute(arithmetic) => computed(arithmetic, &a, &b).unwrap_or(Value::Unknown),
            Operator::Compare(comparison) => a
                .order(&b)
                .map_or(Value::Unknown, |order| Value::Bool(holds(comparison, order))),
        }
    }

    fn compared_runtime(&mut self, left: &Expr, right: &Traced) {
        let named = matches!(&left.kind, Kind::Attribute(_, name) if name == "name");
        if let (true, Some(text)) = (named, right.text()) {
            self.analysis.runtime_names.push((right.at, text.to_owned()));
        }
    }

    fn call(&mut self, at: At, call: &Call) -> Traced {
        let outer = self.given_to.take();
        let (receiver, function) = if let Kind::Attribute(of, name) = &call.function.kind {
            (Some(self.eval(of)), name.clone())
        } else if let Some(name) = call.function.name() {
            (None, self.called(at, name))
        } else {
            (Some(self.eval(&call.function)), String::new())
        };
        let arguments: Vec<Traced> = call
            .arguments
            .iter()
            .map(|argument| self.eval(argument))
            .collect();
        let keywords = self.keywords(&call.keywords);
        self.given_to = outer;
        if function == "print" {
            self.printed(at, call);
        }
        if let ("int" | "str" | "float", [only]) = (function.as_str(), arguments.as_slice())
            && only.number().is_some()
        {
            return only.clone();
        }
        if let ("get" | "getenv", Some(first)) = (function.as_str(), arguments.first()) {
            let own = Traced::new(Value::Symbol(function.clone()), at);
            self.read_environment(
                receiver.as_ref().filter(|_| function == "get").unwrap_or(&own),
                first,
            );
        }
        if function == "dict" && receiver.is_none() {
            return Traced::new(Value::Dict(Rc::new(keywords)), at);
        }
        if receiver.is_none()
            && let Some((cell, own)) = self.analysis.functions.get(&function).cloned()
            && self.depth < DEEPEST_CALL
            && self.followed < MOST_FOLLOWED
        {
            let caller = std::mem::replace(&mut self.cell, cell);
            let from = self.from;
            self.from = from.or(Some(at));
            let returned = self.follow(at, &own, &arguments, &keywords);
            (self.cell, self.from) = (caller, from);
            return returned;
        }
        let made = Rc::new(Made {
            function,
            receiver,
            arguments,
            keywords,
            at,
            from: self.from.unwrap_or(at),
            reached: self.reached(),
        });
        if self.analysis.calls.len() < MOST_FACTS {
            self.analysis.calls.push(Rc::clone(&made));
        }
        Traced::new(Value::Made(made), at)
    }

    fn keywords(&mut self, given: &[(String, Expr)]) -> Vec<(String, Traced)> {
        let mut keywords = Vec::new();
        for (name, value) in given {
            let value = self.eval(value);
            if name == "**" && keywords.len() <= MOST_ENTRIES {
                keywords.extend(value.entries().iter().cloned());
            } else {
                keywords.push((name.clone(), value));
            }
        }
        keywords
    }

    /// Notes figures that are printed behind their name: `print("loss:", loss)`, `print(f"loss: {loss}")`.
    fn printed(&mut self, at: At, call: &Call) {
        let parts = call.arguments.iter().flat_map(|argument| match &argument.kind {
            Kind::Format(parts) => parts.as_slice(),
            Kind::None
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Text(_)
            | Kind::Name(_)
            | Kind::List(_)
            | Kind::Dict(_)
            | Kind::Call(_)
            | Kind::Attribute(_, _)
            | Kind::Subscript(_, _)
            | Kind::Binary(_, _, _)
            | Kind::Not(_)
            | Kind::Either(_)
            | Kind::Other(_) => std::slice::from_ref(argument),
        });
        let parts: Vec<&Expr> = parts.collect();
        for pair in parts.windows(2) {
            let name = pair[0]
                .text()
                .filter(|_| pair[1].text().is_none())
                .and_then(figure);
            if let Some(name) = name.filter(|_| self.analysis.printed.len() < MOST_FACTS) {
                self.analysis.printed.push((at, name));
            }
        }
    }

    fn reached(&self) -> Reached {
        if self.guarded == 0 {
            Reached::Surely
        } else {
            Reached::Perhaps
        }
    }

    /// Returns the name of the function that a name stands for, whatever it was imported as.
    fn called(&mut self, at: At, name: &str) -> String {
        let held = self.name(at, name);
        let path = held.symbol().unwrap_or(name);
        path.rsplit('.').next().unwrap_or(name).to_owned()
    }

    fn follow(
        &mut self,
        at: At,
        own: &Function,
        arguments: &[Traced],
        keywords: &[(String, Traced)],
    ) -> Traced {
        self.depth += 1;
        self.followed += 1;
        let outer = std::mem::take(&mut self.shadowed);
        for (index, (name, default)) in own.parameters.iter().enumerate() {
            let keyword = keywords
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone());
            let given = keyword.or_else(|| arguments.get(index).cloned());
            let value = match (given, default) {
                (Some(given), _) => given,
                (None, Some(default)) => self.eval(default),
                (None, None) => Traced::new(Value::Unknown, at),
            };
            self.hold(name, value);
        }
        let returned = self.statements(&own.body);
        let shadowed = std::mem::replace(&mut self.shadowed, outer);
        for (name, held) in shadowed.into_iter().rev() {
            match held {
                Some(held) => self.names.insert(name, held),
                None => self.names.remove(&name),
            };
        }
        self.depth -= 1;
        returned.unwrap_or_else(|| Traced::new(Value::Unknown, at))
    }
}

/// Returns the words by which a text announces a figure: `val loss` of `epoch done, val loss: `.
///
/// All of them, because what is announced as `val loss` is another figure than `loss`.
fn figure(text: &str) -> Option<String> {
    let before = text.trim_end().strip_suffix([':', '='])?;
    let mut words: Vec<&str> = Vec::new();
    for token in before.split_whitespace().rev() {
        let of_word = |c: char| c.is_alphanumeric() || "_./-".contains(c);
        let word = token.rsplit(|c| !of_word(c)).next().unwrap_or_default();
        let is_one = word.is_ascii() && word.contains(|c: char| c.is_ascii_alphanumeric());
        words.extend(is_one.then_some(word));
        if !is_one || word.len() < token.len() {
            break;
        }
    }
    words.reverse();
    let words = words.join(" ");
    let begins = words.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && words.len() <= 40).then_some(words)
}

fn computed(arithmetic: Arithmetic, a: &Traced, b: &Traced) -> Option<Value> {
    if let (Arithmetic::Add, Some(a), Some(b)) = (arithmetic, a.text(), b.text()) {
        return Some(Value::Text(format!("{a}{b}")));
    }
    let (a, b) = (a.int()?, b.int()?);
    let number = match arithmetic {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Power => a.checked_pow(u32::try_from(b).ok()?),
    };
    number.map(Value::Int)
}

fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
    }
}
