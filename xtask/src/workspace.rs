//! What the chores know of the workspace: its packages, their features and what they depend on.
//!
//! Everything is read from `cargo metadata` once. The rest of xtask works on this and not on cargo's own types, so that
//! its tests can make a workspace up.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use cargo_metadata::{Dependency, DependencyKind, MetadataCommand, TargetKind};

/// The workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workspace {
    /// Its folder.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
    /// Its packages, in the order of their names.
    pub packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    /// Its name.
    pub name: String,
    /// Its folder, relative to the workspace.
    pub folder: String,
    /// Its features, without `default`, in the order of their names.
    pub features: Vec<String>,
    /// The packages that it names as dependencies of any kind, in the order of their names.
    pub dependencies: Vec<String>,
    /// Those of them that it names not only for its tests.
    pub shipped: Vec<String>,
    /// The names of its examples.
    pub examples: Vec<String>,
    /// Whether others can use it as a library.
    pub library: Library,
}

/// Whether a package has a library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Library {
    /// It has one.
    Present,
    /// It has only programs and tests.
    #[default]
    Absent,
}

impl Workspace {
    /// Reads the workspace that xtask itself belongs to. Nothing is fetched or resolved.
    pub(crate) fn load() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let metadata = MetadataCommand::new()
            .manifest_path(manifest)
            .no_deps()
            .exec()
            .context("could not read the workspace with `cargo metadata`")?;
        let root = metadata.workspace_root.into_std_path_buf();
        let mut packages: Vec<_> = metadata
            .packages
            .iter()
            .map(|package| Package::read(package, &root))
            .collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            target: metadata.target_directory.into_std_path_buf(),
            root,
            packages,
        })
    }

    /// Returns the package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    fn read(package: &cargo_metadata::Package, root: &Path) -> Self {
        let folder = package
            .manifest_path
            .parent()
            .expect("a manifest lies in a folder");
        let folder = folder
            .as_std_path()
            .strip_prefix(root)
            .unwrap_or(folder.as_std_path());
        let names = |is_meant: fn(&&Dependency) -> bool| {
            let names = package.dependencies.iter().filter(is_meant);
            let names: BTreeSet<_> = names.map(|dependency| dependency.name.clone()).collect();
            names.into_iter().collect()
        };
        let examples = package
            .targets
            .iter()
            .filter(|target| target.is_kind(TargetKind::Example));
        let library = package
            .targets
            .iter()
            .any(|target| target.is_kind(TargetKind::Lib));
        Self {
            name: package.name.to_string(),
            folder: folder.to_string_lossy().into_owned(),
            features: package
                .features
                .keys()
                .filter(|name| *name != "default")
                .cloned()
                .collect(),
            dependencies: names(|_| true),
            shipped: names(|dependency| dependency.kind != DependencyKind::Development),
            examples: examples.map(|target| target.name.clone()).collect(),
            library: if library {
                Library::Present
            } else {
                Library::Absent
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_workspace_is_read_with_folders_features_and_dependencies() {
        let workspace = Workspace::load().expect("the workspace that these tests are part of can be read");

        let core = workspace.package("blueproof-core").expect("core is a package");
        assert_eq!(core.folder, "crates/core");
        assert_eq!(core.library, Library::Present);
        assert!(!core.features.contains(&"default".to_owned()));

        let xtask = workspace.package("xtask").expect("xtask is a package");
        assert_eq!(xtask.library, Library::Absent);
        assert!(xtask.dependencies.contains(&"clap".to_owned()));
        assert!(workspace.root.join("xtask/Cargo.toml").is_file());
    }
}
