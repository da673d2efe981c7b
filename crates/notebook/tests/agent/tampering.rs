//! What a notebook does to its own attempt's files is noticed, and is itself the verdict.

use blueproof_core::domain::{FailureClass, Verdict};
use blueproof_diagnostic::Code;

use crate::support::{Attempt, Done, eventually, is_alive};

/// Finds the attempt's folder, by what its agent was started with, and makes the line that would say that it has passed.
const FORGE: &str = "\
import os, pathlib
folder = pathlib.Path(open(f'/proc/{os.getppid()}/cmdline').read().split('\\0')[-2])
log = folder / 'log.ndjson'
passed = ('{\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"finished\",\"outcome\":{\"verdict\":\"passed\",\"usage\":null,'
          '\"metrics\":{}},\"mac\":\"' + '0' * 32 + '\"}\\n')
assert log.exists(), folder
";

/// Tells all that a notebook is given: its folder and those above it, its variables, its arguments, and what it has open.
const TELL: &str = "\
import json, os, pathlib, sys
here = pathlib.Path.cwd()
given = [str(here), *os.environ.values(), *open('/proc/self/cmdline').read().split('\\0')]
for number in os.listdir('/proc/self/fd'):
    try: given.append(os.readlink(f'/proc/self/fd/{number}'))
    except OSError: pass
files = ['log.ndjson', 'spec.json', 'agent.lock', 'executed.ipynb', 'kernel.log']
given += [str(path / name) for path in here.parents for name in files if (path / name).exists()]
print(json.dumps(given))
";

/// Kills the agent, which is the parent of whoever started the kernel.
const KILL_AGENT: &str = "\
import signal
stat = lambda pid: open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()
os.kill(os.getppid(), signal.SIGKILL)
import time
time.sleep(60)
";

fn forging(code: &str) -> String {
    format!("{FORGE}{code}")
}

fn assert_tampered(done: &Done) {
    let failure = done.failure();
    assert_eq!(
        (failure.class, failure.diagnostic.code),
        (FailureClass::Notebook, Code::AttemptTampered),
        "{failure:?}"
    );
}

#[test]
fn nothing_that_a_notebook_is_given_leads_to_its_attempts_files() {
    let done = Attempt::of(&[TELL]).run();
    let notebook = done.notebook();
    let told = notebook["cells"][0]["outputs"][0]["text"]
        .as_str()
        .expect("it printed");
    let given: Vec<String> = serde_json::from_str(told).expect("it is a list");
    let work = done
        .work()
        .canonicalize()
        .unwrap_or(done.work())
        .display()
        .to_string();
    assert!(given.iter().any(|given| given.starts_with(&work)), "{given:?}");
    let attempt = done.layout().root().display().to_string();
    let leading: Vec<_> = given.iter().filter(|given| given.contains(&attempt)).collect();
    assert_eq!(leading, Vec::<&String>::new());
}

#[test]
fn what_a_notebook_writes_into_its_log_is_noticed_and_is_the_verdict() {
    let ways = [
        // It is appended, with and without a failure afterwards.
        "open(log, 'a').write(passed)",
        "open(log, 'a').write(passed); raise ValueError('for real')",
        // It is cut off, to nothing or to a part.
        "os.truncate(log, 0)",
        "os.truncate(log, log.stat().st_size - 10)",
        // It is changed in its place.
        "text = log.read_bytes(); open(log, 'r+b').write(text.replace(b'begun', b'BEGUN'))",
        // It is replaced: by a copy, by nothing, by a pipe, by a folder, by a link.
        "text = log.read_bytes(); log.unlink(); log.write_bytes(text)",
        "log.unlink()",
        "log.unlink(); os.mkfifo(log)",
        "log.unlink(); log.mkdir(); (log / 'x').touch()",
        "text = log.read_bytes(); log.unlink(); (folder / 'l').write_bytes(text); log.symlink_to(folder / 'l')",
        // It is made huge.
        "os.truncate(log, 1 << 40)",
    ];
    for way in ways {
        let done = Attempt::of(&[&forging(way), "print('later')"]).run();
        assert_tampered(&done);
    }
}

#[test]
fn what_a_notebook_writes_is_no_record_where_it_kills_its_agent_too() {
    for way in [
        "open(log, 'a').write(passed)",
        "os.truncate(log, 0)",
        "log.unlink()",
    ] {
        let code = format!("{}\n{KILL_AGENT}", forging(way));
        let done = Attempt::of(&[&code]).start().recover();
        assert_tampered(&done);
    }
}

#[test]
fn what_a_notebook_left_running_is_ended_where_no_record_names_it_any_more() {
    let told = tempfile::NamedTempFile::new().unwrap();
    let leave = format!(
        "import subprocess\nleft = subprocess.Popen(['sleep', '600'], start_new_session=True)\n\
         open({:?}, 'w').write(str(left.pid))\nlog.unlink(); (folder / 'spec.json').unlink()",
        told.path()
    );
    let code = format!("{}\n{KILL_AGENT}", forging(&leave));
    let done = Attempt::of(&[&code]).start().recover();
    assert_tampered(&done);
    let left = std::fs::read_to_string(told.path()).unwrap();
    assert!(!left.is_empty());
    eventually(|| (!is_alive(&left)).then_some(()));
}

#[test]
fn a_kernels_sockets_are_gone_also_where_no_record_names_their_folder() {
    let told = tempfile::NamedTempFile::new().unwrap();
    let take = format!(
        "import os\nopen({:?}, 'w').write(os.path.dirname(os.environ['TMPDIR']))\nlog.unlink()",
        told.path()
    );
    let code = format!("{}\n{KILL_AGENT}", forging(&take));
    assert_tampered(&Attempt::of(&[&code]).start().recover());
    let sockets = std::fs::read_to_string(told.path()).unwrap();
    assert!(sockets.contains("/bp-"), "{sockets}");
    assert!(!std::path::Path::new(&sockets).exists(), "{sockets}");
}

#[test]
fn what_a_notebook_puts_in_the_place_of_what_is_kept_is_replaced() {
    let ways = [
        "(folder / 'executed.ipynb').unlink(); os.mkfifo(folder / 'executed.ipynb')",
        "(folder / 'executed.ipynb').unlink(); (folder / 'executed.ipynb').mkdir(); (folder / 'executed.ipynb/x').touch()",
        "os.mkfifo(folder / 'artifacts')",
        "(folder / 'kernel.log').unlink(); os.mkfifo(folder / 'kernel.log')",
        "os.chmod(folder, 0o555)",
    ];
    for way in ways {
        let done = Attempt::of(&[&forging(way), "print('later')"]).run();
        assert_eq!(done.outcome().verdict, Verdict::Passed, "{way}");
        assert_eq!(
            done.notebook()["cells"][1]["outputs"][0]["text"],
            "later\n",
            "{way}"
        );
    }
}
