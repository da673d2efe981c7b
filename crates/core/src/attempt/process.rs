//! Naming a process for good: its id comes to mean another one, its id and the time of its start do not.

use std::{fs, sync::OnceLock};

use serde::{Deserialize, Serialize};

/// A process, until its machine is booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessName {
    /// Its id.
    pub pid: u32,
    /// When it started, in the kernel's clock ticks since boot.
    pub started: u64,
    /// Where its id means it: the machine since it was booted, and the PID namespace there.
    pub host: String,
}

/// Whether a process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is there, and runs or can.
    Alive,
    /// It has ended.
    Gone,
    /// It is, or was, on another machine or in another PID namespace: nobody can tell from here.
    Elsewhere,
}

impl ProcessName {
    /// Names the process that has this id now. `None` where there is none, or it has ended and only waits to be noticed.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &stat)
    }

    /// Returns whether the process is there.
    pub fn presence(&self) -> Presence {
        if self.host != host() {
            return Presence::Elsewhere;
        }
        if Self::of(self.pid).as_ref() == Some(self) {
            Presence::Alive
        } else {
            Presence::Gone
        }
    }

    fn parse(pid: u32, stat: &str) -> Option<Self> {
        // The second field is the program's name in brackets, and may hold brackets and spaces of its own.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        // The start is the 22nd field of proc_pid_stat(5); the state is the third.
        let started = fields.nth(18)?.parse().ok()?;
        let host = host().to_owned();
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started, host })
    }
}

/// Names where process ids mean what they mean here: this boot of this machine, and this PID namespace.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{} {}", boot.trim(), namespace.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_its_id_its_start_and_where_it_is() {
        let text =
            |state| format!("7 (a) Z 9 (b) {state} 3 7 7 0 -1 0 0 0 0 0 1 5 3 2 20 0 1 0 555 4096 2 0");
        let named = ProcessName {
            pid: 7,
            started: 555,
            host: host().into(),
        };
        assert_eq!(ProcessName::parse(7, &text("R")), Some(named));
        assert_eq!(ProcessName::parse(7, &text("Z")), None, "it has ended");
        let own = ProcessName::of(std::process::id()).expect("this one is here");
        assert_eq!(own.presence(), Presence::Alive);
        let earlier = ProcessName {
            started: own.started - 1,
            ..own.clone()
        };
        assert_eq!(earlier.presence(), Presence::Gone, "its id was another's before");
        let host = "another machine".into();
        let elsewhere = ProcessName { host, ..own };
        assert_eq!(elsewhere.presence(), Presence::Elsewhere);
    }
}
