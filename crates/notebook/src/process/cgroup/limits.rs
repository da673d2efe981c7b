//! What is limited in an attempt's cgroup, each by itself: which controllers there are differs from machine to machine.

use std::{fs, io};

use blueproof_core::{attempt::Cgroup, domain::Resources};

use super::{PROCESSES_AT_MOST, home::Home};

/// In how many microseconds a cgroup may use its processor time, and the least of it: the kernel's own figures.
const PERIOD: u64 = 100_000;
const LEAST_QUOTA: u64 = 1000;

/// Why something is not limited; `None` where it is, or nothing was granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unlimited {
    /// Memory.
    pub(crate) memory: Option<String>,
    /// Processor time.
    pub(crate) cpu: Option<String>,
    /// Processes and threads. Nobody asked for a number of them.
    pub(crate) processes: Option<String>,
}

impl Unlimited {
    /// Says the same of everything.
    pub(super) fn all(why: &str) -> Self {
        Self {
            memory: Some(why.into()),
            cpu: Some(why.into()),
            processes: Some(why.into()),
        }
    }
}

/// What is to be limited, and to how much.
pub(super) struct Limit {
    memory_bytes: u64,
    cpu_millis: u64,
}

impl Limit {
    /// Returns the limits of what was granted. Of what nothing was granted nothing is limited.
    pub(super) fn of(granted: &Resources) -> Self {
        Self {
            memory_bytes: granted.memory.0,
            cpu_millis: granted.cpu.as_millis(),
        }
    }
}

/// Limits what can be limited, and returns what cannot.
pub(super) fn set(home: &Home, cgroup: &Cgroup, limit: &Limit) -> Unlimited {
    let attempt = |controller: &str, set: &dyn Fn() -> io::Result<()>| {
        let given = home.give(controller);
        given.and_then(|()| {
            set().map_err(|error| format!("the controller `{controller}` cannot be used: {error}"))
        })
    };
    let processes = attempt("pids", &|| {
        write(cgroup, "pids.max", &PROCESSES_AT_MOST.to_string())
    });
    let memory = (limit.memory_bytes > 0)
        .then(|| attempt("memory", &|| limit_memory(cgroup, limit.memory_bytes)).err());
    let cpu = (limit.cpu_millis > 0).then(|| attempt("cpu", &|| limit_cpu(cgroup, limit.cpu_millis)).err());
    Unlimited {
        memory: memory.flatten(),
        cpu: cpu.flatten(),
        processes: processes.err(),
    }
}

fn limit_memory(cgroup: &Cgroup, bytes: u64) -> io::Result<()> {
    write(cgroup, "memory.max", &bytes.to_string())?;
    // What is swapped out counts as little as what was never asked for. Not every kernel can swap.
    let _ = write(cgroup, "memory.swap.max", "0");
    // A notebook that goes on without one of its processes passes or fails for no reason that anybody could see; Kubernetes
    // ends a container as a whole, too.
    let _ = write(cgroup, "memory.oom.group", "1");
    Ok(())
}

fn limit_cpu(cgroup: &Cgroup, millis: u64) -> io::Result<()> {
    let quota = (millis * (PERIOD / 1000)).max(LEAST_QUOTA);
    write(cgroup, "cpu.max", &format!("{quota} {PERIOD}"))
}

/// Writes to a file of a controller, which is there if the controller is.
fn write(cgroup: &Cgroup, file: &str, value: &str) -> io::Result<()> {
    let path = cgroup.folder().join(file);
    let mut open = fs::OpenOptions::new();
    io::Write::write_all(&mut open.write(true).open(path)?, value.as_bytes())
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::{Bytes, Cpus, Gpus};

    use super::*;

    /// Limits two cpu (or as much) and 1 GiB in a hierarchy with these controllers, and returns what stands in its files.
    fn limited(controllers: &str, files: &[&str], granted: Resources) -> (Unlimited, Vec<String>) {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text).expect("a file");
        write("cgroup.procs", "");
        write("cgroup.subtree_control", "");
        write("cgroup.controllers", controllers);
        fs::create_dir(root.path().join("own")).expect("a folder");
        files.iter().for_each(|file| write(&format!("own/{file}"), ""));
        let home = Home::at(root.path().into(), true).expect("it is ours");
        let unlimited = set(&home, &home.cgroup("own"), &Limit::of(&granted));
        let read = |file: &&str| fs::read_to_string(root.path().join("own").join(file)).expect("a file");
        (unlimited, files.iter().map(read).collect())
    }

    fn granted(cpu: Cpus, memory: Bytes) -> Resources {
        let gpu = Gpus(0);
        Resources { cpu, memory, gpu }
    }

    const ALL: [&str; 5] = [
        "memory.max",
        "memory.swap.max",
        "memory.oom.group",
        "pids.max",
        "cpu.max",
    ];

    #[test]
    fn what_was_granted_is_what_is_limited() {
        let (unlimited, written) = limited(
            "cpu memory pids",
            &ALL,
            granted(Cpus::millis(1500), Bytes(1 << 30)),
        );
        assert_eq!(unlimited, Unlimited::default());
        assert_eq!(written, ["1073741824", "0", "1", "4096", "150000 100000"]);
        let (_, written) = limited("cpu memory pids", &ALL, granted(Cpus::millis(1), Bytes(0)));
        assert_eq!(written[0], "", "no memory was granted, so none is limited");
        assert_eq!(written[4], "1000 100000", "the kernel takes no less");
    }

    #[test]
    fn each_controller_that_is_there_is_used_and_each_that_is_not_is_named() {
        let granted = granted(Cpus::cores(2), Bytes(1 << 20));
        let (unlimited, written) = limited("memory", &["memory.max"], granted);
        assert_eq!((unlimited.memory, written), (None, vec!["1048576".to_owned()]));
        assert!(unlimited.cpu.is_some_and(|why| why.contains("`cpu`")));

        let (unlimited, written) = limited("cpu memory", &["cpu.max"], granted);
        assert_eq!((unlimited.cpu, written), (None, vec!["200000 100000".to_owned()]));
        assert!(unlimited.memory.is_some_and(|why| why.contains("cannot be used")));

        let (unlimited, _) = limited("", &[], granted);
        assert!(unlimited.memory.is_some() && unlimited.cpu.is_some());
    }
}
