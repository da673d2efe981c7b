//! The small tree that facts are read from.

use std::rc::Rc;

use super::names::Event;

/// A cell of Python.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) statements: Vec<Statement>,
    /// Comments with their lines, without `#`.
    pub(crate) comments: Vec<(u32, String)>,
    /// Shell commands and line magics with their lines, as they are written.
    pub(crate) shell: Vec<(u32, String)>,
    /// What happens to the notebook's names.
    pub(crate) names: Vec<Event>,
}

/// A statement, by what it does to names.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    Assign {
        target: Expr,
        value: Expr,
    },
    Expr(Expr),
    Return(Expr),
    For {
        target: Expr,
        over: Expr,
        body: Vec<Statement>,
    },
    If {
        test: Expr,
        body: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Function(Rc<Function>),
    Import(Vec<Import>),
    /// Anything that is run in order: with, while, try, class.
    Block {
        values: Vec<Expr>,
        body: Vec<Statement>,
    },
}

/// A function.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) parameters: Vec<(String, Option<Expr>)>,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) body: Vec<Statement>,
    /// How long it is in the source.
    pub(crate) bytes: usize,
}

/// A name that an import binds.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) line: u32,
    /// The name in the notebook; `*` for all of a module's.
    pub(crate) name: String,
    /// What it is, with dots.
    pub(crate) path: String,
}

/// An expression and its line, counted from one.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    pub(crate) kind: Kind,
}

/// What an expression is.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// An f-string.
    Format(Vec<Expr>),
    Name(String),
    /// A list, tuple or set.
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Call(Box<Call>),
    Attribute(Box<Expr>, String),
    Subscript(Box<Expr>, Box<Expr>),
    Binary(Box<Expr>, Operator, Box<Expr>),
    Not(Box<Expr>),
    /// One of several: `a if b else c`.
    Either(Vec<Expr>),
    /// Anything else, with what it holds.
    Other(Vec<Expr>),
}

/// An operator that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Compute(Arithmetic),
    Compare(Comparison),
}

/// An operator whose value is a number, or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

/// An operator that looks at which of two values is the larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) function: Expr,
    pub(crate) arguments: Vec<Expr>,
    /// Keyword arguments; those of a `**` stand under the name `**`.
    pub(crate) keywords: Vec<(String, Expr)>,
}

impl Expr {
    /// Returns the text, where this is a plain one.
    pub(crate) fn text(&self) -> Option<&str> {
        let Kind::Text(text) = &self.kind else {
            return None;
        };
        Some(text)
    }

    /// Returns the name, where this is one.
    pub(crate) fn name(&self) -> Option<&str> {
        let Kind::Name(name) = &self.kind else {
            return None;
        };
        Some(name)
    }

    /// Calls `visit` with this expression and all that it holds.
    pub(crate) fn walk(&self, visit: &mut impl FnMut(&Expr)) {
        visit(self);
        match &self.kind {
            Kind::None | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::Name(_) => {}
            Kind::Format(parts) | Kind::List(parts) | Kind::Either(parts) | Kind::Other(parts) => {
                parts.iter().for_each(|part| part.walk(visit));
            }
            Kind::Dict(entries) => entries.iter().for_each(|(key, value)| {
                key.walk(visit);
                value.walk(visit);
            }),
            Kind::Call(call) => {
                call.function.walk(visit);
                call.arguments.iter().for_each(|argument| argument.walk(visit));
                call.keywords.iter().for_each(|(_, value)| value.walk(visit));
            }
            Kind::Attribute(of, _) | Kind::Not(of) => of.walk(visit),
            Kind::Subscript(left, right) | Kind::Binary(left, _, right) => {
                left.walk(visit);
                right.walk(visit);
            }
        }
    }
}

impl Statement {
    /// Calls `visit` with every expression in this statement, those in nested functions included, and `import` with
    /// every name that is imported.
    pub(crate) fn walk(&self, visit: &mut impl FnMut(&Expr), import: &mut impl FnMut(&Import)) {
        match self {
            Statement::Assign { target, value } => {
                target.walk(visit);
                value.walk(visit);
            }
            Statement::Expr(value) | Statement::Return(value) => value.walk(visit),
            Statement::For { target, over, body } => {
                target.walk(visit);
                over.walk(visit);
                body.iter().for_each(|statement| statement.walk(visit, import));
            }
            Statement::If {
                test,
                body,
                otherwise,
            } => {
                test.walk(visit);
                body.iter()
                    .chain(otherwise)
                    .for_each(|statement| statement.walk(visit, import));
            }
            Statement::Function(function) => {
                let defaults = function
                    .parameters
                    .iter()
                    .filter_map(|(_, default)| default.as_ref());
                defaults
                    .chain(&function.decorators)
                    .for_each(|value| value.walk(visit));
                function
                    .body
                    .iter()
                    .for_each(|statement| statement.walk(visit, import));
            }
            Statement::Import(names) => names.iter().for_each(&mut *import),
            Statement::Block { values, body } => {
                values.iter().for_each(|value| value.walk(visit));
                body.iter().for_each(|statement| statement.walk(visit, import));
            }
        }
    }
}
