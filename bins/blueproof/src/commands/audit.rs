//! `blueproof audit`: who did what, as the log has it.

use std::collections::BTreeMap;

use blueproof_core::{
    audit::{Audit, AuditEntry},
    domain::{Actor, RunId, Subject},
};

use crate::{
    cli,
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document},
    reading::{self, Reading},
    show,
};

pub(super) fn audit(arguments: &cli::Audit, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    reading::block_on(tell(&reading, arguments))
}

async fn tell(reading: &Reading, arguments: &cli::Audit) -> Result<Exit, Problem> {
    let Some(store) = &reading.store else {
        if let Some(run) = &arguments.run {
            return Err(Problem::usage(run.unknown(None)));
        }
        reading.say_there_is_no_store();
        return Ok(Exit::Ok);
    };
    let of_run = match &arguments.run {
        Some(run) => {
            let view = run.resolve(&**store).await?;
            Some((view.id, view.subject))
        }
        None => None,
    };
    let subjects: BTreeMap<RunId, Subject> = match arguments.pull_request {
        Some(_) => store.runs(i64::MAX as usize).await?,
        None => Vec::new(),
    }
    .into_iter()
    .map(|view| (view.id, view.subject))
    .collect();
    let is_wanted = |entry: &AuditEntry| {
        let of_run = of_run.as_ref();
        of_run.is_none_or(|(run, subject)| entry.concerns_run(*run, subject))
            && arguments
                .pull_request
                .is_none_or(|number| entry.concerns_pull_request(number, |run| subjects.get(&run).cloned()))
            && arguments
                .by
                .as_ref()
                .is_none_or(|who| entry.by.as_ref().is_some_and(|by| is_called(by, who)))
    };
    let (mut audit, mut entries) = (Audit::default(), Vec::new());
    reading::facts(store, |facts| {
        let told = facts.iter().filter_map(|fact| audit.entry(fact));
        entries.extend(told.filter(|entry| is_wanted(entry)));
        Ok(())
    })
    .await?;
    match arguments.output {
        Some(format) => {
            let document = Document::list("AuditEntryList", "AuditEntry", entries);
            output::print(&output::encode(&document, format.into())?)?;
        }
        None if entries.is_empty() => output::note("nobody did anything of that kind"),
        None => output::print(&show::audit::table(&entries).render(output::width()))?,
    }
    Ok(Exit::Ok)
}

/// Returns whether somebody goes by a name: a login, with or without the `@`, an id, or a user of this machine.
fn is_called(by: &Actor, who: &str) -> bool {
    match by {
        Actor::Local(user) => user == who,
        Actor::GitHub { id, login } => {
            id.to_string() == who || login.eq_ignore_ascii_case(who.strip_prefix('@').unwrap_or(who))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_found_by_login_or_id() {
        let ada = Actor::GitHub {
            id: 7,
            login: "Ada".into(),
        };
        for who in ["ada", "@ADA", "7"] {
            assert!(is_called(&ada, who), "{who}");
        }
        for who in ["ad", "77", "@7", ""] {
            assert!(!is_called(&ada, who), "{who}");
        }
        assert!(is_called(&Actor::Local("ada".into()), "ada"));
        assert!(!is_called(&Actor::Local("ada".into()), "@ada"));
    }
}
