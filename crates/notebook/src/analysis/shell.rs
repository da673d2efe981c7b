//! Commands for a shell: as they stand in cells, and as calls have them run.

use std::{iter::Peekable, str::CharIndices};

use super::{
    Analysis,
    value::{At, Made, Traced},
};

/// Words after which a shell takes another command.
const LEADING: [&str; 14] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "command", "nohup", "env",
];
/// Magics that do what the command of that name does.
const MAGICS: [&str; 16] = [
    "cat",
    "conda",
    "cp",
    "ldir",
    "ls",
    "mamba",
    "man",
    "micromamba",
    "mkdir",
    "more",
    "mv",
    "pip",
    "rm",
    "rmdir",
    "touch",
    "uv",
];
/// A word that nothing is known of.
const UNKNOWN: &str = "{}";

/// One command of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its words without quotes, and without those that only lead to it.
    pub(crate) words: Vec<String>,
    /// The files that its output goes to.
    pub(crate) into: Vec<String>,
}

/// What is done outside of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outside {
    Commands(Vec<Command>),
    /// What a magic of this name does.
    Magic(String),
}

impl Outside {
    pub(crate) fn commands(self) -> Vec<Command> {
        match self {
            Outside::Commands(commands) => commands,
            Outside::Magic(_) => Vec::new(),
        }
    }
}

/// Returns what a line of a cell does that begins with `!` or `%`.
pub(crate) fn of_line(line: &str) -> Outside {
    let Some(magic) = line.trim_start().strip_prefix('%') else {
        return Outside::Commands(commands(line.trim_start().trim_start_matches('!')));
    };
    let (name, rest) = magic.split_once(char::is_whitespace).unwrap_or((magic, ""));
    match name {
        "sx" | "system" => Outside::Commands(commands(rest)),
        "time" | "timeit" if rest.trim_start().starts_with('!') => of_line(rest),
        name if MAGICS.contains(&name) => Outside::Commands(commands(magic)),
        name => Outside::Magic(name.to_owned()),
    }
}

/// Returns what the lines of all cells do.
pub(crate) fn of_lines(analysis: &Analysis) -> impl Iterator<Item = (At, Outside)> {
    analysis.shell.iter().map(|(at, line)| (*at, of_line(line)))
}

/// Returns what a call does, if it runs a command or a magic: `os.system("...")`, `subprocess.run([...])`.
pub(crate) fn of_call(analysis: &Analysis, made: &Made) -> Option<Outside> {
    let text = |nth: usize| made.arguments.get(nth).and_then(Traced::text);
    match made.function.as_str() {
        "magic" => Some(of_line(&format!("%{}", text(0)?))),
        "run_line_magic" => Some(of_line(&format!("%{} {}", text(0)?, text(1).unwrap_or(UNKNOWN)))),
        _ if !runs(analysis, made) => None,
        _ => {
            let keyword = |name: &str| made.argument(name, usize::MAX);
            let first = made.arguments.first();
            let command = first.or_else(|| ["args", "cmd", "command"].into_iter().find_map(keyword))?;
            Some(Outside::Commands(given(command)))
        }
    }
}

/// Returns what all calls do that run commands.
pub(crate) fn of_calls(analysis: &Analysis) -> impl Iterator<Item = (At, Outside)> {
    let calls = analysis.calls.iter();
    calls.filter_map(|made| Some((made.at, of_call(analysis, made)?)))
}

fn runs(analysis: &Analysis, made: &Made) -> bool {
    match made.function.as_str() {
        "system"
        | "popen"
        | "Popen"
        | "check_call"
        | "check_output"
        | "getoutput"
        | "getstatusoutput"
        | "create_subprocess_shell" => true,
        // Much else has functions of these names.
        "run" | "call" => match &made.receiver {
            Some(of) => of.symbol() == Some("subprocess"),
            None => analysis.imports.contains_key("subprocess"),
        },
        _ => false,
    }
}

fn given(command: &Traced) -> Vec<Command> {
    if let Some(line) = command.text() {
        return commands(line);
    }
    let word = |item: &Traced| item.text().unwrap_or(UNKNOWN).to_owned();
    let words = command.items().iter().map(word);
    let mut words: Vec<String> = words.skip_while(|word| leads(word)).collect();
    if words.is_empty() {
        words.push(UNKNOWN.to_owned());
    }
    vec![Command {
        words,
        into: Vec::new(),
    }]
}

/// Splits a line into its commands and those into words, as a shell would. What IPython computes, `{like(this)}`, is in one
/// word.
pub(crate) fn commands(line: &str) -> Vec<Command> {
    let mut splitter = Splitter {
        chars: line.char_indices().peekable(),
        last_brace: line.rfind('}').unwrap_or_default(),
        commands: Vec::new(),
        command: Command::default(),
        word: String::new(),
        goes: Goes::On,
    };
    while let Some((at, c)) = splitter.chars.next() {
        splitter.take(at, c);
    }
    splitter.end_command();
    splitter.commands
}

struct Splitter<'l> {
    chars: Peekable<CharIndices<'l>>,
    last_brace: usize,
    commands: Vec<Command>,
    command: Command,
    word: String,
    goes: Goes,
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// A word of the command.
    On,
    /// The file that its output goes to.
    Into,
    /// The file that its input comes from.
    From,
}

impl Splitter<'_> {
    fn take(&mut self, at: usize, c: char) {
        match c {
            '\'' | '"' => self.quoted(c),
            '\\' => match self.chars.next() {
                None | Some((_, '\n')) => {}
                Some((_, escaped)) => self.word.push(escaped),
            },
            '#' if self.word.is_empty() => while self.chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '{' if self.chars.peek().is_some_and(|(_, next)| !next.is_whitespace()) => self.computed(at),
            // `torch>=2` is what its author meant.
            '>' | '<' if self.word.chars().all(|c| c.is_ascii_digit()) => self.redirected(c),
            '&' if self.chars.peek().is_some_and(|(_, next)| *next == '>') => self.end_word(),
            '\n' | '&' | ';' | '|' | '(' | ')' | '`' => self.end_command(),
            c if c.is_whitespace() => self.end_word(),
            c => self.word.push(c),
        }
    }

    fn quoted(&mut self, quote: char) {
        while let Some((_, c)) = self.chars.next() {
            let escapes = |(_, next): &(usize, char)| matches!(next, '"' | '\\' | '$' | '`');
            match c {
                c if c == quote => return,
                '\\' if quote == '"' => self
                    .word
                    .push(self.chars.next_if(escapes).map_or(c, |(_, next)| next)),
                c => self.word.push(c),
            }
        }
    }

    fn computed(&mut self, at: usize) {
        self.word.push('{');
        let mut depth = usize::from(at < self.last_brace);
        while depth > 0
            && let Some((at, c)) = self.chars.next()
        {
            self.word.push(c);
            depth += usize::from(c == '{');
            depth -= usize::from(c == '}');
            depth *= usize::from(at < self.last_brace);
        }
    }

    fn redirected(&mut self, c: char) {
        self.word.clear();
        while self
            .chars
            .next_if(|(_, next)| matches!(next, '>' | '<' | '&' | '|' | '-'))
            .is_some()
        {}
        self.goes = if c == '>' { Goes::Into } else { Goes::From };
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        match std::mem::replace(&mut self.goes, Goes::On) {
            Goes::On if self.command.words.is_empty() && leads(&word) => {}
            Goes::On => self.command.words.push(word),
            Goes::Into if word != "/dev/null" && !word.chars().all(|c| c.is_ascii_digit()) => {
                self.command.into.push(word);
            }
            Goes::Into | Goes::From => {}
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.goes = Goes::On;
        let command = std::mem::take(&mut self.command);
        if command != Command::default() {
            self.commands.push(command);
        }
    }
}

fn leads(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let assigns = word.contains('=') && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    assigns || LEADING.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        for (line, expected) in [
            ("ls -l", vec!["ls -l"]),
            ("cd x && make;ls|wc", vec!["cd x", "make", "ls", "wc"]),
            ("cp 'My Data' \"a b\"", vec!["cp My_Data a_b"]),
            ("echo it\\'s; sudo x", vec!["echo it's", "sudo x"]),
            ("echo \"say \\\"a; b\\\"\"", vec!["echo say_\"a;_b\""]),
            ("# tools; x\nmake # not this\nls", vec!["make", "ls"]),
            (
                "if [ ! -d x ]; then cp a b; fi",
                vec!["[ ! -d x ]", "cp a b", "fi"],
            ),
            ("(A=1 time cp a b)", vec!["cp a b"]),
            ("cp a b 2>/dev/null", vec!["cp a b"]),
            ("cp a b > log 2>&1", vec!["cp a b >log"]),
            ("x &> all < in", vec!["x >all"]),
            ("cat << EOF >> y", vec!["cat >y"]),
            ("pip install torch>=2", vec!["pip install torch>=2"]),
            ("{sys.executable} -m x", vec!["{sys.executable} -m x"]),
            (
                "echo {len(x) + {1: '}'}[1]} b",
                vec!["echo {len(x)_+_{1:_'}'}[1]} b"],
            ),
            ("echo {; ls", vec!["echo {", "ls"]),
            ("echo $(date)", vec!["echo $", "date"]),
            ("ls \\\n  -l", vec!["ls -l"]),
            ("  ", vec![]),
        ] {
            let words = |command: &Command| {
                let into = command.into.iter().map(|file| format!(">{file}"));
                let all = command
                    .words
                    .iter()
                    .map(|word| word.replace(' ', "_"))
                    .chain(into);
                all.collect::<Vec<_>>().join(" ")
            };
            let found: Vec<String> = commands(line).iter().map(words).collect();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn of_magics_some_are_commands() {
        for (line, expected) in [
            ("!ls", Outside::Commands(commands("ls"))),
            ("!!ls", Outside::Commands(commands("ls"))),
            ("%sx ls", Outside::Commands(commands("ls"))),
            ("%time !ls", Outside::Commands(commands("ls"))),
            ("%rm -r x", Outside::Commands(commands("rm -r x"))),
            ("%matplotlib inline", Outside::Magic("matplotlib".into())),
            ("%cd", Outside::Magic("cd".into())),
        ] {
            assert_eq!(of_line(line), expected, "{line}");
        }
    }
}
