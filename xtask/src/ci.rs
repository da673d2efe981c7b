//! `cargo xtask ci`: the one gate, here and in continuous integration.
//!
//! Steps run one after the other, what is quick first, and the first failure ends it: what follows would only bury the
//! message. What each step runs is in the modules below; this one keeps time and count.

mod api;
mod commands;
mod deny;
mod github;
mod kueue;
mod scale_set;
mod tally;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::ValueEnum;

use self::tally::Tally;
use crate::{
    process::{Ended, Invocation, print_line},
    tidy,
    workspace::Workspace,
};

/// A part of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Step {
    /// Formatting, by rustfmt.
    Fmt,
    /// Rules that no compiler checks.
    Tidy,
    /// Lints: with all features, and each package by itself with none and with each of its features.
    Clippy,
    /// Unit and integration tests.
    Test,
    /// The scheduler's API, by its own description: schemathesis, with each role.
    Api,
    /// What GitHub publishes of its API, read by our code.
    Github,
    /// The queue beside Kueue's own code, on random scenarios.
    Kueue,
    /// The fake of GitHub's runner scale sets, by GitHub's own client.
    ScaleSet,
    /// Examples in the documentation.
    Doctest,
    /// Programs under `examples/` of a package, each run to its end.
    Examples,
    /// The documentation itself.
    Doc,
    /// Licences, sources and advisories of what we depend on.
    Deny,
}

/// How a step went.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StepEnd {
    /// Nothing to complain of.
    Passed(Tally),
    /// Passed, but something that belongs to it could not be done.
    Partly(&'static str),
    /// Something is wrong, and has been shown.
    Failed(Tally),
}

/// A step that ran.
struct Ran {
    step: Step,
    end: StepEnd,
    took: Duration,
}

impl Step {
    /// Every step, in the order in which they run.
    pub(crate) const ALL: &[Step] = &[
        Step::Fmt,
        Step::Tidy,
        Step::Clippy,
        Step::Test,
        Step::Api,
        Step::Github,
        Step::Kueue,
        Step::ScaleSet,
        Step::Doctest,
        Step::Examples,
        Step::Doc,
        Step::Deny,
    ];

    fn name(self) -> &'static str {
        match self {
            Step::Fmt => "fmt",
            Step::Tidy => "tidy",
            Step::Clippy => "clippy",
            Step::Test => "test",
            Step::Api => "api",
            Step::Github => "github",
            Step::Kueue => "kueue",
            Step::ScaleSet => "scale-set",
            Step::Doctest => "doctest",
            Step::Examples => "examples",
            Step::Doc => "doc",
            Step::Deny => "deny",
        }
    }

    fn perform(self, workspace: &Workspace) -> Result<StepEnd> {
        match self {
            Step::Fmt => run_all(&commands::fmt(), workspace),
            Step::Tidy => Ok(tidy_up(workspace)?),
            Step::Clippy => run_all(&commands::clippy(workspace), workspace),
            Step::Test => run_all(&commands::test(), workspace),
            Step::Api => api::run(workspace),
            Step::Github => github::run(workspace),
            Step::Kueue => kueue::run(workspace),
            Step::ScaleSet => scale_set::run(workspace),
            Step::Doctest => run_all(&commands::doctest(workspace), workspace),
            Step::Examples => run_all(&commands::examples(workspace), workspace),
            Step::Doc => run_all(&commands::doc(), workspace),
            Step::Deny => deny::run(workspace),
        }
    }
}

/// Runs `steps` until one fails, and prints a summary whose last line counts the tests.
pub(crate) fn run(workspace: &Workspace, steps: &[Step]) -> Result<ExitCode> {
    let ran = run_until_failure(steps, |step| {
        print_line(&format!("\n== {}", step.name()));
        step.perform(workspace)
    })?;
    print_line(&summary(&ran, steps));
    let failed = ran.iter().any(|ran| matches!(ran.end, StepEnd::Failed(_)));
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn run_until_failure(steps: &[Step], mut perform: impl FnMut(Step) -> Result<StepEnd>) -> Result<Vec<Ran>> {
    let mut ran = Vec::new();
    for &step in steps {
        let begun = Instant::now();
        let end = perform(step)?;
        let failed = matches!(end, StepEnd::Failed(_));
        let took = begun.elapsed();
        ran.push(Ran { step, end, took });
        if failed {
            break;
        }
    }
    Ok(ran)
}

/// Runs invocations until one fails, and counts the tests that they report.
fn run_all(invocations: &[Invocation], workspace: &Workspace) -> Result<StepEnd> {
    let mut tally = Tally::default();
    for invocation in invocations {
        print_line(&format!("$ {invocation}"));
        let ended = invocation.run(&workspace.root, |line| {
            print_line(line);
            tally.read(line);
        })?;
        if ended == Ended::Badly {
            print_line(&format!("\nfailed: {invocation}"));
            return Ok(StepEnd::Failed(tally));
        }
    }
    if tally.ignored > 0 {
        print_line(&format!(
            "\nfailed: {} tests were ignored; run them, or take them out",
            tally.ignored
        ));
        return Ok(StepEnd::Failed(tally));
    }
    Ok(StepEnd::Passed(tally))
}

fn tidy_up(workspace: &Workspace) -> Result<StepEnd> {
    let complaints = tidy::check(workspace)?;
    for complaint in &complaints {
        print_line(&complaint.to_string());
    }
    Ok(match complaints.len() {
        0 => StepEnd::Passed(Tally::default()),
        n => {
            print_line(&format!("\nfailed: {n} places are untidy"));
            StepEnd::Failed(Tally::default())
        }
    })
}

/// Returns the table of steps, what to do next, and the plain last line.
fn summary(ran: &[Ran], asked: &[Step]) -> String {
    let mut lines = vec![String::new()];
    let mut total = Tally::default();
    for Ran { step, end, took } in ran {
        let (word, tally) = match end {
            StepEnd::Passed(tally) => ("ok".to_owned(), *tally),
            StepEnd::Partly(missing) => (format!("ok, but {missing}"), Tally::default()),
            StepEnd::Failed(tally) => ("FAILED".to_owned(), tally.with_a_failure()),
        };
        total = total + tally;
        lines.push(format!(
            "{:<9} {:>7.1} s  {word}",
            step.name(),
            took.as_secs_f64()
        ));
    }
    for step in &asked[ran.len()..] {
        lines.push(format!("{:<9} {:>7}    not run", step.name(), "-"));
    }
    if let Some(Ran {
        step,
        end: StepEnd::Failed(_),
        ..
    }) = ran.last()
    {
        lines.push(format!(
            "\nagain, this step alone: cargo xtask ci {}",
            step.name()
        ));
    }
    if total.passed + total.failed > 0 {
        lines.push(format!("\n{} passed, {} failed", total.passed, total.failed));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(step: Step, end: StepEnd) -> Ran {
        Ran {
            step,
            end,
            took: Duration::from_millis(1250),
        }
    }

    fn tally(passed: u64, failed: u64) -> Tally {
        Tally {
            passed,
            failed,
            ignored: 0,
        }
    }

    #[test]
    fn steps_run_in_order_and_the_first_failure_ends_it() {
        let mut seen = Vec::new();
        let ran = run_until_failure(&[Step::Fmt, Step::Test, Step::Doc], |step| {
            seen.push(step);
            let passed = step != Step::Test;
            Ok(if passed {
                StepEnd::Passed(tally(3, 0))
            } else {
                StepEnd::Failed(tally(3, 1))
            })
        });

        assert_eq!(seen, [Step::Fmt, Step::Test]);
        assert_eq!(ran.expect("no step is an error").len(), 2);
    }

    #[test]
    fn a_failure_is_summed_up_with_the_command_that_runs_it_again() {
        let ran = [
            ran(Step::Fmt, StepEnd::Passed(Tally::default())),
            ran(Step::Test, StepEnd::Failed(tally(40, 2))),
        ];
        let expected = "
fmt           1.2 s  ok
test          1.2 s  FAILED
doc             -    not run

again, this step alone: cargo xtask ci test

40 passed, 2 failed";
        assert_eq!(summary(&ran, &[Step::Fmt, Step::Test, Step::Doc]), expected);
    }

    #[test]
    fn a_success_is_summed_up_with_what_could_not_be_done() {
        let ran = [
            ran(Step::Test, StepEnd::Passed(tally(40, 0))),
            ran(Step::Doctest, StepEnd::Passed(tally(2, 0))),
            ran(Step::Deny, StepEnd::Partly("advisories did not run")),
        ];
        let expected = "
test          1.2 s  ok
doctest       1.2 s  ok
deny          1.2 s  ok, but advisories did not run

42 passed, 0 failed";
        assert_eq!(summary(&ran, &[Step::Test, Step::Doctest, Step::Deny]), expected);
    }

    #[test]
    fn a_step_that_fails_without_a_failed_test_does_not_end_in_zero_failed() {
        let text = summary(&[ran(Step::Fmt, StepEnd::Failed(Tally::default()))], &[Step::Fmt]);
        assert!(text.ends_with("\n0 passed, 1 failed"), "{text}");
    }

    #[test]
    fn steps_without_tests_count_none() {
        let text = summary(&[ran(Step::Fmt, StepEnd::Passed(Tally::default()))], &[Step::Fmt]);
        assert_eq!(text, "\nfmt           1.2 s  ok");
    }

    #[test]
    fn every_step_is_called_on_the_command_line_as_in_the_summary() {
        assert_eq!(Step::ALL.len(), Step::value_variants().len());
        for &step in Step::ALL {
            let value = step.to_possible_value().expect("no step is hidden");
            assert_eq!(value.get_name(), step.name());
        }
    }
}
