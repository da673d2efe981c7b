//! The names of a file that other people read.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Attribute, Field, Fields, File, ImplItem, Item, ItemEnum, ItemMod, ItemStruct, ItemTrait, ItemUse,
    LitStr, Macro, Meta, TraitItem, UseTree, Variant, Visibility,
    visit::{self, Visit},
};

use crate::tidy::circles::modules::{attributes, is_of_tests};

/// What the names of our metrics begin with.
const METRICS: &str = "blueproof_";

/// A derivation that makes keys, arguments or values of what stands in a type.
const SHOWING: [&str; 8] = [
    "Serialize",
    "Deserialize",
    "JsonSchema",
    "Args",
    "Parser",
    "Subcommand",
    "ValueEnum",
    "Decode",
];

/// A name, and where it stands.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) line: usize,
    /// Whether it is that of a type or a trait.
    pub(super) is_type: bool,
}

/// Returns the names of a file, without those of tests.
pub(super) fn of(file: &File) -> Vec<Name> {
    let mut found = Found::default();
    found.visit_file(file);
    found.names
}

#[derive(Default)]
struct Found {
    names: Vec<Name>,
}

impl Found {
    fn add(&mut self, ident: &Ident) {
        self.add_text(ident.to_string().trim_start_matches("r#"), ident.span(), false);
    }

    fn add_type(&mut self, ident: &Ident) {
        self.add_text(&ident.to_string(), ident.span(), true);
    }

    fn add_text(&mut self, text: &str, span: Span, is_type: bool) {
        self.names.push(Name {
            text: text.to_owned(),
            line: span.start().line,
            is_type,
        });
    }

    fn add_if_public(&mut self, visibility: &Visibility, ident: &Ident) {
        if is_public(visibility) {
            self.add(ident);
        }
    }

    fn add_fields(&mut self, fields: &Fields, is_shown: impl Fn(&Field) -> bool) {
        for field in fields.iter().filter(|field| is_shown(field)) {
            if let Some(ident) = &field.ident {
                self.add(ident);
            }
        }
    }

    /// Adds what an attribute of serde's or clap's calls a thing, except what is only read still.
    fn add_texts(&mut self, tokens: TokenStream) {
        let mut key = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => key = ident.to_string(),
                TokenTree::Group(group) => self.add_texts(group.stream()),
                TokenTree::Literal(text) if is_naming(&key) => {
                    if let Ok(text) = syn::parse2::<LitStr>(TokenTree::from(text).into()) {
                        self.add_text(&text.value(), text.span(), false);
                    }
                }
                TokenTree::Literal(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    fn add_metric(&mut self, text: &LitStr) {
        let value = text.value();
        let is_name = value
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_name && value.starts_with(METRICS) {
            self.add_text(&value, text.span(), false);
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_of_tests) {
            return;
        }
        if let Item::Const(item) = item {
            self.add_if_public(&item.vis, &item.ident);
        } else if let Item::Static(item) = item {
            self.add_if_public(&item.vis, &item.ident);
        } else if let Item::Fn(item) = item {
            self.add_if_public(&item.vis, &item.sig.ident);
        } else if let Item::Type(item) = item
            && is_public(&item.vis)
        {
            self.add_type(&item.ident);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.add(&item.ident);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let is_open = is_public(&item.vis);
        if is_open {
            self.add_type(&item.ident);
        }
        let is_shown = is_shown(&item.attrs);
        self.add_fields(&item.fields, |field| is_shown || is_open && is_public(&field.vis));
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        let is_open = is_public(&item.vis);
        if is_open {
            self.add_type(&item.ident);
        }
        if is_open || is_shown(&item.attrs) {
            for Variant { ident, fields, .. } in &item.variants {
                self.add(ident);
                self.add_fields(fields, |_| true);
            }
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        if is_public(&item.vis) {
            self.add_type(&item.ident);
            for item in &item.items {
                if let TraitItem::Fn(function) = item {
                    self.add(&function.sig.ident);
                } else if let TraitItem::Type(inner) = item {
                    self.add_type(&inner.ident);
                }
            }
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(function) = item {
            self.add_if_public(&function.vis, &function.sig.ident);
        } else if let ImplItem::Const(constant) = item {
            self.add_if_public(&constant.vis, &constant.ident);
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut trees = vec![&item.tree];
        while let Some(tree) = trees.pop() {
            match tree {
                UseTree::Path(path) => trees.push(&path.tree),
                UseTree::Group(group) => trees.extend(&group.items),
                UseTree::Rename(last) => self.add_if_public(&item.vis, &last.rename),
                // What is shown under its own name is judged where it is made.
                UseTree::Name(_) | UseTree::Glob(_) => {}
            }
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let names = ["serde", "arg", "command", "clap", "value"];
        if let Meta::List(list) = &attribute.meta
            && names.iter().any(|name| list.path.is_ident(name))
        {
            self.add_texts(list.tokens.clone());
        }
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.add_metric(text);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let mut streams = vec![call.tokens.clone()];
        while let Some(stream) = streams.pop() {
            for token in stream {
                if let TokenTree::Group(group) = token {
                    streams.push(group.stream());
                } else if let TokenTree::Literal(text) = token
                    && let Ok(text) = syn::parse2::<LitStr>(TokenTree::from(text).into())
                {
                    self.add_metric(&text);
                }
            }
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether a type's fields and variants are keys, arguments or values that people meet.
fn is_shown(attributes: &[Attribute]) -> bool {
    let derivations = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") || list.path.is_ident("cfg_attr") => {
            Some(list.tokens.to_string())
        }
        Meta::List(_) | Meta::Path(_) | Meta::NameValue(_) => None,
    });
    let mut derivations = derivations;
    derivations.any(|text| {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|word| SHOWING.contains(&word))
    })
}

/// Whether the value of a key in an attribute is a name that people meet.
fn is_naming(key: &str) -> bool {
    [
        "rename",
        "tag",
        "content",
        "long",
        "name",
        "value_name",
        "visible_alias",
        "id",
        "help_heading",
    ]
    .contains(&key)
}
