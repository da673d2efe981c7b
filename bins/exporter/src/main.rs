//! What the GPUs of this machine are and do, for Prometheus.
//!
//! Arguments in, pages or a job's summary out. Devices are read, and pages written, in `blueproof-gpu`.

mod attempts;
mod cli;
mod dropin;
mod exporter;
mod files;
mod gzip;
mod health;
mod health_command;
mod job;
mod owners;
mod server;
mod signals;
mod web;

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

use blueproof_core::metrics::Format;
use blueproof_diagnostic::{Code, Diagnostic};
use clap::{
    CommandFactory as _,
    error::{ContextKind, ContextValue},
};

use self::{
    cli::{Cli, Command},
    exporter::{Coding, Exporter, Wanted},
    web::Web,
};

/// How long somebody waits who wants to see one page: as long as Prometheus does by default.
const ONCE_WITHIN: Duration = Duration::from_secs(10);

/// The exit code for options that are not understood, as clap has it, and for files that they name and that are wrong.
const USAGE: u8 = 2;

/// The exit code for what may go better another time, as everywhere in blueproof.
const INFRASTRUCTURE: u8 = 3;

fn main() -> ExitCode {
    let variables = env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    });
    // What templates leave of a value that is not set is not set.
    let variables = variables.filter(|(_, value)| !value.is_empty());
    let arguments = match dropin::without_others(env::args_os(), variables) {
        Ok(arguments) => arguments,
        Err(diagnostics) => {
            diagnostics.iter().for_each(tell);
            return ExitCode::from(USAGE);
        }
    };
    let cli = match Cli::understood(arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            tell(&misunderstood(&error));
            return ExitCode::from(USAGE);
        }
        // Help and the version are printed, and the process ends.
        Err(error) => error.exit(),
    };
    let ended = match &cli.command {
        Some(Command::Job(arguments)) => job::job(arguments).map_err(Failed::of),
        Some(Command::Health(arguments)) => health_command::run(arguments).map_err(Failed::of),
        None => run(&cli).map(|()| ExitCode::SUCCESS),
    };
    match ended {
        Ok(code) => code,
        Err(failed) => {
            failed.diagnostics.iter().for_each(tell);
            ExitCode::from(failed.code)
        }
    }
}

/// Why it could not do what it was asked, and what the process ends with.
struct Failed {
    diagnostics: Vec<Diagnostic>,
    code: u8,
}

impl Failed {
    /// Returns one of what was configured, which goes no better another time.
    fn configured(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            diagnostics,
            code: USAGE,
        }
    }

    /// Returns one of anything else, where only what was typed goes no better another time.
    fn of(diagnostic: Diagnostic) -> Self {
        let is_typed = matches!(
            diagnostic.code,
            Code::Usage | Code::FileMissing | Code::GpuRecording
        );
        Self {
            diagnostics: vec![diagnostic],
            code: if is_typed { USAGE } else { INFRASTRUCTURE },
        }
    }
}

/// Returns the variable that has what is wrong, where no argument does.
fn variable_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let mut command = Cli::command();
    command.build();
    let option = command
        .get_arguments()
        .find(|option| option.to_string() == *wrong)?;
    let variable = option.get_env().filter(|name| env::var_os(name).is_some())?;
    let long = option.get_long().map(|long| format!("--{long}"));
    let short = option.get_short().map(|short| format!("-{short}"));
    let names = [long, short];
    let is_given = env::args().any(|argument| {
        let mut names = names.iter().flatten();
        names.any(|name| argument.starts_with(name))
    });
    (!is_given).then(|| variable.to_string_lossy().into_owned())
}

/// Says in the way of every other error what was typed that nobody understands.
fn misunderstood(error: &clap::Error) -> Diagnostic {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default();
    let wrong = Diagnostic::error(Code::Usage, message.trim_start_matches("error: "));
    let told = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let wrong = told.fold(wrong, |wrong, line| match line.strip_prefix("tip: ") {
        Some(tip) => wrong.hint(tip),
        None => wrong.because(line),
    });
    let variable = variable_of(error).map(|name| format!("the variable {name} says so"));
    variable
        .into_iter()
        .fold(wrong, Diagnostic::because)
        .hint("there are the commands `job` and `health`; `--help` shows all options")
}

fn run(cli: &Cli) -> Result<(), Failed> {
    let of_dcgm = cli.drop_in.web_config_file.as_ref();
    let web = cli.web_config.as_ref().or(of_dcgm);
    let web = web.map(|path| Web::read(path)).transpose();
    let web = web.map_err(Failed::configured)?;
    let settings = dropin::settings(cli).map_err(|diagnostic| Failed::configured(vec![diagnostic]))?;
    let listen = settings.listen.clone();
    let exporter = Exporter::start(cli, settings).map_err(Failed::of)?;
    let ended = if cli.once {
        once(&exporter)
    } else {
        server::serve(exporter, &listen, web)
    };
    ended.map_err(Failed::of)
}

/// Prints the page, also where it says that nothing can be read, and why on the side.
fn once(exporter: &Exporter) -> Result<(), Diagnostic> {
    let wanted = Wanted {
        page: exporter.page,
        format: Format::Prometheus,
        coding: Coding::Identity,
    };
    let answer = exporter.answer(wanted, ONCE_WITHIN);
    let mut out = io::stdout().lock();
    // Whoever closed the pipe has seen enough.
    let _ = out.write_all(&answer.page).and_then(|()| out.flush());
    answer.silent.iter().chain(&answer.unread).for_each(tell);
    answer.blind.map_or(Ok(()), Err)
}

/// Tells a person what is wrong, on the side.
pub(crate) fn tell(diagnostic: &Diagnostic) {
    let _ = writeln!(io::stderr(), "{diagnostic:#}");
}
