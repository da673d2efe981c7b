//! Every code that a person can meet, in one table. A code is never given a second meaning.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($number:literal $name:ident $title:literal $explanation:literal)*) => {
        /// Which kind of thing is wrong; shown as `BP0213`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        impl Code {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// Returns what the code stands for, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// Returns what `blueproof explain` says: why it comes about and how it is mended.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$name => $explanation,)* }
            }
        }
    };
}

// 01 command line and configuration; 02 blueprint and notebook files; 03 environments; 04 verdicts on a notebook
// and what it started; 05 limits of time; 06 the machine and the cluster; 07 the store; 08 gate and queue.
codes! {
    101 Usage "a command that cannot be understood"
        "The command line names something that does not exist or leaves out something that is needed. \
         `blueproof help COMMAND` shows what a command takes."
    102 NoSuchRun "a run that is not in the store"
        "No run of that id is known here. `blueproof get runs` lists those that are; `last` stands for the newest. \
         A run is known only to the store that it was made in (`--store`, `BLUEPROOF_STORE`)."
    201 FileMissing "a file that is not there or cannot be read"
        "The blueprint, or the notebook that it names, could not be read. Paths in a blueprint are relative to the \
         folder of the blueprint."
    202 YamlSyntax "a file that is not YAML"
        "The file could not be parsed. The place that is shown is where the parser gave up; the mistake is often on \
         the line above: a missing colon, a tab, or an unclosed quote."
    203 UnknownKey "a key that is not known"
        "Keys that blueproof does not know are refused instead of ignored, because a limit or an expectation that \
         is silently not applied is worse than none. `blueproof schema blueprint` prints every key."
    401 CellRaised "an exception that left a cell"
        "A cell raised and nothing caught it. Cells that are meant to raise carry the tag `raises-exception`."
    402 KernelEnded "a kernel that came to its end while it was needed"
        "The process that runs the notebook ended by itself or was killed from outside. Its exit status or signal is \
         named. A kernel that is killed with SIGKILL was often, but not always, out of memory. What the kernel itself \
         printed is kept in kernel.log."
    403 CellSyntax "a cell that is not Python"
        "The cell could not be compiled, so that no line of it ran."
    404 CellExited "a cell that ends the program"
        "The cell called `exit()`, `quit()` or `sys.exit()`, or raised SystemExit, whatever its status. In a notebook \
         that leaves every later cell out, so it counts as a failure in the last cell too. End a cell early with a \
         condition, or tag one that is meant to raise with `raises-exception`."
    405 InputRefused "a cell that asks for input"
        "Nobody is there to answer `input()` or `getpass()`, so they fail at once. Take the value from a parameter or \
         an environment variable."
    406 ModuleMissing "a module that is not in the environment"
        "The notebook imports a module that no package of its environment has. Packages are named under \
         spec.env.requirements."
    407 WorkloadFailed "a process or job that the notebook started, and that failed"
        "The notebook only noticed that something it had started failed. What is shown is the last error of that \
         process itself, as far as it was printed or captured."
    408 OutOfMemory "memory that could not be had"
        "The notebook or something it started was refused memory, of the host or of a GPU. Ask for more under \
         spec.driver or spec.workload, or make batches smaller."
    411 FailedInSilence "something that failed without stopping its cell"
        "A shell step, a thread, a task or a child process failed, and the cell ended well all the same. It may \
         explain what fails later."
    412 InstallLeftOut "an installation that was left out"
        "A cell installs packages that the environment already has. The line is left out, so that pinned versions stay \
         as they are. `spec.env.shellInstall: allow` runs it."
    413 InstallRan "an installation that was run"
        "A cell installs packages into its environment while it runs. What it installs is neither pinned nor cached; \
         name it under spec.env.requirements."
    501 StartupTimeout "a start that took too long"
        "Environment and kernel were not ready within spec.timeouts.startup. A first start downloads packages; later \
         ones find them in the cache."
    502 CellTimeout "a cell that took too long"
        "The cell did not end within spec.timeouts.cell. It was interrupted first; what it had printed is kept."
    503 RunTimeout "cells that took too long together"
        "The cells did not all end within spec.timeouts.run. What they had printed is kept."
    601 AgentLost "an agent that was killed"
        "The process that carried out the attempt ended without saying how the attempt ended. Whatever was left of it \
         has been ended. The notebook is not run again in the same attempt; a retry is a new attempt."
    602 KernelNotStarted "a kernel that could not be started"
        "The environment is right, but the kernel could not be started on this machine, or was killed before it \
         answered."
    603 HostDisk "a disk that cannot be written"
        "Files of the attempt could not be written. `df -h` shows which disk is full."
    604 KernelUnusable "an environment whose kernel does not start"
        "Python ended while it loaded ipykernel. That is a matter of the environment's packages, not of the machine: \
         what it printed is shown."
    605 AttemptUnreadable "an attempt that cannot be read"
        "The folder of the attempt holds no readable description of what is to be done. It is written by whatever \
         starts the agent; both must be of the same version."
    606 WorkingCopy "a checkout that could not be copied"
        "Each attempt works on a copy of its own of the checkout, so that the checkout is never changed. The copy \
         could not be made."
    607 SecretMissing "a secret that was not given"
        "The blueprint names a secret whose value this machine does not have."
    608 NotebookUnreadable "a file that is no notebook"
        "The file could not be read as a Jupyter notebook of format 4. `jupyter nbconvert --to notebook` upgrades \
         older ones."
}

/// A text that is not the code of anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a code; they look like BP0213")]
pub struct ParseCodeError(String);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BP{:04}", *self as u16)
    }
}

impl FromStr for Code {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Code::ALL
            .iter()
            .find(|code| code.to_string().eq_ignore_ascii_case(text));
        known.copied().ok_or_else(|| ParseCodeError(text.into()))
    }
}

impl TryFrom<String> for Code {
    type Error = ParseCodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_read_back_what_they_print() {
        assert!(Code::ALL.is_sorted());
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
            assert!(
                code.explanation().ends_with('.'),
                "{code}: explanations are sentences"
            );
        }
    }
}
