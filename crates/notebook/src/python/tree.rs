//! Trees of tree-sitter: made of source that is Python, and asked where something stands.

use tree_sitter::{Node, Parser, Point, Range, Tree};

/// A part of a cell that is read by itself: whole statements, from one byte to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The line on which it begins, counted from one.
    pub(super) line: u32,
}

/// Returns a parser of Python. It can be used again and again.
pub(super) fn parser() -> Parser {
    let mut parser = Parser::new();
    let language = tree_sitter_python::LANGUAGE.into();
    parser
        .set_language(&language)
        .expect("grammar and library are pinned together");
    parser
}

/// Parses Python, or returns the line at which it is none.
pub(super) fn parse(parser: &mut Parser, source: &str, part: Part) -> Result<Tree, u32> {
    parser
        .set_included_ranges(&[part.range()])
        .expect("a single range overlaps with none");
    let tree = parser
        .parse(source, None)
        .expect("a parser with a language and no time limit returns a tree");
    let root = tree.root_node();
    if root.has_error() {
        return Err(first_error(root));
    }
    match python_2(root) {
        Some(line) => Err(line),
        None => Ok(tree),
    }
}

/// Returns the line on which a node begins, counted from one.
pub(super) fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

impl Part {
    fn range(self) -> Range {
        Range {
            start_byte: self.start,
            end_byte: self.end,
            start_point: Point::new(self.line as usize - 1, 0),
            end_point: Point::new(usize::MAX, usize::MAX),
        }
    }
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

/// Returns the line of a statement of the module that only Python 2 knows, which tree-sitter takes too.
fn python_2(root: Node<'_>) -> Option<u32> {
    let mut cursor = root.walk();
    let all = root.named_children(&mut cursor);
    let mut old = all.filter(|child| matches!(child.kind(), "print_statement" | "exec_statement"));
    old.next().map(line_of)
}
