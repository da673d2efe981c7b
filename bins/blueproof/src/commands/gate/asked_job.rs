//! What a run does with content, as whoever approves it has to see it: whole.

use std::fmt;

use blueproof_core::{
    domain::{RunId, RunRequest},
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};
use serde_json::Value;

use crate::output;

/// The most values of a job, and the most characters of one: what is longer nobody reads, and is not approved unread.
const MOST_VALUES: usize = 200;
const LONGEST_VALUE: usize = 1_000;

/// So many runs are named that ask for one job.
const NAMED: usize = 5;

/// A job, all that it says, and the runs that ask for it.
#[derive(Debug)]
pub(super) struct AskedJob {
    title: String,
    values: Vec<String>,
    runs: Vec<RunId>,
}

impl AskedJob {
    /// Reads what a run asks for.
    ///
    /// # Errors
    ///
    /// It is more than anybody reads.
    pub(super) fn new(run: &RunView, request: &RunRequest) -> Result<Self, Diagnostic> {
        let mut values = Vec::new();
        let job = serde_json::to_value(&request.job).expect("a job is plain data");
        flatten("", &job, &mut values);
        let is_short = |value: &String| value.chars().count() <= LONGEST_VALUE;
        if values.len() > MOST_VALUES || !values.iter().all(is_short) {
            return Err(unreadable(run.id));
        }
        let subject = &run.subject;
        let profile = subject.profile.as_ref();
        let profile = profile.map_or_else(String::new, |profile| format!(" under {profile}"));
        Ok(Self {
            title: format!("{}{profile}", subject.blueprint),
            values,
            runs: vec![run.id],
        })
    }

    /// Notes another run that asks for the same.
    pub(super) fn also_of(&mut self, run: RunId) {
        self.runs.push(run);
    }
}

impl fmt::Display for AskedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.runs.iter().take(NAMED).map(ToString::to_string).collect();
        let more = match self.runs.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(f, "  {}{more}: {}", named.join(", "), output::line(&self.title))?;
        self.values
            .iter()
            .try_for_each(|value| writeln!(f, "    {}", output::line(value)))
    }
}

/// Lists the values of an object and of those in it, each by its path. What is empty says nothing. Names and texts are written as
/// JSON writes them, so that none can pass for several.
fn flatten(path: &str, value: &Value, values: &mut Vec<String>) {
    let is_empty = match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Object(_) => false,
    };
    if is_empty || values.len() > MOST_VALUES {
        return;
    }
    let Value::Object(fields) = value else {
        return values.push(format!("{path}: {value}"));
    };
    for (name, field) in fields {
        let is_plain = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let name = if is_plain {
            name.clone()
        } else {
            Value::from(name.as_str()).to_string()
        };
        let path = if path.is_empty() {
            name
        } else {
            format!("{path}.{name}")
        };
        flatten(&path, field, values);
    }
}

fn unreadable(run: RunId) -> Diagnostic {
    let message = format!("what {run} asks for is more than anybody reads before approving it");
    Diagnostic::error(Code::Usage, message)
        .because(format!(
            "a job has at most {MOST_VALUES} values of {LONGEST_VALUE} characters each"
        ))
        .hint(format!(
            "approve the others by their ids, such as `r-41`; `blueproof cancel {run}` ends this one"
        ))
}

#[cfg(test)]
mod tests {
    use blueproof_core::{event::Event, policy::Policy, scheduler::Scheduler, testing::request};
    use serde_json::json;

    use super::*;

    fn asked(work: Value) -> Result<AskedJob, Diagnostic> {
        let mut request = request("a", "nano-lm");
        request.job.work = work;
        let mut scheduler = Scheduler::new(Policy::local(Default::default()));
        let at = jiff::Timestamp::UNIX_EPOCH;
        scheduler.handle(
            at,
            Event::Requested {
                request: Box::new(request.clone()),
            },
        );
        AskedJob::new(&scheduler.view(RunId(1)).expect("it is known"), &request)
    }

    #[test]
    fn whoever_approves_sees_each_value_and_none_that_passes_for_another() {
        let shown = asked(json!({
            "environment": {"requirements": ["numpy", "evil @ git+https://example.org/evil"], "lock": null},
            "secrets": [{"name": "a, no secrets; steps=400", "env": "MYSECRET"}],
            "parameters": {"steps": 1, "x\ny": "\u{1b}[2J", "left": {}},
            "unknownToUs": true,
            "allowEmpty": false,
        }));
        let shown = shown.expect("it is short").to_string();
        for line in [
            r#"    work.environment.requirements: ["numpy","evil @ git+https://example.org/evil"]"#,
            r#""name":"a, no secrets; steps=400""#,
            r#""env":"MYSECRET""#,
            r#"    work.parameters.steps: 1"#,
            r#"    work.parameters."x\ny": "\u001b[2J""#,
            r#"    work.unknownToUs: true"#,
        ] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        assert!(
            !shown.contains("lock") && !shown.contains("allowEmpty"),
            "{shown}"
        );
    }

    #[test]
    fn what_nobody_reads_is_not_approved() {
        let many: serde_json::Map<String, Value> = (0..300).map(|n| (format!("p{n}"), json!(n))).collect();
        for work in [json!({"notebook": "x".repeat(2_000)}), Value::Object(many)] {
            assert_eq!(asked(work).expect_err("it is too much").code, Code::Usage);
        }
    }

    #[test]
    fn runs_that_ask_for_one_job_are_named_and_counted() {
        let mut asked = asked(json!({})).expect("it is short");
        (2..=9).for_each(|run| asked.also_of(RunId(run)));
        assert!(
            asked
                .to_string()
                .starts_with("  r-1, r-2, r-3, r-4, r-5 and 4 more: nano-lm\n")
        );
    }
}
