//! Whole check runs of the main states, and of statuses whose every text is hostile.

use blueproof_core::{
    approval::{Lapse, LapsedApproval},
    domain::{
        Actor, Bytes, CellPlace, Cpus, Ending, FailureClass, GitSource, GpuUse, Gpus, Head, MetricResult,
        Outcome, Placement, PodSets, Repository, Resources, RunId, RunRequest, RunState, TimeLimit, Usage,
        Verdict,
    },
    estimate::LikelyDuration,
    pending::{IsolationPending, PendingReason, PlacePending},
    testing::{outcome, request},
    view::{OutlookView, QueuePosition},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;
use crate::{
    api::{CheckAction, CheckConclusion, CheckRunState},
    plan::{Plan, Refused},
    testing::run_status_of,
};

const SHA: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_764_072_000 + seconds).expect("a time")
}

fn settings() -> CheckSettings {
    CheckSettings {
        approver_role: "an approver in OWNERS".into(),
        infrastructure: InfrastructureConclusion::Neutral,
        simulated_clusters: BTreeSet::from(["nvkind".into()]),
    }
}

fn asked() -> RunRequest {
    let mut request = request("key", "nano-lm");
    request.subject.repository = Repository::GitHub(7);
    request.subject.pull_request = Some(12);
    request.subject.head = Head::Commit(SHA.into());
    request.subject.profile = Some("gpu2".parse().expect("a name"));
    request.job.source = Source::Git(GitSource {
        repository: "https://github.com/kubeflow/trainer".parse().expect("an address"),
        commit: SHA.into(),
        folder: "examples/nano".into(),
    });
    request
}

fn status(state: RunState) -> RunStatus {
    let mut status = run_status_of(asked(), state);
    status.view.requested_at = at(0);
    status
}

fn ended(ending: Ending, verdict: Verdict) -> RunStatus {
    let mut status = status(RunState::Ended(ending));
    if let Verdict::Failed(failure) = &verdict {
        status.view.failure = Some((**failure).clone());
    }
    status.view.attempts = vec![AttemptView {
        id: RunId(41).attempt(1),
        approved_by: Actor::GitHub {
            id: 3,
            login: "ada".into(),
        },
        place: Some(Placement::on("oke")),
        pending: None,
        queued_at: Some(at(60)),
        reserved_at: at(90),
        started_at: Some(at(100)),
        ended_at: Some(at(652)),
        eviction: None,
        outcome: Some(Outcome {
            usage: Some(Usage {
                duration: SignedDuration::from_secs(552),
                cpu_granted: Cpus::cores(4),
                cpu_time: Some(SignedDuration::from_secs(276)),
                memory_peak: Some(Bytes(3 << 30)),
                gpu: Some(GpuUse {
                    devices: 2,
                    allocated_seconds: 1104.0,
                    seen_seconds: 1000.0,
                    busy_seconds: Some(710.0),
                    ..GpuUse::default()
                }),
            }),
            metrics: [(
                "loss".to_owned(),
                MetricResult {
                    last: Some(1.94),
                    count: 3,
                    trace: vec![3.0, 2.0, 1.94],
                },
            )]
            .into(),
            ..outcome(verdict)
        }),
    }];
    status.view.ended_at = Some(at(660));
    status
}

fn failed(class: FailureClass, message: &str) -> Verdict {
    let diagnostic = Diagnostic::error(Code::CellRaised, message).at(SourceLocation {
        line: Some(31),
        ..SourceLocation::file("nano.ipynb")
    });
    Verdict::Failed(Box::new(Failure {
        class,
        diagnostic: diagnostic.hint("use a smaller batch"),
        cell: Some(CellPlace {
            cell: 11,
            line: Some(2),
            source: Some("train()".into()),
            file: Some("nano.ipynb".into()),
            file_line: Some(31),
        }),
    }))
}

fn render(status: &RunStatus) -> CheckOutput {
    let line = failed_line(status);
    let context = CheckContext {
        page: Some("https://gpu.example/runs/r-41"),
        repository: Some("kubeflow/trainer"),
        failed_line: line.as_ref(),
        work: &[],
    };
    settings().render(status, context)
}

#[test]
fn each_state_has_its_title_and_buttons() {
    use CheckAction::{Approve, Cancel, Retry};
    let stopped = || Verdict::Stopped;
    let infrastructure = failed(FailureClass::Infrastructure, "the node was lost");
    let timeout = failed(FailureClass::Timeout(TimeLimit::Cell), "not done within 5m");
    let refused = failed(FailureClass::Config, "no such profile");
    let cases = [
        (
            status(RunState::AwaitingApproval),
            "Waits for approval of this commit by an approver in OWNERS",
            vec![Approve, Cancel],
        ),
        (status(RunState::Queued), "Queued", vec![Cancel]),
        (
            status(RunState::Reserved),
            "Admitted, a place is being made",
            vec![Cancel],
        ),
        (
            status(RunState::Starting),
            "Starting environment and kernel",
            vec![Cancel],
        ),
        (status(RunState::Running), "Running", vec![Cancel]),
        (
            ended(Ending::Passed, Verdict::Passed),
            "Passed in 9m12s",
            vec![Retry],
        ),
        (
            ended(Ending::InfrastructureFailed, infrastructure),
            "Infrastructure failed, not the blueprint after 9m12s: the node was lost",
            vec![Retry],
        ),
        (
            ended(Ending::TimedOut, timeout),
            "Timed out in cell 11 after 9m12s: not done within 5m",
            vec![Retry],
        ),
        (
            ended(Ending::Cancelled, stopped()),
            "Cancelled after 9m12s",
            vec![Retry],
        ),
        (
            ended(Ending::Superseded, stopped()),
            "Cancelled: the pull request has another head now",
            vec![],
        ),
        (
            ended(Ending::Refused, refused),
            "Refused: no such profile",
            vec![],
        ),
    ];
    for (status, title, actions) in cases {
        let check = render(&status);
        assert_eq!((check.title.as_str(), check.actions), (title, actions));
    }
}

#[test]
fn infrastructure_is_concluded_as_the_settings_say() {
    let status = ended(
        Ending::InfrastructureFailed,
        failed(FailureClass::Infrastructure, "lost"),
    );
    for (infrastructure, expected) in [
        (InfrastructureConclusion::Neutral, CheckConclusion::Neutral),
        (InfrastructureConclusion::Failure, CheckConclusion::Failure),
    ] {
        let settings = CheckSettings {
            infrastructure,
            ..settings()
        };
        let state = settings.render(&status, CheckContext::default()).state;
        let conclusion = match state {
            CheckRunState::Completed { conclusion, .. } => Some(conclusion),
            CheckRunState::Queued | CheckRunState::InProgress => None,
        };
        assert_eq!(conclusion, Some(expected));
    }
}

#[test]
fn a_lapsed_approval_and_a_place_in_the_queue_are_in_the_title() {
    let outlook = |reason, position| OutlookView {
        as_of: at(30),
        reason: Some(reason),
        position,
        unblocked_by: Vec::new(),
        estimate: None,
        duration: None,
    };
    let mut waits = status(RunState::AwaitingApproval);
    let lapsed = LapsedApproval {
        approved_by: Actor::Local("ada".into()),
        lapse: Lapse::OtherPolicy,
    };
    let reason = PendingReason::AwaitingApproval {
        policy: None,
        lapsed: Some(Box::new(lapsed)),
    };
    waits.view.outlook = Some(Box::new(outlook(reason, None)));
    assert_eq!(
        render(&waits).title,
        "Waits for a new approval: ada approved it under another policy than the one in force"
    );
    let apart = IsolationPending {
        cluster: Default::default(),
        why: None,
    };
    let reason = PendingReason::WaitingForIsolation(Box::new(apart));
    waits.view.outlook = Some(Box::new(outlook(reason, None)));
    let shown = render(&waits);
    assert!(shown.title.starts_with("Waits: approved; "), "{}", shown.title);
    assert_eq!(shown.actions, [CheckAction::Cancel], "it has its approval");
    let mut queued = status(RunState::Queued);
    let position = QueuePosition {
        cluster_queue: "team-a".into(),
        position: 3,
        waiting: 7,
    };
    queued.view.outlook = Some(Box::new(outlook(
        PendingReason::WaitingForRelease,
        Some(position),
    )));
    assert_eq!(render(&queued).title, "Queued at 3 of 7 in team-a");
}

#[test]
fn simulated_figures_say_so() {
    let mut status = ended(Ending::Passed, Verdict::Passed);
    status.view.attempts[0].place = Some(Placement::on("nvkind"));
    let check = render(&status);
    assert_eq!(check.title, "Passed in 9m12s (simulated)");
    assert!(check.summary.starts_with("**Simulated.**"), "{}", check.summary);
}

#[test]
fn a_retry_that_was_asked_for_has_a_check_run_of_its_own() {
    let mut status = ended(Ending::Failed, failed(FailureClass::Notebook, "x"));
    assert_eq!(check_id(&status.view).to_string(), "r-41.1");
    status.view.retried_at = Some(at(700));
    assert_eq!(check_id(&status.view).to_string(), "r-41.2");
    let mut second = status.view.attempts[0].clone();
    (second.id, second.reserved_at) = (RunId(41).attempt(2), at(710));
    status.view.attempts.push(second);
    assert_eq!(
        check_id(&status.view).to_string(),
        "r-41.2",
        "the attempt is there now"
    );
}

#[test]
fn a_failed_line_is_of_a_notebook_inside_the_repository() {
    let of = |file: &str| {
        let mut status = ended(Ending::Failed, failed(FailureClass::Notebook, "x"));
        let failure = status.view.failure.as_mut().expect("it failed");
        failure.cell.as_mut().expect("it has one").file = Some(file.into());
        failed_line(&status).map(|line| line.path)
    };
    assert_eq!(of("nano.ipynb").as_deref(), Some("examples/nano/nano.ipynb"));
    assert_eq!(of("./a/b.ipynb").as_deref(), Some("examples/nano/a/b.ipynb"));
    for file in [
        "../x.ipynb",
        "/x.ipynb",
        "x.py",
        "a\n.ipynb",
        "a\u{202e}.ipynb",
        "",
    ] {
        assert_eq!(of(file), None, "{file:?}");
    }
}

#[test]
fn a_whole_failure() {
    let status = ended(
        Ending::Failed,
        failed(FailureClass::Workload, "CUDA out of memory on rank 1"),
    );
    let check = render(&status);
    assert_eq!(check.name, "GPU · nano-lm (gpu2)");
    assert_eq!(check.annotations.len(), 1);
    let shown = format!("{}\n=====\n{}\n=====\n{}", check.title, check.summary, check.text);
    insta::assert_snapshot!(shown, @r#"
    Failed in cell 11 after 9m12s: CUDA out of memory on rank 1
    =====
    |  | this run |
    | --- | --- |
    | verdict | **workload failed** (BP0401) |
    | attempt | r-41.1 |
    | waited for approval | 1m00s |
    | in queue | 30.0 s |
    | until start | 10.0 s |
    | ran | 9m12s |
    | GPUs | 2 |
    | GPU time | 18.4 GPU-min |
    | GPU busy, average | 71 % |
    | CPU, average cores | 0.5 |
    | memory, peak | 3Gi |
    | asked for | `1 cpu, 1Mi memory` |
    | approved by | `ada` |
    | place | `oke` |

    | metric | this run | trend |
    | --- | --- | --- |
    | `loss` | 1.94 | █▁▁ |

    Full report: https://gpu.example/runs/r-41
    =====
    **What failed**

    ```text
    error[BP0401]: CUDA out of memory on rank 1
      --> nano.ipynb:31
       = hint: use a smaller batch

    cell 11, line 2:
    train()
    ```

    **Reproduce**

    ```text
    git fetch https://github.com/kubeflow/trainer pull/12/head
    git checkout 1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d
    blueproof run nano-lm --profile gpu2
    ```
    "#);
}

/// Returns a status whose every text is this.
fn hostile(text: &str) -> RunStatus {
    let verdict = failed(FailureClass::Notebook, text);
    let mut status = ended(Ending::Failed, verdict);
    let view = &mut status.view;
    let failure = view.failure.as_mut().expect("it failed");
    let diagnostic = failure.diagnostic.clone().because(text).hint(text);
    failure.diagnostic = diagnostic.clone();
    failure.cell.as_mut().expect("in a cell").source = Some(text.into());
    let attempt = &mut view.attempts[0];
    attempt.approved_by = Actor::GitHub {
        id: 3,
        login: text.into(),
    };
    attempt.place = Some(Placement {
        nodes: vec![text.into()],
        ..Placement::on(text)
    });
    let outcome = attempt.outcome.as_mut().expect("it is over");
    let metric = outcome.metrics.remove("loss").expect("it is there");
    outcome.metrics.insert(text.into(), metric);
    outcome.notices = vec![diagnostic];
    let pending = PlacePending {
        cluster_reason: text.into(),
        message: text.into(),
    };
    view.outlook = Some(Box::new(OutlookView {
        as_of: at(30),
        reason: Some(PendingReason::WaitingForPlace(pending)),
        position: Some(QueuePosition {
            cluster_queue: text.into(),
            position: 1,
            waiting: 1,
        }),
        unblocked_by: Vec::new(),
        estimate: None,
        duration: None,
    }));
    view.further_resources
        .insert(text.into(), blueproof_queue::Quantity(1));
    status
}

/// Asserts that all of a text of others is inside code.
fn assert_harmless(markdown: &str) {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_GFM;
    let mut is_in_block = false;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_in_block = true,
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => is_in_block = false,
            Event::Start(
                Tag::Link { .. }
                | Tag::Image { .. }
                | Tag::Heading { .. }
                | Tag::HtmlBlock
                | Tag::BlockQuote(_)
                | Tag::List(_)
                | Tag::FootnoteDefinition(_),
            )
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Rule
            | Event::FootnoteReference(_) => panic!("{event:?} in {markdown}"),
            Event::Text(text) if !is_in_block => {
                let text = text.replace("https://gpu.example/runs/r-41", "");
                for hostile in ["EVIL", "@", "#", "://", "www."] {
                    assert!(!text.contains(hostile), "{hostile} in {text:?} of {markdown}");
                }
            }
            Event::Start(_)
            | Event::End(_)
            | Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::TaskListMarker(_) => {}
        }
    }
    assert!(
        !markdown.contains('\u{202e}') && !markdown.contains("ghp_0123"),
        "{markdown}"
    );
}

proptest! {
    #[test]
    fn a24_nothing_hostile_comes_out_of_its_code(
        parts in prop::collection::vec(prop::sample::select(vec![
            "EVIL", "`", "```", "~~~", "\n", "\n\n", "\r", "@ada", "#12", "fixes #1", "GH-1", "a/b#1", "|", "\\", "\\|", " ", "    ",
            "https://evil.example", "www.evil.example", "mailto:a@b.cd", "![x](y)", "[x](y)", "<b>", "<!--", "-->", "</details>",
            "\n# ", "\n- ", "\n> ", "---", "\u{202e}", "\u{200b}", "\u{1b}[31m", "&#64;", "$$", "ü", "\u{2028}", "[^1]", "*", "_",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345", SHA,
        ]), 0..14),
    ) {
        let text = format!("EVIL{}", parts.concat());
        let check = render(&hostile(&text));
        assert_harmless(&check.summary);
        assert_harmless(&check.text);
        let annotation = &check.annotations[0];
        for plain in [&check.title, &annotation.message, &annotation.title] {
            prop_assert!(plain.lines().count() == 1, "{plain:?}");
            let blocked = Parser::new_ext(plain, Options::ENABLE_GFM)
                .any(|event| matches!(event, Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::InlineHtml(_)));
            prop_assert!(!blocked, "{plain:?}");
            for linked in ["@a", "#1", "://", "www.e", "GH-1", &SHA[..7]] {
                prop_assert!(!plain.contains(linked), "{linked} in {plain:?}");
            }
        }
    }

    #[test]
    fn the_limits_are_kept_whatever_there_is(unit in "[a-zü`\n|]{1,4}", times in 1_usize..40_000) {
        let check = render(&hostile(&unit.repeat(times)));
        let length = |text: &str| text.chars().count();
        prop_assert!(length(&check.title) <= CheckOutput::TITLE_AT_MOST);
        prop_assert!(length(&check.summary) <= CheckOutput::TEXT_AT_MOST);
        prop_assert!(length(&check.text) <= CheckOutput::TEXT_AT_MOST);
        prop_assert!(check.annotations.len() <= 1 && check.actions.len() <= CheckOutput::ACTIONS_AT_MOST);
        prop_assert!(!check.summary.is_empty());
    }
}

#[test]
fn what_cannot_be_run_is_told_inside_code_and_within_the_limits() {
    let hostile = "``` EVIL @ada fixes #1 <img src=x> https://e.org\n| a | b |\n|---|---|";
    let problems = vec![
        Diagnostic::error(Code::UnknownKey, hostile.repeat(200))
            .because(hostile)
            .hint(hostile);
        300
    ];
    let refused = Refused {
        blueprint: None,
        problems,
    };
    let plan = Plan {
        refused: vec![refused],
        ..Plan::default()
    };
    let checks = without_run(&plan, |_| false, at(0));
    assert_harmless(&checks[0].summary);
    assert!(checks[0].summary.chars().count() <= CheckOutput::TEXT_AT_MOST);
    assert!(checks[0].title.chars().count() <= CheckOutput::TITLE_AT_MOST);
    assert!(!checks[0].title.contains("@ada"), "{}", checks[0].title);
}

#[test]
fn what_an_approval_lets_run_is_shown_before_it_is_given_and_not_afterwards() {
    let fact = |name: &str, value: &str| WorkFact {
        name: name.into(),
        value: value.into(),
    };
    let work = [fact("network", "none"), fact("secrets", "HF_TOKEN | EVIL @ada")];
    let context = CheckContext {
        work: &work,
        ..CheckContext::default()
    };
    let of = |state, duration| {
        let mut status = status(state);
        status.request.job.pod_sets = PodSets::of_amounts(
            Resources {
                gpu: Gpus(2),
                ..Resources::default()
            },
            Resources::default(),
        );
        let outlook = OutlookView {
            as_of: at(30),
            reason: None,
            position: None,
            unblocked_by: Vec::new(),
            estimate: None,
            duration,
        };
        status.view.outlook = Some(Box::new(outlook));
        settings().render(&status, context).summary
    };
    let minutes = SignedDuration::from_mins;
    let likely = LikelyDuration::Likely {
        p50: minutes(6),
        p90: minutes(9),
        runs: 5,
    };
    let shown = of(RunState::AwaitingApproval, Some(likely));
    for line in [
        "| time | 6m00s in half of the cases, 9m00s in nine of ten, by 5 earlier runs |",
        "| GPU time | 12.0 GPU-min in half of the cases, 18.0 GPU-min in nine of ten, by 5 earlier runs |",
        "| network | `none` |",
        "| secrets | `HF_TOKEN │ EVIL @ada` |",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert_harmless(&shown);
    let limit = LikelyDuration::AtMost { limit: minutes(60) };
    let shown = of(RunState::AwaitingApproval, Some(limit));
    assert!(
        shown.contains("| GPU time | at most 120.0 GPU-min: too few"),
        "{shown}"
    );
    assert!(!of(RunState::Queued, None).contains("lets run"));
}
