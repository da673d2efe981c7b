//! Names that cells read and that have no value by then.

use blueproof_diagnostic::{Code, Diagnostic};

use super::{Subject, placeholder::is_constant};
use crate::analysis::{Given, Missing};

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let missing = subject.missing().filter(|missing| {
        let to_fill_in = is_constant(&missing.name) || subject.is_disabled(&missing.name);
        missing.given != Given::Never || !to_fill_in
    });
    missing.map(|missing| told(subject, missing)).collect()
}

fn told(subject: &Subject<'_>, missing: &Missing) -> Diagnostic {
    let name = &missing.name;
    let (message, hint) = match missing.given {
        Given::Later(at) if at.cell == missing.at.cell => (
            format!("`{name}` is read before line {} gives it a value", at.line),
            format!("give `{name}` a value above this line"),
        ),
        Given::Later(at) => (
            format!("`{name}` is read, and only cell {} gives it a value", at.cell),
            format!("move what gives `{name}` a value above cell {}", missing.at.cell),
        ),
        Given::Deleted => (
            format!("`{name}` is read after `del {name}`"),
            format!("give `{name}` a value again, or delete it later"),
        ),
        Given::Never => (
            format!("`{name}` is read and never given a value"),
            format!(
                "import `{name}` or give it a value; a cell that is meant to raise has the tag `raises-exception`"
            ),
        ),
    };
    subject
        .warning(Code::NameWithoutValue, missing.at, message)
        .hint(hint)
}
