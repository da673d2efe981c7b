//! Python as it stands in notebook cells, with IPython's additions, as far as reading facts from it needs.
//!
//! The parser is tree-sitter's: it takes anything, keeps its place, and does not recurse, so that no cell can bring
//! it down. Its nodes stop here; what the rest sees is a small tree of our own.

mod convert;
mod magic;
pub(crate) mod syntax;

use syntax::Module;

/// What the source of a code cell is.
#[derive(Debug)]
pub(crate) enum Cell {
    /// Python.
    Python(Module),
    /// Something else, by a cell magic such as `%%html`.
    Foreign,
    /// Something that claims to be Python and is not; the line at which that shows, counted from one.
    Broken { line: u32 },
}

/// Reads the source of a code cell.
pub(crate) fn parse(source: &str) -> Cell {
    let prepared = match magic::prepare(source) {
        magic::Prepared::Python(prepared) => prepared,
        magic::Prepared::Foreign => return Cell::Foreign,
    };
    match convert::module(&prepared.python) {
        Ok(mut module) => {
            module.shell = prepared.shell;
            Cell::Python(module)
        }
        Err(line) => Cell::Broken { line },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(source: &str) -> Module {
        match parse(source) {
            Cell::Python(module) => module,
            Cell::Foreign => panic!("foreign: {source}"),
            Cell::Broken { line } => panic!("broken at {line}: {source}"),
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
        assert!(matches!(parse("%%html\n<b>x</b>"), Cell::Foreign));
        assert!(matches!(parse("%%time\nx = 1"), Cell::Python(module) if module.statements.len() == 1));
        let shell = module("%%bash\npip install a\nkubectl get pods");
        assert_eq!(shell.shell[0], (2, "!pip install a".into()));
    }

    #[test]
    fn what_is_no_python_is_told_with_its_line() {
        assert!(matches!(
            parse("x = 1\nthis is no python"),
            Cell::Broken { line: 2 }
        ));
        assert!(matches!(parse("def f(:\n  pass"), Cell::Broken { .. }));
    }

    #[test]
    fn no_cell_brings_the_parser_down() {
        for source in [
            "[".repeat(50_000),
            "-".repeat(50_000),
            format!("x{}", ".a".repeat(50_000)),
            "\u{0}\u{fe0f}".into(),
        ] {
            parse(&source);
        }
        let nested = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(matches!(parse(&nested), Cell::Python(_)));
    }
}
