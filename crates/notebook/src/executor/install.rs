//! Lines that install packages while the notebook runs, such as `!pip install kubeflow`.
//!
//! They are found as IPython finds them. One that asks for nothing but packages that are there already can be left
//! out; it is replaced in place, so that every other line keeps its number.

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use crate::analysis::is_pinned;

/// The installing lines of a cell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Installs(Vec<Install>);

/// One installing line; with its continuations it can be several.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Install {
    /// The first of its lines, counted from zero.
    first: usize,
    /// How many lines it is.
    lines: usize,
    /// Its text, as one line.
    text: String,
    /// What it asks for, or `None` when it asks for more than packages by name.
    requirements: Option<Vec<String>>,
}

/// Options that change nothing about which packages are there.
const HARMLESS: [&str; 12] = [
    "-q",
    "-qq",
    "-qqq",
    "-v",
    "--disable-pip-version-check",
    "--no-cache-dir",
    "--no-input",
    "--no-warn-script-location",
    "--progress-bar=off",
    "--quiet",
    "--system",
    "--user",
];
/// Options by which whatever is there gives way to what is newest.
const UPGRADE: [&str; 2] = ["-U", "--upgrade"];
const HARMLESS_WITH_VALUE: [&str; 8] = [
    "-f",
    "-i",
    "--default-index",
    "--extra-index-url",
    "--find-links",
    "--index-url",
    "--trusted-host",
    "--upgrade-strategy",
];

impl Installs {
    /// Finds the installing lines of a cell. A cell that begins with a cell magic has none: its lines are not Python's.
    pub(crate) fn find(source: &str) -> Self {
        if source.trim_start().starts_with("%%") {
            return Self::default();
        }
        let lines: Vec<&str> = source.lines().collect();
        let mut found = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let mut count = 1;
            let mut text = lines[at].trim().to_owned();
            while let Some(open) = text.strip_suffix('\\')
                && at + count < lines.len()
            {
                text = format!("{}{}", open, lines[at + count].trim());
                count += 1;
            }
            if let Some(arguments) = pip_arguments(&text) {
                found.push(Install {
                    first: at,
                    lines: count,
                    requirements: requirements(arguments),
                    text,
                });
            }
            at += count;
        }
        Self(found)
    }

    /// Returns whether the cell installs nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns every requirement of every line that asks for packages by name only, in order.
    pub(crate) fn requirements(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|install| install.requirements.iter().flatten().cloned())
            .collect()
    }

    /// Returns the code without the lines that are not needed, and which they are.
    ///
    /// `satisfied` answers [`Installs::requirements`], one by one.
    pub(crate) fn leave_out(&self, source: &str, satisfied: &[bool]) -> (String, Vec<bool>) {
        let mut answers = satisfied.iter();
        let mut lines: Vec<String> = source.split('\n').map(str::to_owned).collect();
        let mut left_out = Vec::new();
        for install in &self.0 {
            let wanted = install.requirements.as_deref().unwrap_or_default();
            // Every answer is taken, so that the next line's are its own.
            let missing = wanted.iter().filter(|_| answers.next() != Some(&true)).count();
            let is_needed = wanted.is_empty() || missing > 0;
            left_out.push(!is_needed);
            if is_needed {
                continue;
            }
            for (at, line) in lines
                .iter_mut()
                .enumerate()
                .skip(install.first)
                .take(install.lines)
            {
                let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
                *line = if at == install.first {
                    format!("{indent}pass")
                } else {
                    format!("{indent}#")
                };
            }
        }
        (lines.join("\n"), left_out)
    }
}

/// Returns what is told about the installing lines of the cell at `position`.
pub(crate) fn notices(installs: &Installs, left_out: &[bool], position: u32) -> Vec<Diagnostic> {
    let pairs = installs.0.iter().zip(left_out);
    let notice = |(install, is_left_out): (&Install, &bool)| {
        let place = SourceLocation {
            line: u32::try_from(install.first + 1).ok(),
            source: Some(install.text.clone()),
            ..SourceLocation::file(format!("cell {position}"))
        };
        let diagnostic = if *is_left_out {
            Diagnostic::warning(
                Code::InstallLeftOut,
                format!(
                    "left out `{}`: the environment has what it asks for",
                    install.text
                ),
            )
        } else {
            Diagnostic::warning(
                Code::InstallRan,
                format!("the notebook itself runs `{}`", install.text),
            )
            .hint("name the packages under spec.env.requirements")
        };
        diagnostic.at(place)
    };
    pairs.map(notice).collect()
}

/// Returns what follows `pip install` in a line that IPython gives to a shell or to pip.
fn pip_arguments(line: &str) -> Option<Vec<&str>> {
    let command = line.strip_prefix('!').or_else(|| line.strip_prefix('%'))?;
    let words: Vec<&str> = command.trim_start_matches('!').split_whitespace().collect();
    let at = match words.as_slice() {
        ["pip" | "pip3", "install", ..] => 2,
        ["uv", "pip", "install", ..] => 3,
        [python, "-m", "pip", "install", ..]
            if python.contains("python") || python.contains("sys.executable") =>
        {
            4
        }
        _ => return None,
    };
    Some(words[at..].to_vec())
}

fn requirements(words: Vec<&str>) -> Option<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let upgrades = words.iter().any(|word| UPGRADE.contains(word));
    let mut words = words.into_iter().filter(|word| !UPGRADE.contains(word));
    while let Some(word) = words.next() {
        if HARMLESS.contains(&word) {
            continue;
        }
        if HARMLESS_WITH_VALUE.contains(&word) {
            words.next()?;
            continue;
        }
        if HARMLESS_WITH_VALUE
            .iter()
            .any(|option| word.strip_prefix(option).is_some_and(|v| v.starts_with('=')))
        {
            continue;
        }
        let name = word.trim_matches(['"', '\'']);
        let is_plain = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.[],<>=!~*+".contains(c))
            && ![".whl", ".zip", ".tar.gz"].iter().any(|end| name.ends_with(end));
        if !is_plain {
            return None;
        }
        found.push(name.to_owned());
    }
    // Only the index knows what is newest, but of an exact version there is one.
    let is_known = !upgrades || found.iter().all(|requirement| is_pinned(requirement));
    (is_known && !found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_ask_for_packages_by_name_are_read() {
        for (line, wanted) in [
            ("!pip install -q kubeflow", vec!["kubeflow"]),
            ("!pip install --upgrade kubeflow==0.5.0", vec!["kubeflow==0.5.0"]),
            ("%pip install -q 'a[x]>=1,<2' b", vec!["a[x]>=1,<2", "b"]),
            (
                "!{sys.executable} -m pip install --index-url https://i.example/simple a",
                vec!["a"],
            ),
            ("  !uv pip install a==1.0", vec!["a==1.0"]),
            ("!pip install \\\n    a \\\n    b", vec!["a", "b"]),
        ] {
            assert_eq!(Installs::find(line).requirements(), wanted, "{line}");
        }
    }

    #[test]
    fn what_else_a_line_asks_for_is_not_guessed() {
        for line in [
            "!pip install -r requirements.txt",
            "!pip install -e .",
            "!pip install git+https://h.example/r a",
            "!pip install a; echo done",
            "!pip install a && b",
            "!pip install $PKG",
            "!pip install ./a.whl",
            "!pip install -U a",
            "!pip install a>=1 --upgrade",
            "!pip install --upgrade a==1 b",
            "!pip install --force-reinstall a",
            "!pip install --pre a",
        ] {
            let installs = Installs::find(line);
            assert!(!installs.is_empty(), "{line}");
            assert_eq!(installs.leave_out(line, &[]).1, [false], "{line}");
        }
        assert!(Installs::find("# !pip install a\nprint('!pip install a')").is_empty());
        assert!(Installs::find("%%bash\n!pip install a").is_empty());
    }

    #[test]
    fn other_lines_keep_their_numbers() {
        let source = "if True:\n    !pip install a \\\n       b\nx = 1\n%pip install c\n";
        let (code, left_out) = Installs::find(source).leave_out(source, &[true, true, false]);
        assert_eq!(code, "if True:\n    pass\n       #\nx = 1\n%pip install c\n");
        assert_eq!(left_out, [true, false]);
    }
}
