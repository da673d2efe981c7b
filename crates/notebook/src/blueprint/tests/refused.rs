//! What no run would start is refused before one is asked for.

use super::*;

#[test]
fn amounts_that_cannot_be_counted_are_refused() {
    assert_eq!(
        codes("workload: {nodes: 4000000000, perNode: {gpu: 4000000000}}"),
        [Code::TooMuch]
    );
    assert_eq!(codes("workload: {nodes: 0}"), [Code::BadValue]);
    let zero = "parameters: {n: {type: int, default: 0}}\nworkload: {nodes: '{{n}}'}";
    assert_eq!(codes(zero), [Code::BadValue]);
}

#[test]
fn nobody_tries_again_without_end() {
    for (retries, is_valid) in [
        ("{infrastructure: 10}", true),
        ("{infrastructure: 11}", false),
        ("{blueprint: 4294967295}", false),
    ] {
        let folder = folder(&format!("retries: {retries}"));
        let loaded = Blueprint::load(folder.path());
        assert_eq!(loaded.is_ok(), is_valid, "{retries}");
    }
}

#[test]
fn what_a_run_would_refuse_is_refused_before() {
    for (spec, code) in [
        ("env: {requirements: ['numpy>>2']}", Code::Requirement),
        ("env: {requirements: ['./local.whl']}", Code::Requirement),
        ("env: {python: '3.7'}", Code::PythonVersion),
        ("env: {python: '2.7'}", Code::PythonVersion),
        ("driver: {memory: 2}", Code::BadValue),
        ("workload: {perNode: {memory: 4}}", Code::BadValue),
        ("profiles: {small: {driver: {memory: 1}}}", Code::BadValue),
    ] {
        assert_eq!(codes(spec), [code], "{spec}");
    }
    let error = &errors("driver: {memory: 2}")[0];
    assert_eq!(
        error.message,
        "2 bytes of memory are too few for a Python to start"
    );
    assert_eq!(error.hints, ["write the unit: 2Gi"]);
    assert_eq!(error.place.as_ref().and_then(|place| place.line), Some(5));
}

#[test]
fn a_notebook_in_which_nothing_would_run_is_refused_before_unless_it_is_meant() {
    for source in ["", "# print(1)", "%%script false --no-raise-error\\nprint(1)"] {
        for (spec, is_valid) in [("", false), ("allowEmpty: true", true)] {
            let folder = folder(spec);
            let notebook = NOTEBOOK.replace("print(1)", source);
            write(folder.path(), "t.ipynb", &notebook);
            let found = Blueprint::load(folder.path()).err().unwrap_or_default();
            let found: Vec<Code> = found.into_iter().map(|error| error.code).collect();
            let expected: &[Code] = if is_valid { &[] } else { &[Code::NothingRan] };
            assert_eq!(found, expected, "{source:?} {spec:?}");
        }
    }
}

#[test]
fn a_script_block_that_a_run_would_refuse_is_refused_with_its_cell() {
    for (block, code) in [
        ("# dependencies = ['./x']", Code::Requirement),
        ("# requires-python = '<3.7'", Code::PythonVersion),
    ] {
        let folder = folder("");
        let source = format!("# /// script\\n{block}\\n# ///");
        let cell = format!(r#"{{"cell_type": "code", "source": "{source}"}}"#);
        write(
            folder.path(),
            "t.ipynb",
            &NOTEBOOK.replace("cells\": [", &format!("cells\": [{cell},")),
        );
        let loaded = Blueprint::load(folder.path()).expect("the blueprint itself has no mistakes");
        let errors = loaded.resolve(None, &[]).expect_err(block);
        assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), [code]);
    }
}

#[test]
fn of_a_notebook_that_cannot_be_read_nothing_else_is_said() {
    for text in ["", "{", "[]", r#"{"nbformat": 3, "worksheets": []}"#] {
        let folder = folder("parameters: {n: {type: int, default: 1}}");
        write(folder.path(), "t.ipynb", text);
        let errors = Blueprint::load(folder.path()).expect_err(text);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_ne!(errors[0].code, Code::NothingRan);
    }
}

#[test]
fn a_parameter_is_called_as_a_variable_can_be() {
    for (name, is_valid) in [
        ("match", true),
        ("class_", true),
        ("größe", true),
        ("class", false),
        ("None", false),
        ("a b", false),
        ("1a", false),
    ] {
        let folder = folder(&format!("parameters: {{'{name}': {{type: int, default: 1}}}}"));
        let found = Blueprint::load(folder.path()).err().unwrap_or_default();
        let found: Vec<Code> = found.into_iter().map(|error| error.code).collect();
        assert_eq!(found.is_empty(), is_valid, "{name}: {found:?}");
    }
}

#[test]
fn a_missing_notebook_is_told_at_the_line_that_names_it() {
    let folder = folder("");
    fs::remove_file(folder.path().join("t.ipynb")).expect("it is there");
    let errors = Blueprint::load(folder.path()).expect_err("it is gone");
    let [missing] = &errors[..] else {
        panic!("{errors:?}");
    };
    assert_eq!(missing.code, Code::FileMissing);
    assert_eq!(missing.place.as_ref().and_then(|place| place.line), Some(4));
    assert!(missing.hints[0].contains("the folder of the blueprint"));
}

#[test]
fn a_lock_that_no_run_takes_is_refused_before_it() {
    let utf_16: Vec<u8> = "six==1.17.0".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let rows: [(&[u8], &str); 6] = [
        (b"-r base.txt\n", "leads to another file"),
        (b"-e .\n", "leads to another file"),
        (b"./local.whl\n", "is not a requirement"),
        (b"tabulate==0.9.0 junk\n", "is not a requirement"),
        (&utf_16, "is not text in UTF-8"),
        (b"six==1.17.0 \\\n  --hash=sha256:aa\n", ""),
    ];
    for (lock, says) in rows {
        let folder = folder("env: {lock: r.txt}");
        fs::write(folder.path().join("r.txt"), lock).expect("files can be written");
        let found = match Blueprint::load(folder.path()) {
            Ok(loaded) => loaded.resolve(None, &[]).err().unwrap_or_default(),
            Err(found) => found,
        };
        assert_eq!(found.is_empty(), says.is_empty(), "{says}: {found:?}");
        assert!(
            found.iter().all(|error| error.code == Code::LockFile),
            "{found:?}"
        );
        assert!(
            found.iter().all(|error| error.message.contains(says)),
            "{found:?}"
        );
    }
}
