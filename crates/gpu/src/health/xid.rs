//! What the numbers come to that NVIDIA's driver reports errors by: a few that are acted upon, in our own words.

use serde::{Deserialize, Serialize};

/// What an error comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum XidClass {
    /// The device is broken until it is reset, or its machine started anew.
    Reset,
    /// Memory is broken, and only the programs that used it were hurt.
    Contained,
    /// A program did something that it must not.
    Application,
    /// It is told for the record.
    Informational,
    /// It is not in this list.
    Unknown,
}

/// Returns what an error comes to.
pub fn xid_class(xid: u64) -> XidClass {
    match xid {
        48 | 62 | 64 | 74 | 79 | 95 | 119 | 120 => XidClass::Reset,
        94 => XidClass::Contained,
        13 | 31 | 43 | 45 => XidClass::Application,
        63 | 92 => XidClass::Informational,
        _ => XidClass::Unknown,
    }
}

/// Returns what happened.
pub fn xid_words(xid: u64) -> &'static str {
    match xid {
        13 => "a program made its processors raise an exception",
        31 => "a program used memory that is not mapped for it",
        43 => "a program's work was stopped for an error of its own",
        45 => "a program's work was cleared away after it ended or failed",
        48 => "two bits of memory were wrong, which cannot be corrected",
        62 => "the controller inside it stopped",
        63 => "a row or page of memory was noted to be replaced",
        64 => "a row or page of memory could not be noted to be replaced",
        74 => "a link to another device failed",
        79 => "it fell off the bus",
        92 => "many errors of memory were corrected",
        94 => "memory is broken, and only its users were stopped",
        95 => "memory is broken, and nobody knows whom it hurt",
        119 => "its system processor did not answer in time",
        120 => "its system processor failed",
        _ => "not in our list",
    }
}
