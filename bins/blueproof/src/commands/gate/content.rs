//! Which content is approved or revoked, and what the runs of it ask for.

use std::collections::{BTreeMap, btree_map::Entry};

use blueproof_core::{
    approval::{ApprovalTarget, Selection},
    domain::{Head, JobDigest, RunId, RunState},
    ports::StoreClient,
    view::RunView,
};
use blueproof_diagnostic::{Code, Diagnostic};

use super::asked_job::AskedJob;
use crate::{
    cli::{Approve, Contents},
    exit::Problem,
    output,
    select::ContentSelector,
    session::Session,
};

/// The most different jobs that one approval names: nobody has looked at more.
const MOST_JOBS: usize = 100;

/// Content that somebody names: all of a head, or what one run is of; and the runs that are meant.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) target: ApprovalTarget,
    runs: Vec<RunView>,
}

impl Named {
    /// Returns the runs that are meant and that a target covers, but for those that have ended.
    pub(super) fn runs_in(&self, target: &ApprovalTarget) -> impl Iterator<Item = RunId> {
        self.open_in(target).map(|run| run.id)
    }

    /// Returns the digest of the policy that a repository has itself, as the runs say that await an approval.
    pub(super) fn own_policy(&self, target: &ApprovalTarget) -> Option<&str> {
        self.open_in(target).find_map(|run| run.waits()?.own_policy())
    }

    fn open_in(&self, target: &ApprovalTarget) -> impl Iterator<Item = &RunView> {
        let open = self
            .runs
            .iter()
            .filter(|run| !matches!(run.state, RunState::Ended(_)));
        open.filter(|run| target.has_head_of(&run.subject))
    }
}

/// Returns a head, and what it is of, in words.
pub(super) fn in_words(target: &ApprovalTarget) -> String {
    let head = target.head.short();
    let number = target.pull_request;
    let number = number.map_or_else(String::new, |number| format!(" of pull request {number}"));
    let repository = target.repository.to_string();
    format!("{head}{number} of {}", output::line(&repository))
}

/// Returns what somebody names: what the runs say that test it.
pub(super) async fn find(session: &Session, contents: &Contents) -> Result<Vec<Named>, Problem> {
    let runs = session.runs().await?;
    let named = contents.named.iter().map(|selector| match selector {
        ContentSelector::Run(run) => of_run(&runs, *run),
        ContentSelector::Head(head) => of_head(&runs, head, contents.pull_request),
    });
    named
        .map(|found| found.map_err(Problem::usage))
        .collect::<Result<Vec<_>, _>>()
}

fn of_run(runs: &[RunView], id: RunId) -> Result<Named, Diagnostic> {
    let run = runs.iter().find(|run| run.id == id).ok_or_else(|| {
        let unknown = Diagnostic::error(Code::NoSuchRun, format!("there is no {id}"));
        unknown.hint("`blueproof get runs` lists those that there are")
    })?;
    Ok(Named {
        target: ApprovalTarget::of(&run.subject),
        runs: vec![run.clone()],
    })
}

fn of_head(runs: &[RunView], head: &Head, pull_request: Option<u64>) -> Result<Named, Diagnostic> {
    let mut contents: BTreeMap<ApprovalTarget, Vec<RunView>> = BTreeMap::new();
    let of_head = runs.iter().filter(|run| run.subject.head == *head);
    for run in of_head.filter(|run| pull_request.is_none() || run.subject.pull_request == pull_request) {
        let target = ApprovalTarget::whole_head_of(&run.subject);
        contents.entry(target).or_default().push(run.clone());
    }
    let several: Vec<String> = contents.keys().map(in_words).collect();
    let (Some((target, runs)), true) = (contents.pop_first(), contents.is_empty()) else {
        return Err(unclear(head, &several));
    };
    Ok(Named { target, runs })
}

fn unclear(head: &Head, several: &[String]) -> Diagnostic {
    if several.is_empty() {
        let unknown = Diagnostic::error(Code::NoSuchRun, format!("no run tests {head}"));
        return unknown.hint("`blueproof get runs -o json` shows the heads of all, under `subject.head`");
    }
    let message = "several have this head, and each is approved by itself";
    Diagnostic::error(Code::Usage, message)
        .because(several.join("; "))
        .hint("name a run of it, such as `r-41`, or its pull request with `--pull-request N`")
}

/// Returns what is to be approved, and the jobs that the runs which have not ended ask for.
pub(super) async fn to_approve(
    session: &Session,
    named: &Named,
    arguments: &Approve,
) -> Result<(ApprovalTarget, Vec<AskedJob>), Problem> {
    let mut target = named.target.clone();
    let profiles = arguments.profiles.iter().cloned().map(Some);
    narrow(&mut target.scope.blueprints, arguments.blueprints.iter().cloned());
    narrow(&mut target.scope.profiles, profiles);
    let jobs = asked_jobs(&*session.store, named, &target).await?;
    if !arguments.any_job {
        check_asked(&target, jobs.len()).map_err(Problem::usage)?;
        target.scope.jobs = Selection::Named(jobs.keys().cloned().collect());
    }
    Ok((target, jobs.into_values().collect()))
}

/// Puts those that somebody names in the place of all or the one that is meant otherwise.
fn narrow<T: Ord>(selection: &mut Selection<T>, named: impl Iterator<Item = T>) {
    let named = Selection::named_or_all(named);
    if !named.is_all() {
        *selection = named;
    }
}

fn check_asked(target: &ApprovalTarget, jobs: usize) -> Result<(), Diagnostic> {
    let content = in_words(target);
    match jobs {
        0 => Err(Diagnostic::error(
            Code::NoSuchRun,
            format!("no run of {content} that has not ended is in question"),
        )
        .hint("`blueproof retry RUN` asks for one that has ended once more, and then it can be approved")
        .hint("`--any-job` approves whatever is asked for with this head from now on")),
        1..=MOST_JOBS => Ok(()),
        _ => Err(Diagnostic::error(
            Code::Usage,
            format!("the runs of {content} ask for {jobs} different things"),
        )
        .hint("approve them one by one, by their ids, such as `r-41`, or cancel those that nobody needs")),
    }
}

async fn asked_jobs(
    store: &dyn StoreClient,
    named: &Named,
    target: &ApprovalTarget,
) -> Result<BTreeMap<JobDigest, AskedJob>, Problem> {
    let mut jobs: BTreeMap<JobDigest, AskedJob> = BTreeMap::new();
    for run in named.open_in(target) {
        let Some(request) = store.request(run.id).await? else {
            continue;
        };
        match jobs.entry(request.job.digest()) {
            Entry::Occupied(mut asked) => asked.get_mut().also_of(run.id),
            Entry::Vacant(first) => drop(first.insert(AskedJob::new(run, &request).map_err(Problem::usage)?)),
        }
    }
    Ok(jobs)
}

/// Returns what is to be approved in lines: of each job all that it says, and nothing of it twice.
pub(super) fn listed(jobs: &[AskedJob]) -> String {
    jobs.iter().map(AskedJob::to_string).collect()
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::Repository;

    use super::*;
    use crate::commands::gate::tests::runs;

    #[test]
    fn a_head_is_approved_of_the_one_pull_request_that_has_it_or_that_is_named() {
        let (runs, head) = runs(&[(7, 12), (7, 13)]);
        let named = of_head(&runs, &head, Some(13))
            .expect("one has that number")
            .target;
        assert_eq!(
            (named.repository, named.pull_request),
            (Repository::GitHub(7), Some(13))
        );
        let unclear = of_head(&runs, &head, None).expect_err("two have it");
        assert_eq!(unclear.code, Code::Usage);
        assert!(
            unclear.causes[0].contains("pull request 12") && unclear.causes[0].contains("pull request 13")
        );
        let by_run = of_run(&runs, RunId(2)).expect("it is known");
        assert_eq!((by_run.target.pull_request, by_run.runs.len()), (Some(13), 1));
        assert_eq!(
            of_run(&runs, RunId(9)).expect_err("it is not").code,
            Code::NoSuchRun
        );
        for (head, number) in [(&head, Some(14)), (&Head::Commit("f".repeat(40)), None)] {
            let unknown = of_head(&runs, head, number).expect_err("no run is of it");
            assert_eq!(unknown.code, Code::NoSuchRun);
        }
    }

    #[test]
    fn nothing_and_what_nobody_looked_at_is_not_approved() {
        let (runs, head) = runs(&[(7, 12)]);
        let named = of_head(&runs, &head, None).expect("one has it");
        assert_eq!(
            check_asked(&named.target, 0).map_err(|error| error.code),
            Err(Code::NoSuchRun)
        );
        assert_eq!(check_asked(&named.target, MOST_JOBS), Ok(()));
        assert_eq!(
            check_asked(&named.target, MOST_JOBS + 1).map_err(|error| error.code),
            Err(Code::Usage)
        );
    }
}
