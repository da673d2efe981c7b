//! Which package may use which.
//!
//! `core` decides, with a few crates below and above it, in a row in which each knows only those before it. Adapters know
//! these, and the base, and never each other; programs and tests put them together. Libraries that speak to the outside stay in the one crate
//! that adapts them, so that their types cannot spread.

use super::Complaint;
use crate::workspace::{Package, Workspace};

/// What a package is, by the folder that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// One of [`DECIDING`], by its place there.
    Deciding(usize),
    /// One of [`BASE`].
    Base,
    /// Any other folder in `crates`.
    Adapter,
    /// One of [`TOGETHER`].
    Together,
    /// A folder in `bins`.
    Program,
    /// `tests`: the parts together.
    Tests,
    /// A folder in `tests`: something that stands in for the outside.
    StandIn,
    /// A folder in `tools`, which nobody is given: what holds a part of ours to somebody else's, or writes files from ours.
    Tool,
    /// `xtask`.
    Chores,
    /// Anywhere else.
    Unknown,
}

/// The crates that see no outside, the lowest first. Each may use those before it.
const DECIDING: [&str; 4] = [
    "crates/diagnostic",
    "crates/queue",
    "crates/core",
    "crates/simulation",
];

/// The crates that know nothing of ours, and that adapters and programs have in common.
const BASE: [&str; 2] = ["crates/http", "crates/scale-set"];

/// The crates that put adapters together, for more than one program.
const TOGETHER: [&str; 1] = ["crates/machine"];

/// Outside libraries, and the only packages that are shipped whose code may name each.
const OWNED: [(&str, &str); 13] = [
    ("jupyter-protocol", "crates/notebook"),
    ("jupyter-zmq-client", "crates/notebook"),
    ("k8s-openapi", "crates/cluster"),
    ("kube", "crates/cluster"),
    ("nbformat", "crates/notebook"),
    ("nvml-wrapper", "crates/gpu"),
    ("octocrab", "crates/github"),
    ("prost", "crates/cluster"),
    ("rusqlite", "crates/core"),
    // Its ledger is no part of the log: it is of one machine's runners.
    ("rusqlite", "crates/runners"),
    // It stands on nothing of ours, and keeps its own messages.
    ("rusqlite", "crates/scale-set"),
    ("tonic", "crates/cluster"),
    ("tonic-prost", "crates/cluster"),
];

/// Returns a complaint for each dependency, of whatever kind, that the layers do not allow.
pub(super) fn check(workspace: &Workspace) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for package in &workspace.packages {
        let layer = Layer::of(&package.folder);
        if layer == Layer::Unknown {
            complaints.push(complaint(
                package,
                "packages lie in crates/, bins/, tests, tools/ or xtask".into(),
            ));
            continue;
        }
        for name in &package.dependencies {
            complaints.extend(judge(layer, package, name, workspace));
        }
    }
    complaints
}

fn judge(layer: Layer, package: &Package, name: &str, workspace: &Workspace) -> Option<Complaint> {
    if let Some(other) = workspace.package(name) {
        let itself = other.name == package.name;
        let other = Layer::of(&other.folder);
        let is_shipped = package.shipped.iter().any(|shipped| shipped == name);
        let allowed = itself || layer.may_use(other) || layer.may_test_with(other) && !is_shipped;
        let message = || format!("`{}` must not depend on `{name}`: {}", package.name, layer.rule());
        return (!allowed).then(|| complaint(package, message()));
    }
    let (_, owner) = OWNED.iter().find(|(owned, _)| *owned == name)?;
    let owns = |(owned, folder): &(&str, &str)| *owned == name && package.folder == *folder;
    let allowed = OWNED.iter().any(owns) || matches!(layer, Layer::Tests | Layer::StandIn | Layer::Tool);
    let message = || {
        format!(
            "`{}` must not depend on `{name}`: only {owner} talks to it",
            package.name
        )
    };
    (!allowed).then(|| complaint(package, message()))
}

fn complaint(package: &Package, message: String) -> Complaint {
    Complaint {
        file: format!("{}/Cargo.toml", package.folder),
        line: None,
        message,
    }
}

impl Layer {
    fn of(folder: &str) -> Self {
        let parts: Vec<_> = folder.split(['/', '\\']).collect();
        if let Some(place) = DECIDING.iter().position(|deciding| *deciding == parts.join("/")) {
            return Layer::Deciding(place);
        }
        if BASE.contains(&parts.join("/").as_str()) {
            return Layer::Base;
        }
        if TOGETHER.contains(&parts.join("/").as_str()) {
            return Layer::Together;
        }
        match parts[..] {
            ["crates", _] => Layer::Adapter,
            ["bins", _] => Layer::Program,
            ["tests"] => Layer::Tests,
            ["tests", _] => Layer::StandIn,
            ["tools", _] => Layer::Tool,
            ["xtask"] => Layer::Chores,
            _ => Layer::Unknown,
        }
    }

    fn may_use(self, other: Layer) -> bool {
        match self {
            Layer::Base | Layer::StandIn | Layer::Chores | Layer::Unknown => false,
            Layer::Deciding(place) => matches!(other, Layer::Deciding(other) if other < place),
            Layer::Adapter => matches!(other, Layer::Deciding(_) | Layer::Base),
            Layer::Together => other.is_part(),
            Layer::Program | Layer::Tool => other.is_part() || other == Layer::Together,
            Layer::Tests => other.is_part() || matches!(other, Layer::Together | Layer::Program),
        }
    }

    /// Returns whether programs are made of such packages.
    fn is_part(self) -> bool {
        matches!(self, Layer::Deciding(_) | Layer::Base | Layer::Adapter)
    }

    /// Returns whether such a package's tests may use another, and nothing else of it.
    fn may_test_with(self, other: Layer) -> bool {
        let tests_parts = matches!(
            self,
            Layer::Adapter | Layer::Together | Layer::Program | Layer::Tests | Layer::Tool
        );
        tests_parts && other == Layer::StandIn
    }

    fn rule(self) -> &'static str {
        match self {
            Layer::Deciding(_) => "of diagnostic, queue, core and simulation each knows only those before it",
            Layer::Base => "what adapters have in common knows nothing of ours",
            Layer::Adapter => "adapters depend on crates that decide, and never on each other",
            Layer::Together => "what puts adapters together knows no program",
            Layer::Program => "programs put crates together, and no program is part of another",
            Layer::Tests => "chores and tools are not under test from there",
            Layer::StandIn => "what stands in for the outside knows nothing of ours",
            Layer::Tool => "tools use crates, and are part of nothing",
            Layer::Chores => "xtask must build when our crates do not",
            Layer::Unknown => "packages lie in crates/, bins/, tests, tools/ or xtask",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is said of a workspace with a package in each layer, where `folder` depends on `dependency`.
    fn said(folder: &str, dependency: &str) -> Vec<String> {
        said_of(folder, dependency, true)
    }

    fn said_of(folder: &str, dependency: &str, is_shipped: bool) -> Vec<String> {
        let folders = [
            "crates/diagnostic",
            "crates/queue",
            "crates/core",
            "crates/simulation",
            "crates/http",
            "crates/machine",
            "crates/gpu",
            "crates/cluster",
            "bins/blueproof",
            "tests",
            "tests/fake",
            "tools/judge",
            "xtask",
            "extra",
        ];
        let package = |of: &&str| Package {
            name: of.replace('/', "-"),
            folder: (*of).to_owned(),
            dependencies: Vec::from_iter((*of == folder).then(|| dependency.to_owned())),
            shipped: Vec::from_iter((*of == folder && is_shipped).then(|| dependency.to_owned())),
            ..Package::default()
        };
        let mut packages: Vec<_> = folders.iter().map(package).collect();
        packages.retain(|package| package.folder != "extra" || folder == "extra");
        let workspace = Workspace {
            packages,
            ..Workspace::default()
        };
        check(&workspace).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn edges_that_the_layers_do_not_allow_are_found() {
        let never_on_each_other = "adapters depend on crates that decide, and never on each other";
        let in_a_row = "of diagnostic, queue, core and simulation each knows only those before it";
        for (folder, dependency, why) in [
            ("crates/core", "crates-gpu", in_a_row),
            ("crates/core", "crates-simulation", in_a_row),
            ("crates/queue", "crates-core", in_a_row),
            ("crates/diagnostic", "crates-queue", in_a_row),
            ("crates/core", "crates-http", in_a_row),
            (
                "crates/http",
                "crates-core",
                "what adapters have in common knows nothing of ours",
            ),
            ("crates/gpu", "crates-cluster", never_on_each_other),
            (
                "crates/machine",
                "bins-blueproof",
                "what puts adapters together knows no program",
            ),
            ("crates/gpu", "bins-blueproof", never_on_each_other),
            (
                "bins/blueproof",
                "xtask",
                "programs put crates together, and no program is part of another",
            ),
            (
                "tools/judge",
                "bins-blueproof",
                "tools use crates, and are part of nothing",
            ),
            (
                "tests/fake",
                "crates-core",
                "what stands in for the outside knows nothing of ours",
            ),
            ("crates/gpu", "tests-fake", never_on_each_other),
            (
                "tests",
                "tools-judge",
                "chores and tools are not under test from there",
            ),
            ("xtask", "crates-core", "xtask must build when our crates do not"),
            ("tests", "xtask", "chores and tools are not under test from there"),
            ("crates/gpu", "kube", "only crates/cluster talks to it"),
            ("bins/blueproof", "octocrab", "only crates/github talks to it"),
        ] {
            let name = folder.replace('/', "-");
            let expected = format!("{folder}/Cargo.toml: `{name}` must not depend on `{dependency}`: {why}");
            assert_eq!(said(folder, dependency), [expected]);
        }
    }

    #[test]
    fn edges_that_the_layers_allow_are_not_complained_of() {
        for (folder, dependency) in [
            ("crates/gpu", "crates-core"),
            ("crates/gpu", "crates-http"),
            ("bins/blueproof", "crates-http"),
            ("bins/blueproof", "crates-machine"),
            ("crates/machine", "crates-gpu"),
            ("crates/gpu", "crates-diagnostic"),
            ("crates/core", "crates-core"),
            ("crates/core", "crates-queue"),
            ("crates/simulation", "crates-core"),
            ("bins/blueproof", "crates-gpu"),
            ("tests", "bins-blueproof"),
            ("tools/judge", "crates-core"),
            ("tools/judge", "crates-gpu"),
            ("tests", "kube"),
            ("tests/fake", "kube"),
            ("tools/judge", "kube"),
            ("crates/cluster", "kube"),
            ("crates/core", "serde"),
        ] {
            assert_eq!(said(folder, dependency), [""; 0], "{folder} uses {dependency}");
        }
    }

    #[test]
    fn what_stands_in_for_the_outside_is_for_tests_alone() {
        for folder in ["crates/gpu", "bins/blueproof", "tools/judge", "tests"] {
            assert_eq!(said_of(folder, "tests-fake", false), [""; 0], "{folder}");
        }
        assert_eq!(said_of("crates/core", "tests-fake", false).len(), 1);
    }

    #[test]
    fn a_package_outside_the_known_folders_is_found() {
        assert_eq!(
            said("extra", "serde"),
            ["extra/Cargo.toml: packages lie in crates/, bins/, tests, tools/ or xtask"]
        );
    }
}
