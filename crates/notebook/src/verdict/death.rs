//! The verdict on a kernel that ended while a cell ran: how, and what its processes said last.

use blueproof_core::domain::{Failure, FailureClass};
use blueproof_diagnostic::{Code, Diagnostic};

use super::{Facts, hints, in_cell, place::line_in_source, tail};
use crate::{exception::printed, process::End, text::shown};

/// So many of the last lines are shown.
const LAST_LINES: usize = 5;

/// What Python's fault handler calls the signals that it tells of. A signal is named without it, too.
const FAULTS: [&str; 5] = [
    "Segmentation fault",
    "Aborted",
    "Bus error",
    "Floating-point exception",
    "Illegal instruction",
];

/// How compiled code begins to say why it gives up.
const GIVES_UP: [&str; 12] = [
    "terminate called",
    "Fatal Python error: ",
    "libc++abi: ",
    "*** stack smashing detected",
    "*** buffer overflow detected",
    "corrupted ",
    "double free",
    "free(): ",
    "malloc(): ",
    "munmap_chunk(): ",
    "realloc(): ",
    "CUDA error",
];

/// What a kernel that is gone had said, and where it was.
#[derive(Debug, Default, PartialEq, Eq)]
struct LastWords {
    /// The last lines, the fault handler's own left out.
    lines: Vec<String>,
    /// The line of the cell that ran, where the fault handler named it.
    line: Option<u32>,
}

/// Returns the failure that the kernel's end is.
pub(super) fn kernel_ended(facts: &Facts<'_>, end: End) -> Failure {
    let message = match end {
        End::Exited(_) => format!("the kernel ended in this cell, with {end}"),
        End::Killed(_) => format!("the kernel was killed in this cell, by {end}"),
    };
    let mut failure = ended(facts, &message);
    failure
        .diagnostic
        .hints
        .splice(0..0, hints::kernel_end(facts, end));
    failure
}

/// Returns the failure that it is when nobody saw how the kernel ended.
pub(super) fn kernel_lost(facts: &Facts<'_>) -> Failure {
    ended(facts, "the kernel could no longer be reached")
}

fn ended(facts: &Facts<'_>, message: &str) -> Failure {
    let last = LastWords::of(&facts.finish.written);
    let why = last.lines.iter().find(|line| gives_up(line)).cloned();
    let why = why.or_else(|| printed::last_error(&last.lines.join("\n")));
    let message = why
        .as_ref()
        .map_or(message.to_owned(), |why| format!("{message}: {why}"));
    let mut diagnostic = Diagnostic::error(Code::KernelEnded, message);
    diagnostic.causes = last.lines;
    if diagnostic.causes.is_empty()
        && let Some(printed) = LastWords::of(tail(facts)).lines.pop()
    {
        diagnostic = diagnostic.because(format!("the last that it printed: {printed}"));
    }
    let log = facts.kernel_log;
    if log.metadata().is_ok_and(|about| about.len() > 0) {
        diagnostic = diagnostic.hint(format!(
            "all that the kernel's processes wrote is in {}",
            log.display()
        ));
    }
    let line = last
        .line
        .and_then(|line| line_in_source(&facts.cell.source, line, None));
    in_cell(facts, FailureClass::Notebook, diagnostic, line)
}

impl LastWords {
    fn of(text: &str) -> Self {
        let plain = shown(text);
        let lines: Vec<&str> = plain.lines().filter(|line| !line.trim().is_empty()).collect();
        let fault = lines.iter().rposition(|line| is_fault(line));
        let (said, stack) = lines.split_at(fault.unwrap_or(lines.len()));
        let from = said.len().saturating_sub(LAST_LINES);
        Self {
            lines: said[from..]
                .iter()
                .map(|line| printed::shortened(line.trim_end()))
                .collect(),
            line: stack.iter().rev().find_map(|line| line_in_module(line)),
        }
    }
}

fn is_fault(line: &str) -> bool {
    let named = line.strip_prefix("Fatal Python error: ");
    named.is_some_and(|name| FAULTS.contains(&name.trim()))
}

fn gives_up(line: &str) -> bool {
    let line = line.trim_start();
    GIVES_UP.iter().any(|start| line.starts_with(start)) || line.contains(": Assertion `")
}

/// Reads `File "…/ipykernel_7/12.py", line 3 in <module>`: only the cell that runs is at its module's level.
fn line_in_module(line: &str) -> Option<u32> {
    let place = line
        .trim()
        .strip_prefix("File \"")?
        .strip_suffix(" in <module>")?;
    let (file, line) = place.rsplit_once("\", line ")?;
    let folder = file.rsplit('/').nth(1)?.strip_prefix("ipykernel_")?;
    folder.parse::<u32>().ok()?;
    line.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_those_before_the_fault_handlers() {
        let text = "loading\n\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  no \
                    device\nFatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File \
                    \"/e/lib/site.py\", line 9 in f\n  File \"/t/ipykernel_7/88.py\", line 3 in <module>\n  File \
                    \"/e/IPython/shell.py\", line 4 in run_code\n  File \"/e/ipykernel_launcher.py\", line 18 in <module>\n  File \"<frozen runpy>\", line 198 in <module>\n\n\
                    Extension modules: a, b (total: 2)\n";
        let last = LastWords::of(text);
        assert_eq!(last.line, Some(3));
        assert_eq!(
            last.lines,
            [
                "loading",
                "terminate called after throwing an instance of 'std::runtime_error'",
                "  what():  no device"
            ]
        );
        assert!(gives_up(&last.lines[1]) && !gives_up(&last.lines[0]));
    }

    #[test]
    fn an_error_of_pythons_own_is_a_last_word() {
        let text =
            "Fatal Python error: Cannot recover from stack overflow.\nFatal Python error: Aborted\n\nx\n";
        let last = LastWords::of(text);
        assert_eq!(
            last.lines,
            ["Fatal Python error: Cannot recover from stack overflow."]
        );
        assert_eq!(LastWords::of(" \n"), LastWords::default());
    }
}
