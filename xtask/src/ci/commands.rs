//! What cargo is asked, step by step.
//!
//! All steps that compile everything name the same packages and features (`--workspace --all-features`), so that one
//! builds on what another built.

use crate::{
    process::Invocation,
    workspace::{Library, Package, Workspace},
};

const EVERYTHING: [&str; 3] = ["--workspace", "--all-features", "--locked"];

pub(super) fn fmt() -> Vec<Invocation> {
    vec![Invocation::cargo(["fmt", "--all", "--check"])]
}

/// All targets with all features; then each package by itself, with no feature and with each of its own.
///
/// A package is looked at by itself because cargo adds up the features that packages of one build ask of each other: one
/// that forgot to name a feature would borrow its neighbour's. Tests are left out there for the same reason, since they
/// bring the features of development dependencies.
pub(super) fn clippy(workspace: &Workspace) -> Vec<Invocation> {
    let mut invocations = vec![lint(EVERYTHING.into_iter().chain(["--all-targets"]))];
    for package in &workspace.packages {
        let alone = [
            "--package",
            package.name.as_str(),
            "--locked",
            "--no-default-features",
        ];
        invocations.push(lint(alone));
        for feature in &package.features {
            invocations.push(lint(alone.into_iter().chain(["--features", feature])));
        }
    }
    invocations
}

fn lint<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
    let command = ["clippy", "--quiet"].into_iter().chain(arguments);
    Invocation::cargo(command.chain(["--", "-D", "warnings"]))
}

/// Runs the tests, with the same random inputs each time: a change is judged by itself alone. Those of the program from end to end
/// run once more against a scheduler in place of a store.
pub(super) fn test() -> Vec<Invocation> {
    let test = |kinds: &[&'static str]| {
        let kinds = kinds.iter().copied();
        Invocation::cargo(["test"].into_iter().chain(EVERYTHING).chain(kinds))
    };
    let all = test(&["--lib", "--bins", "--tests", "--no-fail-fast"]);
    let served = test(&["--test", "end_to_end", "--no-fail-fast"]);
    vec![
        all.env("PROPTEST_RNG_SEED", "1"),
        served.env("BLUEPROOF_TEST_SERVER", "1"),
    ]
}

/// Nothing while no package is a library: cargo takes it for a mistake to ask for the doctests of none.
pub(super) fn doctest(workspace: &Workspace) -> Vec<Invocation> {
    let is_library = |package: &Package| package.library == Library::Present;
    if !workspace.packages.iter().any(is_library) {
        return Vec::new();
    }
    let kinds = ["--doc", "--no-fail-fast"];
    vec![Invocation::cargo(
        ["test"].into_iter().chain(EVERYTHING).chain(kinds),
    )]
}

/// Builds the examples of all packages, and runs each. None takes arguments.
pub(super) fn examples(workspace: &Workspace) -> Vec<Invocation> {
    let mut names = workspace
        .packages
        .iter()
        .flat_map(|package| &package.examples)
        .peekable();
    if names.peek().is_none() {
        return Vec::new();
    }
    let build = ["build", "--quiet", "--examples"].into_iter().chain(EVERYTHING);
    // Run as built, not by `cargo run --example`, which would build again with the features of one package only.
    let folder = workspace.target.join("debug/examples");
    let run = names.map(|name| Invocation::of(folder.join(name), [""; 0]));
    [Invocation::cargo(build)].into_iter().chain(run).collect()
}

pub(super) fn doc() -> Vec<Invocation> {
    let arguments = ["doc", "--no-deps"].into_iter().chain(EVERYTHING);
    vec![Invocation::cargo(arguments).env("RUSTDOCFLAGS", "-D warnings")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(invocations: &[Invocation]) -> Vec<String> {
        invocations.iter().map(ToString::to_string).collect()
    }

    fn workspace() -> Workspace {
        let package = |name: &str, features: &[&str]| Package {
            name: name.into(),
            features: features.iter().map(ToString::to_string).collect(),
            ..Package::default()
        };
        Workspace {
            target: "/t".into(),
            packages: vec![package("a", &["x", "y"]), package("b", &[])],
            ..Workspace::default()
        }
    }

    #[test]
    fn clippy_sees_everything_then_each_package_with_no_feature_and_with_each() {
        let expected = [
            "cargo clippy --quiet --workspace --all-features --locked --all-targets -- -D warnings",
            "cargo clippy --quiet --package a --locked --no-default-features -- -D warnings",
            "cargo clippy --quiet --package a --locked --no-default-features --features x -- -D warnings",
            "cargo clippy --quiet --package a --locked --no-default-features --features y -- -D warnings",
            "cargo clippy --quiet --package b --locked --no-default-features -- -D warnings",
        ];
        assert_eq!(typed(&clippy(&workspace())), expected);
    }

    #[test]
    fn examples_are_built_once_and_each_is_run() {
        assert_eq!(examples(&workspace()), []);

        let mut workspace = workspace();
        workspace.packages[0].examples = vec!["embed".into()];
        let expected = [
            "cargo build --quiet --examples --workspace --all-features --locked",
            "/t/debug/examples/embed",
        ];
        assert_eq!(typed(&examples(&workspace)), expected);
    }

    #[test]
    fn doctests_are_asked_for_only_where_there_is_a_library() {
        let mut workspace = workspace();
        assert_eq!(doctest(&workspace), []);

        workspace.packages[1].library = Library::Present;
        assert_eq!(doctest(&workspace).len(), 1);
    }

    #[test]
    fn warnings_in_the_documentation_are_errors() {
        let expected = "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --workspace --all-features --locked";
        assert_eq!(typed(&doc()), [expected]);
    }
}
