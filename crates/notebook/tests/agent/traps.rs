//! What has been seen to go wrong with notebooks, each tried on a real kernel.

use std::{fs, time::Duration};

use blueproof_core::{
    attempt::{CellEnd, RecordKind, Stream},
    domain::FailureClass,
};
use blueproof_diagnostic::Code;
use serde_json::json;

use crate::support::Attempt;

#[test]
fn parameters_are_injected_after_the_tagged_cell() {
    let mut attempt = Attempt::of(&[])
        .text("# Title")
        .cell("n = 1\nname = 'a'", &["parameters"])
        .cell("print(n, name, flag, rate, none)", &[]);
    for (name, value) in [
        ("n", json!(3)),
        ("name", json!("ü\"\n")),
        ("flag", json!(true)),
        ("rate", json!(1e-3)),
        ("none", json!(null)),
    ] {
        attempt.plan.parameters.insert(name.into(), value);
    }
    let done = attempt.run();
    done.passed();
    assert_eq!(done.printed_by(3), "3 ü\"\n True 0.001 None\n");
    assert_eq!(
        done.notebook()["cells"][2]["metadata"]["tags"][0],
        "injected-parameters"
    );
}

#[test]
fn a_value_that_the_notebook_overrides_is_told_with_the_verdict() {
    let with = |mut attempt: Attempt| {
        attempt.plan.parameters.insert("n".into(), json!(3));
        let done = attempt.run();
        done.passed();
        let notices = done.outcome().notices.into_iter();
        notices.map(|notice| notice.message).collect::<Vec<_>>()
    };
    let (tag, none): (&[&str], &[&str]) = (&["parameters"], &[]);
    let told = "gives the parameter n a value of its own before anything reads it: what was asked for changes nothing";
    for (why, attempt, cell) in [
        ("untagged", Attempt::of(&["m = 1\nn = 1\nprint(n)"]), Some(1)),
        (
            "tagged twice",
            Attempt::of(&[]).cell("n = 1", tag).cell("n = 2\nprint(n)", tag),
            Some(2),
        ),
        (
            "read before",
            Attempt::of(&[]).cell("n = 1", tag).cell("print(n)\nn = 2", none),
            None,
        ),
        (
            "a keyword before",
            Attempt::of(&[])
                .cell("n = 1", tag)
                .cell("print(dict(n=2))  # n", none)
                .cell("n = 2\nprint(n)", none),
            Some(3),
        ),
        ("from itself", Attempt::of(&["n = n + 1"]), None),
        ("added to", Attempt::of(&["n += 1"]), None),
        ("on condition", Attempt::of(&["if n > 5:\n    n = 5"]), None),
        (
            "another name",
            Attempt::of(&[])
                .cell("n = 1", tag)
                .cell("nn = 2\nprint(n, nn)", none),
            None,
        ),
    ] {
        let expected: Vec<String> = cell
            .map(|cell: u32| format!("cell {cell} {told}"))
            .into_iter()
            .collect();
        assert_eq!(with(attempt), expected, "{why}");
    }
}

#[test]
fn the_users_file_is_only_read_and_the_working_copy_goes_away() {
    let done = Attempt::of(&["open('n.ipynb', 'w').write('overwritten')\nopen('new.txt', 'w').close()\nimport os\nprint(os.getcwd())"]).run();
    done.passed();
    let files: Vec<_> = fs::read_dir(done.checkout().join("examples")).unwrap().collect();
    assert_eq!(files.len(), 1);
    assert!(
        fs::read_to_string(done.checkout().join("examples/n.ipynb"))
            .unwrap()
            .contains("nbformat")
    );
    assert!(done.printed().contains("work/checkout/examples"));
    assert!(!done.work().exists());
}

#[test]
fn a_notebook_sees_neither_tokens_nor_the_cis_files() {
    let done = Attempt::of(&["import os\nprint(sorted(os.environ))\nprint(os.environ['OMP_NUM_THREADS'])"])
        .variable("GITHUB_ENV", "/tmp/env")
        .variable("GITHUB_TOKEN", "ghs_1")
        .variable("AWS_SECRET_ACCESS_KEY", "k")
        .run();
    done.passed();
    for name in ["GITHUB", "AWS", "TOKEN", "SECRET", "TEST_"] {
        assert!(!done.printed().contains(name), "{name}: {}", done.printed());
    }
    assert!(done.printed().ends_with("2\n"));
}

#[test]
fn a_secret_is_given_and_never_stored() {
    let done = Attempt::of(&[
        "import os, sys, time\nt = os.environ['HF_TOKEN']\nprint('token', t)\n\
         sys.stdout.write(t[:7]); sys.stdout.flush(); time.sleep(0.3); print(t[7:])\nt",
        "raise ValueError(t)",
    ])
    .secret("hf-read", "HF_TOKEN", "hf_verysecretvalue")
    .run();
    let failure = done.failure();
    assert_eq!(failure.diagnostic.message, "ValueError: ***");
    for file in [done.layout().log(), done.layout().executed_notebook()] {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains("***") && !text.contains("verysecret"), "{text}");
    }
}

#[test]
fn a_secret_that_is_not_known_is_refused() {
    let mut attempt = Attempt::of(&["x = 1"]).secret("other", "OTHER", "value");
    attempt.plan.secrets[0].name = "hf-read".into();
    assert_eq!(attempt.fails().diagnostic.code, Code::SecretMissing);
}

#[test]
fn a_secret_that_is_empty_is_refused_and_a_short_one_is_told_of() {
    let empty = Attempt::of(&["x = 1"]).secret("hf-read", "HF_TOKEN", "");
    let refused = empty.fails().diagnostic;
    assert_eq!(refused.code, Code::SecretMissing);
    assert!(refused.message.contains("is empty"), "{refused:?}");

    let short = Attempt::of(&["x = 1"]).secret("pin", "PIN", "abc").run();
    short.passed();
    let notices = short.outcome().notices;
    assert_eq!(notices[0].code, Code::SecretShown);
    assert!(
        notices[0]
            .message
            .starts_with("the secret `pin` has fewer than four characters")
    );
}

#[test]
fn input_fails_at_once() {
    let failure = Attempt::of(&["x = input('name?')"]).fails();
    assert_eq!(failure.diagnostic.code, Code::InputRefused);
    let failure = Attempt::of(&["import getpass\ngetpass.getpass()"]).fails();
    assert_eq!(failure.diagnostic.code, Code::InputRefused);
}

#[test]
fn a_cell_that_may_raise_may() {
    let done = Attempt::of(&[])
        .cell("1 / 0", &["raises-exception"])
        .cell("print('on')", &["raises-exception"])
        .run();
    done.passed();
    assert_eq!(done.ends(), [CellEnd::RaisedAsAllowed, CellEnd::Ok]);
}

#[test]
fn installations_that_are_not_needed_are_left_out_and_lines_stay() {
    let done = Attempt::of(&["if True:\n    !pip install -q ipykernel\nprint('on')\n1 / 0"]).run();
    assert_eq!(done.printed(), "on\n");
    assert_eq!(done.noticed()[0].code, Code::InstallLeftOut);
    let failure = done.failure();
    assert_eq!(failure.cell.unwrap().line, Some(4));
    let source = &done.notebook()["cells"][0]["source"];
    assert!(source.to_string().contains("!pip install -q ipykernel"));
}

#[test]
fn displays_are_updated_and_cleared() {
    let done = Attempt::of(&[
        "from IPython.display import display, clear_output\nh = display('old', display_id=True)",
        "h.update('new')\nprint('gone')\nclear_output(wait=True)\nprint('stays')",
        "display({'application/x-nobody-knows+json': {'a': 1}}, raw=True)",
    ])
    .run();
    done.passed();
    let notebook = done.notebook();
    let shown = |cell: usize| notebook["cells"][cell]["outputs"].clone();
    assert_eq!(shown(0)[0]["data"]["text/plain"], "'new'");
    assert_eq!(
        shown(1),
        json!([{"output_type": "stream", "name": "stdout", "text": "stays\n"}])
    );
    assert_eq!(shown(2)[0]["data"]["application/x-nobody-knows+json"]["a"], 1);
}

#[test]
fn what_a_child_prints_late_belongs_to_its_cell() {
    let done = Attempt::of(&[
        "import subprocess, sys\nfor i in range(50): subprocess.run(['echo', f'child {i}'])",
        "print('second')",
    ])
    .run();
    done.passed();
    let expected: String = (0..50).map(|i| format!("child {i}\n")).collect();
    assert_eq!(done.printed_by(1), expected);
    assert_eq!(done.printed_by(2), "second\n");
}

#[test]
fn what_a_thread_prints_while_another_cell_runs_is_kept_once() {
    let done = Attempt::of(&[
        "import threading\ngo = threading.Event()\ndef f():\n    go.wait()\n    print('from the thread')\n\
         t = threading.Thread(target=f)\nt.start()",
        "go.set()\nt.join()\nprint('second')",
    ])
    .run();
    done.passed();
    // Which cell it belongs to is the kernel's word, and differs between versions of ipykernel.
    assert_eq!(done.printed().matches("from the thread\n").count(), 1);
    assert!(done.printed_by(2).ends_with("second\n"));
}

#[test]
fn a_flood_is_cut_with_a_notice_and_needs_little_memory() {
    let running = Attempt::of(&[
        "for i in range(200000):\n    print('line', i)\nprint('over')",
        "import os\nfor line in open(f'/proc/{os.getppid()}/status'):\n    \
         if line.startswith('VmHWM'): print(line.split()[1])",
    ])
    .start();
    let done = running.wait();
    done.passed();
    let is_notice = |kind: &RecordKind| matches!(kind, RecordKind::Truncated { cell: 1, .. });
    assert_eq!(
        done.records
            .iter()
            .filter(|record| is_notice(&record.kind))
            .count(),
        1
    );
    let printed = done.printed_by(1);
    assert!(printed.starts_with("line 0\nline 1\n"), "{}", &printed[..40]);
    assert!(printed.ends_with("line 199999\nover\n"));
    assert!(printed.len() <= 1 << 20 && printed.len() > (1 << 20) - (8 << 10));
    let left_out = done.records.iter().find_map(|record| {
        if let RecordKind::LeftOut { cell: 1, bytes } = record.kind {
            Some(bytes.0)
        } else {
            None
        }
    });
    let all: usize = (0..200_000).map(|i| format!("line {i}\n").len()).sum::<usize>() + 5;
    assert_eq!(left_out, Some((all - printed.len()) as u64));
    let peak_kib: u64 = done.printed_by(2).trim().parse().unwrap();
    assert!(peak_kib < 64 << 10, "the agent held {peak_kib} KiB");
    let outputs = &done.notebook()["cells"][0]["outputs"];
    assert!(outputs[1]["text"].as_str().unwrap().contains("left out here"));
    assert!(
        outputs[2]["text"]
            .as_str()
            .unwrap()
            .ends_with("line 199999\nover\n")
    );
}

#[test]
fn a_progress_bar_of_several_megabytes_ends_in_its_last_state() {
    let done = Attempt::of(&[
        "import sys\nfor i in range(100001):\n    print('\\r' + '#' * 40, f'{i}/100000', end='', file=sys.stderr)",
    ])
    .run();
    done.passed();
    let bar = format!("{} 100000/100000", "#".repeat(40));
    assert_eq!(done.notebook()["cells"][0]["outputs"][0]["text"], bar.as_str());
    assert!(done.printed_to(Stream::Stderr).ends_with(&bar));
    assert!(done.printed().len() <= 1 << 20);
}

#[test]
fn both_streams_are_told_apart() {
    let done = Attempt::of(&["import sys\nprint('a')\nprint('b', file=sys.stderr)"]).run();
    assert_eq!(done.printed_to(Stream::Stdout), "a\n");
    assert_eq!(done.printed_to(Stream::Stderr), "b\n");
}

#[test]
fn a_notebook_that_breaks_the_tools_of_diagnosis_still_gets_a_verdict() {
    let done = Attempt::of(&[
        "import sys, linecache, traceback\nsys.excepthook = None\ntraceback.walk_tb = None\n\
         del sys.modules['_blueproof_probe']",
        "x = 1\nraise ValueError('in spite of it')",
    ])
    .run();
    let failure = done.failure();
    assert_eq!(failure.diagnostic.message, "ValueError: in spite of it");
    assert_eq!(failure.cell.unwrap().line, Some(2));
}

#[test]
fn sockets_of_the_notebook_fit_into_its_temporary_folder() {
    let done = Attempt::of(&["import multiprocessing.connection, tempfile\n\
         with multiprocessing.connection.Listener(family='AF_UNIX') as one: print(one.address)\n\
         import os; print(os.environ['HOME'])"])
    .run();
    done.passed();
    assert!(done.printed().contains("/t/pymp-"), "{}", done.printed());
    assert!(done.printed().contains("work/home"), "{}", done.printed());
}

#[test]
fn usage_counts_children_too() {
    let done = Attempt::of(&[
        "import subprocess, sys\nfor i in range(2):\n    subprocess.run([sys.executable, '-c', \
        'import time\\nt = time.process_time()\\nwhile time.process_time() - t < 0.5: pass'])",
    ])
    .cell_within(Duration::from_secs(50))
    .run();
    done.passed();
    let usage = done.outcome().usage.unwrap();
    assert!(
        usage.cpu_time.unwrap() > jiff::SignedDuration::from_millis(1000),
        "{usage:?}"
    );
    assert!(usage.memory_peak.unwrap().0 > 20 << 20, "{usage:?}");
}

#[test]
fn memory_of_a_child_that_lives_for_a_moment_only_is_told() {
    let child = "import subprocess, sys\n\
                 subprocess.run([sys.executable, '-c', 'b\"1\" * (300 << 20)'], check=True)";
    let done = Attempt::of(&[child]).run();
    done.passed();
    let usage = done.outcome().usage.unwrap();
    assert!(usage.memory_peak.unwrap().0 > 300 << 20, "{usage:?}");
}

#[test]
fn what_is_made_of_devices_is_told_by_cell_and_of_all() {
    let done = Attempt::of(&["import os", "print(os.environ['CUDA_VISIBLE_DEVICES'])"])
        .variable("CUDA_VISIBLE_DEVICES", "0,1,2,3")
        .devices(&["GPU-1", "GPU-2"])
        .run();
    done.passed();
    assert_eq!(done.printed(), "GPU-1,GPU-2\n");
    let mut cells = Vec::new();
    for record in &done.records {
        if let RecordKind::CellUsed { cell, gpu } = record.kind {
            cells.push((cell, gpu.devices, gpu.busy_seconds));
        }
    }
    assert_eq!(cells, [(1, 2, Some(1.0)), (2, 2, Some(2.0))]);
    let used = done.outcome().usage.unwrap().gpu.unwrap();
    assert_eq!(used.busy_seconds, Some(3.0));
}

#[test]
fn an_attempt_without_devices_sees_none_and_is_charged_with_none() {
    let asks = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))";
    let attempt = || Attempt::of(&[asks]).variable("CUDA_VISIBLE_DEVICES", "0");
    let hidden = attempt().devices(&[]).run();
    assert_eq!(
        (hidden.printed().as_str(), hidden.outcome().usage.unwrap().gpu),
        ("\n", None)
    );
    let unknown = attempt().run();
    assert_eq!(
        (unknown.printed().as_str(), unknown.outcome().usage.unwrap().gpu),
        ("0\n", None)
    );
}

#[test]
fn a_notebook_that_fails_on_a_broken_device_is_not_to_blame() {
    let on_broken = |source| {
        let attempt = Attempt::of(&[source]).devices(&["GPU-1"]);
        attempt.variable("TEST_GPU_FAULT", "a GPU failed").run()
    };
    let done = on_broken("raise RuntimeError('CUDA error: unknown')");
    let failure = done.failure();
    assert_eq!(failure.class, FailureClass::Infrastructure);
    assert_eq!(failure.diagnostic.message, "a GPU failed");
    assert_eq!(
        failure.diagnostic.causes,
        ["the notebook: RuntimeError: CUDA error: unknown"]
    );
    assert_eq!(failure.cell.unwrap().cell, 1);

    let passed = on_broken("x = 1");
    passed.passed();
    assert_eq!(passed.noticed()[0].message, "a GPU failed");
}

#[test]
fn what_is_shaped_like_a_token_is_never_stored_and_is_told_with_its_cell() {
    let token = "'ghp_' + 'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6'";
    let done = Attempt::of(&[
        &format!(
            "import os, subprocess, sys, time\nt = {token}\nprint('x', t[:9], end='', flush=True)\n\
             time.sleep(0.2)\nprint(t[9:])\nsubprocess.run(['echo', t])"
        ),
        "t",
        "open('a.txt', 'w').write(t)\nraise ValueError(t)",
    ])
    .run();
    let failure = done.failure();
    assert_eq!(failure.diagnostic.message, "ValueError: ***");
    for file in [
        done.layout().log(),
        done.layout().executed_notebook(),
        done.layout().kernel_log(),
    ] {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6\\n") && !text.contains("ghp_aB3"),
            "{text}"
        );
    }
    assert_eq!(done.printed(), "x ***\n***\n");
    let notices: Vec<_> = done
        .outcome()
        .notices
        .iter()
        .map(|notice| notice.message.clone())
        .collect();
    assert_eq!(
        notices,
        ["cell 1, cell 2, cell 3 showed what looks like a GitHub token; it is kept as ***"]
    );
}
