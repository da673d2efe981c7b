//! Notebooks that attack their own attempts: never a pass, never a hang, and whoever comes next is not touched.

use crate::common::{Checkout, Home};

/// Finds the attempt's folder and log, by what its agent was started with, and makes a line that would say that it has passed.
const PREPARE: &str = "\
import json, os, pathlib, shutil, signal, subprocess, sys, time
folder = pathlib.Path(open(f'/proc/{os.getppid()}/cmdline').read().split('\\0')[-2])
log = folder / 'log.ndjson'
first = json.loads(log.read_text().splitlines()[0])
agent = first['pid']
passed = json.dumps({'at': first['at'], 'kind': 'finished', 'outcome': {'verdict': 'passed'}, 'mac': first['mac']}) + '\\n'
def put(path, make):
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    make(path)
def daemon(code, env={}):
    subprocess.Popen(['setsid', '--fork', sys.executable, '-c', code], env=env, cwd='/')
";

/// The code of the verdict, what is done, and how.
const ATTACKS: [(&str, &str, &str); 24] = [
    (
        "BP0651",
        "says that it has passed",
        "open(log, 'a').write(passed)",
    ),
    (
        "BP0651",
        "says so and fails",
        "open(log, 'a').write(passed); 1 / 0",
    ),
    (
        "BP0651",
        "says so and kills its agent",
        "open(log, 'a').write(passed); os.kill(agent, signal.SIGKILL); time.sleep(60)",
    ),
    (
        "BP0601",
        "kills its agent",
        "os.kill(agent, signal.SIGKILL); time.sleep(60)",
    ),
    ("BP0651", "empties its log", "os.truncate(log, 0)"),
    (
        "BP0651",
        "empties its log and kills its agent",
        "os.truncate(log, 0); os.kill(agent, 9); time.sleep(60)",
    ),
    (
        "BP0651",
        "cuts its log in half",
        "os.truncate(log, log.stat().st_size // 2)",
    ),
    ("BP0651", "removes its log", "log.unlink()"),
    (
        "BP0651",
        "copies its log",
        "text = log.read_bytes(); log.unlink(); log.write_bytes(text)",
    ),
    (
        "BP0651",
        "writes over its log",
        "text = log.read_bytes(); open(log, 'r+b').write(text.replace(b'env', b'ENV'))",
    ),
    ("BP0651", "makes its log a pipe", "put(log, os.mkfifo)"),
    ("BP0651", "makes its log a folder", "put(log, os.mkdir)"),
    ("BP0651", "makes its log a terabyte", "os.truncate(log, 1 << 40)"),
    (
        "BP0651",
        "makes its log a link",
        "copy = folder / 'copy'; copy.write_bytes(log.read_bytes()); put(log, lambda at: at.symlink_to(copy))",
    ),
    (
        "BP0401",
        "makes pipes of all its files",
        "[put(folder / name, os.mkfifo) for name in ['spec.json', 'executed.ipynb', 'artifacts', 'kernel.log', 'agent.log']]; 1 / 0",
    ),
    (
        "BP0401",
        "makes folders of all its files",
        "[put(folder / name, os.mkdir) for name in ['spec.json', 'executed.ipynb', 'kernel.log', 'agent.log']]; 1 / 0",
    ),
    (
        "BP0601",
        "holds a lock of its own",
        "lock = str(folder / 'agent.lock'); os.unlink(lock)\n\
         daemon(f'import fcntl, time; f = open({lock!r}, \"w\"); fcntl.flock(f, 2); time.sleep(600)', os.environ)\n\
         time.sleep(0.5); os.kill(agent, 9); time.sleep(60)",
    ),
    ("BP0651", "removes its folder", "shutil.rmtree(folder)"),
    (
        "BP0401",
        "takes its rights away",
        "os.chmod(folder, 0); os.chmod(log, 0); 1 / 0",
    ),
    (
        "BP0401",
        "leaves folders where its reports come",
        "[(folder.parents[1] / name).mkdir() for name in ['report.html', 'report.json', 'junit.xml']]; 1 / 0",
    ),
    (
        "BP0401",
        "plants the next attempt's folder",
        "runs = folder.parents[2]; number = int(folder.parents[1].name[2:])\n\
         shutil.copytree(folder, runs / f'r-{number + 1}' / 'attempts' / '1', ignore=shutil.ignore_patterns('work'))\n1 / 0",
    ),
    (
        "BP0401",
        "leaves daemons behind that clear their environment",
        "[daemon(f'import time; time.sleep(600); {str(folder)!r}') for _ in range(3)]; 1 / 0",
    ),
    (
        "BP0409",
        "sends what is no message",
        "from ipykernel.kernelapp import IPKernelApp\n\
         IPKernelApp.instance().iopub_socket.send_multipart([b'x', b'<IDS|MSG>', b'0' * 64, b'{', b'{}', b'{}', b'{}'])",
    ),
    (
        "BP0442",
        "hides a value behind a byte that is no text",
        "print('loss: 0.1'); print(os.fsdecode(b'caf\\xe9') + ' loss: 9.9')",
    ),
];

const SPEC: &str = "  timeouts: {run: 60s}\n  retries: {infrastructure: 0}\n  \
                    metrics: [{name: loss, from: {regex: 'loss: ([0-9.]+)'}}]\n  \
                    expect: {loss: {last: {max: 0.5}}}\n  artifacts: ['*.txt']\n";

#[test]
fn a_notebook_that_attacks_its_own_attempt_never_passes_and_touches_nobody_else() {
    let home = Home::new();
    for (code, what, attack) in ATTACKS {
        let cell = format!("{PREPARE}print('loss: 0.1')\n{attack}");
        let checkout = Checkout::new(&[&cell, "print('loss: 0.1') if False else None"], SPEC);
        let answer = home.blueproof(&["run", checkout.typed()]);
        assert!(!matches!(answer.code, None | Some(0)), "{what}: {answer:?}");
        assert!(!answer.stdout.contains("PASS"), "{what}: {answer:?}");
        assert!(answer.stdout.contains(code), "{what}: {answer:?}");
        let last = home.last();
        assert_eq!(last["settled"], true, "{what}: {last}");
        assert_ne!(last["state"]["ended"], "passed", "{what}: {last}");
    }
    let name = "import os\nopen(os.fsdecode(b'caf\\xe9.txt'), 'w').write('x')\nprint('loss: 0.1')";
    for cells in [name, "print('loss: 0.1')"] {
        let answer = home.blueproof(&["run", Checkout::new(&[cells], SPEC).typed()]);
        assert_eq!(answer.code, Some(0), "{answer:?}");
    }
    home.assert_nothing_goes_on();
}

#[test]
fn two_stores_in_one_folder_and_a_store_that_begins_again_take_over_nothing() {
    let home = Home::new();
    let (good, bad) = (Checkout::new(&["print(1)"], ""), Checkout::new(&["1 / 0"], ""));
    let (one, other) = (home.path().join("s/a.db"), home.path().join("s/b.db"));
    let run = |store: &std::path::Path, checkout: &Checkout| {
        let store = store.to_str().expect("plain");
        home.blueproof(&["run", "--store", store, checkout.typed()]).code
    };
    assert_eq!(run(&one, &good), Some(0));
    assert_eq!(run(&other, &bad), Some(1), "its run has the same number");
    std::fs::remove_file(&one).expect("it is there");
    assert_eq!(run(&one, &bad), Some(1), "the store is a new one");
    std::fs::write(&one, "").expect("it is ours");
    assert_eq!(run(&one, &bad), Some(1), "and another new one");
}
