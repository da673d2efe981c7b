//! What a notebook printed and said, made fit to be stored and shown: it is a stranger's text, and may be hostile.

mod amounts;
mod bare;
pub(crate) mod encoding;
mod forms;
mod json;
mod lines;
mod made;
mod redact;
mod sanitise;
mod shell;
mod spread;
mod style;
mod tokens;
mod unescaped;
mod url;
mod visible;

pub use amounts::{counted, duration};
pub use json::harmless_json;
pub(crate) use lines::reorders_or_hides;
pub use lines::{Line, Lines, Run, lines, shown};
pub use redact::{RedactedStream, Redactor};
pub use sanitise::{Sanitiser, sanitise};
pub use shell::shell_word;
pub use style::{Colour, Style};
pub(crate) use tokens::{tokens, without_tokens};
pub(crate) use url::{percent, url_encoded};
pub use visible::{block, line};
