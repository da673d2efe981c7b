//! `blueproof explain [CODE]`.

use blueproof_core::diagnostic::{Code, Diagnostic};

use crate::{
    cli::Explain,
    exit::{Exit, Problem},
    output::{self, Table},
};

pub(crate) fn explain(arguments: &Explain) -> Result<Exit, Problem> {
    let answer = match &arguments.code {
        Some(code) => {
            let code = parse(code)?;
            format!("{code}: {}\n\n{}\n", code.title(), code.explanation())
        }
        None => all().render(output::width()),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

fn parse(text: &str) -> Result<Code, Problem> {
    text.parse().map_err(|error| {
        let unknown = Diagnostic::error(Code::Usage, format!("no code {text} is known")).caused_by(&error);
        Problem::usage(unknown.hint("`blueproof explain` lists every code"))
    })
}

fn all() -> Table {
    let mut table = Table::new(["CODE", "MEANS"]);
    for code in Code::ALL {
        table.row([code.to_string().into(), code.title().into()]);
    }
    table
}
