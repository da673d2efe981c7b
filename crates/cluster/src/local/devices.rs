//! Which attempt has which accelerator of this machine.
//!
//! A file for each device that somebody has stands in one folder, and says who. Whoever gives some holds a lock there, so
//! that two attempts cannot be given the same device, whoever drives, and whatever crashes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use blueproof_core::{
    attempt::{AttemptLayout, LogCursor, LogReader, read_regular},
    domain::{AttemptId, Gpus},
    gpu::DeviceUuid,
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use super::{
    agent::is_locked,
    files::{self, cannot},
    log::is_finished,
};

/// How long the lock is waited for, and how often it is looked for meanwhile.
const LOCKED_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Longer than any name of an attempt.
pub(super) const LONGEST_CLAIM: u64 = 4096;

/// The accelerators of this machine that attempts may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices {
    /// What can be given, in order; `None` where nobody knows. Then attempts see whatever this program sees.
    pub units: Option<Vec<DeviceUuid>>,
    /// The unhealthy ones of these, where an attempt would fail, each with its reason.
    pub unhealthy: BTreeMap<DeviceUuid, String>,
    /// What they are, in words: `2 gpu (NVIDIA A10)`.
    pub description: String,
}

/// Looks for accelerators. It may block for as long as a driver takes to load.
#[derive(Clone)]
pub struct LookForDevices(pub Arc<dyn Fn() -> Devices + Send + Sync>);

impl fmt::Debug for LookForDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LookForDevices")
    }
}

impl Default for LookForDevices {
    fn default() -> Self {
        Self(Arc::new(|| Devices {
            units: None,
            unhealthy: BTreeMap::new(),
            description: "GPUs are not looked for".into(),
        }))
    }
}

/// Who has a device: an attempt of one of the stores whose runs are in one folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The folder of its store's runs below the folder of all runs; empty where that is the same.
    pub folder: String,
    /// The attempt.
    pub attempt: AttemptId,
}

impl Holder {
    /// Returns where the attempt's files are, below the folder of all runs.
    pub(super) fn layout(&self, runs: &Path) -> AttemptLayout {
        AttemptLayout::of(self.attempt, &runs.join(&self.folder))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.folder.as_str() {
            "" => write!(f, "{}", self.attempt),
            folder => write!(f, "{folder}/{}", self.attempt),
        }
    }
}

impl FromStr for Holder {
    type Err = NoHolder;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (folder, attempt) = text.rsplit_once('/').unwrap_or(("", text));
        if !folder.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(NoHolder);
        }
        Ok(Self {
            folder: folder.into(),
            attempt: attempt.parse().map_err(|_| NoHolder)?,
        })
    }
}

/// What names no holder of a device.
#[derive(Debug)]
pub struct NoHolder;

/// Who has what.
pub(super) struct Claims<'a> {
    runs: &'a Path,
}

impl<'a> Claims<'a> {
    pub(super) fn below(runs: &'a Path) -> Self {
        Self { runs }
    }

    /// Gives as many of these devices to an attempt as it was promised, no unhealthy one, and returns which. Repeating it
    /// gives the same.
    pub(super) fn give(
        &self,
        holder: &Holder,
        units: &[DeviceUuid],
        unhealthy: &BTreeMap<DeviceUuid, Diagnostic>,
        promised: Gpus,
    ) -> Result<Vec<DeviceUuid>, CallError> {
        let promised = usize::try_from(promised.0).unwrap_or(usize::MAX);
        if promised > units.len() {
            return Err(CallError::never(too_many(promised, units.len())));
        }
        let _lock = self.lock()?;
        let mut given = self.of(holder, units)?;
        let healthy: Vec<_> = units
            .iter()
            .filter(|unit| !unhealthy.contains_key(unit))
            .collect();
        if promised > given.len().max(healthy.len()) {
            return Err(CallError::never(too_few_healthy(
                promised,
                units.len(),
                unhealthy,
            )));
        }
        for unit in healthy {
            if given.len() >= promised {
                break;
            }
            if !given.contains(unit) && self.take(holder, unit)? {
                given.push(unit.clone());
            }
        }
        if given.len() < promised {
            let free = given.len();
            self.take_back(holder, units)?;
            let taken = self.taken(units, holder);
            return Err(CallError::when_free(too_few(
                promised,
                free,
                &taken,
                &self.folder(),
            )));
        }
        Ok(given)
    }

    /// Returns what an attempt was given of these, in their order.
    pub(super) fn of(&self, holder: &Holder, units: &[DeviceUuid]) -> Result<Vec<DeviceUuid>, CallError> {
        let mut given = Vec::new();
        for unit in units {
            if !self.is_foreign(unit) && self.holder(unit)? == Some(holder.to_string()) {
                given.push(unit.clone());
            }
        }
        Ok(given)
    }

    /// Returns which of these somebody has, who that is, and since when. What is no attempt's name is nobody's.
    pub(super) fn all(
        &self,
        units: &[DeviceUuid],
    ) -> Result<Vec<(DeviceUuid, Holder, SystemTime)>, CallError> {
        let mut all = Vec::new();
        for unit in units {
            let holder = self.holder(unit)?.and_then(|holder| holder.parse().ok());
            let given_at = fs::metadata(self.file(unit)).and_then(|file| file.modified());
            // One that was freed meanwhile is nobody's.
            if let (Some(holder), Ok(given_at)) = (holder, given_at) {
                all.push((unit.clone(), holder, given_at));
            }
        }
        Ok(all)
    }

    /// Takes all that an attempt was given of these from it; nothing is a success.
    pub(super) fn take_back(&self, holder: &Holder, units: &[DeviceUuid]) -> Result<(), CallError> {
        for unit in self.of(holder, units)? {
            self.free(&unit)?;
        }
        Ok(())
    }

    pub(super) fn lock(&self) -> Result<File, CallError> {
        let path = self.folder().join("lock");
        let locked = files::make(&self.folder()).and_then(|()| locked(&path));
        locked.map_err(|error| cannot("lock", &path, &error))
    }

    /// Takes a device for an attempt, and returns whether nobody else has it.
    fn take(&self, holder: &Holder, unit: &DeviceUuid) -> Result<bool, CallError> {
        let path = self.file(unit);
        if !self.is_foreign(unit) && self.holder(unit)?.is_some_and(|before| !self.is_over(&before)) {
            return Ok(false);
        }
        files::write_whole(&path, holder.to_string().as_bytes())
            .map_err(|error| cannot("write", &path, &error))?;
        Ok(true)
    }

    fn free(&self, unit: &DeviceUuid) -> Result<(), CallError> {
        match fs::remove_file(self.file(unit)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(cannot("remove", &self.file(unit), &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns whether something lies in the place of a claim that no driver put there: whoever gives devices puts its own claim in
    /// its place, and whoever only reads cannot tell who has the device.
    fn is_foreign(&self, unit: &DeviceUuid) -> bool {
        let read = read_regular(&self.file(unit), LONGEST_CLAIM);
        read.is_err_and(|error| is_foreign(&error))
    }

    fn holder(&self, unit: &DeviceUuid) -> Result<Option<String>, CallError> {
        match read_regular(&self.file(unit), LONGEST_CLAIM) {
            Ok(holder) => Ok(Some(String::from_utf8_lossy(&holder).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot("read", &self.file(unit), &error)),
        }
    }

    /// Returns whether whoever has a device cannot use it any more, though nobody took it back: a store that was removed
    /// leaves such claims.
    fn is_over(&self, holder: &str) -> bool {
        let Ok(holder) = holder.parse::<Holder>() else {
            return true;
        };
        let layout = holder.layout(self.runs);
        if !layout.root().exists() {
            return true;
        }
        // It may be of another store, whose key nobody has here: that no agent lives is what counts.
        let read = LogReader::open(layout.log()).read_all(LogCursor::default());
        let is_finished = read.is_ok_and(|(records, _)| is_finished(&records));
        is_finished && is_locked(&layout).is_ok_and(|is_locked| !is_locked)
    }

    /// Returns who has which of these, in words for `asking`: attempts of its own store are called what people call them.
    fn taken(&self, units: &[DeviceUuid], asking: &Holder) -> Vec<String> {
        let says = |unit: &DeviceUuid| {
            let holder = self.holder(unit).ok().flatten()?;
            Some(match holder.parse::<Holder>() {
                Ok(holder) if holder.folder == asking.folder => format!("{} has {unit}", holder.attempt),
                Ok(holder) => format!("{} of the store {} has {unit}", holder.attempt, holder.folder),
                Err(_) => format!("`{holder}` has {unit}"),
            })
        };
        units.iter().filter_map(says).collect()
    }

    fn folder(&self) -> PathBuf {
        self.runs.join(".devices")
    }

    /// Returns the file that says who has a device. Names of parts may have slashes.
    fn file(&self, unit: &DeviceUuid) -> PathBuf {
        self.folder().join(unit.0.replace('/', "_"))
    }

    /// Returns the file that says why a device is quarantined.
    pub(super) fn note(&self, unit: &DeviceUuid) -> PathBuf {
        let mut note = self.file(unit).into_os_string();
        // The name of before: notes of earlier versions go on to hold.
        note.push(".unfit");
        note.into()
    }
}

/// Opens and locks a file. Whoever gives devices holds it for milliseconds; somebody else may hold it for ever.
fn locked(path: &Path) -> io::Result<File> {
    let ends = Instant::now() + LOCKED_WITHIN;
    loop {
        let file = files::open_lock(path)?;
        match file.try_lock() {
            Ok(()) if is_at(path, &file)? => return Ok(file),
            // It was replaced meanwhile: somebody else may hold the new one.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if Instant::now() < ends => thread::sleep(LOOK_AGAIN_AFTER),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let (there, here) = (fs::symlink_metadata(path)?, file.metadata()?);
    Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
}

/// Returns whether a file cannot be one of a driver's: no regular file, a link, or far too long.
pub(super) fn is_foreign(error: &io::Error) -> bool {
    let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    let kinds = [io::ErrorKind::InvalidInput, io::ErrorKind::FileTooLarge];
    is_link || kinds.contains(&error.kind())
}

fn too_many(promised: usize, here: usize) -> Diagnostic {
    let message = format!("the attempt was promised GPUs: {promised}; this machine has: {here}");
    Diagnostic::error(Code::DevicesTaken, message)
        .hint("give the queue no more quota of nvidia.com/gpu than `nvidia-smi -L` lists devices")
}

fn too_few_healthy(promised: usize, here: usize, unhealthy: &BTreeMap<DeviceUuid, Diagnostic>) -> Diagnostic {
    let healthy = here.saturating_sub(unhealthy.len());
    let message = format!(
        "the attempt was promised GPUs: {promised}; this machine has: {here}, of which are healthy: {healthy}"
    );
    let diagnostic = Diagnostic::error(Code::DevicesUnhealthy, message);
    let each = unhealthy
        .iter()
        .map(|(unit, why)| format!("{unit}: {}", why.causes.join("; ")));
    let hints: BTreeSet<_> = unhealthy.values().flat_map(|why| &why.hints).cloned().collect();
    let diagnostic = each.fold(diagnostic, Diagnostic::because);
    hints.into_iter().fold(diagnostic, Diagnostic::hint)
}

fn too_few(promised: usize, free: usize, taken: &[String], folder: &Path) -> Diagnostic {
    let message = format!("the attempt was promised GPUs: {promised}; free are: {free}");
    let diagnostic =
        Diagnostic::error(Code::DevicesTaken, message).at(SourceLocation::file(folder.display().to_string()));
    taken
        .iter()
        .fold(diagnostic, Diagnostic::because)
        .hint("see with `blueproof get runs` whether those attempts are there; a file of one that is not may be removed")
}

#[cfg(test)]
mod tests {
    use blueproof_core::{domain::RunId, ports::Retry};

    use super::*;

    /// All devices are fit.
    const NONE: BTreeMap<DeviceUuid, Diagnostic> = BTreeMap::new();

    fn units(numbers: &[u32]) -> Vec<DeviceUuid> {
        numbers.iter().map(|n| DeviceUuid(format!("GPU-{n}"))).collect()
    }

    /// Makes an attempt's folder, as `reserve` does.
    fn attempt(runs: &Path, run: u64) -> Holder {
        let holder = Holder {
            folder: "a-store".into(),
            attempt: RunId(run).attempt(1),
        };
        files::make(holder.layout(runs).root()).expect("a folder");
        holder
    }

    #[test]
    fn what_lies_in_the_place_of_a_claim_or_the_lock_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let (runs, units) = (folder.path(), [DeviceUuid("GPU-0".into())]);
        let (claims, holder) = (Claims::below(runs), attempt(runs, 1));
        fs::create_dir_all(claims.folder()).expect("a folder");
        let pipe = |path: PathBuf| {
            let made = rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            );
            made.expect("a pipe");
        };
        for name in ["lock", "GPU-0", "GPU-0.part", "GPU-0.unfit"] {
            pipe(claims.folder().join(name));
        }
        let given = claims.give(&holder, &units, &BTreeMap::new(), Gpus(1));
        assert_eq!(given.expect("it is nobody's"), units);
        assert_eq!(claims.of(&holder, &units).expect("it can be read"), units);
        claims.take_back(&holder, &units).expect("it is its own");
    }

    #[test]
    fn a_lock_that_somebody_holds_for_ever_is_an_error_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (runs, units) = (folder.path(), [DeviceUuid("GPU-0".into())]);
        let claims = Claims::below(runs);
        let _held = claims.lock().expect("nobody holds it");
        let refused = claims.give(&attempt(runs, 1), &units, &BTreeMap::new(), Gpus(1));
        assert!(refused.is_err(), "{refused:?}");
    }

    #[test]
    fn nobody_is_given_what_somebody_has_and_repeating_gives_the_same() {
        let runs = tempfile::tempdir().expect("a folder");
        let claims = Claims::below(runs.path());
        let all = units(&[0, 1, 2]);
        let (first, second) = (attempt(runs.path(), 1), attempt(runs.path(), 2));
        for _ in 0..2 {
            assert_eq!(
                claims.give(&first, &all, &NONE, Gpus(2)).expect("two are free"),
                units(&[0, 1])
            );
        }
        assert_eq!(claims.of(&first, &all).expect("files"), units(&[0, 1]));

        let refused = claims
            .give(&second, &all, &NONE, Gpus(2))
            .expect_err("one is free");
        assert_eq!(refused.diagnostic.code, Code::DevicesTaken);
        assert_eq!(refused.diagnostic.causes[0], "r-1.1 has GPU-0");
        assert_eq!(
            claims.of(&second, &all).expect("files"),
            [],
            "what was not enough is given back"
        );
        assert_eq!(
            claims.give(&second, &all, &NONE, Gpus(1)).expect("one is free"),
            units(&[2])
        );

        claims.take_back(&first, &all).expect("it had two");
        claims
            .take_back(&first, &all)
            .expect("and may be taken back twice");
        let third = attempt(runs.path(), 3);
        assert_eq!(
            claims.give(&third, &all, &NONE, Gpus(2)).expect("two are free"),
            units(&[0, 1])
        );
    }

    #[test]
    fn more_than_there_is_is_given_to_nobody() {
        let runs = tempfile::tempdir().expect("a folder");
        let one = attempt(runs.path(), 1);
        let refused = Claims::below(runs.path()).give(&one, &units(&[0]), &NONE, Gpus(2));
        let refused = refused.expect_err("there is one");
        assert_eq!(
            refused.diagnostic.message,
            "the attempt was promised GPUs: 2; this machine has: 1"
        );
    }

    #[test]
    fn an_unhealthy_device_is_given_to_no_attempt_and_stays_with_the_one_that_has_it() {
        let runs = tempfile::tempdir().expect("a folder");
        let claims = Claims::below(runs.path());
        let all = units(&[0, 1]);
        let why = Diagnostic::warning(Code::DevicesUnhealthy, "GPU-0 is given to no attempt");
        let unhealthy = BTreeMap::from([(all[0].clone(), why.because("it is lost").hint("boot"))]);
        let (first, second) = (attempt(runs.path(), 1), attempt(runs.path(), 2));
        let given = claims.give(&first, &all, &unhealthy, Gpus(1));
        assert_eq!(given.expect("one is fit"), units(&[1]));
        let refused = claims
            .give(&second, &all, &unhealthy, Gpus(2))
            .expect_err("one is fit");
        assert_eq!(refused.retry, Retry::Never);
        assert_eq!(refused.diagnostic.causes, ["GPU-0: it is lost"]);
        let waits = claims
            .give(&second, &all, &unhealthy, Gpus(1))
            .expect_err("it is taken");
        assert_eq!(waits.retry, Retry::WhenFree, "the fit one will be free");

        claims.take_back(&first, &all).expect("it had one");
        claims.give(&first, &all, &NONE, Gpus(2)).expect("both are free");
        let again = claims.give(&first, &all, &unhealthy, Gpus(2));
        assert_eq!(again.expect("it has both"), all, "it was given them before");
    }

    #[test]
    fn what_an_attempt_has_of_which_nothing_is_left_is_free() {
        let runs = tempfile::tempdir().expect("a folder");
        let claims = Claims::below(runs.path());
        let all = units(&[0]);
        let gone = attempt(runs.path(), 1);
        claims.give(&gone, &all, &NONE, Gpus(1)).expect("it is free");
        fs::remove_dir_all(gone.layout(runs.path()).root()).expect("it was there");
        let next = attempt(runs.path(), 2);
        assert_eq!(
            claims.give(&next, &all, &NONE, Gpus(1)).expect("nobody has it"),
            all
        );
    }

    #[test]
    fn many_at_once_are_given_each_device_once() {
        let runs = tempfile::tempdir().expect("a folder");
        let all = units(&[0, 1, 2, 3]);
        let attempts: Vec<_> = (1..=8).map(|run| attempt(runs.path(), run)).collect();
        let mut given: Vec<DeviceUuid> = std::thread::scope(|scope| {
            let give = |attempt: &Holder| Claims::below(runs.path()).give(attempt, &all, &NONE, Gpus(1));
            let threads = attempts.iter().map(|attempt| scope.spawn(move || give(attempt)));
            let threads: Vec<_> = threads.collect();
            let ended = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            ended.filter_map(Result::ok).flatten().collect()
        });
        given.sort();
        assert_eq!(given, all);
    }

    #[test]
    fn attempts_of_two_stores_are_two_holders_and_a_name_leads_nowhere_else() {
        let mine = Holder {
            folder: "a-store".into(),
            attempt: RunId(1).attempt(2),
        };
        let other = Holder {
            folder: String::new(),
            attempt: mine.attempt,
        };
        for holder in [&mine, &other] {
            let again: Holder = holder.to_string().parse().expect("it is a holder");
            assert_eq!(again, *holder);
        }
        for other in ["", "r-1", "../r-1.2", "a/b/r-1.2", "/r-1.2/", "a-store/"] {
            assert!(other.parse::<Holder>().is_err(), "{other}");
        }
    }
}
