//! The modules of a crate, and the names that each has for what lies elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, UseTree};

use crate::tidy::{Parsed, Source};

/// The names of a path, from the crate's root down.
pub(super) type Path = Vec<String>;

/// A module, in a file of its own or inside another's.
pub(super) struct Module<'a> {
    pub(super) source: &'a Source,
    /// Where it is; empty is the root.
    pub(super) path: Path,
    /// What stands in it, without what is there for tests alone.
    pub(super) items: Vec<&'a Item>,
    /// The modules that it declares for tests alone.
    of_tests: Vec<Path>,
}

/// All modules of one crate.
pub(super) struct Modules<'a> {
    modules: Vec<Module<'a>>,
    /// What children of each module find in it, by its path.
    scopes: BTreeMap<Path, Scope>,
}

/// The names that stand in one module.
#[derive(Default)]
struct Scope {
    /// What is made there.
    declared: BTreeSet<String>,
    /// What is imported, with where it comes from.
    imported: BTreeMap<String, Path>,
    /// The modules all of whose names are imported.
    globs: Vec<Path>,
}

/// One leaf of a `use`.
pub(super) struct Import {
    /// The path, without a `*` at its end.
    pub(super) path: Path,
    /// What it is called from here on; `None` of a `*`.
    pub(super) name: Option<String>,
    pub(super) line: usize,
}

/// Returns the module that a file is, from its crate's root down; `None` of a program beside the crate.
pub(super) fn path_of(file: &str) -> Option<Path> {
    let (_, path) = file.strip_suffix(".rs")?.split_once("/src/")?;
    let mut module: Path = path.split('/').map(str::to_owned).collect();
    let is_program = module.len() > 1 && module[0] == "bin";
    if is_program {
        return None;
    }
    let is_named_by_folder = |name: &String| matches!(name.as_str(), "lib" | "main" | "mod");
    if module.last().is_some_and(is_named_by_folder) {
        module.pop();
    }
    Some(module)
}

/// Adds the module that a file is, and those inside it.
pub(super) fn collect<'a>(file: &'a Parsed<'_>, path: Path, modules: &mut Vec<Module<'a>>) {
    let mut left = vec![(path, file.syntax.items.iter().collect::<Vec<_>>())];
    while let Some((path, items)) = left.pop() {
        let mut module = Module {
            source: file.source,
            path,
            items: Vec::new(),
            of_tests: Vec::new(),
        };
        for item in items {
            let inner = inner(item);
            let place = inner.map(|inner| module.child(&inner.ident.to_string()));
            if attributes(item).iter().any(is_of_tests) {
                module.of_tests.extend(place);
                continue;
            }
            let content = inner.and_then(|inner| inner.content.as_ref());
            if let (Some(place), Some((_, items))) = (place, content) {
                left.push((place, items.iter().collect()));
            } else {
                module.items.push(item);
            }
        }
        modules.push(module);
    }
}

fn inner(item: &Item) -> Option<&ItemMod> {
    if let Item::Mod(inner) = item {
        Some(inner)
    } else {
        None
    }
}

impl Module<'_> {
    fn child(&self, name: &str) -> Path {
        [&self.path[..], &[name.to_owned()]].concat()
    }

    /// Returns the imports that stand among its items.
    pub(super) fn imports(&self) -> impl Iterator<Item = Import> {
        let uses = self.items.iter().filter_map(|item| {
            if let Item::Use(ItemUse { tree, .. }) = item {
                Some(leaves(tree))
            } else {
                None
            }
        });
        uses.flatten()
    }
}

impl<'a> Modules<'a> {
    pub(super) fn new(mut modules: Vec<Module<'a>>) -> Self {
        let of_tests: Vec<Path> = modules
            .iter()
            .flat_map(|module| module.of_tests.clone())
            .collect();
        modules.retain(|module| !of_tests.iter().any(|path| module.path.starts_with(path)));
        let parents = modules.iter().flat_map(|module| {
            let parents = (0..=module.path.len()).map(|depth| module.path[..depth].to_vec());
            parents.map(|parent| (parent, Scope::default()))
        });
        let mut all = Self {
            scopes: parents.collect(),
            modules,
        };
        // The second time, what is imported by way of another import of the same module is found, too.
        for _ in 0..2 {
            for i in 0..all.modules.len() {
                all.take_names(i);
            }
        }
        all
    }

    /// Notes which names stand in a module.
    fn take_names(&mut self, i: usize) {
        let module = &self.modules[i];
        let mut imported = Vec::new();
        let mut globs = Vec::new();
        for Import { path, name, .. } in module.imports() {
            match (self.absolute(&path, &module.path), name) {
                (Some(path), Some(name)) => imported.push((name, path)),
                (Some(path), None) => globs.push(path),
                (None, _) => {}
            }
        }
        let scope = self.scopes.entry(module.path.clone()).or_default();
        scope
            .declared
            .extend(module.items.iter().filter_map(|item| name_of(item)));
        scope.imported.extend(imported);
        scope.globs.extend(globs);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Module<'a>> {
        self.modules.iter()
    }

    /// Returns a path as it reads from the crate's root; `None` if it begins with none of the crate's modules.
    pub(super) fn absolute(&self, path: &[String], module: &[String]) -> Option<Path> {
        let first = path.first()?.as_str();
        if first == "crate" {
            return Some(path[1..].to_vec());
        }
        let rest = if first == "self" { &path[1..] } else { path };
        let ups = rest.iter().take_while(|name| *name == "super").count();
        let child = [module, &path[..1]].concat();
        let scope = self.scopes.get(module);
        let is_imported = scope.is_some_and(|scope| scope.imported.contains_key(first));
        let is_relative = first == "self" || ups > 0 || is_imported || self.scopes.contains_key(&child);
        let base = &module[..module.len().saturating_sub(ups)];
        is_relative.then(|| [base, &rest[ups..]].concat())
    }

    /// Returns the module outside `from` and its parents that a path leads to from there. Names that `from` or a parent of it
    /// imports are followed to where they come from; so no parent can hide which of its children another one needs.
    pub(super) fn resolve(&self, path: &[String], from: &[String]) -> Option<Path> {
        let mut path = path.to_vec();
        // A name that is imported under another and back would go round for ever.
        for _ in 0..16 {
            let own = path.iter().zip(from).take_while(|(one, other)| one == other);
            let mut at = own.count();
            while at < path.len() && from.starts_with(&path[..at]) {
                if self.scopes.contains_key(&path[..=at]) {
                    at += 1;
                } else {
                    break;
                }
            }
            if !from.starts_with(&path[..at]) {
                return Some(path[..at].to_vec());
            }
            let name = path.get(at)?;
            let origin = self.origin(&path[..at], name)?;
            path = [&origin[..], &path[at + 1..]].concat();
        }
        None
    }

    /// Returns where a name that stands in a module comes from, if it is imported there.
    fn origin(&self, module: &[String], name: &String) -> Option<Path> {
        let scope = self.scopes.get(module)?;
        if scope.declared.contains(name) {
            return None;
        }
        let by_name = scope.imported.get(name).cloned();
        by_name.or_else(|| {
            let glob = scope.globs.iter().find(|glob| self.has(glob, name))?;
            Some([&glob[..], std::slice::from_ref(name)].concat())
        })
    }

    fn has(&self, module: &[String], name: &String) -> bool {
        let scope = self.scopes.get(module);
        scope.is_some_and(|scope| scope.declared.contains(name) || scope.imported.contains_key(name))
    }
}

/// Returns every path that a `use` names, in full.
pub(super) fn leaves(tree: &UseTree) -> Vec<Import> {
    let leaf = |of: &Ident, name: Option<String>| {
        vec![Import {
            path: vec![of.to_string()],
            name,
            line: of.span().start().line,
        }]
    };
    match tree {
        UseTree::Path(path) => {
            let mut below = leaves(&path.tree);
            for leaf in &mut below {
                if leaf.path == ["self"] {
                    leaf.path.clear();
                    // `{self}` is called what stands before it, and `{self as name}` keeps its name.
                    let name = leaf.name.take().filter(|name| name != "self");
                    leaf.name = name.or_else(|| Some(path.ident.to_string()));
                }
                leaf.path.insert(0, path.ident.to_string());
            }
            below
        }
        UseTree::Name(last) => leaf(&last.ident, Some(last.ident.to_string())),
        UseTree::Rename(last) => leaf(&last.ident, Some(last.rename.to_string())),
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Glob(star) => vec![Import {
            path: Vec::new(),
            name: None,
            line: star.star_token.span.start().line,
        }],
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "syn's items may become more, and the rest has no such thing"
)]
fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        _ => None,
    };
    ident.map(ToString::to_string)
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "syn's items may become more, and the rest has no such thing"
)]
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an attribute says that something is there for tests alone, or for those of others: `any(test, feature = "…")`.
pub(crate) fn is_of_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return attribute.path().is_ident("test");
    };
    let text = list.tokens.to_string().replace(' ', "");
    let condition = text.strip_prefix("any(").unwrap_or(&text);
    let condition = condition.strip_prefix("all(").unwrap_or(condition);
    let mut words = condition.split([',', ')']);
    list.path.is_ident("cfg") && words.any(|word| word == "test")
}
