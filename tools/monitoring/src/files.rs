//! The files: which there are, and whether those in a folder are these.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{dashboards, keys::sorted, kubernetes, readme, rules};

/// A file of the folder.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Returns all of them.
pub(crate) fn all() -> Vec<File> {
    let mut files = vec![
        File {
            name: "README.md".to_owned(),
            text: readme::text(),
        },
        yaml("recording-rules.yaml", &rules::recording()),
        yaml("alerts-runs.yaml", &rules::of_runs()),
        yaml("alerts-devices.yaml", &rules::of_devices()),
        yaml("prometheus-rule.yaml", &kubernetes::prometheus_rule()),
        yaml("service-monitor.yaml", &kubernetes::service_monitor()),
    ];
    files.extend(dashboards::all().into_iter().map(|dashboard| File {
        name: format!("dashboards/{}.json", dashboard.uid),
        text: format!("{:#}\n", sorted(dashboard.json())),
    }));
    files
}

fn yaml(name: &str, content: &impl Serialize) -> File {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: 110 };
    let text = serde_saphyr::to_string_with_options(content, options).expect("it is made of text and lists");
    File {
        name: name.to_owned(),
        text: format!(
            "# Written by `cargo xtask dashboards`; change tools/monitoring and write it anew.\n{text}"
        ),
    }
}

/// Writes the files to a folder.
pub(crate) fn write(files: &[File], folder: &Path) -> Result<()> {
    for file in files {
        let path = folder.join(&file.name);
        let parent = path.parent().expect("it lies in the folder");
        fs::create_dir_all(parent).with_context(|| format!("could not make `{}`", parent.display()))?;
        fs::write(&path, &file.text).with_context(|| format!("could not write `{}`", path.display()))?;
    }
    Ok(())
}

/// Returns the names of files that are not in a folder as they should be.
pub(crate) fn differing<'a>(files: &'a [File], folder: &Path) -> Vec<&'a str> {
    let differs =
        |file: &&File| fs::read_to_string(folder.join(&file.name)).ok().as_deref() != Some(&file.text);
    files
        .iter()
        .filter(differs)
        .map(|file| file.name.as_str())
        .collect()
}
