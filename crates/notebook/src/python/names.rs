//! Which names a cell reads and gives a value to, in the order in which the kernel would, by Python's rules of scope.
//!
//! What is told is about the notebook's own names, those of the module. Names of functions, comprehensions and classes
//! stay with them. A read that may not happen, or whose failure is caught, is one by itself: it need not fail.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::tree::line_of;

/// What is nested deeper was written by no one.
const DEEPEST: u32 = 300;

/// What happens to a name of the notebook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is given a value.
    Bound { name: String, line: u32 },
    /// It is taken away by `del`.
    Deleted(String),
    /// It is read, while the cell runs.
    Read { name: String, line: u32 },
    /// It is read when the function of the notebook that is called `owner` is.
    ReadBy { owner: String, name: String, line: u32 },
    /// It may be read: on a condition, or where a failure is caught.
    MayRead(String),
    /// Names are given values that nothing here tells: `from module import *`.
    Unknown,
    /// Code that nothing here tells is run, which may read names and give them values: `exec`.
    Hidden,
}

/// Returns what happens to names in a module that tree-sitter has parsed.
pub(super) fn events(root: Node<'_>, source: &str) -> Vec<Event> {
    let mut reader = Reader {
        source,
        events: Vec::new(),
        scopes: Vec::new(),
        owner: None,
        uncertain: 0,
        line: 1,
    };
    reader.children(root, 0);
    reader.events
}

/// A scope inside the module.
struct Scope {
    kind: ScopeKind,
    names: BTreeSet<String>,
    globals: BTreeSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Function,
    Class,
    Comprehension,
}

struct Reader<'s> {
    source: &'s str,
    events: Vec<Event>,
    scopes: Vec<Scope>,
    /// The outermost function that is being read. Its body runs later, when it is called.
    owner: Option<String>,
    /// How many constructs are open in which a read need not happen, or need not fail.
    uncertain: u32,
    /// The line of the statement that is being read.
    line: u32,
}

impl<'s> Reader<'s> {
    fn text(&self, node: Node<'_>) -> &'s str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn children(&mut self, node: Node<'_>, depth: u32) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.visit(child, depth + 1);
        }
    }

    fn field(&mut self, node: Node<'_>, field: &str, depth: u32) {
        let mut cursor = node.walk();
        let all: Vec<Node<'_>> = node.children_by_field_name(field, &mut cursor).collect();
        all.into_iter().for_each(|child| self.visit(child, depth + 1));
    }

    fn visit(&mut self, node: Node<'_>, depth: u32) {
        if depth > DEEPEST {
            return;
        }
        self.line = line_of(node);
        match node.kind() {
            "identifier" => self.read(node),
            "comment" | "global_statement" | "nonlocal_statement" | "type_alias_statement" => {}
            "attribute" => self.field(node, "object", depth),
            "keyword_argument" => self.field(node, "value", depth),
            "lambda" => self.function(node, None, depth),
            "function_definition" => self.defined(node, depth),
            "class_definition" => self.class(node, depth),
            "import_statement" | "import_from_statement" | "future_import_statement" => self.import(node),
            "delete_statement" => self.deleted(node, depth),
            "try_statement" => self.tried(node, depth),
            "if_statement" | "while_statement" => self.conditional(node, depth),
            "match_statement" => self.matched(node, depth),
            "call" => self.call(node, depth),
            _ => self.binding(node, depth),
        }
    }

    /// Visits what may give a value to names that stand in it.
    fn binding(&mut self, node: Node<'_>, depth: u32) {
        match node.kind() {
            "assignment" => {
                self.field(node, "right", depth);
                if node.child_by_field_name("right").is_some() {
                    self.targets(node, "left", depth);
                }
            }
            "augmented_assignment" => {
                self.field(node, "right", depth);
                self.field(node, "left", depth);
                self.targets(node, "left", depth);
            }
            "named_expression" => {
                self.field(node, "value", depth);
                self.targets(node, "name", depth);
            }
            "for_statement" => {
                self.field(node, "right", depth);
                self.targets(node, "left", depth);
                self.field(node, "body", depth);
                self.field(node, "alternative", depth);
            }
            "for_in_clause" => {
                self.field(node, "right", depth);
                self.targets(node, "left", depth);
            }
            "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression" => {
                self.comprehension(node, depth);
            }
            "as_pattern" => {
                if let Some(value) = node.named_child(0) {
                    self.visit(value, depth + 1);
                }
                self.targets(node, "alias", depth);
            }
            "as_pattern_target" => self.bind_all(node, depth),
            "except_clause" | "except_group_clause" => {
                self.targets(node, "alias", depth);
                self.uncertainly(|reader| reader.children(node, depth));
            }
            "conditional_expression" | "boolean_operator" => {
                self.uncertainly(|reader| reader.children(node, depth));
            }
            _ => self.children(node, depth),
        }
    }

    fn uncertainly(&mut self, read: impl FnOnce(&mut Self)) {
        self.uncertain += 1;
        read(self);
        self.uncertain -= 1;
    }

    fn read(&mut self, node: Node<'_>) {
        let name = self.text(node);
        if self.is_inner(name) {
            return;
        }
        if self.uncertain > 0 {
            return self.events.push(Event::MayRead(name.to_owned()));
        }
        let (name, line) = (name.to_owned(), line_of(node));
        self.events.push(match &self.owner {
            Some(owner) => Event::ReadBy {
                owner: owner.clone(),
                name,
                line,
            },
            None => Event::Read { name, line },
        });
    }

    /// Returns whether a name is one of an inner scope here. A class' names are not seen from its functions.
    fn is_inner(&self, name: &str) -> bool {
        for (index, scope) in self.scopes.iter().enumerate().rev() {
            if scope.globals.contains(name) {
                return false;
            }
            let visible = scope.kind != ScopeKind::Class || index + 1 == self.scopes.len();
            if visible && scope.names.contains(name) {
                return true;
            }
        }
        false
    }

    fn bind(&mut self, name: &str) {
        let binding = self
            .scopes
            .iter_mut()
            .rev()
            .find(|scope| scope.kind != ScopeKind::Comprehension);
        match binding {
            Some(scope) if !scope.globals.contains(name) => {
                scope.names.insert(name.to_owned());
            }
            Some(_) | None => self.events.push(Event::Bound {
                name: name.to_owned(),
                line: self.line,
            }),
        }
    }

    fn targets(&mut self, node: Node<'_>, field: &str, depth: u32) {
        let mut cursor = node.walk();
        let all: Vec<Node<'_>> = node.children_by_field_name(field, &mut cursor).collect();
        all.into_iter().for_each(|target| self.bind_all(target, depth));
    }

    /// Gives a value to a target of an assignment, and to each part of one that has several.
    fn bind_all(&mut self, target: Node<'_>, depth: u32) {
        if depth > DEEPEST {
            return;
        }
        match target.kind() {
            "identifier" => {
                self.line = line_of(target);
                self.bind(self.text(target));
            }
            "attribute" | "subscript" | "call" => self.visit(target, depth + 1),
            _ => {
                let mut cursor = target.walk();
                let parts: Vec<Node<'_>> = target.named_children(&mut cursor).collect();
                parts.into_iter().for_each(|part| self.bind_all(part, depth + 1));
            }
        }
    }

    /// The first clause's source is evaluated outside, the names of all clauses belong to the comprehension.
    fn comprehension(&mut self, node: Node<'_>, depth: u32) {
        let mut names = BTreeSet::new();
        let mut cursor = node.walk();
        for clause in node.named_children(&mut cursor) {
            if let Some(left) = clause.child_by_field_name("left") {
                self.collect(left, &mut names, depth);
            }
        }
        self.scopes.push(Scope {
            kind: ScopeKind::Comprehension,
            names,
            globals: BTreeSet::new(),
        });
        let mut cursor = node.walk();
        for part in node.named_children(&mut cursor) {
            if part.kind() == "for_in_clause" {
                self.field(part, "right", depth + 1);
            } else {
                self.visit(part, depth + 1);
            }
        }
        self.scopes.pop();
    }

    fn collect(&self, target: Node<'_>, names: &mut BTreeSet<String>, depth: u32) {
        if target.kind() == "identifier" {
            names.insert(self.text(target).to_owned());
        } else if depth <= DEEPEST && !matches!(target.kind(), "attribute" | "subscript") {
            let mut cursor = target.walk();
            target
                .named_children(&mut cursor)
                .for_each(|part| self.collect(part, names, depth + 1));
        }
    }

    fn defined(&mut self, node: Node<'_>, depth: u32) {
        let name = node
            .child_by_field_name("name")
            .map(|name| self.text(name))
            .unwrap_or_default();
        self.function(node, Some(name), depth);
        self.bind(name);
    }

    /// Reads a function or a lambda: its defaults now, its body when it is called.
    fn function(&mut self, node: Node<'_>, name: Option<&str>, depth: u32) {
        let mut names = BTreeSet::new();
        if let Some(parameters) = node.child_by_field_name("parameters") {
            let mut cursor = parameters.walk();
            let all: Vec<Node<'_>> = parameters.named_children(&mut cursor).collect();
            for parameter in all {
                if parameter.child_by_field_name("value").is_some() {
                    self.field(parameter, "value", depth);
                }
                let own = parameter.child_by_field_name("name");
                let own = own.or_else(|| parameter.named_child(0)).unwrap_or(parameter);
                self.collect(own, &mut names, depth);
            }
        }
        let mut globals = BTreeSet::new();
        if let Some(body) = node.child_by_field_name("body") {
            self.own_names(body, &mut names, &mut globals, depth);
        }
        names.retain(|name| !globals.contains(name));
        self.scopes.push(Scope {
            kind: ScopeKind::Function,
            names,
            globals,
        });
        let outer = self.owner.clone();
        // A function inside a function is called by it, if at all; one without a name may never be.
        self.owner
            .get_or_insert_with(|| name.unwrap_or_default().to_owned());
        let uncertain = std::mem::take(&mut self.uncertain);
        self.field(node, "body", depth);
        self.uncertain = uncertain;
        self.owner = outer;
        self.scopes.pop();
    }

    /// Collects the names that a function's body gives values to anywhere: those are its own from its beginning.
    fn own_names(
        &self,
        node: Node<'_>,
        names: &mut BTreeSet<String>,
        globals: &mut BTreeSet<String>,
        depth: u32,
    ) {
        if depth > DEEPEST {
            return;
        }
        match node.kind() {
            "global_statement" | "nonlocal_statement" => return self.collect(node, globals, depth),
            "function_definition" | "class_definition" => {
                if let Some(name) = node.child_by_field_name("name") {
                    names.insert(self.text(name).to_owned());
                }
                return;
            }
            "lambda" => return,
            "import_statement" | "import_from_statement" => {
                names.extend(self.imported(node).into_iter().map(str::to_owned));
                return;
            }
            "case_pattern" => return self.collect(node, names, depth),
            "assignment" | "augmented_assignment" | "for_statement" => {
                if let Some(left) = node.child_by_field_name("left") {
                    self.collect(left, names, depth);
                }
            }
            "named_expression" => {
                if let Some(name) = node.child_by_field_name("name") {
                    names.insert(self.text(name).to_owned());
                }
            }
            "as_pattern" | "except_clause" => {
                if let Some(alias) = node.child_by_field_name("alias") {
                    self.collect(alias, names, depth);
                }
            }
            _ => {}
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.own_names(child, names, globals, depth + 1);
        }
    }

    fn class(&mut self, node: Node<'_>, depth: u32) {
        self.field(node, "superclasses", depth);
        self.scopes.push(Scope {
            kind: ScopeKind::Class,
            names: BTreeSet::from(["__qualname__".into(), "__module__".into(), "__class__".into()]),
            globals: BTreeSet::new(),
        });
        self.field(node, "body", depth);
        self.scopes.pop();
        if let Some(name) = node.child_by_field_name("name") {
            self.bind(self.text(name));
        }
    }

    fn import(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        if node
            .named_children(&mut cursor)
            .any(|child| child.kind() == "wildcard_import")
        {
            self.events.push(Event::Unknown);
        }
        for name in self.imported(node) {
            self.bind(name);
        }
    }

    /// Returns the names that an import binds: `a` of `import a.b`.
    fn imported(&self, node: Node<'_>) -> Vec<&'s str> {
        let from = node.kind() != "import_statement";
        let mut cursor = node.walk();
        node.children_by_field_name("name", &mut cursor)
            .map(|name| match name.child_by_field_name("alias") {
                Some(alias) => self.text(alias),
                None if from => self.text(name),
                None => self.text(name).split('.').next().unwrap_or_default(),
            })
            .collect()
    }

    fn deleted(&mut self, node: Node<'_>, depth: u32) {
        let mut names = BTreeSet::new();
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        for part in parts {
            self.visit(part, depth + 1);
            self.collect(part, &mut names, depth);
        }
        if self.scopes.is_empty() && self.uncertain == 0 {
            self.events.extend(names.into_iter().map(Event::Deleted));
        }
    }

    /// What is tried and caught need not succeed; what comes after it runs in any case.
    fn tried(&mut self, node: Node<'_>, depth: u32) {
        let mut cursor = node.walk();
        let catches = node
            .named_children(&mut cursor)
            .any(|child| child.kind().starts_with("except"));
        if catches {
            self.uncertainly(|reader| reader.children(node, depth));
        } else {
            self.children(node, depth);
        }
    }

    /// The condition is read in any case; what depends on it may never be.
    fn conditional(&mut self, node: Node<'_>, depth: u32) {
        self.field(node, "condition", depth);
        self.uncertainly(|reader| {
            for field in ["consequence", "body", "alternative"] {
                reader.field(node, field, depth);
            }
        });
    }

    fn matched(&mut self, node: Node<'_>, depth: u32) {
        self.field(node, "subject", depth);
        let Some(body) = node.child_by_field_name("body") else {
            return;
        };
        let mut cursor = body.walk();
        for case in body.named_children(&mut cursor) {
            let mut names = BTreeSet::new();
            let mut inner = case.walk();
            let patterns = case.named_children(&mut inner);
            patterns
                .filter(|child| child.kind() == "case_pattern")
                .for_each(|pattern| self.collect(pattern, &mut names, depth));
            names.iter().for_each(|name| self.bind(name));
            self.uncertainly(|reader| reader.field(case, "consequence", depth));
        }
    }

    fn call(&mut self, node: Node<'_>, depth: u32) {
        const HIDES: [&str; 5] = ["exec", "globals", "run_line_magic", "run_cell_magic", "run_cell"];
        self.children(node, depth);
        let function = node
            .child_by_field_name("function")
            .map(|function| self.text(function))
            .unwrap_or_default();
        let last = function.rsplit('.').next().unwrap_or_default();
        if HIDES.contains(&last) {
            self.events.push(Event::Hidden);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Piece, Reader};
    use super::*;

    fn events(source: &str) -> Vec<Event> {
        let mut found = Vec::new();
        Reader::new().read(source, |piece| match piece {
            Piece::Statements(module) => found.extend(module.names),
            Piece::Foreign | Piece::Broken { .. } | Piece::TooLong { .. } => panic!("{source}: {piece:?}"),
        });
        found
    }

    fn read(source: &str) -> Vec<String> {
        let all = events(source).into_iter();
        all.filter_map(|event| match event {
            Event::Read { name, .. } => (name != "tuple").then_some(name),
            Event::Bound { .. }
            | Event::Deleted(_)
            | Event::ReadBy { .. }
            | Event::MayRead(_)
            | Event::Unknown
            | Event::Hidden => None,
        })
        .collect()
    }

    fn bound(source: &str) -> Vec<String> {
        let all = events(source).into_iter();
        all.filter_map(|event| match event {
            Event::Bound { name, .. } => Some(name),
            Event::Read { .. }
            | Event::Deleted(_)
            | Event::ReadBy { .. }
            | Event::MayRead(_)
            | Event::Unknown
            | Event::Hidden => None,
        })
        .collect()
    }

    #[test]
    fn names_of_inner_scopes_are_not_the_notebooks() {
        for source in [
            "f = lambda N, *K, M=1, **W: N + M + K[0] + W",
            "x = [N for N in (1, 2) if N]",
            "x = {K: V for K, V in ()}",
            "x = tuple(i * j for i in () for j in (i,))",
            "def f(N: int = 1, *rest, key=None, **more):\n    M = N\n    return [M, rest, key, more]",
            "def f():\n    def g():\n        return N\n    N = 1\n    return g",
            "class C:\n    N = 1\n    M = N",
        ] {
            assert_eq!(read(source), Vec::<String>::new(), "{source}");
        }
        assert_eq!(read("f(x=1)\na.b.c = d[e]"), ["f", "d", "e", "a"]);
        assert_eq!(
            read("def f(a=b): pass\n@deco\nclass C(base): pass"),
            ["b", "deco", "base"]
        );
    }

    #[test]
    fn all_that_gives_a_name_a_value_is_seen() {
        for (source, names) in [
            ("a = b = 1", vec!["b", "a"]),
            ("a, (b, *c) = x", vec!["a", "b", "c"]),
            ("for a, b in x: pass", vec!["a", "b"]),
            ("with f() as a, g() as (b, c): pass", vec!["a", "b", "c"]),
            ("try:\n    pass\nexcept E as a:\n    pass", vec!["a"]),
            (
                "import a.b, c as d\nfrom e import f, g as h",
                vec!["a", "d", "f", "h"],
            ),
            ("if (a := 1): b = 2", vec!["a", "b"]),
            ("a: int = 1\nb: int", vec!["a"]),
            ("def f():\n    global a\n    a = 1", vec!["a", "f"]),
            (
                "match x:\n    case [a, {'k': b}]:\n        c = 1",
                vec!["a", "b", "c"],
            ),
            ("x = [a := 1 for i in ()]", vec!["a", "x"]),
        ] {
            assert_eq!(bound(source), names, "{source}");
        }
    }

    #[test]
    fn a_read_that_may_not_happen_or_is_caught_is_not_told() {
        for source in [
            "try:\n    N\nexcept NameError:\n    N = 1",
            "if 1:\n    N",
            "x = N if 1 else 2",
            "1 and N",
        ] {
            assert_eq!(read(source), Vec::<String>::new(), "{source}");
        }
        assert_eq!(
            read("if N:\n    pass\ntry:\n    M\nfinally:\n    pass"),
            ["N", "M"]
        );
    }

    #[test]
    fn names_that_nothing_tells_are_told_as_unknown() {
        assert!(events("from math import *").contains(&Event::Unknown));
        for source in [
            "exec('N = 1')",
            "globals().update(N=1)",
            "get_ipython().run_cell(x)",
        ] {
            assert!(events(source).contains(&Event::Hidden), "{source}");
        }
    }
}
