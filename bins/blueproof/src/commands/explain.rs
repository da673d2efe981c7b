//! `blueproof explain [CODE]`.

use blueproof_diagnostic::{Code, Diagnostic};

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
    text.parse().map_err(|_| {
        let message = format!("there is no code {}", output::line(text));
        let unknown = Diagnostic::error(Code::Usage, message);
        let unknown = match similar(text).as_slice() {
            [] => unknown.hint(format!(
                "codes go from {} to {}",
                Code::ALL[0],
                Code::ALL[Code::ALL.len() - 1]
            )),
            codes => unknown.hint(format!("did you mean {}?", codes.join(", "))),
        };
        Problem::usage(unknown.hint("`blueproof explain` lists every code with what it means"))
    })
}

/// Returns codes that differ in one digit from what was typed.
fn similar(text: &str) -> Vec<String> {
    const MOST: usize = 3;
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let typed = format!("BP{digits}");
    let distance = |code: &str| strsim::damerau_levenshtein(&typed, code);
    let mut codes: Vec<String> = Code::ALL.iter().map(ToString::to_string).collect();
    codes.retain(|code| distance(code) <= 1);
    codes.truncate(MOST);
    codes
}

fn all() -> Table {
    let mut table = Table::new(["CODE", "MEANS"]);
    for code in Code::ALL {
        table.row([code.to_string().into(), code.title().into()]);
    }
    table
}
