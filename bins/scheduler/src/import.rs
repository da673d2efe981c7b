//! `blueproof-scheduler import arc`: from the values of GitHub's chart to a file of ours.

use blueproof_diagnostic::Diagnostic;
use blueproof_runners::arc;

use crate::{cli::Arc, github::secrets};

pub(crate) fn arc(arguments: &Arc) -> Result<(), Diagnostic> {
    let text = secrets::text(&arguments.values)?;
    let file = arguments.values.display().to_string();
    let imported = arc::import(&file, text, arguments.name.as_deref())?;
    print!("{}", imported.text);
    for note in &imported.notes {
        eprintln!("not carried over: {}: {}", note.path, note.why);
    }
    Ok(())
}
