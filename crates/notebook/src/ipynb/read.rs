//! From a file to a [`Notebook`], or a coded reason why not.

use std::{
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::Path,
};

use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Source, Spot, YamlNode},
};
use serde_json::value::RawValue;

use super::{Cell, CellKind, Notebook, Undecoded, lines::LineIndex, shape, spot_of};
use crate::text::{encoding, shell_word};

/// The largest notebook that is read: GitHub warns of files above it, and Jupyter is hardly usable with it.
pub(crate) const LARGEST_NOTEBOOK: u64 = 50 << 20;
/// How deep metadata may be nested; notebooks in use stay below ten.
const DEEPEST_METADATA: usize = 64;

impl Notebook {
    /// Reads the notebook at `path`, which is only read.
    pub fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let text = read_text(path, LARGEST_NOTEBOOK).map_err(|error| vec![error])?;
        Self::parse(&path.display().to_string(), text)
    }

    /// Reads a notebook from its text; `file` is what errors call it.
    pub fn parse(file: &str, text: String) -> Result<Self, Vec<Diagnostic>> {
        let file = file.to_owned();
        let source = Source {
            file,
            text,
            format: &crate::document::FORMAT,
        };
        let (source, parts) = read(source).map_err(|error| vec![error])?;
        Ok(Self {
            minor: parts.minor,
            language: parts.language,
            kernel: parts.kernel,
            kernel_name: parts.kernel_name,
            cells: parts.cells,
            blueprint: parts.blueprint,
            undecoded: parts.undecoded,
            source,
        })
    }
}

impl Notebook {
    /// Returns whether it stands for one that could not be read: nothing can be said of it.
    pub(crate) fn is_unread(&self) -> bool {
        self.source.text.is_empty()
    }

    /// Stands for a notebook that could not be read while other mistakes are looked for.
    pub(crate) fn nothing(path: &Path) -> Self {
        Self {
            minor: 0,
            language: None,
            kernel: None,
            kernel_name: None,
            cells: Vec::new(),
            blueprint: None,
            undecoded: Undecoded::new(),
            source: Source {
                file: path.display().to_string(),
                text: String::new(),
                format: &crate::document::FORMAT,
            },
        }
    }
}

struct Parts {
    minor: u32,
    language: Option<String>,
    kernel: Option<String>,
    kernel_name: Option<String>,
    cells: Vec<Cell>,
    blueprint: Option<YamlNode>,
    undecoded: Undecoded,
}

/// Reads a file, also one with Python's words for numbers that JSON has none for: they are nothing here.
fn read(source: Source) -> Result<(Source, Parts), Diagnostic> {
    let refused = match parts(&source) {
        Ok(parts) => return Ok((source, parts)),
        Err(refused) => refused,
    };
    // Only a file that cannot be read is looked through for them.
    let words = pythons_words(&source.text);
    if words.is_empty() {
        return Err(refused);
    }
    // A stand-in that is as long as what it stands for leaves a mistake behind it where it is.
    let as_long = with_instead(&source.text, &words, "0");
    serde_json::from_str::<shape::File<'_>>(&as_long).map_err(|error| syntax(&source, &error))?;
    let text = with_instead(&source.text, &words, "null");
    let source = Source { text, ..source };
    let parts = parts(&source)?;
    Ok((source, parts))
}

/// Returns where `NaN`, `Infinity` and `-Infinity` stand outside of texts, as `json.dumps` writes them.
fn pythons_words(json: &str) -> Vec<Range<usize>> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    let bytes = json.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte) || !byte.is_ascii();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut in_text = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'N' | b'I' | b'-'
                if !in_text && !at.checked_sub(1).is_some_and(|last| is_part(&bytes[last])) =>
            {
                let here = &bytes[at..];
                let word = WORDS.into_iter().find(|word| here.starts_with(word));
                let word = word.filter(|word| !here.get(word.len()).is_some_and(is_part));
                found.extend(word.map(|word| at..at + word.len()));
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Returns the text with a value instead of each of these parts, and spaces behind it where the part was longer.
fn with_instead(text: &str, parts: &[Range<usize>], value: &str) -> String {
    let mut made = String::with_capacity(text.len() + parts.len());
    let mut from = 0;
    for part in parts {
        made.push_str(&text[from..part.start]);
        made.push_str(value);
        made.extend(std::iter::repeat_n(' ', part.len().saturating_sub(value.len())));
        from = part.end;
    }
    made.push_str(&text[from..]);
    made
}

fn parts(source: &Source) -> Result<Parts, Diagnostic> {
    let text = source.text.as_str();
    if text.trim_start().as_bytes().first() != Some(&b'{') {
        return Err(no_object(source));
    }
    let file: shape::File<'_> = serde_json::from_str(text).map_err(|error| syntax(source, &error))?;
    let minor = check_format(source, &file)?;
    let index = LineIndex::new(text);
    let shapes = Shapes { source, index };
    let metadata: shape::Metadata<'_> = shapes
        .read(file.metadata, "the notebook's metadata")?
        .unwrap_or_default();
    let language: Option<shape::Language> =
        shapes.read(metadata.language_info, "the notebook's language_info")?;
    let kernel: Option<shape::KernelSpec> = shapes.read(metadata.kernelspec, "the notebook's kernelspec")?;
    let kernel = kernel.unwrap_or_default();
    let blueprint = metadata.blueproof.map(|raw| shapes.tree(raw)).transpose()?;
    let cells: Vec<&RawValue> = shapes.read(file.cells, "the list of cells")?.unwrap_or_default();
    let cells = (1..).zip(cells).map(|(number, raw)| shapes.cell(number, raw));
    Ok(Parts {
        minor,
        language: kernel.language.or(language.and_then(|language| language.name)),
        kernel: kernel.display_name,
        kernel_name: kernel.name,
        cells: cells.collect::<Result<_, _>>()?,
        blueprint,
        undecoded: shape::undecoded(text, &shape::FILE).map_err(|error| syntax(source, &error))?,
    })
}

fn check_format(source: &Source, file: &shape::File<'_>) -> Result<u32, Diagnostic> {
    let number = |raw: Option<&RawValue>| raw.and_then(|raw| raw.get().parse::<u32>().ok());
    match number(file.nbformat) {
        Some(4) if file.cells.is_some() => Ok(number(file.nbformat_minor).unwrap_or(0)),
        Some(4) => Err(
            Diagnostic::error(Code::NotebookShape, "the notebook has no list of cells")
                .at(SourceLocation::file(&source.file))
                .hint("save it again with Jupyter"),
        ),
        Some(other) => Err(Diagnostic::error(
            Code::NotebookFormat,
            format!("this notebook has format {other}; only format 4 can be read"),
        )
        .at(SourceLocation::file(&source.file))
        .hint(format!(
            "jupyter nbconvert --to notebook --nbformat 4 --inplace {}",
            shell_word(Path::new(&source.file))
        ))),
        None => Err(Diagnostic::error(
            Code::NotebookSyntax,
            match file.nbformat {
                None => "this JSON is not a notebook: it has no nbformat",
                Some(_) => "this JSON is not a notebook: its nbformat is no whole number",
            },
        )
        .at(SourceLocation::file(&source.file))
        .hint("is it the right file? a notebook is written by Jupyter and says `\"nbformat\": 4`")),
    }
}

struct Shapes<'t> {
    source: &'t Source,
    index: LineIndex<'t>,
}

impl<'t> Shapes<'t> {
    fn read<T: serde::Deserialize<'t>>(
        &self,
        raw: Option<&'t RawValue>,
        what: &str,
    ) -> Result<Option<T>, Diagnostic> {
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
            return Ok(None);
        };
        match serde_json::from_str(raw.get()) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(self.misshapen(raw, what, &error)),
        }
    }

    fn tree(&self, raw: &'t RawValue) -> Result<YamlNode, Diagnostic> {
        if deepest(raw.get()) > DEEPEST_METADATA {
            let spot = spot_of(&self.index, raw.get());
            return Err(
                Diagnostic::error(Code::NotebookShape, "metadata.blueproof is nested too deeply")
                    .at(self.source.place(spot))
                    .hint("`blueproof schema blueprint` prints what may stand there"),
            );
        }
        self.index
            .node(raw)
            .map_err(|error| self.misshapen(raw, "metadata.blueproof", &error))
    }

    fn cell(&self, number: u32, raw: &'t RawValue) -> Result<Cell, Diagnostic> {
        let called = |part: &str| format!("{part} of cell {number}");
        let Some(cell) = self.read::<shape::Cell<'_>>(Some(raw), &format!("cell {number}"))? else {
            return Err(self.lacking(raw, number, "is nothing"));
        };
        let undecoded = shape::undecoded(raw.get(), &shape::CELL)
            .map_err(|error| self.misshapen(raw, &format!("cell {number}"), &error))?;
        let kind = match cell.cell_type.map(RawValue::get) {
            Some("\"code\"") => CellKind::Code,
            Some("\"markdown\"") => CellKind::Markdown,
            Some("\"raw\"") => CellKind::Raw,
            Some(_) | None => return Err(self.lacking(raw, number, "has no type that is known")),
        };
        let Some(source) = cell.source else {
            return Err(self.lacking(raw, number, "has no source"));
        };
        let (source, lines) = self.source_of(source, &called("the source"))?;
        let metadata: Option<shape::CellMetadata<'_>> = self.read(cell.metadata, &called("the metadata"))?;
        let tags = metadata.and_then(|metadata| metadata.tags);
        let outputs: Vec<&RawValue> = self
            .read(cell.outputs, &called("the list of outputs"))?
            .unwrap_or_default();
        Ok(Cell {
            number,
            kind,
            id: self.read(cell.id, &called("the id"))?,
            tags: self.read(tags, &called("the tags"))?.unwrap_or_default(),
            source,
            execution_count: self.read(cell.execution_count, &called("the execution count"))?,
            outputs: outputs.into_iter().map(|output| self.range(output)).collect(),
            undecoded,
            lines,
        })
    }

    fn range(&self, raw: &RawValue) -> std::ops::Range<usize> {
        let start = self.index.offset_of(raw.get());
        start..start + raw.get().len()
    }

    /// Returns a cell's text, and for each of its lines the line of the file.
    fn source_of(&self, raw: &'t RawValue, what: &str) -> Result<(String, Vec<u32>), Diagnostic> {
        let parts: Vec<&RawValue> = match raw.get().as_bytes().first() {
            Some(b'[') => self.read(Some(raw), what)?.unwrap_or_default(),
            Some(_) | None => vec![raw],
        };
        let mut source = String::new();
        let mut lines = Vec::new();
        for part in parts {
            let text: String =
                serde_json::from_str(part.get()).map_err(|error| self.misshapen(part, what, &error))?;
            let line = self.index.line(self.index.offset_of(part.get()));
            let begins =
                text.matches('\n').count() + usize::from(source.is_empty() || source.ends_with('\n'));
            // A part that ends with a line break begins no further line; the next part does.
            let begins = begins - usize::from(text.ends_with('\n') || text.is_empty()).min(begins);
            lines.extend(std::iter::repeat_n(line, begins));
            source.push_str(&text);
        }
        if lines.is_empty() {
            lines.push(self.index.line(self.index.offset_of(raw.get())));
        }
        Ok((source, lines))
    }

    fn lacking(&self, raw: &RawValue, number: u32, what: &str) -> Diagnostic {
        let spot = spot_of(&self.index, raw.get());
        Diagnostic::error(Code::NotebookShape, format!("cell {number} {what}"))
            .at(self.source.place(spot))
            .hint("save the notebook again with Jupyter")
    }

    fn misshapen(&self, raw: &RawValue, what: &str, error: &serde_json::Error) -> Diagnostic {
        let spot = spot_of(&self.index, raw.get());
        Diagnostic::error(Code::NotebookShape, format!("{what} cannot be read"))
            .at(self.source.place(spot))
            .because(without_place(error))
            .hint("save the notebook again with Jupyter")
    }
}

fn no_object(source: &Source) -> Diagnostic {
    let text = source.text.trim_start();
    let refused = Diagnostic::error(
        Code::NotebookSyntax,
        "this file is not a notebook: it is no JSON object",
    )
    .at(source.place(Spot { line: 1, column: 1 }));
    if text.is_empty() {
        return refused
            .because("the file is empty")
            .hint("git checkout -- the file, or save it again with Jupyter");
    }
    if text.starts_with("version https://git-lfs") {
        return refused.because("it is a Git LFS pointer").hint("git lfs pull");
    }
    refused.hint("give the path of an .ipynb file that Jupyter wrote")
}

fn syntax(source: &Source, error: &serde_json::Error) -> Diagnostic {
    let number = |n| u32::try_from(n).unwrap_or(u32::MAX);
    let spot = Spot {
        line: number(error.line()),
        column: number(error.column().max(1)),
    };
    let place = source.place(spot);
    let conflict = source.text.lines().any(|line| line.starts_with("<<<<<<< "));
    let refused = Diagnostic::error(Code::NotebookSyntax, "this file is not a notebook: it is no JSON")
        .at(place)
        .because(without_place(error));
    if conflict {
        return refused.hint("the file holds a merge conflict (`<<<<<<<`): solve it");
    }
    if error.is_eof() {
        return refused.hint("the file ends too early: copy or download it again");
    }
    refused.hint("open it with Jupyter, or `python -m json.tool FILE`, to see what is wrong")
}

/// Returns what the parser says without its own place, which is one within a part of the file.
fn without_place(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let end = said.rfind(" at line ").unwrap_or(said.len());
    said[..end].to_owned()
}

/// Returns how deep the brackets of a JSON text are nested.
fn deepest(json: &str) -> usize {
    let mut depth = 0_usize;
    let mut most = 0;
    let mut in_text = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_text => {
                bytes.next();
            }
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// Reads a whole text file of at most `largest` bytes.
pub(crate) fn read_text(path: &Path, largest: u64) -> Result<String, Diagnostic> {
    let shown = path.display().to_string();
    let size = readable(path)?;
    if size > largest {
        return Err(too_large(&shown, largest));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    // The file may grow while it is read.
    let read = file.take(largest + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > largest {
        return Err(too_large(&shown, largest));
    }
    if let Some(text) = encoding::utf_8(&bytes) {
        return Ok(text.to_owned());
    }
    let bad = std::str::from_utf8(&bytes).err();
    let valid = bad.map_or(0, |bad| bad.valid_up_to());
    let spot = Spot::of_offset(&String::from_utf8_lossy(&bytes[..valid]), valid);
    let diagnostic =
        Diagnostic::error(Code::NotebookSyntax, "this file is not text in UTF-8").at(SourceLocation {
            line: Some(spot.line),
            column: Some(spot.column),
            ..SourceLocation::file(&shown)
        });
    let diagnostic = match bad {
        Some(bad) => diagnostic.caused_by(&bad),
        None => diagnostic.because("it has NULs"),
    };
    Err(diagnostic.hint(encoding::hint(path, &bytes)))
}

/// Returns the size of the file at `path`, or why it cannot be read.
pub(crate) fn readable(path: &Path) -> Result<u64, Diagnostic> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if metadata.is_file() {
        return Ok(metadata.len());
    }
    let shown = path.display().to_string();
    Err(
        Diagnostic::error(Code::FileMissing, format!("`{shown}` is not a file"))
            .at(SourceLocation::file(&shown))
            .hint("give the path of a notebook or of a blueprint.yaml"),
    )
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    let shown = path.display().to_string();
    Diagnostic::error(Code::FileMissing, format!("could not read `{shown}`"))
        .at(SourceLocation::file(&shown))
        .caused_by(error)
        .hint("check the path; it is relative to the folder that you are in")
}

fn too_large(shown: &str, largest: u64) -> Diagnostic {
    let most = blueproof_core::domain::Bytes(largest);
    Diagnostic::error(Code::FileTooLarge, format!("`{shown}` is larger than {most}"))
        .at(SourceLocation::file(shown))
        .hint(format!(
            "jupyter nbconvert --clear-output --inplace {}, if it is a notebook",
            shell_word(Path::new(shown))
        ))
}
