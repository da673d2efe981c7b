//! What went wrong when a kernel ended whose cells had all run.

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use crate::{
    exception::printed,
    executor::{Finish, Leaving},
    process::End,
    text::shown,
};

/// How Python begins to tell of an exception in what was registered for its end; the second is of 3.9 and older.
const AT_EXIT: [&str; 2] = [
    "Exception ignored in atexit callback",
    "Error in atexit._run_exitfuncs",
];

/// Returns what is said of a kernel that did not end as it should. The cells had run by then, and their verdict stands.
pub(crate) fn parting(finish: &Finish) -> Option<Diagnostic> {
    let (cell, _) = finish
        .ends
        .last()
        .filter(|_| finish.last.is_none() && !finish.is_stopped)?;
    let message = match finish.leaving? {
        Leaving::Ended(End::Exited(0)) => at_exit(&finish.parting)?,
        Leaving::Ended(end) => format!(
            "after the last cell, the kernel ended with {end}{}",
            why(&finish.parting)
        ),
        Leaving::Late(grace) => format!(
            "after the last cell, the kernel did not end within {} s and was ended by force: a thread or a process of \
             the notebook, or what it registered for the end, still ran",
            grace.as_secs()
        ),
    };
    let diagnostic = Diagnostic::warning(Code::FailedInSilence, message);
    Some(diagnostic.at(SourceLocation::file(format!("cell {cell}"))))
}

fn at_exit(text: &str) -> Option<String> {
    let plain = shown(text);
    let at = AT_EXIT.iter().find_map(|words| plain.find(words))?;
    Some(format!(
        "what the notebook registered for its end (atexit) raised an exception{}",
        why(&plain[at..])
    ))
}

fn why(text: &str) -> String {
    printed::last_error(text)
        .map(|error| format!(": {error}"))
        .unwrap_or_default()
}
