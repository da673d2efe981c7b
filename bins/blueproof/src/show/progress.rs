//! Where the stages of a run are shown while it goes on: on stderr, each line once, and below them what is going on
//! now where there is a terminal that can be written over.

use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use anstyle::AnsiColor;
use blueproof_diagnostic::Diagnostic;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use super::{
    aside,
    stages::{Line, Mark, Stages},
    text::{duration, wrapped},
};
use crate::output;

/// How often it is said again what is going on, where nothing can be written over.
const SAY_AGAIN: jiff::SignedDuration = jiff::SignedDuration::from_secs(30);

/// How long a stage goes on before it is said for the first time there.
const SAY_FIRST: jiff::SignedDuration = jiff::SignedDuration::from_secs(5);

/// Where what is said of a stage begins, behind its name and mark.
const INDENT: usize = 12;

/// Shows stages as they are passed.
pub(crate) struct Progress {
    bar: ProgressBar,
    live: Live,
    said_at: Option<Timestamp>,
    /// The stage of which it was said last that it goes on.
    said: String,
}

/// Prints lines above everything that moves.
pub(crate) struct Say {
    bar: ProgressBar,
}

impl Say {
    /// Prints a line on stderr, which may be gone: a run does not end with its terminal.
    pub(crate) fn line(&self, line: &str) {
        self.bar.suspend(|| output::note(line));
    }

    /// Prints what is wrong beside the run.
    pub(crate) fn warning(&self, warning: &Diagnostic) {
        self.bar.suspend(|| aside(warning));
    }
}

/// Whether what was shown can be written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Live {
    Yes,
    No,
}

impl Progress {
    /// Returns a display on stderr. In CI, and where stderr is no terminal, there is no line that moves.
    pub(crate) fn new() -> Self {
        let live = if stderr().is_terminal() && std::env::var_os("CI").is_none() {
            Live::Yes
        } else {
            Live::No
        };
        let target = match live {
            Live::Yes => ProgressDrawTarget::stderr(),
            Live::No => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("  {prefix:<7} {spinner} {wide_msg}")
            .expect("a template that is fixed");
        bar.set_style(style.tick_strings(&["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", " "]));
        Self {
            bar,
            live,
            said_at: None,
            said: String::new(),
        }
    }

    /// Returns what prints lines above everything that moves.
    pub(crate) fn speaker(&self) -> Say {
        Say {
            bar: self.bar.clone(),
        }
    }

    /// Returns how wide the terminal is, where there is one.
    fn columns(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(stderr());
        match self.live {
            Live::Yes => Some(size.map_or(80, |(width, _)| width.0.into())),
            Live::No => None,
        }
    }

    fn say(&self, line: &str) {
        self.speaker().line(line);
    }

    /// Shows what is new.
    pub(crate) fn show(&mut self, stages: &mut Stages, now: Timestamp) {
        for line in stages.take_lines() {
            self.say(&coloured(&line, self.columns()));
            self.said_at = Some(now);
        }
        match (stages.doing(), self.live) {
            (None, _) => self.bar.finish_and_clear(),
            (Some((stage, text, since)), Live::Yes) => {
                let took = since
                    .map(|since| format!("{}  ", duration(now.duration_since(since))))
                    .unwrap_or_default();
                // It was taken away where nothing went on for a moment between two stages.
                if self.bar.is_finished() {
                    self.bar.reset();
                }
                self.bar.enable_steady_tick(Duration::from_millis(100));
                self.bar.set_prefix(stage);
                self.bar.set_message(format!("{took}{text}"));
            }
            (Some((stage, text, since)), Live::No) => self.say_again(stage, &text, since, now),
        }
    }

    fn say_again(&mut self, stage: &str, text: &str, since: Option<Timestamp>, now: Timestamp) {
        let last = self.said_at.or(since).unwrap_or(now);
        let patience = if self.said == stage { SAY_AGAIN } else { SAY_FIRST };
        if now.duration_since(last) >= patience {
            self.say(&format!("  {stage:<7} … {text}"));
            (self.said_at, self.said) = (Some(now), stage.to_owned());
        } else {
            self.said_at = Some(last);
        }
    }

    /// Takes away what moves.
    pub(crate) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns a line as a person sees it: in a terminal in several, where it is longer than that is wide.
fn coloured(line: &Line, columns: Option<usize>) -> String {
    let style = match line.mark {
        Mark::Well => AnsiColor::Green.on_default(),
        Mark::Badly => AnsiColor::Red.on_default().bold(),
        Mark::Note => AnsiColor::Yellow.on_default(),
    };
    let text = match columns {
        Some(columns) => wrapped(&line.text(), columns, INDENT),
        None => line.text(),
    };
    let Some((before, rest)) = text.split_once(['✓', '✗', '!']) else {
        return text;
    };
    let mark = &text[before.len()..text.len() - rest.len()];
    format!("{before}{style}{mark}{style:#}{rest}")
}
