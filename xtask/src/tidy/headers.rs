//! Each Rust file says what it is for before anything else.

use super::{Complaint, Source};

pub(super) fn check(source: &Source) -> Option<Complaint> {
    let first = source.text.lines().next().unwrap_or_default();
    let says_something = first
        .strip_prefix("//!")
        .is_some_and(|words| !words.trim().is_empty());
    let complaint = || source.complaint(Some(1), "open the file with `//!` and what it is for");
    (!says_something).then(complaint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_opens_with_what_it_is_for() {
        for bad in [
            "",
            "\n//! What it is for.\n",
            "use std::fmt;\n",
            "/// An item.\nfn a() {}\n",
            "//!\nfn a() {}\n",
        ] {
            assert!(check(&Source::of("a.rs", bad)).is_some(), "{bad:?} is accepted");
        }
        assert_eq!(check(&Source::of("a.rs", "//! What it is for.\n")), None);
    }
}
