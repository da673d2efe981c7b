//! What the kernel tells about itself when it is asked from inside: see `probe.py`.
//!
//! A notebook may break any of it. Whatever does not answer, or answers nonsense, is as if it had not been asked.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::exception::Exception;

/// The user expression that each cell is sent with.
pub(crate) const AFTER: &str = "__import__('sys').modules['_blueproof_probe'].after()";
/// The user expression that the last cell is sent with.
pub(crate) const AFTER_LAST: &str = "__import__('sys').modules['_blueproof_probe'].after_last()";
/// The user expression that is asked after an exception.
pub(crate) const EXPLAIN: &str = "__import__('sys').modules['_blueproof_probe'].explain()";

/// The user expression that has the kernel leave its descriptors 1 and 2 to us, and answers whether it does.
pub(crate) const LEAVE_OUTPUT: &str = "__import__('sys').modules['_blueproof_probe'].leave_output()";

/// What a cell left behind.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Aftermath {
    /// The exception that left the cell, then what it came from.
    pub(crate) chain: Vec<Exception>,
    /// What failed without stopping the cell.
    pub(crate) silent: Vec<Silent>,
    /// Whether the notebook has copied its kernel's process so far: what a copy prints takes a way through the kernel.
    pub(crate) forked: bool,
    /// Whether the notebook has told its kernel to end.
    #[serde(default)]
    pub(crate) leaves: bool,
}

/// A program that failed without stopping its cell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Silent {
    /// How it was started.
    pub(crate) what: SilentKind,
    /// Its command line; the name of a worker; nothing for a copy of the kernel's process.
    pub(crate) command: String,
    /// Its exit status; negative for a signal.
    pub(crate) status: i64,
    /// Its process id, where one is known.
    #[serde(default)]
    pub(crate) pid: Option<u32>,
    /// The end of what it printed, where the notebook has it.
    #[serde(default)]
    pub(crate) said: Option<String>,
}

/// How a program was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SilentKind {
    /// By a line that begins with `!`.
    Shell,
    /// By `os.system`.
    System,
    /// No program: the magic `%cd`, which did not change the folder.
    Folder,
    /// No program: a task of asyncio that ended with an exception, for which nothing asked.
    Task,
    /// No program: a future of `concurrent.futures`, likewise.
    Future,
    /// By the `subprocess` module.
    Child,
    /// By the `subprocess` module, and the notebook has not waited for it.
    Background,
    /// By the `multiprocessing` module, or what is built on it.
    Worker,
    /// By `os.fork`: a copy of the kernel's process.
    Copy,
}

/// Returns the code that puts the probe into a kernel, without a trace in the notebook's own names. What lies in `root` is
/// the notebook's own.
pub(crate) fn install(root: &Path) -> String {
    let root = python_string(&format!("{}/", root.display()));
    let source = python_string(include_str!("probe.py"));
    format!(
        "(lambda m: (__import__('sys').modules.__setitem__('_blueproof_probe', m), m.__dict__.update(_root={root}), \
         exec({source}, m.__dict__)))\
         (type(__import__('sys'))('_blueproof_probe')) and None"
    )
}

/// Returns the user expression that asks which requirements the environment satisfies.
pub(crate) fn satisfied(requirements: &[String]) -> String {
    let list: Vec<String> = requirements.iter().map(|text| python_string(text)).collect();
    format!(
        "__import__('sys').modules['_blueproof_probe'].satisfied([{}])",
        list.join(",")
    )
}

/// Reads the answer to the only user expression in `reply`.
pub(crate) fn answer<T: for<'de> Deserialize<'de>>(reply: &Value) -> Option<T> {
    let expressions = reply.get("user_expressions")?.as_object()?;
    let text = expressions
        .values()
        .next()?
        .pointer("/data/text~1plain")?
        .as_str()?;
    let hex = text.trim_matches('\'');
    let bytes: Option<Vec<u8>> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect();
    serde_json::from_slice(&bytes?).ok()
}

/// Writes a Python string. What JSON escapes in a string, Python reads alike.
pub(crate) fn python_string(text: &str) -> String {
    serde_json::to_string(text)
        .expect("a string is JSON")
        .replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_nonsense_is_no_answer() {
        let reply = |text: &str| serde_json::json!({"user_expressions": {"a": {"status": "ok", "data": {"text/plain": text}}}});
        assert_eq!(answer(&reply("'5b747275655d'")), Some(vec![true]));
        for nonsense in ["", "'5b7'", "'zz'", "None", "'5b'", "'ü1'"] {
            assert_eq!(answer::<Vec<bool>>(&reply(nonsense)), None, "{nonsense}");
        }
    }
}
