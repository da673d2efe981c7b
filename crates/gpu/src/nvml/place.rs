//! One thread for each device, so that one that hangs takes no other along.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::gpu::{BusySample, Device, DeviceUuid, Fault, Reading, Sample};
use jiff::Timestamp;
use nvml_wrapper::{Nvml, error::NvmlError};

use super::{
    Also, Window, devices, errors,
    gpm::Meters,
    progress::Progress,
    sample::{Reader, unread},
};

/// A place in the driver's list, and the thread that asks who and what is there.
pub(super) struct Place {
    asks: mpsc::Sender<Ask>,
    answers: mpsc::Receiver<Answer>,
    progress: Progress,
    /// Whether an answer is still to come.
    is_asked: bool,
    /// Whether that answers what was asked last. An answer that hung is of another time.
    is_current: bool,
    /// How busy the device was, by answers that came too late for anything else: the driver tells it once.
    carried: Vec<BusySample>,
}

/// How long a place is waited for: as long as it goes on, call by call, and no longer than until a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) of_a_call: Duration,
    pub(super) until: Instant,
}

/// What is asked of a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ask {
    /// Who is there.
    Who,
    /// What it does.
    Read { at: Timestamp, also: Also },
}

/// What is answered.
enum Answer {
    Who(Result<Box<Device>, Fault>),
    Read(Vec<Sample>),
}

impl Place {
    pub(super) fn start(nvml: &Arc<Nvml>, index: u32) -> Self {
        let (asks, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let (nvml, progress) = (Arc::clone(nvml), Progress::new());
        let noted = progress.clone();
        // Where there can be no more threads, nobody answers, and the device is not known.
        let _ = thread::Builder::new()
            .name(format!("gpu-{index}"))
            .spawn(move || {
                noted.follow();
                work(&nvml, index, &asked, &answer);
            });
        Self {
            asks,
            answers,
            progress,
            is_asked: false,
            is_current: false,
            carried: Vec::new(),
        }
    }

    /// Asks, unless what was asked before is not answered yet: nobody waits a second time for what hangs.
    pub(super) fn ask(&mut self, ask: Ask) {
        self.is_current = false;
        if self.is_asked {
            match self.answers.try_recv() {
                Ok(late) => self.carry(late),
                Err(_) => return,
            }
        }
        self.progress.note();
        self.is_asked = self.asks.send(ask).is_ok();
        self.is_current = self.is_asked;
    }

    /// Returns who is there, or why that is not known, once that was asked; `None` where it is not answered in time.
    pub(super) fn who(&mut self, patience: Patience) -> Option<Result<Device, Fault>> {
        let Answer::Who(device) = self.answer(patience)? else {
            return None;
        };
        Some(device.map(|device| *device))
    }

    /// Returns what was read, once that was asked; `None` where it is not answered in time.
    pub(super) fn samples(&mut self, patience: Patience) -> Option<Vec<Sample>> {
        let Answer::Read(mut samples) = self.answer(patience)? else {
            return None;
        };
        if let Some(Reading::Value(busy)) = samples.first_mut().map(|whole| &mut whole.busy) {
            let new = mem::replace(busy, mem::take(&mut self.carried));
            busy.extend(new);
        }
        Some(samples)
    }

    fn answer(&mut self, patience: Patience) -> Option<Answer> {
        if !self.is_current {
            return None;
        }
        loop {
            let until = patience.until.min(self.progress.last() + patience.of_a_call);
            let left = until.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                Ok(answer) => {
                    self.is_asked = false;
                    return Some(answer);
                }
                Err(_) if left.is_zero() => return None,
                // It may have gone on meanwhile.
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn carry(&mut self, late: Answer) {
        self.is_asked = false;
        let Answer::Read(samples) = late else { return };
        let busy = samples.into_iter().next().map(|whole| whole.busy);
        self.carried
            .extend(busy.and_then(Reading::value).unwrap_or_default());
    }
}

/// Answers until nobody asks any more.
fn work(nvml: &Nvml, index: u32, asked: &mpsc::Receiver<Ask>, answer: &mpsc::Sender<Answer>) {
    let mut worker = Worker {
        nvml,
        index,
        known: None,
        seen: BTreeMap::new(),
        meters: Meters::default(),
    };
    while let Ok(ask) = asked.recv() {
        let answered = match ask {
            Ask::Who => Answer::Who(worker.who().map(Box::new)),
            Ask::Read { at, also } => Answer::Read(worker.read(at, also)),
        };
        if answer.send(answered).is_err() {
            return;
        }
    }
}

/// What a place's thread knows.
struct Worker<'nvml> {
    nvml: &'nvml Nvml,
    index: u32,
    /// Who was there when that was last asked, to know who a device was that does not answer any more.
    known: Option<Device>,
    /// What was read last of the samples of whoever is there.
    seen: BTreeMap<DeviceUuid, Window>,
    meters: Meters<'nvml>,
}

impl Worker<'_> {
    fn who(&mut self) -> Result<Device, Fault> {
        match devices::device(self.nvml, self.index, self.known.as_ref()) {
            Ok(device) => Ok(self.known.insert(device).clone()),
            Err(error) => self.known.clone().ok_or_else(|| errors::fault(&error)),
        }
    }

    fn read(&mut self, at: Timestamp, also: Also) -> Vec<Sample> {
        let handle = self.nvml.device_by_index(self.index);
        let named = handle.and_then(|handle| Ok::<_, NvmlError>((devices::uuid(&handle)?, handle)));
        let (uuid, handle) = match (named, &self.known) {
            (Ok(named), _) => named,
            (Err(error), Some(known)) => {
                return vec![unread(known.uuid.clone(), &errors::fault(&error))];
            }
            // It never said who it is, so there is nobody to tell of.
            (Err(_), None) => return Vec::new(),
        };
        let known = self.known.as_ref().filter(|known| known.uuid == uuid);
        let partitions = known.map(|known| &known.partitions[..]).unwrap_or_default();
        let reader = Reader {
            device: &handle,
            uuid,
            now: at,
            also,
        };
        reader.read(&mut self.meters, &mut self.seen, partitions)
    }
}
