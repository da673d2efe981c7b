//! Finishing an attempt whose agent was killed.

use std::{io, path::Path};

use blueproof_core::{
    attempt::{AttemptLayout, Cgroup, Disturbance, LogWriter, Record, RecordKind, remove_folder},
    domain::{Failure, FailureClass, Outcome, Verdict},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::Timestamp;

use super::{
    attempt::cgroup_name,
    halt::{read_spec, tampered},
};
use crate::{
    kernel::Runtime,
    process::{Confinement, end_left},
};

/// Ends what an earlier agent left, and appends how the attempt ended. The notebook is not run again.
pub(crate) fn finish(
    layout: &AttemptLayout,
    work: &Path,
    log: &mut LogWriter,
    records: &[Record],
) -> io::Result<()> {
    let unended = end_what_is_left(layout, work, records);
    let _ = remove_folder(work);
    // An agent makes sure that its first word is on the disk before it starts anything.
    let is_cut_off = records.is_empty().then_some(Disturbance::CutOff);
    let mut failure = match log.reclaim()?.or(is_cut_off) {
        Some(disturbance) => tampered(disturbance),
        None => agent_lost(),
    };
    if let Some(unended) = unended {
        failure.diagnostic = failure.diagnostic.because(unended);
    }
    log.append(&Record {
        at: Timestamp::now(),
        kind: RecordKind::Finished {
            outcome: Box::new(Outcome {
                verdict: Verdict::Failed(Box::new(failure)),
                usage: None,
                metrics: Default::default(),
                notices: Vec::new(),
            }),
        },
    })?;
    log.sync()
}

fn agent_lost() -> Failure {
    let message = "the agent was killed before the attempt was over";
    let diagnostic = Diagnostic::error(Code::AgentLost, message)
        .hint("retry it: a killed agent says nothing about the notebook");
    Failure::outside_cells(FailureClass::Infrastructure, diagnostic)
}

/// Ends what earlier agents started, as they wrote down before they did, and returns what could not be ended.
fn end_what_is_left(layout: &AttemptLayout, work: &Path, records: &[Record]) -> Option<String> {
    let work = work.canonicalize().unwrap_or_else(|_| work.into());
    let mut unended = None;
    for record in records {
        let RecordKind::Begun {
            marker,
            sockets,
            cgroup,
            ..
        } = &record.kind
        else {
            continue;
        };
        unended = of_cgroup(cgroup.as_ref().map_or(Ok(()), Cgroup::end))
            .or(of_processes(end_left(Some(marker), &work)))
            .or(unended);
        let _ = remove_folder(sockets);
    }
    if records.is_empty() {
        // Nothing says any more how its processes are marked, nor where its cgroup and its sockets are; an agent that was
        // started where this one was had them here.
        let left = end_left(None, &work);
        let named = read_spec(layout).map(|(spec, _)| Confinement::plan(&cgroup_name(&spec, layout)));
        unended = of_cgroup(named.map_or(Ok(()), |confinement| confinement.end())).or(of_processes(left));
        Runtime::remove_left(&work);
    }
    unended
}

fn of_cgroup(ended: io::Result<()>) -> Option<String> {
    let error = ended.err()?;
    Some(format!("its cgroup could not be ended: {error}"))
}

fn of_processes(left: usize) -> Option<String> {
    (left > 0).then(|| format!("{left} of its processes could not be ended"))
}
