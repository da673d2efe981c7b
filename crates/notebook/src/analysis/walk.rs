//! Walking cells in order, with names bound to what is known of their values.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    Analysis, install,
    value::{At, Traced, Value},
};
use crate::python::syntax::{Expr, Import, Kind, Module, Statement};

/// How much source of functions is kept for following their calls.
const MOST_FUNCTION_BYTES: usize = 512 << 10;

/// How many calls, texts and names are kept. A notebook with more is data; people write a few hundred.
pub(super) const MOST_FACTS: usize = 20_000;

/// The state of a walk.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) analysis: Analysis,
    pub(super) names: BTreeMap<String, Traced>,
    pub(super) cell: u32,
    pub(super) depth: u32,
    /// Where the notebook itself stands, while a function is followed.
    pub(super) from: Option<At>,
    pub(super) followed: u32,
    pub(super) given_to: Option<String>,
    /// What names held before the function that is followed gave them a value of its own.
    pub(super) shadowed: Vec<(String, Option<Traced>)>,
    /// How many conditions are open of which nothing is known.
    pub(super) guarded: u32,
    function_bytes: usize,
}

impl Walk {
    /// Walks some statements of a cell.
    pub(super) fn module(&mut self, cell: u32, parameters: Tagged, module: &Module) {
        self.cell = cell;
        for (line, command) in &module.shell {
            if command.starts_with("%matplotlib") || command.starts_with("%pylab") {
                let at = At { cell, line: *line };
                self.analysis.imports.entry("matplotlib".into()).or_insert(at);
                self.analysis.optional_imports.remove("matplotlib");
            }
            self.analysis
                .shell
                .push((At { cell, line: *line }, command.clone()));
        }
        for (line, comment) in &module.comments {
            self.comment(At { cell, line: *line }, comment);
        }
        for statement in &module.statements {
            if let (Tagged::Parameters, Statement::Assign { target, value }) = (parameters, statement)
                && let Kind::Name(name) = &target.kind
            {
                let value = self.eval(value);
                self.analysis.parameters.retain(|(known, _)| known != name);
                self.analysis.parameters.push((name.clone(), value));
            }
            self.statement(statement);
        }
    }

    fn comment(&mut self, at: At, comment: &str) {
        if comment.starts_with(['!', '%']) {
            self.analysis.installs.extend(install::of_comment(at, comment));
        }
        let Some((name, value)) = comment.split_once('=') else {
            return;
        };
        let name = name.trim();
        let identifier = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if identifier && !value.starts_with('=') {
            self.analysis
                .disabled
                .push((at, name.to_owned(), value.trim().to_owned()));
        }
    }

    pub(super) fn at(&self, line: u32) -> At {
        At {
            cell: self.cell,
            line,
        }
    }

    pub(super) fn statements(&mut self, statements: &[Statement]) -> Option<Traced> {
        statements
            .iter()
            .fold(None, |returned, statement| self.statement(statement).or(returned))
    }

    /// Walks a statement and returns what a `return` in it returns.
    fn statement(&mut self, statement: &Statement) -> Option<Traced> {
        match statement {
            Statement::Assign { target, value } => {
                self.search_path(target, value);
                self.given_to = target.name().map(str::to_owned);
                let value = self.eval(value);
                self.given_to = None;
                self.bind(target, value);
                None
            }
            Statement::Expr(value) => {
                self.eval(value);
                None
            }
            Statement::Return(value) => Some(self.eval(value)),
            Statement::For { target, over, body } => self.each(target, over, body),
            Statement::If {
                test,
                body,
                otherwise,
            } => self.either(test, body, otherwise),
            Statement::Function(function) => {
                function.decorators.iter().for_each(|decorator| {
                    self.eval(decorator);
                });
                if self.function_bytes + function.bytes <= MOST_FUNCTION_BYTES {
                    self.function_bytes += function.bytes;
                    let kept = (self.cell, Rc::clone(function));
                    self.analysis.functions.insert(function.name.clone(), kept);
                }
                let symbol = Value::Symbol(function.name.clone());
                let at = self.at(0);
                self.hold(&function.name, Traced::new(symbol, at));
                None
            }
            Statement::Import(names) => {
                names.iter().for_each(|import| self.import(import));
                None
            }
            Statement::Block { values, body } => {
                values.iter().for_each(|value| {
                    self.eval(value);
                });
                self.statements(body)
            }
        }
    }

    fn import(&mut self, import: &Import) {
        let at = self.at(import.line);
        let module = import.path.split('.').next().unwrap_or_default();
        let known = self.analysis.imports.contains_key(module);
        if self.guarded == 0 {
            self.analysis.optional_imports.remove(module);
        } else if !known {
            self.analysis.optional_imports.insert(module.to_owned());
        }
        self.analysis.imports.entry(module.to_owned()).or_insert(at);
        if import.name == "*" {
            return;
        }
        let symbol = Value::Symbol(import.path.clone());
        self.hold(&import.name, Traced::new(symbol, at));
    }

    /// Has a name hold a value, until the function that is followed ends.
    pub(super) fn hold(&mut self, name: &str, value: Traced) {
        if self.names.len() >= MOST_FACTS && !self.names.contains_key(name) {
            return;
        }
        let before = self.names.insert(name.to_owned(), value);
        if self.depth > 0 {
            self.shadowed.push((name.to_owned(), before));
        }
    }

    fn each(&mut self, target: &Expr, over: &Expr, body: &[Statement]) -> Option<Traced> {
        let values = self.eval(over);
        if let Some(made) = values.made()
            && made.function == "range"
            && let Some(count) = made.arguments.get(usize::from(made.arguments.len() > 1))
            && deals_with_nodes(body)
        {
            self.analysis.node_loops.push((self.at(over.line), count.clone()));
        }
        let first = values.items().first().cloned();
        let item = first.unwrap_or_else(|| Traced::new(Value::Unknown, self.at(target.line)));
        self.bind(target, item);
        let before = self.analysis.calls.len();
        let returned = self.statements(body);
        self.search_path_of_loop(before, values.items());
        returned
    }

    /// Walks the branch that is taken where that is known and no parameter can change it, else both.
    fn either(&mut self, test: &Expr, body: &[Statement], otherwise: &[Statement]) -> Option<Traced> {
        let known = self.eval(test).truth();
        let mut changeable = false;
        test.walk(&mut |part| {
            if let Kind::Name(name) = &part.kind {
                changeable |= self.analysis.is_parameter(name) || self.follows_parameter(name);
            }
        });
        match known.filter(|_| !changeable) {
            Some(true) => self.statements(body),
            Some(false) => self.statements(otherwise),
            None => {
                self.guarded += 1;
                let returned = self.statements(otherwise);
                let returned = self.statements(body).or(returned);
                self.guarded -= 1;
                returned
            }
        }
    }

    fn follows_parameter(&self, name: &str) -> bool {
        let via = self.names.get(name).and_then(|value| value.via.as_deref());
        via.is_some_and(|via| self.analysis.is_parameter(via))
    }

    fn bind(&mut self, target: &Expr, value: Traced) {
        if let Some(name) = target.name() {
            self.hold(name, value);
        } else if let Kind::List(targets) = &target.kind {
            let items = value.items().to_vec();
            for (index, target) in targets.iter().enumerate() {
                let unknown = Traced::new(Value::Unknown, value.at);
                self.bind(target, items.get(index).cloned().unwrap_or(unknown));
            }
        } else if let Kind::Subscript(of, key) = &target.kind {
            let key = self.eval(key);
            let held = of.name().and_then(|name| self.names.get_mut(name));
            if let (Some(held), Some(key)) = (held, key.text()) {
                held.put(key, value);
            }
        }
    }
}

/// Whether a cell is the one that is tagged `parameters`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tagged {
    Parameters,
    Not,
}

/// Returns whether a loop's body fetches something of each node.
fn deals_with_nodes(body: &[Statement]) -> bool {
    let mut found = false;
    let mut visit = |expr: &Expr| {
        found |= expr
            .text()
            .is_some_and(|text| text.contains("node-") || text.contains("worker-"));
        found |= matches!(&expr.kind, Kind::Attribute(_, name) if name == "get_job_logs");
    };
    body.iter()
        .for_each(|statement| statement.walk(&mut visit, &mut |_| {}));
    found
}
