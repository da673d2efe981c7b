//! Python as it stands in notebook cells, with IPython's additions, as far as reading facts from it needs.
//!
//! The parser is tree-sitter's: it takes anything, keeps its place, and does not recurse, so that no cell can bring
//! it down. Its nodes stop here; what the rest sees is a small tree of our own.

mod convert;
mod magic;
pub(crate) mod names;
pub(crate) mod syntax;
mod tree;

use std::{
    ops::ControlFlow,
    sync::{Arc, mpsc},
    thread,
};

use syntax::Module;
use tree::Part;
use tree_sitter::{Parser, Tree};

/// How much of a cell is read at once, in bytes. A syntax tree takes fifty times as much memory as its source.
const PART: usize = 32 << 10;
/// The longest statement that is read. What is longer is data.
const LONGEST_STATEMENT: usize = 256 << 10;

/// A piece of a cell, as it is read.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Some of its statements.
    Statements(Module),
    /// Something else, by a cell magic such as `%%html`.
    Foreign,
    /// Something that claims to be Python and is not; the line at which that shows, counted from one.
    Broken { line: u32 },
    /// A statement that is too long to be read, and the line on which it begins.
    TooLong { line: u32 },
}

/// How many batches of parsed pieces may wait to be read.
const AHEAD: usize = 2;

/// Reads the source of code cells, and hands the pieces of each to `each` with the place of its cell, in their order. Each
/// cell has at least one piece. Another thread parses ahead, by no more than a few times [`PART`].
pub(crate) fn read_all(sources: &[&str], each: impl FnMut(usize, Piece)) {
    read_all_by(thread::Builder::new(), sources, each);
}

fn read_all_by(parser: thread::Builder, sources: &[&str], mut each: impl FnMut(usize, Piece)) {
    let (ahead, batches) = mpsc::sync_channel(AHEAD);
    let is_alone = thread::scope(|scope| {
        let started = parser.spawn_scoped(scope, move || parse_all(sources, &ahead));
        for (nth, parsed) in batches.into_iter().flatten() {
            each(nth, parsed.piece());
        }
        started.is_err()
    });
    // The system gives no more threads.
    if is_alone {
        let mut reader = Reader::new();
        for (nth, source) in sources.iter().enumerate() {
            reader.read(source, |piece| each(nth, piece));
        }
    }
}

/// Parses all cells, in batches of about [`PART`]: handing over each small cell by itself takes longer than parsing it.
fn parse_all(sources: &[&str], ahead: &mpsc::SyncSender<Vec<(usize, Parsed)>>) {
    let mut reader = Reader::new();
    let (mut batch, mut size) = (Vec::new(), 0);
    for (nth, source) in sources.iter().enumerate() {
        reader.parse(source, |length, parsed| {
            batch.push((nth, parsed));
            size += length;
            if size >= PART {
                size = 0;
                // Nobody listens any more only where the other thread panics.
                let _ = ahead.send(std::mem::take(&mut batch));
            }
        });
    }
    let _ = ahead.send(batch);
}

/// Reads the source of code cells.
pub(crate) struct Reader {
    parser: Parser,
}

/// A piece of a cell that has been parsed, and not been converted yet.
enum Parsed {
    Statements {
        tree: Tree,
        python: Arc<str>,
        shell: Vec<(u32, String)>,
    },
    Foreign,
    Broken {
        line: u32,
    },
    TooLong {
        line: u32,
    },
}

impl Parsed {
    fn piece(self) -> Piece {
        match self {
            Self::Statements { tree, python, shell } => {
                let module = convert::module(&tree, &python);
                Piece::Statements(Module { shell, ..module })
            }
            Self::Foreign => Piece::Foreign,
            Self::Broken { line } => Piece::Broken { line },
            Self::TooLong { line } => Piece::TooLong { line },
        }
    }
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self {
            parser: tree::parser(),
        }
    }

    /// Reads a cell and hands its pieces to `each`, one after the other, so that only one is there at a time.
    pub(crate) fn read(&mut self, source: &str, mut each: impl FnMut(Piece)) {
        self.parse(source, |_, parsed| each(parsed.piece()));
    }

    /// Parses a cell and hands its pieces to `each`, with the length of each.
    fn parse(&mut self, source: &str, mut each: impl FnMut(usize, Parsed)) {
        let plain = match magic::prepare(source) {
            magic::Prepared::Python(plain) => plain,
            magic::Prepared::Foreign => return each(source.len(), Parsed::Foreign),
        };
        let mut shell = plain.shell;
        let python: Arc<str> = plain.python.into();
        for part in parts(&python, &plain.starts) {
            let length = part.end - part.start;
            match self.parse_part(&python, part, &mut shell) {
                ControlFlow::Break(broken) => return each(length, broken),
                ControlFlow::Continue(parsed) => each(length, parsed),
            }
        }
    }

    fn parse_part(
        &mut self,
        python: &Arc<str>,
        part: Part,
        shell: &mut Vec<(u32, String)>,
    ) -> ControlFlow<Parsed, Parsed> {
        if part.end - part.start > LONGEST_STATEMENT {
            return ControlFlow::Continue(Parsed::TooLong { line: part.line });
        }
        match tree::parse(&mut self.parser, python, part) {
            Ok(tree) => ControlFlow::Continue(Parsed::Statements {
                tree,
                python: Arc::clone(python),
                shell: std::mem::take(shell),
            }),
            Err(line) => ControlFlow::Break(Parsed::Broken { line }),
        }
    }
}

/// Cuts a cell where its statements begin, into parts of about [`PART`]; a statement of more is one by itself.
fn parts(python: &str, starts: &[(usize, u32)]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part {
        start: 0,
        end: python.len(),
        line: 1,
    };
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([python.len()]);
    for ((at, line), end) in starts.iter().copied().zip(ends) {
        if at > part.start && end - part.start > PART {
            part.end = at;
            parts.push(part);
            part = Part {
                start: at,
                end: python.len(),
                line,
            };
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cells_are_read_as_each_is_by_itself_and_in_their_order() {
        let long = "x = [1, 2, 3]\n".repeat(PART / 10);
        let huge = format!("data = [{}]", "1, ".repeat(LONGEST_STATEMENT / 2));
        let kinds = [
            "x = 1\n!ls",
            "",
            "%%html\n<b>",
            "x = = 1",
            "print 'x'",
            &long,
            &huge,
        ];
        let sources: Vec<&str> = kinds.into_iter().cycle().take(500).collect();
        let mut together = Vec::new();
        read_all(&sources, |nth, piece| together.push((nth, format!("{piece:?}"))));
        let mut apart = Vec::new();
        for (nth, source) in sources.iter().enumerate() {
            apart.extend(
                pieces(source)
                    .into_iter()
                    .map(|piece| (nth, format!("{piece:?}"))),
            );
        }
        assert!(together == apart);
    }

    #[test]
    fn cells_are_read_where_no_thread_can_be_started_too() {
        let sources = ["x = 1\n!ls", "x = = 1"];
        let no_thread = thread::Builder::new().stack_size(1 << 60);
        let mut read = Vec::new();
        read_all_by(no_thread, &sources, |nth, piece| {
            read.push((nth, format!("{piece:?}")));
        });
        let one = |nth: usize, piece: &Piece| (nth, format!("{piece:?}"));
        let expected = [one(0, &parse(sources[0])), one(1, &parse(sources[1]))];
        assert_eq!(read, expected);
    }

    fn pieces(source: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        Reader::new().read(source, |piece| pieces.push(piece));
        pieces
    }

    fn parse(source: &str) -> Piece {
        let mut pieces = pieces(source);
        assert_eq!(pieces.len(), 1, "{source}");
        pieces.remove(0)
    }

    fn module(source: &str) -> Module {
        match parse(source) {
            Piece::Statements(module) => module,
            other @ (Piece::Foreign | Piece::Broken { .. } | Piece::TooLong { .. }) => {
                panic!("{other:?}: {source}")
            }
        }
    }

    #[test]
    fn magics_do_not_break_a_cell() {
        let source = "%matplotlib inline\n!pip install -q \\\n  torch\nx = !ls\ny = 1\nlen?\nif y:\n    !kubectl get pods\n";
        let module = module(source);
        let shell: Vec<_> = module
            .shell
            .iter()
            .map(|(line, text)| (*line, text.as_str()))
            .collect();
        assert_eq!(
            shell,
            [
                (1, "%matplotlib inline"),
                (2, "!pip install -q torch"),
                (4, "!ls"),
                (8, "!kubectl get pods"),
            ]
        );
        assert_eq!(module.statements.len(), 4 + 2);
    }

    #[test]
    fn what_looks_like_a_magic_inside_a_string_or_brackets_is_none() {
        let module = module("x = \"\"\"\n!pip install a\n%b\n\"\"\"\ny = (10\n  % 3)\n");
        assert_eq!(module.shell, []);
        assert_eq!(module.statements.len(), 2);
    }

    #[test]
    fn a_cell_magic_says_what_the_cell_is() {
        assert!(matches!(parse("%%html\n<b>x</b>"), Piece::Foreign));
        assert!(matches!(parse("%%time\nx = 1"), Piece::Statements(module) if module.statements.len() == 1));
        let shell = module("%%bash\npip install a\nkubectl get pods");
        assert_eq!(shell.shell[0], (2, "!pip install a".into()));
    }

    #[test]
    fn what_is_no_python_is_told_with_its_line() {
        assert!(matches!(
            parse("x = 1\nthis is no python"),
            Piece::Broken { line: 2 }
        ));
        assert!(matches!(parse("def f(:\n  pass"), Piece::Broken { .. }));
    }

    #[test]
    fn no_cell_brings_the_parser_down() {
        for source in [
            "[".repeat(50_000),
            "-".repeat(50_000),
            format!("x{}", ".a".repeat(50_000)),
            "\u{0}\u{fe0f}".into(),
        ] {
            pieces(&source);
        }
        let nested = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(matches!(parse(&nested), Piece::Statements(_)));
    }

    #[test]
    fn a_long_cell_is_read_in_parts_that_know_their_lines() {
        let line = "value = compute(1, 'text')\n";
        let source = format!("{}@decorated\ndef f():\n    pass\nlast\n", line.repeat(10_000));
        let mut lines = Vec::new();
        let pieces = pieces(&source);
        assert!(pieces.len() > 1);
        for piece in pieces {
            let Piece::Statements(module) = piece else {
                panic!("{piece:?}");
            };
            for statement in &module.statements {
                if let syntax::Statement::Assign { target: expr, .. } | syntax::Statement::Expr(expr) =
                    statement
                {
                    lines.push(expr.line);
                }
            }
        }
        assert_eq!(lines, (1..=10_000).chain([10_004]).collect::<Vec<_>>());
        let broken = format!("{}this is no python", line.repeat(10_000));
        let last = self::pieces(&broken).pop();
        assert!(matches!(last, Some(Piece::Broken { line: 10_001 })), "{last:?}");
    }

    #[test]
    fn a_statement_that_is_data_is_not_read_and_the_rest_is() {
        let source = format!("a = 1\ndata = [{}]\nb = 2", "1, ".repeat(200_000));
        let kinds: Vec<_> = pieces(&source)
            .iter()
            .map(|piece| matches!(piece, Piece::TooLong { line: 2 }))
            .collect();
        assert_eq!(kinds, [false, true, false]);
    }

    #[test]
    fn statements_of_python_2_are_no_python() {
        assert!(matches!(parse("x = 1\nprint 'x'"), Piece::Broken { line: 2 }));
    }
}
