//! Who answers for which part of a repository: OWNERS and OWNERS_ALIASES, as Prow reads them.
//!
//! Only approvers are read: reviewers may not approve. A folder's owners are those of its own file and of the folders above it, up
//! to a file that says `no_parent_owners`. Files are those of the default branch; who reads them from elsewhere lets a pull request
//! say who may approve it.
//!
//! Source: <https://www.kubernetes.dev/docs/guide/owners/>.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde::Deserialize;

/// A GitHub login as it is compared: logins differ by more than upper and lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Login(String);

/// The owners of every folder of a repository.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    by_folder: BTreeMap<String, OwnersFile>,
    aliases: BTreeMap<String, BTreeSet<Login>>,
}

/// An OWNERS file.
#[derive(Debug, Clone, Default)]
struct OwnersFile {
    approvers: BTreeSet<String>,
    by_pattern: Vec<(Regex, BTreeSet<String>)>,
    has_no_parent: bool,
}

/// A file that says nothing that could be gone by.
#[derive(Debug, thiserror::Error)]
#[error("could not read `{path}`")]
pub struct OwnersError {
    path: String,
    #[source]
    source: OwnersProblem,
}

#[derive(Debug, thiserror::Error)]
enum OwnersProblem {
    #[error(transparent)]
    Yaml(#[from] Box<serde_saphyr::Error>),
    #[error(transparent)]
    Pattern(#[from] regex::Error),
    #[error("the file has more than {LARGEST} bytes")]
    TooLarge,
}

/// The most bytes of a file.
const LARGEST: usize = 1 << 20;

/// OWNERS as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenOwners {
    approvers: Option<Vec<String>>,
    reviewers: Option<Vec<String>>,
    required_reviewers: Option<Vec<String>>,
    labels: Option<Vec<String>>,
    options: WrittenOptions,
    filters: BTreeMap<String, WrittenFilter>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenOptions {
    no_parent_owners: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenFilter {
    approvers: Option<Vec<String>>,
}

/// OWNERS_ALIASES as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenAliases {
    aliases: BTreeMap<String, Option<Vec<String>>>,
}

impl Login {
    /// Takes a login, with or without an `@` in front.
    pub fn new(login: &str) -> Self {
        Self(login.trim().trim_start_matches('@').to_ascii_lowercase())
    }

    /// Returns it in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Owners {
    /// Takes the text of `OWNERS_ALIASES`, which lies at the root of a repository.
    ///
    /// # Errors
    ///
    /// It is no such file.
    pub fn add_aliases(&mut self, text: &str) -> Result<(), OwnersError> {
        let written: WrittenAliases = read("OWNERS_ALIASES", text)?;
        for (alias, logins) in written.aliases {
            let logins = logins.unwrap_or_default();
            let logins = logins.iter().map(|login| Login::new(login)).collect();
            self.aliases.insert(alias.to_ascii_lowercase(), logins);
        }
        Ok(())
    }

    /// Takes the text of the OWNERS file of a folder, which is relative to the root, and empty for it.
    ///
    /// # Errors
    ///
    /// It is no such file.
    pub fn add(&mut self, folder: &str, text: &str) -> Result<(), OwnersError> {
        let folder = folder.trim_matches('/');
        let path = match folder {
            "" => "OWNERS".to_owned(),
            folder => format!("{folder}/OWNERS"),
        };
        let file = OwnersFile::of(read(&path, text)?).map_err(|source| OwnersError { path, source })?;
        self.by_folder.insert(folder.to_owned(), file);
        Ok(())
    }

    /// Returns who may approve a change of a file, which is relative to the root.
    pub fn approvers(&self, path: &str) -> BTreeSet<Login> {
        let mut approvers = BTreeSet::new();
        for folder in folders_of(path) {
            let Some(file) = self.by_folder.get(folder) else {
                continue;
            };
            let within = path[folder.len()..].trim_start_matches('/');
            approvers.extend(file.names(within).flat_map(|name| self.resolve(name)));
            if file.has_no_parent {
                break;
            }
        }
        approvers
    }

    /// Returns who may approve all of these: whoever is an approver of each of them.
    pub fn approvers_of_all<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> BTreeSet<Login> {
        let each = paths.into_iter().map(|path| self.approvers(path));
        each.reduce(|some, others| &some & &others).unwrap_or_default()
    }

    /// Returns everybody who may approve anything.
    pub fn all_approvers(&self) -> BTreeSet<Login> {
        let names = self.by_folder.values().flat_map(OwnersFile::all_names);
        names.flat_map(|name| self.resolve(name)).collect()
    }

    fn resolve(&self, name: &str) -> BTreeSet<Login> {
        match self.aliases.get(&name.to_ascii_lowercase()) {
            Some(logins) => logins.clone(),
            None => BTreeSet::from([Login::new(name)]),
        }
    }
}

impl WrittenOwners {
    /// Returns whether it says something without a filter: Prow passes over all filters of such a file.
    fn says_something_of_all(&self) -> bool {
        let lists = [
            &self.approvers,
            &self.reviewers,
            &self.required_reviewers,
            &self.labels,
        ];
        lists
            .into_iter()
            .any(|list| list.as_ref().is_some_and(|list| !list.is_empty()))
    }
}

impl OwnersFile {
    fn of(written: WrittenOwners) -> Result<Self, OwnersProblem> {
        let names = |names: Option<Vec<String>>| BTreeSet::from_iter(names.unwrap_or_default());
        let filters = match written.says_something_of_all() {
            true => BTreeMap::new(),
            false => written.filters,
        };
        let by_pattern = filters.into_iter().map(|(pattern, filter)| {
            let pattern = Regex::new(&pattern)?;
            Ok((pattern, names(filter.approvers)))
        });
        Ok(Self {
            approvers: names(written.approvers),
            by_pattern: by_pattern.collect::<Result<_, OwnersProblem>>()?,
            has_no_parent: written.options.no_parent_owners,
        })
    }

    /// Returns the names that count for a path below the file's folder.
    fn names(&self, within: &str) -> impl Iterator<Item = &str> {
        let matching = self
            .by_pattern
            .iter()
            .filter(move |(pattern, _)| pattern.is_match(within));
        let of_patterns = matching.flat_map(|(_, names)| names);
        self.approvers.iter().chain(of_patterns).map(String::as_str)
    }

    fn all_names(&self) -> impl Iterator<Item = &str> {
        let of_patterns = self.by_pattern.iter().flat_map(|(_, names)| names);
        self.approvers.iter().chain(of_patterns).map(String::as_str)
    }
}

/// Returns the folders that a path lies in, the innermost first; the root is empty.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
    inner.chain([""])
}

fn read<T: for<'a> Deserialize<'a> + Default>(path: &str, text: &str) -> Result<T, OwnersError> {
    let problem = |source| OwnersError {
        path: path.to_owned(),
        source,
    };
    if text.len() > LARGEST {
        return Err(problem(OwnersProblem::TooLarge));
    }
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    serde_saphyr::from_str(text).map_err(|error| problem(Box::new(error).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(files: &[(&str, &str)]) -> Owners {
        let mut owners = Owners::default();
        for (folder, text) in files {
            match *folder {
                "aliases" => owners.add_aliases(text).expect("it is one"),
                folder => owners.add(folder, text).expect("it is one"),
            }
        }
        owners
    }

    fn logins(names: &[&str]) -> BTreeSet<Login> {
        names.iter().map(|name| Login::new(name)).collect()
    }

    #[test]
    fn owners_are_those_of_a_folder_and_of_all_above_it() {
        let owners = owners(&[
            (
                "",
                "approvers:\n- Ada\n- trainers\nreviewers:\n- grace\nemeritus_approvers: [linus]\n",
            ),
            (
                "aliases",
                "aliases:\n  trainers:\n  - barbara\n  - Edsger\n  empty:\n",
            ),
            ("examples", "approvers: [donald]\nlabels: [area/examples]\n"),
            (
                "examples/own",
                "approvers: [leslie]\noptions:\n  no_parent_owners: true\n",
            ),
        ]);
        let cases = [
            ("README.md", logins(&["ada", "barbara", "edsger"])),
            (
                "examples/a.ipynb",
                logins(&["ada", "barbara", "donald", "edsger"]),
            ),
            (
                "examples/deep/er/a.ipynb",
                logins(&["ada", "barbara", "donald", "edsger"]),
            ),
            ("examples/own/a.ipynb", logins(&["leslie"])),
            (
                "examples-of-others/a.ipynb",
                logins(&["ada", "barbara", "edsger"]),
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(owners.approvers(path), expected, "{path}");
        }
        assert_eq!(
            owners.approvers_of_all(["README.md", "examples/a.ipynb"]),
            logins(&["ada", "barbara", "edsger"])
        );
        assert_eq!(
            owners.approvers_of_all(["README.md", "examples/own/a.ipynb"]),
            logins(&[])
        );
        assert_eq!(owners.approvers_of_all([]), logins(&[]));
        assert_eq!(
            owners.all_approvers(),
            logins(&["ada", "barbara", "edsger", "donald", "leslie"])
        );
    }

    #[test]
    fn a_pattern_is_of_paths_below_its_own_folder() {
        let owners = owners(&[(
            "examples",
            "filters:\n  \".*\":\n    approvers: [ada]\n  \"\\\\.ipynb$\":\n    approvers: [grace]\n  \"^jax/\":\n    reviewers: [x]\n",
        )]);
        assert_eq!(owners.approvers("examples/a.py"), logins(&["ada"]));
        assert_eq!(
            owners.approvers("examples/jax/a.ipynb"),
            logins(&["ada", "grace"])
        );
        assert_eq!(owners.approvers("a.ipynb"), logins(&[]));
    }

    #[test]
    fn filters_are_passed_over_where_a_file_says_something_without_one() {
        let filters = "filters:\n  \".*\":\n    approvers: [ada]\n";
        for list in ["approvers: [grace]\n", "labels: [area/examples]\n"] {
            let owners = owners(&[("", &format!("{list}{filters}"))]);
            assert!(!owners.approvers("a").contains(&Login::new("ada")), "{list}");
        }
        assert_eq!(
            owners(&[("", &format!("approvers: []\n{filters}"))]).approvers("a"),
            logins(&["ada"])
        );
    }

    #[test]
    fn nobody_owns_what_has_no_file_and_a_file_that_is_none_is_an_error() {
        assert_eq!(Owners::default().approvers("a"), logins(&[]));
        assert_eq!(owners(&[("", "")]).approvers("a"), logins(&[]));
        assert_eq!(owners(&[("", "# nobody\n")]).approvers("a"), logins(&[]));
        let large = "#".repeat(LARGEST + 1);
        for text in [
            "approvers: 7",
            "approvers: [[a]]",
            "- a",
            "filters:\n  \"(\": {approvers: [a]}",
            "a: [",
            &large,
        ] {
            let error = Owners::default().add("x", text).expect_err("it is none");
            assert_eq!(error.to_string(), "could not read `x/OWNERS`");
        }
    }

    #[test]
    fn a_login_is_the_same_in_upper_and_lower_case() {
        assert_eq!(Login::new("@Ada"), Login::new("ada"));
    }
}
