//! The modules of a crate that is shipped, those at the top of its `src` and those inside each of them, import each other in one
//! direction, so that each can be read without those that stand on it.
//!
//! What stands anywhere in a module counts as the module's. A module and its own parent may import each other, as may the crate's
//! root and all modules. What only tests import does not count.

mod imports;
pub(super) mod modules;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Complaint, Parsed, Source};
use imports::Written;
use modules::{Module, Modules, Path};

/// Of each module, which others inside the same parent it imports, and a place where it does.
type Imports<'a> = BTreeMap<Path, BTreeMap<Path, Place<'a>>>;

/// Where a module imports another.
struct Place<'a> {
    source: &'a Source,
    written: Written,
}

/// Complains about the circles of one crate.
pub(super) fn check(files: &[Parsed<'_>]) -> Vec<Complaint> {
    let mut all: Vec<Module<'_>> = Vec::new();
    for file in files {
        if let Some(path) = modules::path_of(&file.source.path) {
            modules::collect(file, path, &mut all);
        }
    }
    circles(all)
}

fn circles(modules: Vec<Module<'_>>) -> Vec<Complaint> {
    let modules = Modules::new(modules);
    let mut imports = Imports::new();
    for module in modules.iter() {
        for (imported, written) in imports::of(module, &modules) {
            if let Some((from, to)) = siblings(&module.path, &imported) {
                let of_one = imports.entry(from.to_vec()).or_default();
                let source = module.source;
                of_one.entry(to.to_vec()).or_insert(Place { source, written });
            }
        }
    }
    let mut named = BTreeSet::new();
    let mut complaints = Vec::new();
    for module in imports.keys() {
        if named.contains(module) {
            continue;
        }
        if let Some(circle) = shortest_circle(module, &imports) {
            named.extend(circle.iter().copied());
            complaints.push(complaint(&circle, &imports));
        }
    }
    complaints
}

/// Returns the modules inside one parent that two modules are, or are in; `None` if one is the other's parent.
fn siblings<'a>(one: &'a [String], other: &'a [String]) -> Option<(&'a [String], &'a [String])> {
    let common = one.iter().zip(other).take_while(|(one, other)| one == other);
    let depth = common.count();
    Some((one.get(..=depth)?, other.get(..=depth)?))
}

/// Returns the shortest way from a module back to itself, which it is the first of.
fn shortest_circle<'a>(from: &'a Path, imports: &'a Imports<'_>) -> Option<Vec<&'a Path>> {
    let mut ways = VecDeque::from([vec![from]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way.last().expect("it begins somewhere");
        for next in imports.get(*last).into_iter().flat_map(BTreeMap::keys) {
            if next == from {
                return Some(way);
            }
            if seen.insert(next) {
                ways.push_back([&way[..], &[next]].concat());
            }
        }
    }
    None
}

fn complaint(circle: &[&Path], imports: &Imports<'_>) -> Complaint {
    let next = circle.iter().skip(1).chain(circle.first());
    let steps = circle.iter().zip(next).map(|(module, next)| {
        let Place { source, written } = &imports[*module][*next];
        let place = format!("{}:{}: `{}`", source.path, written.line, written.path.join("::"));
        format!("`{}` imports `{}` ({place})", module.join("::"), next.join("::"))
    });
    let steps: Vec<String> = steps.collect();
    let first = &imports[circle[0]][*circle.get(1).unwrap_or(&circle[0])];
    first.source.complaint(
        Some(first.written.line),
        format!(
            "modules import each other in a circle: {}; move what both need to a module below them",
            steps.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files
            .iter()
            .map(|(path, text)| Source::of(&format!("crates/a/src/{path}"), *text));
        let sources: Vec<Source> = sources.collect();
        let files = sources.iter().filter(|file| file.crate_root().is_some());
        let files: Vec<Parsed<'_>> = files.filter_map(|file| Parsed::of(file).ok()).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn modules_that_import_each_other_are_named_with_the_lines_that_do() {
        let told = complaints(&[
            (
                "lib.rs",
                "mod one;\nmod two;\nmod three;\npub use three::Third;\n",
            ),
            ("one.rs", "use crate::{fmt, two::{self, Two}};\n"),
            ("two/deep.rs", "pub struct Deep(crate::Third);\n"),
            (
                "three.rs",
                "pub struct Third;\nfn a() -> super::one::One { todo() }\n",
            ),
        ]);
        let expected = "crates/a/src/one.rs:1: modules import each other in a circle: \
                        `one` imports `two` (crates/a/src/one.rs:1: `crate::two`), \
                        `two` imports `three` (crates/a/src/two/deep.rs:1: `crate::Third`), \
                        `three` imports `one` (crates/a/src/three.rs:2: `super::one::One`); \
                        move what both need to a module below them";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn modules_inside_another_that_import_each_other_are_named_with_the_lines_that_do() {
        let told = complaints(&[
            ("lib.rs", "mod all;\n"),
            (
                "all.rs",
                "mod one;\nmod two;\npub use two::Two;\nuse one::One;\npub struct Shared;\n",
            ),
            (
                "all/one.rs",
                "use super::Shared;\nuse super::Two;\npub struct One;\n",
            ),
            ("all/two.rs", "mod deep;\npub struct Two(deep::Deep);\n"),
            (
                "all/two/deep.rs",
                "use super::Two;\npub struct Deep(\n    crate::all::one::One,\n);\n",
            ),
        ]);
        let expected = "crates/a/src/all/one.rs:2: modules import each other in a circle: \
                        `all::one` imports `all::two` (crates/a/src/all/one.rs:2: `super::Two`), \
                        `all::two` imports `all::one` (crates/a/src/all/two/deep.rs:3: `crate::all::one::One`); \
                        move what both need to a module below them";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn one_direction_parents_and_children_and_tests_are_no_circle() {
        let told = complaints(&[
            ("lib.rs", "mod one;\nmod two;\nuse one::One;\n"),
            ("one.rs", "mod child;\nuse self::child::Child;\npub struct One;\n"),
            (
                "one/child.rs",
                "use super::One;\nuse crate::one::Two;\npub struct Child;\n",
            ),
            (
                "two.rs",
                "use crate::one::One;\nmod inner { fn a() { super::super::one::b() } }\n",
            ),
            ("one/tests.rs", "use crate::two::Two;\n"),
            (
                "one/more.rs",
                "#[cfg(test)]\nmod tests { use crate::two::Two; }\n#[cfg(any(test, feature = \"x\"))]\nuse crate::two::Two;\n",
            ),
        ]);
        assert_eq!(told, [""; 0]);
    }

    /// What the way is, what the root says for it, and what the first module says; it imports the second each time.
    const WAYS: [(&str, &str, &str); 16] = [
        ("shown at the root", "pub(crate) use two::Two;", "use crate::Two;"),
        (
            "shown under another name",
            "pub use two::Two as Second;",
            "fn a(_: crate::Second) {}",
        ),
        (
            "shown with all others",
            "pub use self::two::*;",
            "use super::Two;",
        ),
        (
            "shown by way of an inner module",
            "mod inner { pub(crate) use crate::two::Two; }\npub use inner::Two;",
            "use crate::Two;",
        ),
        (
            "shown by a step in between",
            "use two as second;\npub use second::Two;",
            "use crate::Two;",
        ),
        ("renamed", "", "use crate::two as second;"),
        (
            "the root renamed",
            "",
            "use crate as root;\nfn a(_: root::two::Two) {}",
        ),
        ("all of the root", "", "use crate::*;\nfn a(_: two::Two) {}"),
        ("in a group", "", "use crate::{fmt, two::{deep::{Deep, self}}};"),
        (
            "in a nested module",
            "",
            "mod inner { use super::super::two::Two; }",
        ),
        ("in a function", "", "fn a() { use crate::two::Two; }"),
        (
            "in a method's type",
            "",
            "impl A { fn a(&self) -> Vec<crate::two::Two> { Vec::new() } }",
        ),
        (
            "in a macro's call",
            "",
            "fn a() { println!(\"{}\", [crate::two::two()]); }",
        ),
        (
            "in a macro",
            "",
            "macro_rules! a { () => { $crate::two::two() }; }",
        ),
        ("where no test is", "", "#[cfg(not(test))]\nuse crate::two::Two;"),
        ("from self", "", "use self::super::two::Two;"),
    ];

    #[test]
    fn no_other_way_to_write_an_import_hides_a_circle() {
        let root = "mod one;\nmod two;\n";
        for (way, root, one) in WAYS {
            let root = format!("mod one;\nmod two;\n{root}\n");
            let told = complaints(&[
                ("lib.rs", &root),
                ("one.rs", one),
                (
                    "two.rs",
                    "pub struct Two(crate::one::One);\nmod deep { pub struct Deep; }\n",
                ),
            ]);
            assert_eq!(told.len(), 1, "{way}: {told:?}");
        }
        assert_eq!(
            complaints(&[
                ("lib.rs", root),
                ("one.rs", ""),
                ("two.rs", "use crate::one::One;")
            ]),
            [""; 0]
        );
    }

    #[test]
    fn a_file_that_is_declared_for_tests_is_one_of_tests() {
        let told = complaints(&[
            ("lib.rs", "mod one;\nmod two;\n#[cfg(test)]\nmod samples;\n"),
            ("one.rs", "use crate::two::Two;\n#[cfg(test)]\nmod stories;\n"),
            ("two.rs", "#[cfg(all(test, unix))]\nfn a(_: crate::one::One) {}\n"),
            ("two/samples.rs", ""),
            ("one/stories.rs", "use crate::samples::A;"),
            ("samples.rs", "use crate::{one::One, two::Two};\n"),
        ]);
        assert_eq!(told, [""; 0]);
    }
}
