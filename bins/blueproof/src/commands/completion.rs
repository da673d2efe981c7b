//! `blueproof completion SHELL`.

use blueproof_diagnostic::{Code, Diagnostic};

use crate::{
    cli::Completion,
    complete,
    exit::{Exit, Problem},
    output,
};

pub(crate) fn completion(arguments: &Completion) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    complete::write_script(arguments.shell, &mut script).map_err(|error| {
        Problem::usage(Diagnostic::error(Code::Usage, "the script could not be made").caused_by(&error))
    })?;
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
