//! Failures of the machine and of the environment, before and around the cells.

use std::{io, path::Path};

use blueproof_core::{
    attempt::open_regular,
    domain::{Failure, FailureClass},
};
use blueproof_diagnostic::{Code, Diagnostic};

use super::limits;
use crate::{
    disk::{self, disk_failure},
    environment::{exhausted, exhausted_line},
    kernel::StartError,
    process::{End, LimitsHit},
    text::shown,
};

const LAST_LINES: usize = 5;

/// How bubblewrap begins what it says.
const BY_BUBBLEWRAP: &str = "bwrap: ";

/// Says why a kernel did not come up. `log` is what it printed, `hit` which limits it met; where it is not Python's own, its
/// kernelspec has a name.
pub(crate) fn start_failure(
    error: &StartError,
    log: &Path,
    hit: LimitsHit,
    kernelspec: Option<&str>,
) -> Box<Failure> {
    if let (StartError::Ended(End::Killed(_)), Some(limit)) = (error, hit.memory) {
        return Box::new(limits::killed_at_start(limit));
    }
    let said = last_lines(log);
    if let (StartError::Ended(End::Exited(_)), Some(line)) =
        (error, said.last().filter(|line| line.starts_with(BY_BUBBLEWRAP)))
    {
        return Box::new(no_sandbox(line));
    }
    if let Some(line) = exhausted_line(&said) {
        let failure = Failure::outside_cells(FailureClass::Infrastructure, exhausted(line));
        return Box::new(failure);
    }
    if let Some(error) = log.parent().and_then(disk::full) {
        return disk_failure(&error);
    }
    let (class, code, message) = match error {
        StartError::Ended(End::Exited(status)) => (
            FailureClass::Config,
            Code::KernelUnusable,
            match said.last() {
                Some(line) => format!("the kernel did not start (exit status {status}): {line}"),
                None => format!("the kernel did not start, with exit status {status}"),
            },
        ),
        StartError::Ended(end @ End::Killed(_)) => (
            FailureClass::Infrastructure,
            Code::KernelNotStarted,
            format!("the kernel was killed before it answered, by {end}"),
        ),
        StartError::Spawn(_) | StartError::Wire(_) => (
            FailureClass::Infrastructure,
            Code::KernelNotStarted,
            "the kernel could not be started".to_owned(),
        ),
    };
    let mut diagnostic = Diagnostic::error(code, message);
    if !matches!(error, StartError::Ended(_)) {
        diagnostic = diagnostic.caused_by(error);
    }
    diagnostic.causes.extend(said);
    if code == Code::KernelUnusable {
        diagnostic = diagnostic.hint(match kernelspec {
            Some(name) => format!("the kernelspec `{name}` starts it: look for what that program needs"),
            None => "ipykernel must load in this environment: look at its versions under spec.env".into(),
        });
    }
    Box::new(Failure::outside_cells(class, diagnostic))
}

/// Says that the part which makes environments gave no answer.
pub(crate) fn environment_lost() -> Box<Failure> {
    let diagnostic = Diagnostic::error(
        Code::KernelNotStarted,
        "making the environment ended without an answer",
    );
    Box::new(Failure::outside_cells(FailureClass::Infrastructure, diagnostic))
}

/// Returns the last lines of a file, without colour; none where it cannot be read.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    const AT_MOST: u64 = 64 << 10;
    let read = || {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = open_regular(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(AT_MOST)))?;
        let mut bytes = Vec::new();
        file.take(AT_MOST).read_to_end(&mut bytes)?;
        io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = shown(&read().unwrap_or_default());
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LAST_LINES);
    lines[from..].iter().map(|line| (*line).to_owned()).collect()
}

/// Says that bubblewrap made no sandbox: the machine's fault, whatever notebook it is.
fn no_sandbox(line: &str) -> Failure {
    let diagnostic = Diagnostic::error(
        Code::SandboxUnavailable,
        "the sandbox of the notebook could not be made",
    );
    Failure::outside_cells(FailureClass::Infrastructure, diagnostic.because(line))
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::Bytes;

    use super::*;

    #[test]
    fn a_kernel_that_a_full_or_exhausted_machine_kept_from_starting_is_the_machines_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("kernel.log");
        let failure = |last: &str| {
            std::fs::write(&log, format!("Traceback (most recent call last):\n{last}\n")).expect("a file");
            start_failure(
                &StartError::Ended(End::Exited(1)),
                &log,
                LimitsHit::default(),
                None,
            )
        };
        for last in [
            "OSError: [Errno 28] No space left on device",
            "OSError: [Errno 24] Too many open files",
            "RuntimeError: can't start new thread",
            "MemoryError",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "python3: error while loading shared libraries: libc.so.6: failed to map segment from shared object",
        ] {
            let failure = failure(last);
            assert_eq!(failure.class, FailureClass::Infrastructure, "{last}");
            assert_eq!(failure.diagnostic.code, Code::HostExhausted, "{last}");
            assert_eq!(failure.diagnostic.causes, [last]);
        }
        let import = failure("ImportError: cannot import name 'x' from 'ipykernel'");
        assert_eq!(import.class, FailureClass::Config);
        assert!(import.diagnostic.hints[0].contains("ipykernel"));
        let of_another = start_failure(
            &StartError::Ended(End::Exited(1)),
            &log,
            LimitsHit::default(),
            Some("ir"),
        );
        assert!(of_another.diagnostic.hints[0].contains("`ir`"), "{of_another:?}");
    }

    #[test]
    fn a_kernel_that_its_limit_of_memory_kept_from_starting_is_the_blueprints_failure() {
        let killed = StartError::Ended(End::Killed(9));
        let hit = LimitsHit {
            memory: Some(Bytes(32 << 20)),
            ..LimitsHit::default()
        };
        let failure = start_failure(&killed, Path::new("/nowhere"), hit, None);
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Config, Code::OutOfMemory)
        );
        assert!(
            failure.diagnostic.message.contains("32Mi"),
            "{}",
            failure.diagnostic.message
        );
        let failure = start_failure(&killed, Path::new("/nowhere"), LimitsHit::default(), None);
        assert_eq!(failure.class, FailureClass::Infrastructure);
    }
}
