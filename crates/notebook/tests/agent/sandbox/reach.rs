//! What is in reach of a hostile notebook: files, processes, sockets, the network, devices.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    process::{Command, Stdio},
};

use super::{TRIES, can_sandbox, tried};
use crate::support::{Attempt, python};

/// Writes a file that is not the notebook's, and returns code that tries to read it and to write to it.
fn tries_file(attempt: &Attempt, name: &str) -> String {
    let path = attempt.root().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "the secret").unwrap();
    let path = path.display();
    format!("print(tries(lambda: read('{path}')), tries(lambda: wrote('{path}')))")
}

const NEITHER: &str = "refused: FileNotFoundError refused: FileNotFoundError";

#[test]
fn a13_a_key_of_the_user_cannot_be_read() {
    if !can_sandbox() {
        return;
    }
    let attempt = Attempt::of(&[TRIES]);
    let code = tries_file(&attempt, ".ssh/id_rsa");
    let homes = "print(tries(lambda: os.listdir('/home')), tries(lambda: os.listdir('/root/' '.ssh')))\n\
                 print(tries(lambda: read('/etc/shadow')), 'root' in read('/etc/passwd'))";
    let done = attempt.cell(&code, &[]).cell(homes, &[]).sandboxed().run();
    done.passed();
    assert_eq!(
        done.printed().trim_end(),
        format!("{NEITHER}\n{NEITHER}\nrefused: FileNotFoundError False")
    );
}

#[test]
fn a13_a_token_of_the_agent_and_its_caller_is_in_no_process_that_can_be_seen() {
    if !can_sandbox() {
        return;
    }
    let code = "import glob\nenvironments = [open(path, 'rb').read() for path in glob.glob('/proc/[0-9]*/environ') if os.access(path, os.R_OK)]\n\
                print(len(environments) < 10, any(b'ghs_theToken' in one for one in environments), os.environ.get('GITHUB_TOKEN'))";
    let printed = tried(|attempt| attempt.variable("GITHUB_TOKEN", "ghs_theToken"), code);
    assert_eq!(printed, "True False None\n");
}

#[test]
fn a_store_cannot_be_read_and_no_command_left_in_it() {
    if !can_sandbox() {
        return;
    }
    let attempt = Attempt::of(&[TRIES]);
    let code = tries_file(&attempt, "store/blueproof.db");
    let path = attempt.root().join("store/blueproof.db");
    let code = format!(
        "{code}\nimport sqlite3\nprint(tries(lambda: sqlite3.connect('{}').execute('create table command (by)')))",
        path.display()
    );
    let done = attempt.cell(&code, &[]).sandboxed().run();
    done.passed();
    assert_eq!(done.printed(), format!("{NEITHER}\nrefused: OperationalError\n"));
    assert_eq!(
        fs::read_to_string(done.layout().root().parent().unwrap().join("store/blueproof.db")).unwrap(),
        "the secret"
    );
}

#[test]
fn a_log_that_says_passed_cannot_be_written() {
    if !can_sandbox() {
        return;
    }
    let attempt = Attempt::of(&[TRIES]);
    let log = attempt.root().join("attempt/log.ndjson");
    let code = format!(
        "print(tries(lambda: wrote('{}', '{{\"kind\":\"finished\",\"outcome\":{{\"verdict\":\"passed\"}}}}')))\n\
         found = [os.path.join(top, name) for top, _, names in os.walk('/') if not top.startswith(('/proc', '/usr', '/sys')) for name in names if name in ('log.ndjson', 'spec.json', 'agent.lock', 'executed.ipynb')]\n\
         print(found)\nraise ValueError('it fails')",
        log.display()
    );
    let done = attempt.cell(&code, &[]).sandboxed().run();
    assert!(
        done.failure().diagnostic.message.contains("it fails"),
        "{:?}",
        done.failure()
    );
    assert!(
        done.printed().starts_with("refused: FileNotFoundError\n[]\n"),
        "{}",
        done.printed()
    );
}

#[test]
fn the_kernel_of_another_run_cannot_be_spoken_to() {
    if !can_sandbox() {
        return;
    }
    let victim = Attempt::of(&[
        "print('here', flush=True)\nimport time; time.sleep(20)",
        "print('done')",
    ]);
    let victim = victim.sandboxed().start();
    victim.until_printed("here");
    let sockets = victim.sockets();
    assert!(sockets.join("kernel.json").exists());
    let code = format!(
        "print(tries(lambda: read('{0}/kernel.json')), len(glob.glob('/tmp/bp-*')))\n\
         peer = socket.socket(socket.AF_UNIX)\nprint(tries(lambda: peer.connect('{0}/k/s-1')))",
        sockets.display()
    );
    let printed = tried(|attempt| attempt, &code);
    assert_eq!(
        printed,
        "refused: FileNotFoundError 1\nrefused: FileNotFoundError\n"
    );
    victim.signal("TERM");
    victim.wait();
}

#[test]
fn a14_the_environment_of_later_runs_cannot_be_written() {
    if !can_sandbox() {
        return;
    }
    let code = "import IPython, site\nfolder = os.path.dirname(os.path.dirname(IPython.__file__))\n\
                for name in ('later.pth', 'IPython/__pycache__/later.pyc', 'IPython/__init__.py'):\n    print(tries(lambda: wrote(os.path.join(folder, name))))\n\
                print(tries(lambda: wrote(os.path.join(sys.base_prefix, 'later'))), tries(lambda: wrote('/usr/later')))\n\
                print(tries(lambda: os.chmod(folder, 0o777)))";
    let before = fs::metadata(python()).unwrap().modified().unwrap();
    let printed = tried(|attempt| attempt, code);
    assert!(!printed.contains("got"), "{printed}");
    assert_eq!(printed.matches("refused").count(), 6, "{printed}");
    assert_eq!(fs::metadata(python()).unwrap().modified().unwrap(), before);
}

#[test]
fn the_real_home_and_the_origin_of_the_checkout_are_not_there() {
    if !can_sandbox() {
        return;
    }
    let attempt = Attempt::of(&[TRIES]);
    let code = tries_file(&attempt, "checkout/.git/config");
    let home = "wrote(os.path.expanduser('~/.bashrc'))\nprint(os.listdir(os.path.expanduser('~')))";
    let done = attempt.cell(&code, &[]).cell(home, &[]).sandboxed().run();
    done.passed();
    assert!(done.printed().starts_with(NEITHER), "{}", done.printed());
    assert!(done.printed().contains("'.bashrc'"), "{}", done.printed());
    assert!(!done.work().exists());
    assert_eq!(
        fs::read_to_string(done.checkout().join(".git/config")).unwrap(),
        "the secret"
    );
}

#[test]
fn a17_no_network_is_reached_not_even_the_machines_own_ports_or_a_clouds_metadata() {
    if !can_sandbox() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let code = format!(
        "def reaches(host, port): socket.create_connection((host, port), 2)\n\
         for host, port in (('127.0.0.1', {port}), ('::1', {port}), ('169.254.169.254', 80), ('1.1.1.1', 443), ('example.org', 443)):\n    print(host, tries(lambda: reaches(host, port)))\n\
         print([name for _, name in socket.if_nameindex()])"
    );
    let printed = tried(|attempt| attempt, &code);
    assert_eq!(printed.matches("refused").count(), 5, "{printed}");
    assert!(printed.ends_with("['lo']\n"), "{printed}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody has come");
}

#[test]
fn sockets_without_a_file_are_those_of_another_network() {
    if !can_sandbox() {
        return;
    }
    let name = format!("blueproof-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let code =
        format!("peer = socket.socket(socket.AF_UNIX)\nprint(tries(lambda: peer.connect('\\0{name}')))");
    assert_eq!(
        tried(|attempt| attempt, &code),
        "refused: ConnectionRefusedError\n"
    );
}

#[test]
fn no_process_of_the_machine_is_seen_or_signalled() {
    if !can_sandbox() {
        return;
    }
    let mut other = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let code = format!(
        "print(tries(lambda: os.kill({}, signal.SIGKILL)), tries(lambda: os.kill({}, signal.SIGKILL)))\n\
         seen = [int(name) for name in os.listdir('/proc') if name.isdigit()]\nprint(max(seen) < 100)\n\
         print(tries(lambda: os.kill(1, signal.SIGKILL)) and 'still here')",
        other.id(),
        std::process::id()
    );
    let printed = tried(|attempt| attempt, &code);
    assert_eq!(
        printed,
        "refused: ProcessLookupError refused: ProcessLookupError\nTrue\nstill here\n"
    );
    assert!(other.try_wait().unwrap().is_none());
    other.stdin.take().unwrap().write_all(b"x").unwrap();
    other.wait().unwrap();
}

#[test]
fn every_namespace_is_another_and_none_can_be_made_inside() {
    if !can_sandbox() {
        return;
    }
    let names = ["user", "mnt", "pid", "ipc", "net", "uts"];
    let own: Vec<_> = names
        .map(|name| fs::read_link(format!("/proc/self/ns/{name}")).unwrap())
        .into();
    let code = format!(
        "for name in {names:?}: print(os.readlink(f'/proc/self/ns/{{name}}'))\n\
         for option in ('-U', '-m', '-n'): print('made' if subprocess.run(['unshare', option, 'true'], stderr=subprocess.DEVNULL).returncode == 0 else 'refused')"
    );
    let printed = tried(|attempt| attempt, &code);
    for own in own {
        assert!(!printed.contains(own.to_str().unwrap()), "{printed}");
    }
    assert_eq!(printed.matches("refused").count(), 3, "{printed}");
}

#[test]
fn a15_neither_rights_nor_settings_of_the_machine_are_gained() {
    if !can_sandbox() {
        return;
    }
    let code = "status = dict(line.split(':\\t', 1) for line in read('/proc/self/status').splitlines() if ':\\t' in line)\n\
                print(status['CapEff'], status['CapBnd'], status['NoNewPrivs'])\n\
                for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/devices/system/cpu/online'): print(tries(lambda: wrote(path, '')) if not os.access(path, os.W_OK) else tries(lambda: wrote(path)))\n\
                print(tries(lambda: os.setuid(0)), tries(lambda: os.chroot('/')))";
    let printed = tried(|attempt| attempt, code);
    assert!(
        printed.starts_with("0000000000000000 0000000000000000 1\n"),
        "{printed}"
    );
    assert_eq!(printed.matches("refused").count(), 5, "{printed}");
}

#[test]
fn of_devices_only_those_are_there_that_give_nothing() {
    if !can_sandbox() {
        return;
    }
    let code = "print(sorted(os.listdir('/dev')))\nprint(tries(lambda: wrote('/dev/later')), tries(lambda: os.mknod('/tmp/sda', 0o60600, os.makedev(8, 0))))\n\
                print(sorted(os.readlink(f'/proc/self/fd/{fd}') for fd in (0, 1, 2)), [fd for fd in os.listdir('/proc/self/fd') if tries(lambda: os.listdir(f'/proc/self/fd/{fd}')).startswith('got') and os.readlink(f'/proc/self/fd/{fd}') != f'/proc/{os.getpid()}/fd'])";
    let printed = tried(|attempt| attempt, code);
    let first = printed.lines().next().unwrap();
    assert_eq!(
        first,
        "['core', 'fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']"
    );
    assert!(
        printed.contains("refused: OSError refused: PermissionError"),
        "{printed}"
    );
    assert!(
        printed.trim_end().ends_with("[]"),
        "no folder of the machine is open: {printed}"
    );
}

#[test]
fn a_gpu_whose_node_is_not_known_is_not_given() {
    if !can_sandbox() {
        return;
    }
    let failure = Attempt::of(&["print('ran')"])
        .devices(&["MIG-1"])
        .sandboxed()
        .fails();
    assert!(
        failure.diagnostic.causes[0].contains("MIG-1"),
        "{:?}",
        failure.diagnostic
    );
}
