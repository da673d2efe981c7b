//! Notebook files as Jupyter writes them, and as nobody should.

use std::fs;

use blueproof_diagnostic::Code;
use tempfile::TempDir;

use super::*;

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {},
   "source": "# A title\nand a line"
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "abc",
   "metadata": {"tags": ["parameters", "raises-exception"]},
   "outputs": [{"output_type": "brand_new", "data": {"x": 1e999}}],
   "source": [
    "x = 1\n",
    "\n",
    "y = 2"
   ]
  }
 ],
 "metadata": {"language_info": {"name": "python"}},
 "nbformat": 4,
 "nbformat_minor": 4
}
"##;

fn parse(text: &str) -> Result<Notebook, Code> {
    Notebook::parse("n.ipynb", text.to_owned()).map_err(|errors| errors[0].code)
}

#[test]
fn cells_are_read_with_tags_and_raw_outputs() {
    let notebook = parse(NOTEBOOK).expect("it is a notebook");
    assert_eq!(
        (notebook.minor, notebook.language.as_deref()),
        (4, Some("python"))
    );
    assert_eq!(notebook.cells[0].source, "# A title\nand a line");
    let code = &notebook.cells[1];
    assert_eq!((code.number, code.id.as_deref()), (2, Some("abc")));
    assert_eq!(code.source, "x = 1\n\ny = 2");
    assert!(code.is_tagged(PARAMETERS_TAG) && code.is_tagged(RAISES_TAG) && code.is_stale());
    let outputs: Vec<&str> = notebook.outputs(code).collect();
    assert_eq!(outputs, [r#"{"output_type": "brand_new", "data": {"x": 1e999}}"#]);
}

#[test]
fn a_line_of_a_cell_is_found_in_the_file() {
    let notebook = parse(NOTEBOOK).expect("it is a notebook");
    let lines: Vec<Option<u32>> = (1..=4).map(|line| notebook.place(2, line).line).collect();
    assert_eq!(lines, [Some(15), Some(16), Some(17), Some(17)]);
    assert_eq!(notebook.place(2, 3).source.as_deref(), Some("y = 2"));
    // A source in a single string stands on one line of the file.
    assert_eq!(notebook.place(1, 2).line, Some(6));
    assert_eq!(notebook.place(9, 1).line, None);
}

#[test]
fn parts_of_a_source_need_not_be_lines() {
    let text = "{\"nbformat\": 4, \"cells\": [{\"cell_type\": \"code\", \"source\": [\n\"a\",\n\"b\\nc\",\n\"d\\n\",\n\"\",\n\"e\"\n]}]}";
    let notebook = parse(text).expect("it is a notebook");
    assert_eq!(notebook.cells[0].source, "ab\ncd\ne");
    let lines: Vec<Option<u32>> = (1..=3).map(|line| notebook.place(1, line).line).collect();
    assert_eq!(lines, [Some(2), Some(3), Some(6)]);
}

#[test]
fn reading_does_not_change_the_file() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join("n.ipynb");
    fs::write(&path, NOTEBOOK).expect("files can be written");
    Notebook::read(&path).expect("it is a notebook");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), NOTEBOOK);
}

#[test]
fn pythons_numbers_that_json_has_not_are_read_as_nothing() {
    let text = r#"{"nbformat": 4, "metadata": {"x": [NaN,-Infinity]}, "cells": [{"cell_type": "code", "source": "NaN, \"-Infinity\"", "execution_count": NaN, "outputs": [{"data": {"y": [1,NaN, Infinity]}}]}]}"#;
    let notebook = parse(text).expect("Jupyter reads it");
    let cell = &notebook.cells[0];
    assert_eq!(
        (cell.source.as_str(), cell.execution_count),
        ("NaN, \"-Infinity\"", None)
    );
    let outputs: Vec<serde_json::Value> = notebook
        .outputs(cell)
        .map(|output| serde_json::from_str(output).expect("it is JSON"))
        .collect();
    assert_eq!(outputs, [serde_json::json!({"data": {"y": [1, null, null]}})]);
}

#[test]
fn a_mistake_in_a_file_with_pythons_numbers_is_told_where_it_is() {
    for (text, column) in [
        (r#"{"nbformat": 4, "x": [NaN,NaN,-Infinity], "y": nan}"#, 49),
        (r#"{"nbformat": 4, "x": [NaN], "y": -NaN}"#, 35),
        (r#"{"nbformat": 4, "x": [NaN], "y": NaNs}"#, 34),
    ] {
        let refused = Notebook::parse("n.ipynb", text.to_owned()).expect_err("it is no JSON");
        assert_eq!(refused[0].code, Code::NotebookSyntax);
        let place = refused[0].place.as_ref().expect("it has one");
        assert_eq!((place.line, place.column), (Some(1), Some(column)), "{text}");
        assert_eq!(place.source.as_deref(), Some(text));
    }
    let refused = Notebook::parse("n.ipynb", r#"{"nbformat": "4", "cells": []}"#.to_owned());
    let said = refused.expect_err("4 is no text").remove(0).message;
    assert!(said.ends_with("its nbformat is no whole number"), "{said}");
}

#[test]
fn hostile_files_are_refused_with_a_code() {
    let deep = format!("{{\"nbformat\": 4, \"cells\": {}", "[".repeat(200_000));
    let deep_metadata = format!(
        "{{\"nbformat\": 4, \"cells\": [], \"metadata\": {{\"blueproof\": {}{}}}}}",
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let lone = r#"{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\ud800"}]}"#;
    for (text, code) in [
        ("", Code::NotebookSyntax),
        ("[]", Code::NotebookSyntax),
        ("null", Code::NotebookSyntax),
        ("{}", Code::NotebookSyntax),
        (&NOTEBOOK[..200], Code::NotebookSyntax),
        (&deep, Code::NotebookSyntax),
        (
            "version https://git-lfs.github.com/spec/v1\n",
            Code::NotebookSyntax,
        ),
        (&deep_metadata, Code::NotebookShape),
        (r#"{"nbformat": 3, "worksheets": []}"#, Code::NotebookFormat),
        (r#"{"nbformat": 5, "cells": []}"#, Code::NotebookFormat),
        (r#"{"nbformat": 4}"#, Code::NotebookShape),
        (r#"{"nbformat": 4, "cells": {}}"#, Code::NotebookShape),
        (r#"{"nbformat": 4, "cells": [1]}"#, Code::NotebookShape),
        (r#"{"nbformat": 4, "cells": [null]}"#, Code::NotebookShape),
        (
            r#"{"nbformat": 4, "cells": [["code", null, null, "x", null, null]]}"#,
            Code::NotebookShape,
        ),
        (
            r#"{"nbformat": 4, "cells": [{"cell_type": "code"}]}"#,
            Code::NotebookShape,
        ),
        (
            r#"{"nbformat": 4, "cells": [{"cell_type": "magic", "source": ""}]}"#,
            Code::NotebookShape,
        ),
        (
            r#"{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}"#,
            Code::NotebookShape,
        ),
        (
            r#"{"nbformat": 4, "cells": [], "cells": []}"#,
            Code::NotebookSyntax,
        ),
        (lone, Code::NotebookShape),
    ] {
        assert_eq!(
            parse(text).expect_err("it is refused"),
            code,
            "{}",
            &text[..text.len().min(80)]
        );
    }
}

#[test]
fn a_file_that_is_not_text_is_refused_at_its_byte() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join("n.ipynb");
    fs::write(&path, b"{\n\"nbformat\": \xff4}").expect("files can be written");
    let errors = Notebook::read(&path).expect_err("it is not UTF-8");
    assert_eq!(errors[0].code, Code::NotebookSyntax);
    assert_eq!(errors[0].place.as_ref().and_then(|place| place.line), Some(2));
}

#[test]
fn a_folder_and_a_missing_file_are_no_notebooks() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    for path in [folder.path().to_owned(), folder.path().join("none.ipynb")] {
        let errors = Notebook::read(&path).expect_err("there is no file");
        assert_eq!(errors[0].code, Code::FileMissing);
    }
}

#[test]
fn a_notebook_of_more_than_fifty_mebibytes_is_refused_unread() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("n.ipynb");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len((50 << 20) + 1).expect("it may have holes");
    let refused = Notebook::read(&path).expect_err("it is too large");
    assert_eq!(refused[0].code, Code::FileTooLarge);
    assert!(refused[0].message.ends_with("is larger than 50Mi"), "{refused:?}");
}
