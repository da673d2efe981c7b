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
    301 PythonMissing "no Python that can run a notebook"
        "No interpreter was found on PATH that starts, says its version and can make a virtual environment. Every one \
         that was tried is listed with its own words: a shim of pyenv's, for example, is a file but need not be a \
         Python."
    302 PythonVersion "no Python of the wanted version"
        "The blueprint asks for a version of Python under `spec.env.python`, or the notebook in its script block, that \
         no interpreter on this machine has. Install one, have uv on PATH, which fetches it, or ask for another."
    303 PackageMissing "a package that does not exist"
        "The package index knows no package of that name. Names are often not those of the module: `import cv2` is \
         `opencv-python`. A private package needs the host's own pip or uv configuration to name its index."
    304 PackageVersion "a version of a package that does not exist"
        "The package exists, but no release of it satisfies the requirement on this Python and platform."
    305 PackageConflict "packages that exclude each other"
        "No choice of versions satisfies every requirement at once. The resolver's own words say which exclude which."
    306 PackageBuild "a package that cannot be built"
        "The package has no wheel for this Python and platform and building it from source failed, usually for want \
         of a compiler or a library. Another version, or another Python, may have a wheel."
    307 PackagesOffline "packages that are not here, and no network to fetch them"
        "The package index could not be reached, and what is missing is not in a cache of this machine. Run once with \
         network, or point pip to a folder of wheels (`PIP_FIND_LINKS`)."
    308 LockFile "a lock file that cannot be used"
        "The file under `spec.env.lock` is `uv.lock` or one requirements file with every version pinned, inside the \
         checkout, and leads to no other file."
    309 Requirement "a requirement that cannot be used"
        "Requirements are a package's name with versions, extras and markers, as pip writes them. Options of pip and \
         paths of this machine are refused: they mean something else on the next machine."
    310 ScriptBlock "a script block that cannot be read"
        "The comment between `# /// script` and `# ///` in a notebook's first code cell is TOML, as PEP 723 defines it."
    311 InstallFailed "packages that could not be installed"
        "The installer failed in a way that blueproof has no better name for. Its last words are shown."
    401 CellRaised "an exception that left a cell"
        "A cell raised and nothing caught it. Cells that are meant to raise carry the tag `raises-exception`."
    441 MetricMissing "a metric without a value"
        "The blueprint expects something of a metric that no cell printed or showed. A pattern that matches nothing, \
         or a cell that was never reached, look the same here."
    442 MetricOutOfBounds "a metric outside its bounds"
        "Every cell ran, but the value is not within what the blueprint expects. Bounds are included."
    443 MetricNotFinite "a metric that is no finite number"
        "NaN and infinity satisfy no expectation, whatever its bounds."
    444 MetricPattern "a metric's pattern that is no regular expression"
        "Patterns are in RE2's syntax, which has no look-around and no back-references, so that a search always takes \
         time in proportion to the text."
    445 ArtifactMissing "an artifact that is not there"
        "The blueprint expects a file that the notebook did not write. Globs are relative to the notebook's folder; \
         links that lead out of it do not count."
    446 ArtifactEmpty "an artifact that is empty"
        "Files of that name are there, and all of them are empty."
    447 ArtifactPattern "a glob that is none"
        "In globs `*` stands for anything within one folder, `**` for folders, `?` for one character, `[…]` for one of \
         several and `{a,b}` for either."
    448 OutputMissing "a text that no cell printed"
        "The blueprint expects some cell to print a text, all of it within one cell."
    449 ArtifactRefused "an artifact that is not kept"
        "Only ordinary files of the notebook's own folder are kept: a link that leads elsewhere could carry away a \
         file of the machine's."
    450 ArtifactsLimited "artifacts beyond the limit"
        "The artifacts of one attempt may take so much room and no more. What did not fit was left out whole."
    451 ArtifactUnkept "an artifact that could not be written"
        "The file was there, but could not be copied to where artifacts are kept."
    631 PackageDownload "a download of packages that broke off"
        "The package index was reached but did not deliver: a timeout, a broken connection, or a server error. Trying \
         again usually helps."
    632 EnvironmentDiskFull "no space left for an environment"
        "Environments take from 100 MB to several GB each. They may be deleted when no run uses them; the next run \
         makes its own again."
    633 EnvironmentFolder "a folder for environments that cannot be used"
        "The folder that keeps environments between runs could not be made, read or written."
    634 ReportUnwritten "a report that could not be written"
        "The attempt is over and its outcome is kept; only the pages about it are missing. `blueproof report` writes \
         them again."
    635 ExecutedNotebook "an executed notebook that cannot be read"
        "The notebook with its outputs is damaged, as it is when the machine went down while it was written. The log \
         of the attempt still has everything that was printed."
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
