//! The queue's objects as Kueue's own YAML: read with every mistake at its place, and written so that Kueue takes them.
//!
//! The kinds are ClusterQueue, Cohort, LocalQueue, ResourceFlavor and WorkloadPriorityClass of `kueue.x-k8s.io/v1beta2`,
//! lists of them, and the parts about fair sharing of Kueue's Configuration. Objects of `v1beta1` are converted as Kueue
//! converts them. What a cluster adds to its objects (status,
//! metadata beyond names) is passed over. A field that changes what Kueue decides and that the embedded queue does not
//! have is refused by name: nothing is ignored that would be missed.
//!
//! ```
//! use blueproof_queue::manifest::{self, File};
//!
//! let text = "
//! apiVersion: kueue.x-k8s.io/v1beta2
//! kind: WorkloadPriorityClass
//! metadata: {name: high}
//! value: 10
//! ";
//! let file = File { name: "queues.yaml".into(), text: text.into() };
//! let manifest = manifest::read([file])?;
//! assert_eq!(manifest.objects.priority_classes["high"], 10);
//! # Ok::<(), Vec<blueproof_diagnostic::Diagnostic>>(())
//! ```

mod admission;
mod assemble;
mod documents;
mod kinds;
mod local;
mod older;
mod references;
mod resources;
mod rules;
#[cfg(test)]
mod tests;
mod usage;
mod values;
mod versions;
mod write;

use blueproof_diagnostic::{
    Diagnostic, Severity,
    yaml::{Format, Placeholders, Problems, Source},
};

use super::objects::Objects;

pub use kinds::Toleration as TolerationSpec;
pub use resources::{in_right_case, wrong_case};
pub use values::{Amount, Span, is_label_key, is_label_value};
pub use write::{Document, amount, documents, write};

/// What a file with objects ought to be.
static FORMAT: Format = Format {
    name: "Kueue's objects",
    kinds: "keys and values are those of kueue.x-k8s.io/v1beta2",
    missing: "Kueue needs it, too",
    placeholders: Placeholders::None,
    most_nodes: 10_000_000,
};

/// A file with objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What errors call it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What files say.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// All of their objects.
    pub objects: Objects,
    /// What Kueue takes, and what is likely not meant.
    pub warnings: Vec<Diagnostic>,
    /// The files in which there is no object.
    pub empty: Vec<String>,
}

/// Reads files as one: an object of one may refer to those of another.
///
/// # Errors
///
/// All that is wrong, file by file, and what is likely not meant.
pub fn read(files: impl IntoIterator<Item = File>) -> Result<Manifest, Vec<Diagnostic>> {
    let sources: Vec<Source> = files.into_iter().map(source).collect();
    let mut problems: Vec<Problems<'_>> = sources.iter().map(Problems::new).collect();
    let declared = documents::declared(&sources, &mut problems);
    rules::check(&declared, &mut problems);
    local::check(&declared, &mut problems);
    resources::check(&declared, &mut problems);
    usage::weights(&declared, &mut problems);
    usage::users_elsewhere(&declared, &mut problems);
    admission::check(&declared, &mut problems);
    // An object that could not be read is not one that is missing.
    if !has_errors(problems.iter().flat_map(Problems::found)) {
        references::check(&declared, &mut problems);
        usage::check(&declared, &mut problems);
    }
    let found: Vec<Diagnostic> = problems.into_iter().flat_map(Problems::into_found).collect();
    if has_errors(&found) {
        return Err(found);
    }
    let empty = sources.iter().zip(&declared.counts);
    let empty = empty.filter(|(_, count)| **count == 0);
    let empty = empty.map(|(source, _)| source.file.clone()).collect();
    Ok(Manifest {
        objects: assemble::objects(declared),
        warnings: found,
        empty,
    })
}

fn has_errors<'a>(found: impl IntoIterator<Item = &'a Diagnostic>) -> bool {
    found.into_iter().any(|found| found.severity == Severity::Error)
}

fn source(file: File) -> Source {
    Source {
        file: file.name,
        text: file.text,
        format: &FORMAT,
    }
}
