//! What a process holds in memory, as `/proc` tells it.

use std::fs;

use anyhow::{Context, Result};

/// What a process holds in memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// All that is resident, libraries too.
    pub(super) resident: u64,
    /// What is its own.
    pub(super) anonymous: u64,
    /// The most that was ever resident.
    pub(super) peak: u64,
}

impl Memory {
    /// Returns what a process holds now.
    pub(super) fn of_process(id: u32) -> Result<Self> {
        let path = format!("/proc/{id}/status");
        let status = fs::read_to_string(&path).with_context(|| format!("could not read `{path}`"))?;
        Self::of(&status).with_context(|| format!("no memory in: {status}"))
    }

    fn of(status: &str) -> Option<Self> {
        let bytes = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kibibytes * 1024)
        };
        Some(Self {
            resident: bytes("VmRSS:")?,
            anonymous: bytes("RssAnon:")?,
            peak: bytes("VmHWM:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let status =
            "Name:\ta\nVmHWM:\t   10240 kB\nVmRSS:\t    9216 kB\nRssAnon:\t    1024 kB\nThreads:\t3\n";
        let memory = Memory::of(status).expect("it is there");
        assert_eq!(
            (memory.resident, memory.anonymous, memory.peak),
            (9 << 20, 1 << 20, 10 << 20)
        );
        assert_eq!(Memory::of("Name:\ta\n"), None);
    }
}
