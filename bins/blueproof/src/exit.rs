//! What the process ends with.

use blueproof_core::{
    domain::{Ending, RunState},
    ports::{CallError, OutputError, StoreError},
    view::RunView,
};
use blueproof_diagnostic::Diagnostic;
use blueproof_host::WaitError;
use blueproof_machine::MachineError;

/// The exit codes of every command, as documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It passed, or the question is answered.
    Ok = 0,
    /// The blueprint failed.
    Failed = 1,
    /// The command, a configuration or the blueprint has a mistake.
    Usage = 2,
    /// Infrastructure failed; another time it may go better.
    Infrastructure = 3,
    /// A limit of time was reached.
    TimedOut = 5,
    /// The gate, a queue or a policy refused.
    Refused = 6,
    /// It is not over yet.
    Pending = 8,
    /// It was interrupted.
    Interrupted = 130,
}

impl Exit {
    /// Returns what a run's state comes to.
    pub(crate) fn of(run: &RunView) -> Self {
        let RunState::Ended(ending) = run.state else {
            return Exit::Pending;
        };
        match ending {
            Ending::Passed => Exit::Ok,
            Ending::Failed => Exit::Failed,
            Ending::InfrastructureFailed => Exit::Infrastructure,
            Ending::TimedOut => Exit::TimedOut,
            // What an attempt found cannot run as it is written; without one, the queue's policy forbids it.
            Ending::Refused if !run.attempts.is_empty() => Exit::Usage,
            Ending::Refused | Ending::Superseded => Exit::Refused,
            Ending::Cancelled => Exit::Interrupted,
        }
    }
}

/// Returns a command's examples, and below them the codes that it may end with.
pub(crate) fn help(examples: &str, exits: &[Exit]) -> String {
    let codes = exits
        .iter()
        .map(|exit| format!("  {:<4} {}", *exit as u8, exit.meaning()));
    let codes: Vec<String> = codes.collect();
    format!("{examples}\n\nExit codes:\n{}", codes.join("\n"))
}

/// The same of a command whose codes stand for something of its own.
pub(crate) fn help_saying(examples: &str, exits: &[(Exit, &str)]) -> String {
    let codes = exits
        .iter()
        .map(|(exit, meaning)| format!("  {:<4} {meaning}", *exit as u8));
    let codes: Vec<String> = codes.collect();
    format!("{examples}\n\nExit codes:\n{}", codes.join("\n"))
}

/// What is said of a mistake where no blueprint can have one.
pub(crate) const MISTAKE: &str = "the command or the configuration has a mistake";

/// What is said of infrastructure that fails.
pub(crate) const FAILS: &str = "infrastructure failed; another time it may go better";

impl Exit {
    /// Every code that a run may end with, or that stands for one that goes on.
    pub(crate) const OF_RUNS: [Exit; 8] = [
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::Infrastructure,
        Exit::TimedOut,
        Exit::Refused,
        Exit::Pending,
        Exit::Interrupted,
    ];

    fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "it passed, or the question is answered",
            Exit::Failed => "the blueprint failed, or a warning under --strict",
            Exit::Usage => {
                "the command, the configuration or the blueprint has a mistake; also of a run\n       that is REFUSED because it cannot run as it is written"
            }
            Exit::Infrastructure => FAILS,
            Exit::TimedOut => "a limit of time was reached",
            Exit::Refused => "the gate, a queue or a policy refused",
            Exit::Pending => "it is not over yet",
            Exit::Interrupted => "it was interrupted or cancelled",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do what it was asked: what is shown, and what the process ends with.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) exit: Exit,
}

impl Problem {
    /// Returns a problem of usage or configuration.
    pub(crate) fn usage(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostics: vec![diagnostic],
            exit: Exit::Usage,
        }
    }
}

impl From<Vec<Diagnostic>> for Problem {
    /// What is wrong in people's files is theirs to mend.
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            diagnostics,
            exit: Exit::Usage,
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        Self {
            diagnostics: vec![*error.diagnostic],
            exit: Exit::Infrastructure,
        }
    }
}

impl From<OutputError> for Problem {
    fn from(error: OutputError) -> Self {
        Problem::usage(error.to_diagnostic())
    }
}

impl From<MachineError> for Problem {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Store(error) => error.into(),
            MachineError::Inventory(error) => error.into(),
        }
    }
}

impl From<WaitError> for Problem {
    fn from(error: WaitError) -> Self {
        let (diagnostic, exit) = match error {
            WaitError::Store(error) => return error.into(),
            WaitError::Refused(diagnostic) => (diagnostic, Exit::Refused),
            WaitError::Quarantined(diagnostic) => (diagnostic, Exit::Infrastructure),
        };
        Self {
            diagnostics: vec![*diagnostic],
            exit,
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        use blueproof_diagnostic::Code;
        let theirs = matches!(error.diagnostic.code, Code::StoreTooNew | Code::StoreNotOurs);
        let refused = matches!(error.diagnostic.code, Code::NotAuthenticated | Code::RoleTooLow);
        let exit = match (theirs, refused) {
            (true, _) => Exit::Usage,
            (_, true) => Exit::Refused,
            (false, false) => Exit::Infrastructure,
        };
        let mut diagnostic = *error.diagnostic;
        if diagnostic.code == Code::NotAuthenticated {
            let hint = "BLUEPROOF_TOKEN holds the token that is sent, or `tokenFile` in your configuration names its file";
            diagnostic.hints = vec![hint.into()];
        }
        Self {
            diagnostics: vec![diagnostic],
            exit,
        }
    }
}
