//! `cargo xtask mutants`: whether the tests of the queue notice when its code is changed.
//!
//! cargo-mutants changes one place at a time in a copy of the tree. Several judges look at each mutant, the cheapest first:
//! the recorded cases, which are Kueue's own answers, then the queue's tests and those of the crates above it. One that none
//! of them notices survives, and must be on the list of those that may, each with a reason.

mod judge;
mod known;
mod list;

use std::{path::Path, process::ExitCode, str::FromStr};

use anyhow::{Result, ensure};
use clap::Args;

use self::{
    judge::{JUDGES, Lab},
    known::{Known, Verdict},
    list::Mutant,
};
use crate::{process::print_line, tool::Tool, workspace::Workspace};

/// Those that may survive, and why.
const KNOWN: &str = "tools/mutants.toml";

const MUTANTS: Tool = Tool {
    name: "cargo-mutants",
    version: "27.1.0",
    ask: &["mutants", "--version"],
};

/// Which mutants to try.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only those in files whose path contains this; may be repeated.
    #[arg(long = "file", value_name = "PART")]
    files: Vec<String>,
    /// Only every N-th of those, from the K-th on; K is less than N.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
}

/// Every `of`-th, from the `from`-th on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shard {
    from: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(from, of)| Some((from.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((from, of)) if from < of => Ok(Self { from, of }),
            Some(_) | None => Err("want K/N with K from 0 to N - 1, such as 0/50"),
        }
    }
}

impl Arguments {
    fn choose<'a>(&self, all: &'a [Mutant]) -> Vec<&'a Mutant> {
        let wanted = |mutant: &&Mutant| {
            self.files.is_empty() || self.files.iter().any(|part| mutant.file.contains(part.as_str()))
        };
        let Shard { from, of } = self.shard.unwrap_or(Shard { from: 0, of: 1 });
        all.iter().filter(wanted).skip(from).step_by(of).collect()
    }
}

/// Tries the mutants, and prints what survives. Fails when one does that is not on the list.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ExitCode> {
    let known = Known::read(&workspace.root.join(KNOWN))?;
    let Some(program) = MUTANTS.find_or_install(workspace)? else {
        return Ok(ExitCode::FAILURE);
    };
    let all = list::all(workspace, &program)?;
    let chosen = arguments.choose(&all);
    ensure!(
        !chosen.is_empty(),
        "none of {} mutants is in such a file",
        all.len()
    );
    let alive = survivors(workspace, &program, &chosen)?;
    let verdict = known.judge(&all, &chosen, &alive);
    print_line(&summary(&verdict, chosen.len()));
    Ok(if verdict.unknown.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns those that no judge notices.
fn survivors<'a>(workspace: &Workspace, program: &Path, chosen: &[&'a Mutant]) -> Result<Vec<&'a Mutant>> {
    let lab = Lab::new(workspace, program);
    let mut alive = chosen.to_vec();
    for judge in JUDGES {
        if alive.is_empty() {
            break;
        }
        print_line(&format!("\n== {}: {} mutants", judge.what, alive.len()));
        let missed = lab.missed_by(judge, &alive)?;
        alive.retain(|mutant| missed.contains(&mutant.name));
    }
    Ok(alive)
}

/// Returns what was found, as a person reads it; a line in quotes is one for the list.
fn summary(verdict: &Verdict<'_>, tried: usize) -> String {
    let Verdict {
        unknown,
        known,
        caught,
        gone,
    } = verdict;
    let mut lines = Vec::new();
    for mutant in unknown {
        lines.push(format!("\nsurvives: {}\n  {}", mutant.name, quoted(&mutant.id)));
    }
    for id in caught {
        lines.push(format!("\non the list, but noticed now:\n  {}", quoted(id)));
    }
    for id in gone {
        lines.push(format!("\non the list, but no longer there:\n  {}", quoted(id)));
    }
    if !unknown.is_empty() {
        lines.push(format!(
            "\nwrite a test that notices it, remove code that nothing needs, or add it to {KNOWN} with a reason"
        ));
    }
    let noticed = tried - unknown.len() - known;
    lines.push(format!(
        "\n{tried} mutants: {noticed} noticed, {known} may survive, {} must not",
        unknown.len()
    ));
    lines.join("\n")
}

/// Returns a text as TOML has it.
fn quoted(text: &str) -> String {
    // What JSON escapes in a string, TOML escapes in the same way.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(file: &str, line: usize) -> Mutant {
        Mutant {
            name: format!("{file}:{line}:5: replace < with > in f"),
            file: file.into(),
            id: format!("{file}: replace < with > in f at `a < {line}`"),
        }
    }

    fn names(chosen: &[&Mutant]) -> Vec<String> {
        chosen.iter().map(|mutant| mutant.name.clone()).collect()
    }

    #[test]
    fn every_mutant_is_in_one_shard() {
        let all: Vec<_> = (0..10).map(|line| mutant("queue/share.rs", line)).collect();
        let mut seen = Vec::new();
        for from in 0..3 {
            let shard = format!("{from}/3").parse().expect("a shard");
            let arguments = Arguments {
                files: Vec::new(),
                shard: Some(shard),
            };
            seen.extend(names(&arguments.choose(&all)));
        }
        seen.sort();
        assert_eq!(seen, names(&all.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn a_shard_that_is_not_one_of_so_many_is_refused() {
        for text in ["3/3", "1", "/2", "0/0", "a/b", "-1/2"] {
            text.parse::<Shard>().expect_err(text);
        }
    }

    #[test]
    fn files_are_chosen_by_any_part_of_their_paths() {
        let all = [mutant("queue/share.rs", 1), mutant("queue/victims/fair.rs", 2)];
        let arguments = Arguments {
            files: vec!["victims".into(), "assign".into()],
            shard: None,
        };
        assert_eq!(names(&arguments.choose(&all)), names(&[&all[1]]));
    }

    #[test]
    fn a_survivor_is_shown_as_it_would_be_listed() {
        let (unknown, other) = (
            mutant("queue/share.rs", 1),
            r#"a.rs: replace == with != in g at `a == "b"`"#,
        );
        let verdict = Verdict {
            unknown: vec![&unknown],
            known: 2,
            caught: vec![other],
            gone: Vec::new(),
        };
        let expected = r#"
survives: queue/share.rs:1:5: replace < with > in f
  "queue/share.rs: replace < with > in f at `a < 1`"

on the list, but noticed now:
  "a.rs: replace == with != in g at `a == \"b\"`"

write a test that notices it, remove code that nothing needs, or add it to tools/mutants.toml with a reason

12 mutants: 9 noticed, 2 may survive, 1 must not"#;
        assert_eq!(summary(&verdict, 12), expected);
    }
}
