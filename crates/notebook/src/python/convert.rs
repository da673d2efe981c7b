//! From tree-sitter's nodes to our own: statements here, what they are made of in `expressions`.

mod expressions;

use std::rc::Rc;

use tree_sitter::{Node, Tree};

use super::{
    names,
    syntax::{Arithmetic, Expr, Function, Import, Kind, Module, Operator, Statement},
    tree::line_of,
};

/// What is nested deeper holds no facts that anyone wrote by hand.
const DEEPEST: u32 = 150;

/// Returns what a tree without mistakes says, all but its shell commands.
pub(super) fn module(tree: &Tree, source: &str) -> Module {
    let root = tree.root_node();
    let mut reader = Reader {
        source,
        comments: Vec::new(),
    };
    let statements = reader.statements(root, 0);
    Module {
        statements,
        comments: reader.comments,
        shell: Vec::new(),
        names: names::events(root, source),
    }
}

struct Reader<'s> {
    source: &'s str,
    comments: Vec<(u32, String)>,
}

impl<'s> Reader<'s> {
    fn text(&self, node: Node<'_>) -> &'s str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn children<'t>(&mut self, node: Node<'t>) -> Vec<Node<'t>> {
        let mut cursor = node.walk();
        let all: Vec<Node<'t>> = node.named_children(&mut cursor).collect();
        for comment in all.iter().filter(|child| child.kind() == "comment") {
            let text = self.text(*comment).trim_start_matches('#').trim();
            self.comments.push((line_of(*comment), text.to_owned()));
        }
        all.into_iter()
            .filter(|child| child.kind() != "comment")
            .collect()
    }

    fn statements(&mut self, node: Node<'_>, depth: u32) -> Vec<Statement> {
        if depth > DEEPEST {
            return Vec::new();
        }
        let mut statements = Vec::new();
        for child in self.children(node) {
            self.statement(child, depth + 1, &mut statements);
        }
        statements
    }

    fn statement(&mut self, node: Node<'_>, depth: u32, into: &mut Vec<Statement>) {
        match node.kind() {
            "expression_statement" => {
                for child in self.children(node) {
                    self.expression_statement(child, depth, into);
                }
            }
            "return_statement" => {
                let value = self.children(node).first().map(|value| self.expr(*value, depth));
                into.extend(value.map(Statement::Return));
            }
            "for_statement" => {
                let target = self.field(node, "left", depth);
                let over = self.field(node, "right", depth);
                let body = self.body(node, "body", depth);
                into.push(Statement::For { target, over, body });
                into.extend(self.body(node, "alternative", depth));
            }
            "if_statement" => into.push(self.branch(node, depth)),
            "function_definition" => into.push(Statement::Function(Rc::new(self.function(
                node,
                Vec::new(),
                depth,
            )))),
            // A class runs its body once, and gives it to nobody: it is looked at like a function.
            "class_definition" => into.push(Statement::Function(Rc::new(self.function(
                node,
                Vec::new(),
                depth,
            )))),
            "decorated_definition" => self.decorated(node, depth, into),
            "import_statement" | "import_from_statement" => into.push(Statement::Import(self.imports(node))),
            _ => into.push(self.block(node, depth)),
        }
    }

    fn expression_statement(&mut self, node: Node<'_>, depth: u32, into: &mut Vec<Statement>) {
        if let Some(added) = self.added(node, depth) {
            into.push(added);
            return;
        }
        if node.kind() != "assignment" {
            into.push(Statement::Expr(self.expr(node, depth)));
            return;
        }
        let Some(right) = node.child_by_field_name("right") else {
            return;
        };
        // `a = b = value` is an assignment whose value is one.
        if right.kind() == "assignment" && depth < DEEPEST {
            self.expression_statement(right, depth + 1, into);
            let value = right
                .child_by_field_name("left")
                .map(|value| self.expr(value, depth));
            let target = self.field(node, "left", depth);
            into.extend(value.map(|value| Statement::Assign { target, value }));
            return;
        }
        let target = self.field(node, "left", depth);
        let value = self.expr(right, depth);
        into.push(Statement::Assign { target, value });
    }

    /// Reads `of.name += value`. Of names themselves, it is not known how often it is done.
    fn added(&mut self, node: Node<'_>, depth: u32) -> Option<Statement> {
        let operator = node
            .child_by_field_name("operator")
            .map(|operator| self.text(operator));
        if node.kind() != "augmented_assignment" || operator != Some("+=") {
            return None;
        }
        let target = self.field(node, "left", depth);
        if !matches!(target.kind, Kind::Attribute(_, _)) {
            return None;
        }
        let right = self.field(node, "right", depth);
        let line = target.line;
        let operator = Operator::Compute(Arithmetic::Add);
        let kind = Kind::Binary(Box::new(target.clone()), operator, Box::new(right));
        let value = Expr { line, kind };
        Some(Statement::Assign { target, value })
    }

    fn branch(&mut self, node: Node<'_>, depth: u32) -> Statement {
        let test = self.field(node, "condition", depth);
        let body = self.body(node, "consequence", depth);
        let mut cursor = node.walk();
        let all = node.children_by_field_name("alternative", &mut cursor);
        let others: Vec<Node<'_>> = all.take(DEEPEST as usize).collect();
        let mut otherwise = Vec::new();
        // From the last to the first, so that each `elif` holds what comes after it.
        for other in others.into_iter().rev() {
            if other.kind() == "elif_clause" {
                let test = self.field(other, "condition", depth);
                let body = self.body(other, "consequence", depth);
                otherwise = vec![Statement::If {
                    test,
                    body,
                    otherwise,
                }];
            } else {
                otherwise = self.body(other, "body", depth);
            }
        }
        Statement::If {
            test,
            body,
            otherwise,
        }
    }

    fn decorated(&mut self, node: Node<'_>, depth: u32, into: &mut Vec<Statement>) {
        let mut decorators = Vec::new();
        for child in self.children(node) {
            match child.kind() {
                "decorator" => {
                    let inner = self.children(child);
                    decorators.extend(inner.first().map(|inner| self.expr(*inner, depth)));
                }
                "function_definition" | "class_definition" => {
                    let function = self.function(child, std::mem::take(&mut decorators), depth);
                    into.push(Statement::Function(Rc::new(function)));
                }
                _ => self.statement(child, depth, into),
            }
        }
    }

    fn function(&mut self, node: Node<'_>, decorators: Vec<Expr>, depth: u32) -> Function {
        let mut parameters = Vec::new();
        let list = node.child_by_field_name("parameters");
        for parameter in list.map(|list| self.children(list)).unwrap_or_default() {
            let name = parameter
                .child_by_field_name("name")
                .or_else(|| parameter.named_child(0));
            let name = self.text(name.unwrap_or(parameter)).to_owned();
            let default = parameter
                .child_by_field_name("value")
                .map(|value| self.expr(value, depth));
            parameters.push((name, default));
        }
        Function {
            name: node
                .child_by_field_name("name")
                .map(|name| self.text(name))
                .unwrap_or_default()
                .to_owned(),
            parameters,
            decorators,
            body: self.body(node, "body", depth),
            bytes: node.byte_range().len(),
        }
    }

    fn imports(&mut self, node: Node<'_>) -> Vec<Import> {
        let line = line_of(node);
        let module = node
            .child_by_field_name("module_name")
            .map(|module| self.text(module));
        let whole = |name: &str| match module {
            Some(module) => format!("{module}.{name}"),
            None => name.to_owned(),
        };
        let mut cursor = node.walk();
        let names: Vec<Node<'_>> = node.children_by_field_name("name", &mut cursor).collect();
        if names.is_empty() {
            let path = whole("*");
            return vec![Import {
                line,
                name: "*".into(),
                path,
            }];
        }
        let import = |name: Node<'_>| {
            let plain = name.child_by_field_name("name").unwrap_or(name);
            let path = whole(self.text(plain));
            let alias = name.child_by_field_name("alias").map(|alias| self.text(alias));
            // `import a.b` binds `a`.
            let bound = match (alias, module) {
                (Some(alias), _) => alias,
                (None, Some(_)) => self.text(plain),
                (None, None) => self.text(plain).split('.').next().unwrap_or_default(),
            };
            let path = if alias.is_none() && module.is_none() {
                bound.to_owned()
            } else {
                path
            };
            Import {
                line,
                name: bound.to_owned(),
                path,
            }
        };
        names.into_iter().map(import).collect()
    }

    fn block(&mut self, node: Node<'_>, depth: u32) -> Statement {
        let mut values = Vec::new();
        let mut body = Vec::new();
        let may_fail = node.kind() == "try_statement" || self.suppresses(node);
        for child in self.children(node) {
            match child.kind() {
                // What is tried may fail and be caught, as what an `if` holds may not be reached.
                "block" if may_fail => body.push(Statement::If {
                    test: Expr {
                        line: line_of(node),
                        kind: Kind::Other(Vec::new()),
                    },
                    body: self.statements(child, depth),
                    otherwise: Vec::new(),
                }),
                "block" => body.extend(self.statements(child, depth)),
                "except_clause"
                | "finally_clause"
                | "else_clause"
                | "with_clause"
                | "case_clause"
                | "except_group_clause"
                    if depth < DEEPEST =>
                {
                    body.push(self.block(child, depth + 1));
                }
                _ => values.push(self.expr(child, depth)),
            }
        }
        Statement::Block { values, body }
    }

    /// Returns whether a statement is `with suppress(...):`, which does what `try` does.
    fn suppresses(&self, node: Node<'_>) -> bool {
        let mut cursor = node.walk();
        let mut clauses = node
            .named_children(&mut cursor)
            .filter(|child| child.kind() == "with_clause");
        clauses.any(|clause| {
            let mut cursor = clause.walk();
            let mut items = clause.named_children(&mut cursor);
            items.any(|item| {
                let called = self.text(item).split('(').next().unwrap_or_default().trim();
                called.rsplit('.').next() == Some("suppress")
            })
        })
    }

    fn body(&mut self, node: Node<'_>, field: &str, depth: u32) -> Vec<Statement> {
        let Some(body) = node.child_by_field_name(field) else {
            return Vec::new();
        };
        let inner = if body.kind() == "else_clause" {
            body.child_by_field_name("body").unwrap_or(body)
        } else {
            body
        };
        self.statements(inner, depth)
    }
}
