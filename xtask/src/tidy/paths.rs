//! No file names a place on the machine of whoever wrote it.
//!
//! Such a path works for one person, and tells everyone else about that person's machine.

use std::path::Path;

use super::{Complaint, Source};

/// What is known of the machine that the check runs on.
pub(super) struct Machine {
    /// The folder of the checkout; `None` where its path is so short that it could mean anything, such as `/src`.
    checkout: Option<String>,
}

/// Folders under which people's own folders lie. Written in two parts, or this file would complain of itself.
const HOMES: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("C:\\Us", "ers\\"),
    concat!("/ro", "ot/"),
];

/// Names that stand for anyone.
const ANYONE: [&str; 3] = ["user", "you", "runner"];

impl Machine {
    /// Describes the machine with a checkout at `root`.
    pub(super) fn of(root: &Path) -> Self {
        let is_telling = root.components().count() > 2;
        Self {
            checkout: is_telling.then(|| root.to_string_lossy().into_owned()),
        }
    }
}

pub(super) fn check(source: &Source, machine: &Machine) -> Vec<Complaint> {
    let is_bad = |line: &str| {
        let checkout = machine.checkout.as_deref();
        names_a_home(line) || checkout.is_some_and(|root| paths_after(line, root).any(ends_a_name))
    };
    source.complain_where(
        is_bad,
        "a path of one machine; write it relative to the workspace, or `/home/user/...` for anyone's",
    )
}

fn names_a_home(line: &str) -> bool {
    HOMES.iter().any(|home| {
        paths_after(line, home).any(|rest| {
            let name: String = rest.chars().take_while(|c| is_of_a_name(*c)).collect();
            !name.is_empty() && !ANYONE.contains(&name.as_str())
        })
    })
}

/// Returns what follows each absolute path in `line` that begins with `prefix`.
fn paths_after<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let begins_a_path = |at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !is_of_a_name(c) && !"/~}*".contains(c)) || line[..at].ends_with("file://")
    };
    let found = line.match_indices(prefix);
    found
        .filter(move |(at, _)| begins_a_path(*at))
        .map(move |(at, _)| &line[at + prefix.len()..])
}

fn ends_a_name(rest: &str) -> bool {
    !rest.starts_with(is_of_a_name)
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        let machine = Machine::of(Path::new("/build/project"));
        check(&Source::of("a.md", text), &machine).len()
    }

    #[test]
    fn a_path_of_a_person_or_of_this_checkout_is_found() {
        for home in HOMES {
            assert_eq!(complaints(&format!("see {home}ann/notes")), 1, "{home}");
        }
        for bad in [
            "/build/project/target",
            "\"/build/project\"",
            "file:///build/project/a",
        ] {
            assert_eq!(complaints(bad), 1, "{bad} is accepted");
        }
    }

    #[test]
    fn paths_that_are_the_same_everywhere_are_not_taken_for_one() {
        let anyone = format!("{}user/.cache", HOMES[0]);
        let url = format!("https://example.org{}ann", HOMES[0]);
        for good in [
            anyone.as_str(),
            &url,
            "/etc/blueproof",
            "/var/lib/blueproof",
            "crates/core/src",
            "/build/projects",
            "my/build/project",
            "~/.local/share",
        ] {
            assert_eq!(complaints(good), 0, "{good} is refused");
        }
    }

    #[test]
    fn a_checkout_with_a_short_path_is_not_looked_for() {
        let machine = Machine::of(Path::new("/src"));
        assert_eq!(check(&Source::of("a.md", "COPY . /src\n"), &machine), []);
    }
}
