//! Where `unsafe` code may be: in few files, each of which speaks to C, and a person has read for that.

use super::{Complaint, Source};

/// The files, and folders, that may have it.
const MAY: [&str; 2] = ["crates/gpu/src/nvml/raw.rs", "tests/fake-nvml/"];

pub(super) fn check(source: &Source) -> Vec<Complaint> {
    if MAY
        .iter()
        .any(|place| source.path.replace('\\', "/").starts_with(place))
    {
        return Vec::new();
    }
    source.complain_where(
        lets_it_in,
        "use a crate that wraps what is unsafe; where there is none, add the file to the list in xtask/src/tidy/unsafety.rs",
    )
}

/// Whether a line is an attribute that lets `unsafe` code in.
fn lets_it_in(line: &str) -> bool {
    let line = line.trim_start();
    let attribute = line.strip_prefix("#![").or_else(|| line.strip_prefix("#["));
    attribute.is_some_and(|attribute| {
        let mut words = attribute.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let lets = words
            .clone()
            .any(|word| matches!(word, "allow" | "expect" | "warn"));
        lets && words.any(|word| word == "unsafe_code")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_files_may_have_it() {
        for attribute in [
            "#![expect(unsafe_code, reason = \"C\")]",
            "    #[allow(unsafe_code)]",
            "#[cfg_attr(unix, expect(unsafe_code))]",
        ] {
            let text = || format!("//! Code.\n{attribute}\nfn a() {{}}\n");
            let complaints = check(&Source::of("crates/core/src/a.rs", text()));
            assert_eq!(complaints.len(), 1, "{attribute}");
            assert_eq!(complaints[0].line, Some(2));
            assert_eq!(check(&Source::of(MAY[0], text())), []);
            assert_eq!(check(&Source::of("tests/fake-nvml/src/abi/gpm.rs", text())), []);
        }
    }

    #[test]
    fn what_forbids_it_is_no_mistake() {
        let text = "#![deny(unsafe_code)]\n// #![allow(unsafe_code)]\nfn unsafe_code() {}\n";
        assert_eq!(check(&Source::of("crates/core/src/a.rs", text)), []);
    }
}
