//! What IPython adds to Python: shell commands, magics and help, taken out so that what is left is Python.

/// Cell magics after which the rest of the cell is Python.
const PYTHON_MAGICS: [&str; 7] = ["time", "timeit", "capture", "prun", "python", "python3", "debug"];
/// Cell magics after which the rest of the cell is shell.
const SHELL_MAGICS: [&str; 5] = ["bash", "sh", "system", "sx", "!"];

/// A cell without its magics.
pub(super) struct Plain {
    /// The Python, with as many lines as the cell.
    pub(super) python: String,
    /// The commands and magics, with their lines.
    pub(super) shell: Vec<(u32, String)>,
    /// Where in `python` a statement begins that needs nothing of what stands before it, with its line.
    pub(super) starts: Vec<(usize, u32)>,
}

/// What a cell is, by its cell magic.
pub(super) enum Prepared {
    Python(Plain),
    Foreign,
}

/// Takes the magics out of a cell.
pub(super) fn prepare(source: &str) -> Prepared {
    let first = source
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let Some(magic) = first.trim_start().strip_prefix("%%") else {
        return Prepared::Python(plain(source));
    };
    let name = magic.split_whitespace().next().unwrap_or_default();
    if SHELL_MAGICS.contains(&name) {
        let commands = joined(source)
            .into_iter()
            .filter(|(_, text)| !text.starts_with("%%") && !text.is_empty());
        return Prepared::Python(Plain {
            python: String::new(),
            shell: commands.map(|(line, text)| (line, format!("!{text}"))).collect(),
            starts: Vec::new(),
        });
    }
    if PYTHON_MAGICS.contains(&name) {
        return Prepared::Python(plain(&source.replacen(first, "", 1)));
    }
    Prepared::Foreign
}

/// Returns the lines of a shell script with their numbers, continued ones joined.
fn joined(source: &str) -> Vec<(u32, String)> {
    let mut lines = Vec::new();
    let mut numbered = (1..).zip(source.lines());
    while let Some((number, line)) = numbered.next() {
        let mut whole = line.trim().to_owned();
        while let Some(start) = whole.strip_suffix('\\') {
            let next = numbered.next().map_or("", |(_, line)| line.trim());
            whole = format!(
                "{}{}{next}",
                start.trim_end(),
                if next.is_empty() { "" } else { " " }
            );
        }
        lines.push((number, whole));
    }
    lines
}

fn plain(source: &str) -> Plain {
    let mut python = String::with_capacity(source.len());
    let mut shell = Vec::new();
    let mut starts = Vec::new();
    let mut decorated = false;
    let mut state = State::default();
    let mut lines = (1..).zip(source.lines());
    while let Some((number, line)) = lines.next() {
        if state.at_statement() && begins_statement(line) {
            if !decorated {
                starts.push((python.len(), number));
            }
            decorated = line.starts_with('@');
        }
        let Some((kept, command)) = state.at_statement().then(|| magic(line)).flatten() else {
            state.read(line);
            python.push_str(line);
            python.push('\n');
            continue;
        };
        python.push_str(&kept);
        python.push('\n');
        let mut whole = command.trim().to_owned();
        while let Some(start) = whole.strip_suffix('\\') {
            let next = lines.next().map_or("", |(_, line)| line.trim());
            whole = format!("{} {next}", start.trim_end()).trim_end().to_owned();
            python.push('\n');
        }
        if !whole.ends_with('?') && !whole.starts_with('?') {
            shell.push((number, whole));
        }
    }
    Plain {
        python,
        shell,
        starts,
    }
}

/// Returns whether a line begins a statement of the module that is no part of the one before it.
fn begins_statement(line: &str) -> bool {
    let word = line
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    let inner = line.is_empty() || line.starts_with(|c: char| c.is_whitespace() || c == '#');
    !inner && !["else", "elif", "except", "finally"].contains(&word)
}

/// Returns what stands for a line in Python, and its command, if the line has one.
fn magic(line: &str) -> Option<(String, &str)> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    if let Some(timed) = text.strip_prefix("%time ") {
        return Some((format!("{indent}{}", timed.trim_start()), text));
    }
    if text.starts_with(['!', '%', '?']) {
        return Some((format!("{indent}pass"), text));
    }
    let code = text.trim_end();
    if code.ends_with('?') && !code.contains(['#', '"', '\'']) {
        return Some((format!("{indent}pass"), code));
    }
    let (target, value) = text.split_once('=')?;
    let value = value.trim_start();
    let names = |c: char| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ' | '.');
    let magic = value.starts_with(['!', '%']) && target.chars().all(names);
    (magic && !value.starts_with("!=")).then(|| (format!("{indent}{target}= None"), value))
}

/// Whether a line begins a statement: it does not inside brackets, a long string or after a backslash.
#[derive(Default)]
struct State {
    brackets: u32,
    string: Option<&'static str>,
    continued: bool,
}

impl State {
    fn at_statement(&self) -> bool {
        self.brackets == 0 && self.string.is_none() && !self.continued
    }

    fn read(&mut self, line: &str) {
        let mut rest = line;
        self.continued = false;
        while let Some(c) = rest.chars().next() {
            if let Some(end) = self.string {
                if rest.starts_with(end) {
                    self.string = None;
                    rest = &rest[end.len()..];
                    continue;
                }
                let escaped = c == '\\' && rest.len() > 1;
                let skipped = rest
                    .chars()
                    .take(1 + usize::from(escaped))
                    .map(char::len_utf8)
                    .sum();
                rest = &rest[skipped..];
                continue;
            }
            let opened = ["\"\"\"", "'''", "\"", "'"]
                .into_iter()
                .find(|quote| rest.starts_with(quote));
            if let Some(quote) = opened {
                self.string = Some(quote);
                rest = &rest[quote.len()..];
                continue;
            }
            match c {
                '#' => return,
                '(' | '[' | '{' => self.brackets += 1,
                ')' | ']' | '}' => self.brackets = self.brackets.saturating_sub(1),
                '\\' if rest.len() == 1 => self.continued = true,
                _ => {}
            }
            rest = &rest[c.len_utf8()..];
        }
        // A short string ends with its line, unless the line break is escaped.
        if self.string.is_some_and(|quote| quote.len() == 1) && !line.ends_with('\\') {
            self.string = None;
        }
    }
}
