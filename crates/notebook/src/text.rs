//! What a notebook printed, made fit to be stored and shown: it is a stranger's text, and may be hostile.

mod json;
mod lines;
mod redact;
mod sanitise;
mod style;

pub use json::harmless_json;
pub use lines::{Line, Lines, Run, lines};
pub use redact::{RedactedStream, Redactor};
pub use sanitise::{Sanitiser, plain, sanitise};
pub use style::{Colour, Style};
