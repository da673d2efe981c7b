//! From tree-sitter's nodes to our own.

use tree_sitter::{Node, Parser};

use super::syntax::{Call, Expr, Function, Import, Kind, Module, Operator, Statement};

/// What is nested deeper holds no facts that anyone wrote by hand.
const DEEPEST: u32 = 150;

/// Reads Python, or returns the line at which it is none.
pub(super) fn module(source: &str) -> Result<Module, u32> {
    let mut parser = Parser::new();
    let language = tree_sitter_python::LANGUAGE.into();
    parser
        .set_language(&language)
        .expect("grammar and library are pinned together");
    let tree = parser
        .parse(source, None)
        .expect("a parser with a language and no time limit returns a tree");
    let root = tree.root_node();
    if root.has_error() {
        return Err(first_error(root));
    }
    let mut reader = Reader {
        source,
        comments: Vec::new(),
    };
    let statements = reader.statements(root, 0);
    Ok(Module {
        statements,
        comments: reader.comments,
        shell: Vec::new(),
    })
}

fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

/// Returns the line of the first mistake, without recursion: the tree may be as deep as the source is long.
fn first_error(root: Node<'_>) -> u32 {
    let mut first = u32::MAX;
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if node.is_error() || node.is_missing() {
            first = first.min(line_of(node));
            continue;
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor).filter(|child| child.has_error()));
    }
    if first == u32::MAX { 1 } else { first }
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
            "function_definition" => into.push(Statement::Function(self.function(node, Vec::new(), depth))),
            // A class runs its body once, and gives it to nobody: it is looked at like a function.
            "class_definition" => into.push(Statement::Function(self.function(node, Vec::new(), depth))),
            "decorated_definition" => self.decorated(node, depth, into),
            "import_statement" | "import_from_statement" => into.push(Statement::Import(self.imports(node))),
            _ => into.push(self.block(node, depth)),
        }
    }

    fn expression_statement(&mut self, node: Node<'_>, depth: u32, into: &mut Vec<Statement>) {
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
                    into.push(Statement::Function(function));
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
        for child in self.children(node) {
            match child.kind() {
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

    fn field(&mut self, node: Node<'_>, field: &str, depth: u32) -> Expr {
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

    fn expr(&mut self, node: Node<'_>, depth: u32) -> Expr {
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
            "not_operator" => Kind::Not(Box::new(self.field(node, "argument", depth))),
            "binary_operator" | "boolean_operator" | "comparison_operator" => self.binary(node, depth),
            _ => Kind::Other(self.exprs(node, depth)),
        }
    }

    fn binary(&mut self, node: Node<'_>, depth: u32) -> Kind {
        let operator = node.child(1).and_then(|operator| match self.text(operator) {
            "+" => Some(Operator::Add),
            "-" => Some(Operator::Subtract),
            "*" => Some(Operator::Multiply),
            "/" | "//" => Some(Operator::Divide),
            "or" => Some(Operator::Or),
            "and" => Some(Operator::And),
            "==" => Some(Operator::Equal),
            "!=" => Some(Operator::NotEqual),
            "<" => Some(Operator::Less),
            "<=" => Some(Operator::LessEqual),
            ">" => Some(Operator::Greater),
            ">=" => Some(Operator::GreaterEqual),
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
