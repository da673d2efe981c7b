//! Expressions: names, calls, operators and literals. What holds no facts becomes `Kind::Other` with its parts.

use tree_sitter::Node;

use super::{DEEPEST, Reader};
use crate::python::{
    syntax::{Arithmetic, Call, Comparison, Expr, Kind, Operator},
    tree::line_of,
};

impl Reader<'_> {
    pub(super) fn field(&mut self, node: Node<'_>, field: &str, depth: u32) -> Expr {
        match node.child_by_field_name(field) {
            Some(child) => self.expr(child, depth),
            None => Expr {
                line: line_of(node),
                kind: Kind::Other(Vec::new()),
            },
        }
    }

    fn exprs(&mut self, node: Node<'_>, depth: u32) -> Vec<Expr> {
        self.children(node)
            .into_iter()
            .map(|child| self.expr(child, depth))
            .collect()
    }

    pub(super) fn expr(&mut self, node: Node<'_>, depth: u32) -> Expr {
        let line = line_of(node);
        let kind = if depth > DEEPEST {
            Kind::Other(Vec::new())
        } else {
            self.kind(node, depth + 1)
        };
        Expr { line, kind }
    }

    fn kind(&mut self, node: Node<'_>, depth: u32) -> Kind {
        match node.kind() {
            "none" => Kind::None,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "integer" => integer(self.text(node)).map_or(Kind::Other(Vec::new()), Kind::Int),
            "float" => match self.text(node).replace('_', "").parse() {
                Ok(number) => Kind::Float(number),
                Err(_) => Kind::Other(Vec::new()),
            },
            "string" => self.string(node, depth),
            "concatenated_string" => joined(self.exprs(node, depth)),
            "identifier" => Kind::Name(self.text(node).to_owned()),
            "list" | "tuple" | "set" | "expression_list" | "pattern_list" => {
                Kind::List(self.exprs(node, depth))
            }
            "dictionary" => self.dictionary(node, depth),
            "call" => self.call(node, depth),
            "parenthesized_expression" | "await" | "expression_statement" => {
                let mut inner = self.exprs(node, depth);
                if inner.len() == 1 {
                    inner.remove(0).kind
                } else {
                    Kind::Other(inner)
                }
            }
            "attribute" => {
                let name = node.child_by_field_name("attribute").map(|name| self.text(name));
                let of = self.field(node, "object", depth);
                Kind::Attribute(Box::new(of), name.unwrap_or_default().to_owned())
            }
            "subscript" => {
                let of = self.field(node, "value", depth);
                let at = self.field(node, "subscript", depth);
                Kind::Subscript(Box::new(of), Box::new(at))
            }
            "unary_operator" => {
                let mut inner = self.exprs(node, depth);
                let negative = self.text(node).starts_with('-');
                match (negative, inner.first().map(|inner| &inner.kind)) {
                    (true, Some(Kind::Int(number))) => Kind::Int(-number),
                    (true, Some(Kind::Float(number))) => Kind::Float(-number),
                    (_, _) => Kind::Other(std::mem::take(&mut inner)),
                }
            }
            "conditional_expression" => Kind::Either(self.exprs(node, depth)),
            "not_operator" => Kind::Not(Box::new(self.field(node, "argument", depth))),
            "binary_operator" | "boolean_operator" | "comparison_operator" => self.binary(node, depth),
            _ => Kind::Other(self.exprs(node, depth)),
        }
    }

    fn binary(&mut self, node: Node<'_>, depth: u32) -> Kind {
        let operator = node.child(1).and_then(|operator| match self.text(operator) {
            "+" => Some(Operator::Compute(Arithmetic::Add)),
            "-" => Some(Operator::Compute(Arithmetic::Subtract)),
            "*" => Some(Operator::Compute(Arithmetic::Multiply)),
            "**" => Some(Operator::Compute(Arithmetic::Power)),
            "/" | "//" => Some(Operator::Compute(Arithmetic::Divide)),
            "or" => Some(Operator::Or),
            "and" => Some(Operator::And),
            "==" => Some(Operator::Compare(Comparison::Equal)),
            "!=" => Some(Operator::Compare(Comparison::NotEqual)),
            "<" => Some(Operator::Compare(Comparison::Less)),
            "<=" => Some(Operator::Compare(Comparison::LessEqual)),
            ">" => Some(Operator::Compare(Comparison::Greater)),
            ">=" => Some(Operator::Compare(Comparison::GreaterEqual)),
            _ => None,
        });
        let mut sides = self.exprs(node, depth);
        match (operator, sides.len()) {
            (Some(operator), 2) => {
                let right = sides.remove(1);
                Kind::Binary(Box::new(sides.remove(0)), operator, Box::new(right))
            }
            (Some(_) | None, _) => Kind::Other(sides),
        }
    }

    fn dictionary(&mut self, node: Node<'_>, depth: u32) -> Kind {
        let mut entries = Vec::new();
        for child in self.children(node) {
            let (key, value) = match child.kind() {
                "pair" => (self.field(child, "key", depth), self.field(child, "value", depth)),
                _ => {
                    let splat = Kind::Text("**".into());
                    let value = self.exprs(child, depth).into_iter().next();
                    let value = value.unwrap_or(Expr {
                        line: line_of(child),
                        kind: Kind::Other(Vec::new()),
                    });
                    (
                        Expr {
                            line: line_of(child),
                            kind: splat,
                        },
                        value,
                    )
                }
            };
            entries.push((key, value));
        }
        Kind::Dict(entries)
    }

    fn call(&mut self, node: Node<'_>, depth: u32) -> Kind {
        let function = self.field(node, "function", depth);
        let mut arguments = Vec::new();
        let mut keywords = Vec::new();
        let list = node.child_by_field_name("arguments");
        for child in list.map(|list| self.children(list)).unwrap_or_default() {
            match child.kind() {
                "keyword_argument" => {
                    let name = child.child_by_field_name("name").map(|name| self.text(name));
                    keywords.push((
                        name.unwrap_or_default().to_owned(),
                        self.field(child, "value", depth),
                    ));
                }
                "dictionary_splat" => {
                    keywords.extend(
                        self.exprs(child, depth)
                            .into_iter()
                            .map(|value| ("**".into(), value)),
                    );
                }
                _ => arguments.push(self.expr(child, depth)),
            }
        }
        Kind::Call(Box::new(Call {
            function,
            arguments,
            keywords,
        }))
    }

    fn string(&mut self, node: Node<'_>, depth: u32) -> Kind {
        let mut parts = Vec::new();
        let mut raw = false;
        for child in self.children(node) {
            let line = line_of(child);
            match child.kind() {
                "string_start" => raw = self.text(child).to_ascii_lowercase().contains('r'),
                "string_content" => {
                    let text = self.text(child);
                    let text = if raw { text.to_owned() } else { unescaped(text) };
                    parts.push(Expr {
                        line,
                        kind: Kind::Text(text),
                    });
                }
                "interpolation" => parts.push(self.field(child, "expression", depth)),
                _ => {}
            }
        }
        joined(parts)
    }
}

/// Joins parts of a string: to one text where all are, else to a format.
fn joined(parts: Vec<Expr>) -> Kind {
    match parts.iter().map(Expr::text).collect::<Option<String>>() {
        Some(whole) => Kind::Text(whole),
        None => Kind::Format(parts),
    }
}

fn integer(text: &str) -> Option<i64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let radix = |prefix, radix| {
        text.strip_prefix(prefix)
            .map(|digits| i64::from_str_radix(digits, radix).ok())
    };
    radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .unwrap_or_else(|| text.parse().ok())
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('\n') | None => {}
            Some(quoted @ ('\\' | '\'' | '"')) => plain.push(quoted),
            Some(other) => plain.extend(['\\', other]),
        }
    }
    plain
}
