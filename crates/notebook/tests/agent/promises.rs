//! What a pass says, and what it must not.

use std::path::Path;

use blueproof_core::{
    attempt::RecordKind,
    domain::{Bytes, FailureClass, Verdict},
};
use blueproof_diagnostic::Code;
use blueproof_notebook::plan::{Expectation, Network};

use crate::support::Attempt;

#[test]
fn where_nothing_runs_there_is_no_pass_unless_it_was_meant() {
    let rows: [&[&str]; 4] = [
        &[],
        &["# only a comment", "  "],
        &[
            "%%script false --no-raise-error\nprint('off')",
            "%%markdown\n# A title",
        ],
        &["%%script echo skipped\nprint('off')", "\n%%HTML\n<b>x</b>"],
    ];
    for cells in rows {
        let attempt = Attempt::of(cells).text("# Text");
        let failure = attempt.fails();
        assert_eq!(
            (failure.class, failure.diagnostic.code),
            (FailureClass::Config, Code::NothingRan),
            "{cells:?}"
        );
        let mut meant = Attempt::of(cells).text("# Text");
        meant.plan.allow_empty = true;
        meant.run().passed();
    }
    // Parameters alone are nothing either; a cell in a shell is something.
    let mut injected = Attempt::of(&["# only a comment"]);
    injected.plan.parameters.insert("n".into(), 3.into());
    assert_eq!(injected.fails().diagnostic.code, Code::NothingRan);
    Attempt::of(&["%%bash\ntrue"]).run().passed();
}

#[test]
fn an_environment_is_made_for_the_copy_that_runs_and_not_for_a_folder_that_may_change() {
    let done = Attempt::of(&["print('here')"]).run();
    let made_for = done.records.iter().find_map(|record| {
        if let RecordKind::EnvironmentReady { environment } = &record.kind {
            environment["madeFor"].as_str()
        } else {
            None
        }
    });
    let checkout = made_for.map(Path::new).expect("it is told");
    assert!(checkout.starts_with(done.work()), "{}", checkout.display());
}

#[test]
fn a_notebook_whose_kernel_is_not_there_is_refused_by_name_before_anything_starts() {
    let kernels = [
        (
            r#"{"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}"#,
            Some("R"),
        ),
        (
            r#"{"kernelspec": {"name": "julia-1.11", "display_name": "Julia 1.11"}}"#,
            Some("Julia 1.11"),
        ),
        (r#"{"language_info": {"name": "bash"}}"#, Some("bash")),
        (
            r#"{"kernelspec": {"name": "mine", "display_name": "Mine", "language": "python"}}"#,
            None,
        ),
        (
            r#"{"kernelspec": {"name": "python3"}, "language_info": {"name": "ipython"}}"#,
            None,
        ),
        ("{}", None),
    ];
    for (metadata, refused) in kernels {
        let done = Attempt::of(&["print(1)"]).metadata(metadata).run();
        match refused {
            None => done.passed(),
            Some(name) => {
                let failure = done.failure();
                assert_eq!(failure.class, FailureClass::Config, "{metadata}");
                assert_eq!(failure.diagnostic.code, Code::ForeignLanguage, "{metadata}");
                assert!(failure.diagnostic.message.contains(name), "{failure:?}");
                assert_eq!(done.printed(), "");
            }
        }
    }
}

#[test]
fn what_is_asked_for_and_not_enforced_is_told_with_the_verdict() {
    let mut attempt = Attempt::of(&["print(1)"]);
    attempt.plan.network = Network::Hosts(vec!["pypi.org".into()]);
    attempt.plan.expectations.push(Expectation::TrainJobs);
    let outcome = attempt.run().outcome();
    assert_eq!(outcome.verdict, Verdict::Passed);
    let told: Vec<_> = outcome
        .notices
        .iter()
        .map(|notice| notice.message.as_str())
        .collect();
    for (told, part) in told.iter().zip(["only to pypi.org", "TrainJobs"]) {
        assert!(told.contains(part) && told.contains("not enforced"), "{told}");
    }
    assert_eq!(told.len(), 2);

    let mut attempt = Attempt::of(&["print(1)"]);
    attempt.plan.network = Network::None;
    let outcome = attempt.run().outcome();
    assert_eq!(outcome.notices.len(), 1);
    assert!(outcome.notices[0].message.starts_with("no network was asked for"));

    let counted = Attempt::of(&["print(1)"])
        .further("amd.com/gpu", 2)
        .run()
        .outcome();
    let notices: Vec<_> = counted.notices.iter().map(|notice| notice.to_string()).collect();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("amd.com/gpu was asked for: 2"), "{notices:?}");

    let plain = Attempt::of(&["print(1)"]).memory(Bytes(8 << 30)).run().outcome();
    assert_eq!(plain.notices, [], "what is kept is not told");
}

#[test]
fn a_parameter_that_no_cell_reads_is_told() {
    let mut attempt = Attempt::of(&[])
        .cell("rate = 1", &["parameters"])
        .cell("print(dict(rat=rate))  # rat", &[]);
    attempt.plan.parameters.insert("rate".into(), 2.into());
    attempt.plan.parameters.insert("rat".into(), 3.into());
    let outcome = attempt.run().outcome();
    assert_eq!(outcome.verdict, Verdict::Passed);
    assert_eq!(outcome.notices[0].code, Code::ParameterUnused);
    assert_eq!(
        outcome.notices[0].message,
        "no cell reads the parameters rat: their values change nothing"
    );
}

#[test]
fn an_exception_that_comes_after_its_cell_is_no_pass() {
    let late = "import threading, time\nfrom IPython import get_ipython\nkernel = get_ipython().kernel\n\
                parent = kernel.get_parent('shell')\ndef raise_later():\n    time.sleep(0.3)\n    \
                kernel.session.send(kernel.iopub_socket, 'error', {'ename': 'Late', 'evalue': 'too late', 'traceback': []}, parent)\n\
                threading.Thread(target=raise_later).start()";
    let done = Attempt::of(&[late, "import time\ntime.sleep(1)"]).run();
    let failure = done.failure();
    assert_eq!(failure.class, FailureClass::Notebook);
    assert_eq!(failure.diagnostic.message, "Late: too late");
    assert_eq!(failure.cell.expect("a cell").cell, 1);
}
