//! The lock that only one agent of an attempt can have.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread,
    time::Duration,
};

use blueproof_core::attempt::{AttemptLayout, Errand, UNFOLLOWED, clear_folder_away};

/// How often it is tried. Whoever looks whether an agent lives shares the lock for a moment.
const TRIES: u32 = 25;
const TRY_EVERY: Duration = Duration::from_millis(10);

/// Held as long as an agent lives.
pub(super) struct Lock(#[expect(dead_code, reason = "the lock goes with its file")] File);

impl Lock {
    /// Takes the lock, and returns `None` where another agent has it.
    ///
    /// Who finishes an attempt comes when its agent is gone: if the lock is not free then, and no other agent is there, what
    /// the notebook left behind has it, and a lock of our own is put in its place.
    pub(super) fn take(layout: &AttemptLayout, errand: Errand) -> io::Result<Option<Self>> {
        let path = layout.lock();
        match open(&path).and_then(|file| Ok(wait_for(&file)?.then_some(file))) {
            Ok(Some(file)) => Ok(Some(Self(file))),
            Ok(None) | Err(_) if errand == Errand::Finish && !is_another_agent_here()? => {
                let beside = path.with_extension("anew");
                let _ = fs::remove_file(&beside);
                let file = open(&beside)?;
                file.lock()?;
                clear_folder_away(&path)?;
                fs::rename(beside, path)?;
                Ok(Some(Self(file)))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(UNFOLLOWED);
    options.open(path)
}

fn wait_for(lock: &File) -> io::Result<bool> {
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => thread::sleep(TRY_EVERY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns whether another process was started with the same arguments as this one: those of the attempt's agents.
fn is_another_agent_here() -> io::Result<bool> {
    let own_id = std::process::id().to_string();
    let arguments = |pid: &str| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let program_ends = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
        line[program_ends..].to_vec()
    };
    let own = arguments(&own_id);
    let names = fs::read_dir("/proc")?.map(|entry| entry.map(|entry| entry.file_name()));
    for name in names {
        let name = name?;
        let Some(pid) = name
            .to_str()
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        else {
            continue;
        };
        if pid != own_id && arguments(pid) == own {
            return Ok(true);
        }
    }
    Ok(false)
}
