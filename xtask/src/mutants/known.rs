//! Mutants that may survive, and why.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::list::Mutant;

/// The list of those that may survive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    survivors: Vec<Survivors>,
}

/// Some that may survive for the same reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivors {
    reason: String,
    mutants: Vec<String>,
}

/// What is to be said of mutants that were tried.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    /// Those that survive, and should not.
    pub(super) unknown: Vec<&'a Mutant>,
    /// How many survive that may.
    pub(super) known: usize,
    /// Those on the list that were tried and do not survive.
    pub(super) caught: Vec<&'a str>,
    /// Those on the list that there are no more.
    pub(super) gone: Vec<&'a str>,
}

impl Known {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("could not read `{}`", path.display()))?;
        let known: Self = toml::from_str(&text)
            .with_context(|| format!("`{}` is not a list of survivors", path.display()))?;
        let unexplained = known.survivors.iter().find(|of| of.reason.trim().is_empty());
        if let Some(of) = unexplained {
            bail!("`{}` gives no reason for {:?}", path.display(), of.mutants);
        }
        Ok(known)
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.survivors
            .iter()
            .flat_map(|of| &of.mutants)
            .map(String::as_str)
    }

    /// Compares those that survive with those that may. Several on one line may have the same id; they are one then.
    pub(super) fn judge<'a>(
        &'a self,
        all: &[Mutant],
        tried: &[&Mutant],
        alive: &[&'a Mutant],
    ) -> Verdict<'a> {
        let listed: BTreeSet<_> = self.ids().collect();
        let (known, unknown): (Vec<&Mutant>, _) = alive
            .iter()
            .partition(|mutant| listed.contains(mutant.id.as_str()));
        let ids = |mutants: &[&Mutant]| -> BTreeSet<String> {
            mutants.iter().map(|mutant| mutant.id.clone()).collect()
        };
        let (tried, alive) = (ids(tried), ids(alive));
        let all = ids(&all.iter().collect::<Vec<_>>());
        Verdict {
            unknown,
            known: known.len(),
            caught: self
                .ids()
                .filter(|id| tried.contains(*id) && !alive.contains(*id))
                .collect(),
            gone: self.ids().filter(|id| !all.contains(*id)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mutants::KNOWN, workspace::Workspace};

    fn mutant(line: usize, id: &str) -> Mutant {
        Mutant {
            name: format!("a.rs:{line}:1: {id}"),
            file: "a.rs".into(),
            id: id.into(),
        }
    }

    fn known(ids: &[&str]) -> Known {
        Known {
            survivors: vec![Survivors {
                reason: "they change nothing".into(),
                mutants: ids.iter().map(ToString::to_string).collect(),
            }],
        }
    }

    #[test]
    fn a_survivor_is_known_wherever_its_line_stands() {
        let known = known(&["listed", "noticed", "gone", "in another file"]);
        let all = [
            mutant(1, "listed"),
            mutant(2, "new"),
            mutant(3, "noticed"),
            mutant(4, "in another file"),
        ];
        let tried: Vec<_> = all[..3].iter().collect();
        let verdict = known.judge(&all, &tried, &tried[..2]);
        assert_eq!(verdict.unknown, [&all[1]]);
        assert_eq!(verdict.known, 1);
        assert_eq!(verdict.caught, ["noticed"]);
        assert_eq!(verdict.gone, ["gone"]);
    }

    #[test]
    fn of_two_on_one_line_one_that_survives_is_enough() {
        let known = known(&["twice"]);
        let all = [mutant(1, "twice"), mutant(1, "twice")];
        let tried: Vec<_> = all.iter().collect();
        let verdict = known.judge(&all, &tried, &tried[..1]);
        assert_eq!((verdict.unknown.len(), verdict.known), (0, 1));
        assert_eq!(verdict.caught, Vec::<&str>::new());
    }

    #[test]
    fn whatever_is_on_the_list_is_in_the_code() {
        let root = Workspace::load().expect("our own workspace can be read").root;
        let known = Known::read(&root.join(KNOWN)).expect("the list can be read");
        for of in &known.survivors {
            for id in &of.mutants {
                let (file, change) = id.split_once(": ").expect("a file, and what is changed in it");
                let code = fs::read_to_string(root.join(file)).expect("the file is there");
                let line = change
                    .split_once(" at `")
                    .map(|(_, line)| line.trim_end_matches('`'));
                assert!(
                    line.is_none_or(|line| code.contains(line)),
                    "{id}: there is no such line"
                );
            }
        }
        let ids: Vec<_> = known.ids().collect();
        let once: BTreeSet<_> = ids.iter().collect();
        assert_eq!(once.len(), ids.len(), "none is there twice");
    }
}
