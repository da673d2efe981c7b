//! From a path to a blueprint whose every part has been checked, all of its profiles included.

use std::path::{Path, PathBuf};

use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Decode, Entry, Problems, Source, Spot, Value, YamlNode},
};

use super::{
    Blueprint, FILE_NAME, Loaded, check,
    default_name::{default_name, folder_of},
    find::no_blueprint_in,
};
use crate::{
    analysis::parameter_types,
    document::FORMAT,
    ipynb::{Notebook, read_text},
};

/// The largest blueprint that is read.
const LARGEST_BLUEPRINT: u64 = 1 << 20;

impl Blueprint {
    /// Loads a blueprint from its file, from the folder that holds it, or from a notebook.
    ///
    /// For a notebook it is the `blueprint.yaml` beside it that names it, else the notebook's `metadata.blueproof`,
    /// else one with nothing but defaults, and the parameters of the cell that is tagged so. The blueprint is checked whole, with each of its profiles, and its
    /// notebook is read; nothing is written and nothing is run.
    ///
    /// # Errors
    ///
    /// Every mistake that can be found in one pass, in the order of the file.
    pub fn load(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
        if path.is_dir() {
            return from_folder(path);
        }
        if path.extension().is_some_and(|extension| extension == "ipynb") {
            return from_notebook(path);
        }
        if path.is_file() && !is_document(path) {
            return Err(vec![neither(path)]);
        }
        from_file(path)
    }

    /// Checks the text of a `blueprint.yaml` that would stand at `path`, without reading it from there.
    ///
    /// # Errors
    ///
    /// As [`Blueprint::load`].
    pub fn parse(path: &Path, text: String) -> Result<Loaded, Vec<Diagnostic>> {
        let file = path.display().to_string();
        let source = Source {
            file,
            text,
            format: &FORMAT,
        };
        let root = YamlNode::from_yaml(&source).map_err(|error| vec![error])?;
        assemble(source, root, folder_of(path))
    }
}

/// Returns whether a file is called as documents are, or as nothing in particular.
fn is_document(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
    ending.is_none_or(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
}

fn neither(path: &Path) -> Diagnostic {
    let message = "this is neither a notebook nor a blueprint";
    Diagnostic::error(Code::WrongFormat, message)
        .at(SourceLocation::file(path.display().to_string()))
        .hint("a notebook's name ends with `.ipynb`, a blueprint's with `.yaml`; `blueproof get blueprints` lists those that are here")
}

fn from_folder(folder: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    let file = folder.join(FILE_NAME);
    if file.exists() {
        return from_file(&file);
    }
    Err(vec![no_blueprint_in(folder)])
}

fn from_file(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    let text = read_text(path, LARGEST_BLUEPRINT).map_err(|error| vec![in_words_of_yaml(error)])?;
    Blueprint::parse(path, text)
}

/// A file that is not UTF-8 is no notebook to the one who reads notebooks, and no YAML here.
fn in_words_of_yaml(error: Diagnostic) -> Diagnostic {
    if error.code == Code::NotebookSyntax {
        return Diagnostic {
            code: Code::YamlSyntax,
            ..error
        };
    }
    error
}

fn from_notebook(path: &Path) -> Result<Loaded, Vec<Diagnostic>> {
    let folder = folder_of(path);
    let beside = folder.join(FILE_NAME);
    if beside.is_file() && names(&beside, path) {
        return from_file(&beside);
    }
    let notebook = Notebook::read(path)?;
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let source = notebook.source.clone();
    let root = match notebook.blueprint {
        Some(ref node) => completed(node.clone(), &name),
        None => completed(with_parameters(&notebook), &name),
    };
    assemble(source, root, folder)
}

/// Returns whether the blueprint at `blueprint` is about `notebook`. One that cannot be read is: its mistakes are
/// then shown instead of passed over.
fn names(blueprint: &Path, notebook: &Path) -> bool {
    let Ok(text) = read_text(blueprint, LARGEST_BLUEPRINT) else {
        return true;
    };
    let file = blueprint.display().to_string();
    let Ok(root) = YamlNode::from_yaml(&Source {
        file,
        text,
        format: &FORMAT,
    }) else {
        return true;
    };
    let named = root.get("spec").and_then(|spec| spec.get("notebook"));
    let Some(Value::Text(named)) = named.map(|node| &node.value) else {
        return true;
    };
    let whole = folder_of(blueprint).join(named);
    match (whole.canonicalize(), notebook.canonicalize()) {
        (Ok(named), Ok(notebook)) => named == notebook,
        (Err(_), _) | (_, Err(_)) => whole.file_name() == notebook.file_name(),
    }
}

/// Adds what goes without saying in a notebook's own metadata: the format, and which notebook it is.
fn completed(mut root: YamlNode, notebook: &str) -> YamlNode {
    add(
        &mut root,
        "apiVersion",
        Value::Text("blueproof.dev/v1alpha1".into()),
    );
    add(&mut root, "kind", Value::Text("Blueprint".into()));
    add(&mut root, "spec", Value::Map(Vec::new()));
    if let Value::Map(entries) = &mut root.value
        && let Some(spec) = entries.iter_mut().find(|entry| entry.key == "spec")
    {
        add(&mut spec.node, "notebook", Value::Text(notebook.into()));
    }
    root
}

/// Returns a blueprint that declares nothing but what the cell tagged `parameters` assigns: whoever tagged it has said that these
/// may be given other values. They have no default, so the notebook's own stay.
fn with_parameters(notebook: &Notebook) -> YamlNode {
    let text = |text: &str| node(Value::Text(text.into()));
    let map = |entries: Vec<(String, YamlNode)>| {
        let entry = |(key, node)| Entry {
            key,
            spot: Spot::default(),
            node,
        };
        node(Value::Map(entries.into_iter().map(entry).collect()))
    };
    let types = parameter_types(notebook).into_iter();
    let declared: Vec<_> = types
        .map(|(name, kind)| (name, map(vec![("type".into(), text(kind))])))
        .collect();
    if declared.is_empty() {
        return empty_map();
    }
    let spec = map(vec![("parameters".into(), map(declared))]);
    map(vec![("spec".into(), spec)])
}

fn add(node: &mut YamlNode, key: &str, value: Value) {
    let spot = node.spot;
    if let Value::Map(entries) = &mut node.value
        && !entries.iter().any(|entry| entry.key == key)
    {
        let node = YamlNode { value, spot };
        let key = key.to_owned();
        entries.push(Entry { key, spot, node });
    }
}

fn empty_map() -> YamlNode {
    node(Value::Map(Vec::new()))
}

/// Returns a value that stands in no file.
fn node(value: Value) -> YamlNode {
    let spot = Spot::default();
    YamlNode { value, spot }
}

/// Whether every key was understood by itself.
#[derive(Clone, Copy)]
enum Parts {
    Understood,
    Mistaken,
}

fn assemble(source: Source, root: YamlNode, folder: PathBuf) -> Result<Loaded, Vec<Diagnostic>> {
    let mut problems = Problems::new(&source);
    let header = header(&root, &mut problems);
    let Some(blueprint) = header.and_then(|()| Blueprint::decode(&root, &mut problems)) else {
        return Err(problems.into_found());
    };
    let parts = if problems.is_empty() {
        Parts::Understood
    } else {
        Parts::Mistaken
    };
    let notebook = &blueprint.spec.notebook;
    let path = folder.join(&notebook.value.0);
    let there = check::file(&folder, &notebook.value.0, notebook.spot, &mut problems);
    let read = there.then(|| Notebook::read(&path));
    let (notebook, unreadable) = match read {
        Some(Ok(notebook)) => (Some(notebook), Vec::new()),
        Some(Err(errors)) => (None, errors),
        None => (None, Vec::new()),
    };
    let named = blueprint.metadata.name.clone();
    let name = named.unwrap_or_else(|| default_name(&path));
    let mut found = problems.into_found();
    let loaded = Loaded {
        blueprint,
        name,
        folder,
        notebook: notebook.unwrap_or_else(|| Notebook::nothing(&path)),
        source,
        root,
    };
    found.extend(mistakes(&loaded, parts));
    found.extend(unreadable);
    if found.is_empty() { Ok(loaded) } else { Err(found) }
}

/// Reports a file of another kind or version, whose keys would mean something else.
fn header(root: &YamlNode, problems: &mut Problems<'_>) -> Option<()> {
    let expected = [("apiVersion", "blueproof.dev/v1alpha1"), ("kind", "Blueprint")];
    for (key, expected) in expected {
        let found = root.get(key).map(|node| (node, &node.value));
        if let Some((node, Value::Text(text))) = found
            && text != expected
        {
            let message = format!("this is no blueprint that can be read: its {key} is `{text}`");
            problems.report(
                node.spot,
                Diagnostic::error(Code::WrongFormat, message).hint(format!("write `{key}: {expected}`")),
            );
            return None;
        }
    }
    Some(())
}

/// Returns what does not fit together in the blueprint as it is written, and under each profile. A profile is laid
/// upon a blueprint only if each is understood by itself, or its mistakes would be told twice.
fn mistakes(loaded: &Loaded, parts: Parts) -> Vec<Diagnostic> {
    let mut problems = Problems::new(&loaded.source);
    loaded.resolve_into(None, &[], &mut problems);
    match parts {
        Parts::Understood => {}
        Parts::Mistaken => return problems.into_found(),
    }
    for name in loaded.blueprint.spec.profiles.keys() {
        match name.parse() {
            Ok(profile) => {
                loaded.resolve_into(Some(&profile), &[], &mut problems);
            }
            Err(error) => problems.bad_value(
                Spot::default(),
                format!("a profile cannot have this name: {error}"),
                "names look like `smoke` or `gpu2`",
            ),
        }
    }
    problems.into_found()
}
