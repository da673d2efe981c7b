//! `blueproof get blueprints`: what this checkout has to be tested.

use std::{collections::BTreeMap, env, path::Path};

use blueproof_core::domain::{Amounts, Resources};
use blueproof_notebook::{
    blueprint::{self, Blueprint, Found},
    text::shell_word,
};
use blueproof_queue::Quantity;
use serde::Serialize;

use crate::{
    cli::GetBlueprints,
    current_project::CurrentProject,
    exit::{Exit, Problem},
    output::{self, Cell, Document, Encoding, Format, Table},
    show::{looking::Looking, text},
};

/// A blueprint as it is listed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    path: String,
    profiles: Vec<String>,
    /// What it asks for without a profile; absent where the blueprint has mistakes.
    resources: Option<Resources>,
    /// What it asks for of further resources, by their Kubernetes names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    further_resources: BTreeMap<String, Quantity>,
    mistakes: usize,
}

/// Returns the blueprints of this checkout. Where there was too much to look at, that is said.
pub(super) fn of_this_checkout() -> Result<Vec<Found>, Problem> {
    let here = CurrentProject::of_this_process()?;
    let mut looking = Looking::begin();
    let listing = blueprint::list(here.checkout(), &mut |path| looking.at(path));
    drop(looking);
    if let Some(at) = &listing.stopped_at {
        output::note(&format!(
            "there is too much to look at in {}: it ended at {}, and what comes after that is left out; \
             change into a checkout",
            shell_word(here.checkout()),
            shell_word(at)
        ));
    }
    Ok(listing.found)
}

/// Lists every blueprint, those with mistakes too.
pub(crate) fn get_blueprints(arguments: &GetBlueprints) -> Result<Exit, Problem> {
    let listed: Vec<Listed> = of_this_checkout()?.into_iter().map(look_at).collect();
    let document = |encoding| {
        output::encode(
            &Document::list("BlueprintList", "BlueprintSummary", &listed),
            encoding,
        )
    };
    let answer = match arguments.output {
        Some(Format::Json) => document(Encoding::Json)?,
        Some(Format::Yaml) => document(Encoding::Yaml)?,
        Some(Format::Name) => listed.iter().map(|one| format!("{}\n", one.name)).collect(),
        Some(Format::Wide) => table(&listed, Path::new("")).render(output::width()),
        None => table(&listed, &env::current_dir().unwrap_or_default()).render(output::width()),
    };
    output::print(&answer)?;
    if listed.is_empty() {
        output::note("no blueprint.yaml here or below: `blueproof init NOTEBOOK` writes one");
    }
    Ok(Exit::Ok)
}

fn look_at(found: Found) -> Listed {
    let (name, path) = (found.name, found.path.display().to_string());
    match Blueprint::load(&found.path).and_then(|loaded| Ok((loaded.resolve(None, &[])?, loaded))) {
        Ok((resolved, loaded)) => Listed {
            name,
            path,
            profiles: loaded.profiles().map(str::to_owned).collect(),
            resources: Some(resolved.pod_sets.resources()),
            further_resources: resolved.pod_sets.further(),
            mistakes: 0,
        },
        Err(mistakes) => Listed {
            name,
            path,
            profiles: Vec::new(),
            resources: None,
            further_resources: BTreeMap::new(),
            mistakes: mistakes.len(),
        },
    }
}

/// Returns a table in which files below this folder are named from there.
fn table(listed: &[Listed], folder: &Path) -> Table {
    let mut table = Table::new(["BLUEPRINT", "ASKS", "PROFILES", "FILE"]);
    for one in listed {
        let asks = match one.resources {
            Some(resources) => Amounts {
                resources,
                further: &one.further_resources,
            }
            .to_string(),
            None => format!(
                "{}: see `blueproof check`",
                text::counted(one.mistakes, "mistake")
            ),
        };
        let file = Path::new(&one.path);
        let file = file.strip_prefix(folder).unwrap_or(file).display().to_string();
        table.row([&one.name, &asks, &one.profiles.join(","), &file].map(|text| Cell::from(text.as_str())));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Width;

    #[test]
    fn files_below_the_current_folder_are_named_from_there_and_others_in_full() {
        let one = |name: &str, path: &str| Listed {
            name: name.into(),
            path: path.into(),
            profiles: Vec::new(),
            resources: None,
            further_resources: BTreeMap::new(),
            mistakes: 1,
        };
        let listed = [
            one("a", "/home/user/lab/a/blueprint.yaml"),
            one("b", "/home/user/b/blueprint.yaml"),
        ];
        let shown = table(&listed, Path::new("/home/user/lab")).render(Width::Unlimited);
        assert!(
            shown.contains(" a/blueprint.yaml\n") && shown.contains(" /home/user/b/blueprint.yaml\n"),
            "{shown}"
        );
    }
}
