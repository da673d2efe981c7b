//! What one module needs of the others of its crate.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    ImplItem, Item, ItemUse, Macro,
    visit::{self, Visit},
};

use super::modules::{self, Module, Modules, Path};

/// A path as a module writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    pub(super) line: usize,
    pub(super) path: Path,
}

/// Returns the modules that a module imports or names, without its own parents, and the first place where it does.
pub(super) fn of(module: &Module<'_>, modules: &Modules<'_>) -> BTreeMap<Path, Written> {
    let mut found = Found::default();
    for item in &module.items {
        found.visit_item(item);
    }
    found.paths.sort();
    let mut imported = BTreeMap::new();
    for written in &found.paths {
        let path = &written.path;
        let renamed = path.first().and_then(|first| found.renamed.get(first));
        let path = match renamed {
            Some(renamed) => [&renamed[..], &path[1..]].concat(),
            None => path.clone(),
        };
        let globs = found.globs.iter().filter(|_| renamed.is_none());
        let by_glob = globs.map(|glob| [&glob[..], &path[..]].concat());
        let absolute = [path.clone()].into_iter().chain(by_glob);
        let absolute = absolute.filter_map(|path| modules.absolute(&path, &module.path));
        for other in absolute.filter_map(|path| modules.resolve(&path, &module.path)) {
            imported.entry(other).or_insert_with(|| written.clone());
        }
    }
    imported
}

/// The paths of one module, as they are written.
#[derive(Default)]
struct Found {
    paths: Vec<Written>,
    /// What the module calls things that it imports from its crate.
    renamed: BTreeMap<String, Path>,
    /// The modules all of whose names it imports.
    globs: Vec<Path>,
}

impl Found {
    /// Takes what stands inside a macro's call: no syntax, but paths from the root are easily known.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = Vec::new();
        let mut line = 0;
        let mut is_joined = false;
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    self.add(std::mem::take(&mut path), line);
                    self.visit_tokens(group.stream());
                }
                TokenTree::Ident(name) if is_joined && !path.is_empty() => path.push(name.to_string()),
                TokenTree::Ident(name) => {
                    self.add(std::mem::take(&mut path), line);
                    path.push(name.to_string());
                    line = name.span().start().line;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    is_joined = true;
                    continue;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.add(std::mem::take(&mut path), line);
                }
            }
            is_joined = false;
        }
        self.add(path, line);
    }

    fn add(&mut self, path: Path, line: usize) {
        self.paths.push(Written { line, path });
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if !modules::attributes(item).iter().any(modules::is_of_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let is_of_tests =
            matches!(item, ImplItem::Fn(function) if function.attrs.iter().any(modules::is_of_tests));
        if !is_of_tests {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for import in modules::leaves(&item.tree) {
            let is_ours = ["crate", "self", "super"].contains(&import.path[0].as_str());
            match import.name {
                Some(name) if is_ours => drop(self.renamed.insert(name, import.path.clone())),
                None if is_ours => self.globs.push(import.path.clone()),
                Some(_) | None => {}
            }
            self.add(import.path, import.line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        let names = segments.map(|segment| segment.ident.to_string());
        self.add(names.collect(), path.segments[0].ident.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}
