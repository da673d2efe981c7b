//! `blueproof explain CODE`.

use blueproof_core::diagnostic::{Code, Diagnostic};

use crate::{
    cli::Explain,
    exit::{Exit, Problem},
};

pub(crate) fn explain(arguments: &Explain) -> Result<Exit, Problem> {
    let code: Code = arguments.code.parse().map_err(|error| {
        let unknown =
            Diagnostic::error(Code::Usage, format!("no code {} is known", arguments.code)).caused_by(&error);
        Problem::usage(
            unknown.hint("codes stand in brackets after `error` and `warning`, as in error[BP0203]"),
        )
    })?;
    anstream::println!("{code}: {}\n\n{}", code.title(), code.explanation());
    Ok(Exit::Ok)
}
