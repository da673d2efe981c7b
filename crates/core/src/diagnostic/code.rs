//! Every code that a person can meet, in one table. A code is never given a second meaning.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($number:literal $name:ident $title:literal $explanation:literal)*) => {
        /// Which kind of thing is wrong; shown as `BP0213`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    103 NoHome "a machine without a home folder"
        "What blueproof keeps lies in the home folder when nothing else is configured, and HOME is not set, or is no \
         absolute path. Set it, or name other places: `--store`, `BLUEPROOF_STORE`, `BLUEPROOF_ENVIRONMENTS`."
    104 ConfigUnreadable "a configuration file that cannot be read"
        "The file is there but could not be read, or it was named with `--config` or `BLUEPROOF_CONFIG` and is not \
         there. `blueproof config path` lists the files that are looked at."
    105 ConfigValue "a configuration value that cannot be used"
        "A configuration file says `apiVersion: blueproof.dev/v1alpha1` and `kind: Config`; each of its keys, and each \
         `BLUEPROOF_*` variable, takes values of one kind. `blueproof schema config` prints them all."
    106 ConfigNotHere "a setting that this file may not have"
        "The configuration in a project's folder comes with its content, as a notebook does. It may say where things \
         go, but not who approves what is run: that stands in the user's or the machine's file."
    107 Unwritable "an answer that could not be written"
        "Standard output did not take the answer: a full disk, or a device that failed. What was asked for may be done \
         all the same; `blueproof get runs` tells."
    108 LeftAlone "a run that no process drives"
        "The process that drove this run has ended, or was killed. Nothing is lost: an attempt goes on by itself, and the \
         next `blueproof wait`, `blueproof run` or scheduler on the same store takes the run over."
    109 ConfigOfStranger "a configuration file that somebody else put there"
        "A project's `.blueproof/config.yaml` was found in a folder that everybody may write to, and belongs to somebody \
         else. It could name a program to run as you. `--config FILE` uses it all the same."
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
    510 QueueTimeout "a run that waited for quota too long"
        "The blueprint limits how long it waits for quota (`spec.timeouts.queue`), and that time is over. `blueproof \
         why RUN` says what it waited for; `blueproof retry RUN` puts it into the queue again."
    520 Overdue "an attempt that did not keep its own limits"
        "The agent ends a notebook at its limits by itself. This one did not, so the scheduler ended it."
    640 AttemptLost "an attempt that no longer answers"
        "The attempt was told to end and did not, or its agent is gone without a last word. Whatever it left is \
         removed, and the run is tried again as often as `spec.retries.infrastructure` allows."
    641 StoppedByOthers "an attempt that something else stopped"
        "The agent was asked to stop by a signal that blueproof did not send: a shutdown of the machine, or someone \
         with `kill`."
    701 StoreBroken "a store that cannot be used"
        "The file that holds all runs could not be opened, read or written: a full disk, missing rights, or damage. \
         Nothing is decided without it; attempts that run go on by themselves."
    702 StoreTooNew "a store of a newer version"
        "A newer blueproof has changed the store's tables. An older one would misread them, so it does not try."
    703 StoreNotOurs "a file that is no store"
        "The file is an SQLite database, but blueproof did not make it."
    801 AsksTooMuch "a run that can never fit"
        "The whole gang (driver and workload) asks for more than the queue may ever promise. Choose a profile that \
         asks for less, or let the quota grow."
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
