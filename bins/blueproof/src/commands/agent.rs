//! `blueproof agent FOLDER`: one attempt, in a process of its own.

use blueproof_core::attempt::{AttemptLayout, Orders};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_notebook::{Launcher, agent, agent::Dependencies, launch};

use crate::{
    cli::{Agent, Launch},
    exit::{Exit, Problem},
    session::own_program,
};

/// Carries out an attempt. How it ended is in its log.
pub(crate) fn agent(arguments: &Agent) -> Result<Exit, Problem> {
    let layout = AttemptLayout::new(&arguments.folder);
    let launcher = Launcher::new(own_program()?, ["agent-launch"]);
    let dependencies = Dependencies::standard(&layout, launcher, blueproof_machine::meter(&layout));
    let orders = Orders::read(std::io::stdin()).map_err(|error| not_ordered(&error))?;
    match agent::run(&layout, orders, dependencies) {
        Ok(()) => Ok(Exit::Ok),
        Err(error) => {
            let diagnostic = Diagnostic::error(Code::AttemptFolder, "the attempt could not be carried out");
            let diagnostic = diagnostic
                .at(SourceLocation::file(arguments.folder.display().to_string()))
                .caused_by(&error);
            Err(Problem {
                diagnostics: vec![diagnostic],
                exit: Exit::Infrastructure,
            })
        }
    }
}

/// Says that nobody who drives a store has started this.
fn not_ordered(error: &std::io::Error) -> Problem {
    let message = "an agent is started by `blueproof run`, which tells it on its input what to do";
    let diagnostic = Diagnostic::error(Code::AgentNotStarted, message).caused_by(error);
    Problem::usage(diagnostic.hint("run the blueprint with `blueproof run`"))
}

/// Becomes another program that dies with its parent. Returns only when that failed.
pub(crate) fn become_program(arguments: Launch) -> Result<Exit, Problem> {
    let error = launch(arguments.arguments);
    let diagnostic =
        Diagnostic::error(Code::AgentNotStarted, "could not become another program").caused_by(&error);
    Err(Problem {
        diagnostics: vec![diagnostic],
        exit: Exit::Infrastructure,
    })
}
