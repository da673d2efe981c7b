//! Names that other people read use the words of `docs/glossary.md`, and none that it says is not used.
//!
//! The glossary's last column is the only list of such words. A word in small letters is refused wherever it stands in a name;
//! one with a capital letter, only as the whole name of a type. Judged are what is `pub`, modules, arguments of programs, keys that are
//! stored or printed, and metrics. Old names that are still read (`#[serde(alias = "…")]`) may stay, as may what tests have.

mod names;
mod words;

use super::{Complaint, Parsed, Source};
use words::Words;

/// Where the glossary is.
const GLOSSARY: &str = "docs/glossary.md";

/// The words that are not used, with those to use instead.
pub(super) struct Glossary {
    rules: Vec<Rule>,
}

/// One word that is not used.
struct Rule {
    /// As the glossary has it.
    written: String,
    /// Its parts in small letters; `set_aside` has two.
    words: Words,
    /// Whether it is refused as the whole name of a type only.
    is_type: bool,
    /// What to use instead.
    instead: String,
}

impl Glossary {
    /// Reads the glossary from its page; one that is not there says nothing.
    pub(super) fn of(sources: &[Source]) -> Self {
        let page = sources.iter().find(|source| source.path == GLOSSARY);
        let rows = page.into_iter().flat_map(|page| page.text.lines());
        Self {
            rules: rows.flat_map(rules_of_row).collect(),
        }
    }

    pub(super) fn check(&self, file: &Parsed<'_>) -> Vec<Complaint> {
        let names = names::of(&file.syntax);
        let judged = names.iter().filter_map(|name| {
            let rule = self
                .rules
                .iter()
                .find(|rule| rule.refuses(&name.text, name.is_type))?;
            let message = format!(
                "`{}` in the name `{}`: {GLOSSARY} has `{}` for it",
                rule.written, name.text, rule.instead
            );
            Some(file.source.complaint(Some(name.line), message))
        });
        judged.collect()
    }
}

impl Rule {
    fn refuses(&self, name: &str, is_type: bool) -> bool {
        if self.is_type {
            is_type && name == self.written
        } else {
            Words::of(name).contain(&self.words)
        }
    }
}

/// Returns the rules of a line of the page: of a row of a table whose last column has words that are not used.
fn rules_of_row(line: &str) -> Vec<Rule> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let (true, Some(word), Some(unused)) = (cells.len() >= 4, cells.first(), cells.last()) else {
        return Vec::new();
    };
    let instead = word.replace('`', "");
    let rule = |written: &str| Rule {
        written: written.to_owned(),
        words: Words::of(written),
        is_type: written.starts_with(|c: char| c.is_ascii_uppercase()),
        instead: instead.clone(),
    };
    // What stands in backticks is every second piece.
    unused.split('`').skip(1).step_by(2).map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Words\n\n\
                        | word | meaning | whose | not used |\n\
                        |---|---|---|---|\n\
                        | usage record | what came of it | ours | `bill`, `set_aside` |\n\
                        | a noun | what it is | ours | `Told` |\n\
                        | run | a request | GitHub | |\n";

    fn complaints(text: &str) -> Vec<String> {
        let page = Source::of(GLOSSARY, PAGE);
        let source = Source::of("crates/a/src/lib.rs", text);
        let glossary = Glossary::of(&[page]);
        let file = Parsed::of(&source).expect("it is Rust");
        let complaints = glossary.check(&file);
        complaints.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_word_that_is_not_used_is_refused_with_its_place_and_the_one_to_use() {
        assert_eq!(
            complaints("//! A.\n\npub struct DeviceBill;\n"),
            [
                "crates/a/src/lib.rs:3: `bill` in the name `DeviceBill`: docs/glossary.md has `usage record` for it"
            ]
        );
    }

    #[test]
    fn it_is_refused_in_every_kind_of_name_that_others_read() {
        for bad in [
            "pub fn send_bill() {}",
            "pub enum Bill { One }",
            "pub enum A { SetAside }",
            "pub enum A { One { bill: u8 } }",
            "pub struct A { pub bill: u8 }",
            "pub trait Bill {}",
            "pub trait A { fn bill(&self); }",
            "pub type Bill = u8;",
            "pub type Told = u8;",
            "pub struct Told;",
            "pub const LONGEST_BILL: u8 = 0;",
            "pub static BILL: u8 = 0;",
            "mod bill;",
            "mod a { pub mod b { pub struct Bills; } }",
            "pub use a::A as Bill;",
            "struct A; impl A { pub fn is_set_aside(&self) {} }",
            "#[derive(Serialize)] struct A { bill: u8 }",
            "#[derive(Debug, serde::Deserialize)] enum A { Bill }",
            "#[derive(Serialize)] struct A { #[serde(rename = \"deviceBill\")] a: u8 }",
            "#[derive(Serialize)] #[serde(tag = \"bill\")] enum A { One }",
            "#[derive(clap::Args)] struct A { #[arg(long)] bill: u8 }",
            "#[derive(Subcommand)] enum A { Bill }",
            "#[derive(Args)] struct A { #[arg(long = \"set-aside\")] a: u8 }",
            "#[derive(Args)] struct A { #[arg(long, value_name = \"BILL\")] a: u8 }",
            "const A: &str = \"blueproof_bill_seconds_total\";",
            "table! { A = Counter, \"blueproof_bill_seconds_total\" [] \"Seconds\"; }",
        ] {
            assert_eq!(complaints(bad).len(), 1, "{bad}: {:?}", complaints(bad));
        }
    }

    #[test]
    fn other_words_names_of_ones_own_and_what_is_still_read_are_let_be() {
        for good in [
            "pub struct Billing;",
            "pub fn told() {}",
            "pub struct ToldAll;",
            "struct Bill { bill: u8 }",
            "pub(crate) fn bill() {}",
            "impl A { fn bill() {} }",
            "#[derive(Deserialize)] struct A { #[serde(alias = \"bill\")] a: u8 }",
            "#[cfg(test)] mod bill { pub struct Bill; }",
            "pub fn a() { let bill = \"the bill\"; }",
        ] {
            assert_eq!(complaints(good), [""; 0], "{good}");
        }
    }

    #[test]
    fn a_page_that_is_not_there_refuses_nothing() {
        assert!(Glossary::of(&[]).rules.is_empty());
    }
}
