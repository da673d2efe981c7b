//! Which attempts have accelerators of this machine now, for whoever watches from outside.
//!
//! It is known from what the driver and the agents write down, so that nobody has to be asked: who was given what, when
//! an agent began, and when the attempt had ended. Nothing is written here.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use blueproof_core::{
    attempt::{AttemptLayout, AttemptSpec, LogCursor, LogError, LogReader, Record, RecordKind, read_regular},
    gpu::DeviceUuid,
    ports::CallError,
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use jiff::Timestamp;

use super::{
    devices::{Claims, Holder},
    files::cannot,
    log::begun,
};

/// A process that has more ancestors than that has some that came and went meanwhile.
const ANCESTORS_AT_MOST: usize = 256;

/// An attempt that has accelerators, or has just given them back.
#[derive(Debug, Clone, PartialEq)]
pub struct Occupant {
    /// Which attempt, and of which store.
    pub holder: Holder,
    /// What it is of; `None` until its agent is told.
    pub spec: Option<Arc<AttemptSpec>>,
    /// What it has. None are left of one that has given all back.
    pub devices: Vec<DeviceUuid>,
    /// When it was given the first of them.
    pub since: Timestamp,
    /// When it had ended, as far as its agent wrote that down. It may have its devices for a moment longer.
    pub ended_at: Option<Timestamp>,
    /// The process from which all others of the attempt come.
    agent: Option<u32>,
}

/// Looks who has which accelerators.
#[derive(Debug)]
pub struct Occupancy {
    runs: PathBuf,
    known: BTreeMap<Holder, Known>,
}

/// What is known of an attempt, and up to where its log was read.
#[derive(Debug)]
struct Known {
    occupant: Occupant,
    layout: AttemptLayout,
    cursor: LogCursor,
}

impl Occupancy {
    /// Returns one for the attempts below the folder `runs`, which may come later. Nothing is read yet.
    pub fn below(runs: PathBuf) -> Self {
        Self {
            runs,
            known: BTreeMap::new(),
        }
    }

    /// Returns who has which of these devices. Whoever had some when it was last looked, and has given all back, is there
    /// once more, without any.
    ///
    /// It reads files, of logs only what is new.
    ///
    /// # Errors
    ///
    /// When something there cannot be read, or the folder itself is not there: a wrong path and a mount that is missing look
    /// like that. Then nobody is known to have anything; what is known of attempts stays.
    pub fn look(&mut self, units: &[DeviceUuid]) -> Result<Vec<Occupant>, CallError> {
        fs::read_dir(&self.runs).map_err(|error| no_runs(&self.runs, &error))?;
        let mut given: BTreeMap<Holder, (Vec<DeviceUuid>, SystemTime)> = BTreeMap::new();
        for (unit, holder, since) in Claims::below(&self.runs).all(units)? {
            let (devices, first) = given.entry(holder).or_insert((Vec::new(), since));
            devices.push(unit);
            *first = since.min(*first);
        }
        for (holder, (_, since)) in &given {
            if !self.known.contains_key(holder) {
                let known = Known::new(holder.clone(), *since, &self.runs);
                self.known.insert(holder.clone(), known);
            }
        }
        for known in self.known.values_mut() {
            let devices = given.remove(&known.occupant.holder);
            known.occupant.devices = devices.map_or_else(Vec::new, |(devices, _)| devices);
            known.read()?;
        }
        let occupants = self.known.values().map(|known| known.occupant.clone());
        let occupants = occupants.collect();
        self.known.retain(|_, known| !known.occupant.devices.is_empty());
        Ok(occupants)
    }
}

impl Known {
    fn new(holder: Holder, since: SystemTime, runs: &Path) -> Self {
        let layout = holder.layout(runs);
        Self {
            occupant: Occupant {
                holder,
                spec: None,
                devices: Vec::new(),
                // A time that is not yet is of a clock that was set back since.
                since: Timestamp::try_from(since)
                    .unwrap_or(Timestamp::UNIX_EPOCH)
                    .min(Timestamp::now()),
                ended_at: None,
                agent: None,
            },
            layout,
            cursor: LogCursor::default(),
        }
    }

    fn read(&mut self) -> Result<(), CallError> {
        let log = self.layout.log();
        let records = match LogReader::open(&log).read_all(self.cursor) {
            Ok((records, cursor)) => {
                self.cursor = cursor;
                records
            }
            // Somebody else than its agent wrote there. It is the agent's again at its end.
            Err(LogError::Foreign { .. }) => {
                self.cursor = LogCursor::default();
                Vec::new()
            }
            Err(LogError::Io(error)) => return Err(cannot("read", &log, &error)),
        };
        // A successor of an agent that was killed writes on in the same log.
        let agent = records.iter().rev().find_map(begun).map(|process| process.pid);
        self.occupant.agent = agent.or(self.occupant.agent);
        self.occupant.ended_at = records.iter().find_map(ended_at).or(self.occupant.ended_at);
        if self.occupant.spec.is_none() {
            // It is written whole, before the agent begins.
            let spec = read_regular(&self.layout.spec(), AttemptSpec::LONGEST).ok();
            let spec = spec.and_then(|spec| serde_json::from_slice(&spec).ok());
            self.occupant.spec = spec.map(Arc::new);
        }
        Ok(())
    }
}

impl Occupant {
    /// Returns whether this process is the attempt's, by who started it: an agent takes in what its children leave behind.
    /// Once the attempt has ended none is: numbers are used again.
    pub fn has_started(&self, pid: u32) -> bool {
        let Some(agent) = self.agent.filter(|_| self.ended_at.is_none()) else {
            return false;
        };
        let mut ancestors = std::iter::successors(Some(pid), |pid| parent(*pid)).take(ANCESTORS_AT_MOST);
        ancestors.any(|ancestor| ancestor == agent)
    }
}

fn no_runs(runs: &Path, error: &io::Error) -> CallError {
    let diagnostic = Diagnostic::error(Code::AttemptFolder, "could not read the folder of runs")
        .at(SourceLocation::file(runs.display().to_string()))
        .caused_by(error)
        .hint("name the folder `runs` beside blueproof's store; the first run makes it");
    CallError::later(diagnostic)
}

fn ended_at(record: &Record) -> Option<Timestamp> {
    matches!(record.kind, RecordKind::Finished { .. }).then_some(record.at)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, and may hold brackets and spaces of its own.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use blueproof_core::{
        attempt::{LogKey, LogWriter, ProcessName},
        domain::{Gpus, Outcome, RunId, Verdict},
    };

    use super::{super::files, *};

    struct Machine {
        runs: tempfile::TempDir,
        units: Vec<DeviceUuid>,
    }

    impl Machine {
        fn new() -> Self {
            Self {
                runs: tempfile::tempdir().expect("a folder"),
                units: ["GPU-0", "GPU-1"].map(|unit| DeviceUuid(unit.into())).into(),
            }
        }

        fn give(&self, run: u64, gpus: u32) -> Holder {
            let holder = Holder {
                folder: "a-store".into(),
                attempt: RunId(run).attempt(1),
            };
            files::make(holder.layout(self.runs.path()).root()).expect("a folder");
            let claims = Claims::below(self.runs.path());
            claims
                .give(&holder, &self.units, &Default::default(), Gpus(gpus))
                .expect("they are free");
            holder
        }

        fn write(&self, holder: &Holder, at: i64, kind: RecordKind) {
            let layout = holder.layout(self.runs.path());
            let at = Timestamp::from_second(at).expect("small");
            let mut log =
                LogWriter::open(&layout.log(), LogKey::of(&[1; 32], holder.attempt)).expect("a file");
            log.0.append(&Record { at, kind }).expect("it is written");
        }

        fn look(&self, occupancy: &mut Occupancy) -> Vec<Occupant> {
            occupancy.look(&self.units).expect("they can be read")
        }
    }

    fn begun(pid: u32) -> RecordKind {
        let process = ProcessName {
            pid,
            started: 0,
            host: "here".into(),
        };
        RecordKind::Begun {
            process,
            version: "1".into(),
            marker: String::new(),
            sockets: PathBuf::new(),
            cgroup: None,
        }
    }

    fn finished() -> RecordKind {
        RecordKind::Finished {
            outcome: Box::new(Outcome {
                verdict: Verdict::Passed,
                usage: None,
                metrics: Default::default(),
                notices: Vec::new(),
            }),
        }
    }

    #[test]
    fn whoever_has_devices_is_known_until_it_has_given_them_back() {
        let machine = Machine::new();
        let mut occupancy = Occupancy::below(machine.runs.path().to_owned());
        assert_eq!(machine.look(&mut occupancy), []);
        let holder = machine.give(1, 2);
        let seen = machine.look(&mut occupancy);
        assert_eq!(seen[0].holder, holder);
        assert_eq!(seen[0].devices, machine.units);
        assert_eq!((seen[0].ended_at, seen[0].agent), (None, None));

        machine.write(&holder, 5, begun(7));
        machine.write(&holder, 6, begun(8));
        assert_eq!(machine.look(&mut occupancy)[0].agent, Some(8));
        machine.write(&holder, 9, finished());
        let claims = Claims::below(machine.runs.path());
        claims.take_back(&holder, &machine.units).expect("it had them");
        let seen = machine.look(&mut occupancy);
        assert_eq!(seen[0].devices, []);
        assert_eq!(
            seen[0].ended_at,
            Timestamp::from_second(9).ok(),
            "as it wrote down"
        );
        assert_eq!(machine.look(&mut occupancy), [], "it is told once");
    }

    #[test]
    fn a_folder_of_runs_that_is_none_tells_of_nobody_until_it_is_one() {
        let place = tempfile::tempdir().expect("a folder");
        let runs = place.path().join("runs");
        let mut occupancy = Occupancy::below(runs.clone());
        assert!(occupancy.look(&[]).is_err(), "it is not there");
        fs::write(&runs, "").expect("a file");
        assert!(occupancy.look(&[]).is_err(), "it is a file");
        fs::remove_file(&runs).expect("it is there");
        fs::create_dir(&runs).expect("a folder");
        assert_eq!(occupancy.look(&[]).expect("it can be read"), []);
    }

    #[test]
    fn nobody_has_a_device_from_tomorrow_on() {
        let machine = Machine::new();
        machine.give(1, 1);
        let claim = machine.runs.path().join(".devices/GPU-0");
        let tomorrow = SystemTime::now() + std::time::Duration::from_hours(24);
        let file = fs::File::options().write(true).open(claim);
        file.and_then(|file| file.set_modified(tomorrow))
            .expect("it is ours");
        let mut occupancy = Occupancy::below(machine.runs.path().to_owned());
        let since = machine.look(&mut occupancy)[0].since;
        assert!(since <= Timestamp::now(), "the clock was set back since");
        assert_eq!(machine.look(&mut occupancy)[0].since, since);
    }

    #[test]
    fn what_an_agent_has_started_is_its_attempts_and_nothing_else_is() {
        let machine = Machine::new();
        let mut occupancy = Occupancy::below(machine.runs.path().to_owned());
        let holder = machine.give(1, 1);
        machine.write(&holder, 5, begun(std::process::id()));
        let mut child = Command::new("sleep")
            .arg("600")
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let seen = machine.look(&mut occupancy);
        for own in [child.id(), std::process::id()] {
            assert!(seen[0].has_started(own));
        }
        for other in [1, u32::MAX] {
            assert!(!seen[0].has_started(other), "{other}");
        }

        machine.write(&holder, 9, finished());
        let seen = machine.look(&mut occupancy);
        assert!(
            !seen[0].has_started(child.id()),
            "its number may be another's now"
        );
        child.kill().and_then(|()| child.wait()).expect("it ran");
    }

    #[test]
    fn what_lies_in_the_place_of_a_claim_is_an_error_that_names_it() {
        let machine = Machine::new();
        machine.give(1, 1);
        let unit = machine.runs.path().join(".devices/GPU-0");
        fs::remove_file(&unit)
            .and_then(|()| fs::create_dir(&unit))
            .expect("it is ours");
        let mut occupancy = Occupancy::below(machine.runs.path().to_owned());
        let error = occupancy.look(&machine.units).expect_err("it is no file");
        assert!(error.diagnostic.place.is_some(), "{error:?}");
    }
}
