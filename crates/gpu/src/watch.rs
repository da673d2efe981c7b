//! Watches what one job makes of its devices, from its beginning to its end, and part by part.
//!
//! Devices are read every second, and at every edge, so that nobody is charged with what was before or after them. Parts,
//! such as the cells of a notebook, follow one another and have books of their own: what they come to is the whole.

mod flown;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    figures::Used,
    gpu::{Device, DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot, Reading},
    ports::{Blindness, GpuMeter, GpuUsed, ProbeError},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};

use crate::{
    account::{Bill, Holder, JobSummary, Ledger, Silence, Witnessed},
    collect::{Collector, Open, WITNESSED_EVERY, Witness},
    health::Judgement,
};
use flown::Flown;

/// How long a job's beginning waits for a driver: one that nobody uses has to be loaded first.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);

/// How long other edges wait for one. While it hangs they do not wait again.
const EDGE_WITHIN: Duration = Duration::from_millis(250);

/// How long it is waited at the end for what drivers tell of the last moment, and how often it is looked for that.
const SETTLES_WITHIN: Duration = Duration::from_millis(1500);
const SETTLES_EVERY: Duration = Duration::from_millis(100);

/// Watches one job's devices.
#[derive(Debug)]
pub struct Watch {
    collector: Collector,
    books: Arc<Mutex<Books>>,
    /// Who has the devices, in whole.
    holder: Holder,
    devices: Vec<DeviceUuid>,
    /// The parts, in order.
    parts: Vec<Holder>,
    /// When the driver was asked that has not answered since.
    unanswered: Option<Instant>,
    /// Why it is not known which devices there are, or whether these are all.
    devices_unknown: Option<String>,
    /// Those that were listened to whenever that was asked; `None` before the beginning.
    listened_to: Option<BTreeSet<DeviceUuid>>,
}

/// What was made of devices, as far as it was seen.
#[derive(Debug)]
struct Books {
    inventory: GpuInventory,
    began_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    read_at: Option<Timestamp>,
    /// Whether any driver tells how busy its devices were, a little later.
    tells_busy: bool,
    whole: Ledger,
    parts: Ledger,
    flight: Flown,
    /// The devices that did not answer since the job began.
    silent: BTreeMap<DeviceUuid, Silence>,
}

impl Books {
    /// Notes who does not answer. That one is lost says more than that it hung before.
    fn note_silent(&mut self, snapshot: &GpuSnapshot) {
        for sample in &snapshot.samples {
            let silence = match (sample.is_lost(), sample.hangs()) {
                (true, _) => Silence::Lost,
                (false, true) => Silence::Hung,
                (false, false) => continue,
            };
            let noted = self.silent.entry(sample.device.clone()).or_insert(silence);
            *noted = silence.max(*noted);
        }
    }
}

/// Returns why it is not known which devices there are. A machine without a driver's library has none.
fn unknown(inventory: &Result<GpuInventory, ProbeError>) -> Option<String> {
    match inventory {
        Ok(inventory) if inventory.unidentified > 0 => {
            Some(format!("{} did not say who they are", inventory.unidentified))
        }
        Ok(_) => None,
        Err(error) => match error.reason {
            Blindness::LibraryMissing | Blindness::NoDevices => None,
            Blindness::DriverNotLoaded
            | Blindness::NoPermission
            | Blindness::VersionMismatch
            | Blindness::DriverError
            | Blindness::NotAnswering
            | Blindness::Released => Some(error.diagnostic.message.clone()),
        },
    }
}

fn not_answering() -> ProbeError {
    let message = format!("the driver did not answer within {BEGIN_WITHIN:?}");
    let diagnostic = Diagnostic::error(Code::GpuHangs, message).hint(
        "see `dmesg | grep -i -e nvrm -e xid`; what goes on so needs a reset, or a restart of the machine",
    );
    ProbeError {
        reason: Blindness::NotAnswering,
        diagnostic: Box::new(diagnostic),
    }
}

/// Writes what is read into the books.
struct Clerk(Arc<Mutex<Books>>);

impl Witness for Clerk {
    fn read(&mut self, inventory: &GpuInventory, snapshot: &GpuSnapshot) {
        let mut books = lock(&self.0);
        books.read_at = Some(snapshot.at);
        books.tells_busy = snapshot
            .samples
            .iter()
            .any(|sample| matches!(sample.busy, Reading::Value(_)));
        books.whole.observe(snapshot);
        books.parts.observe(snapshot);
        books.flight.read(snapshot);
        if books.began_at.is_some() {
            books.note_silent(snapshot);
        }
        if books.inventory != *inventory {
            books.inventory.clone_from(inventory);
        }
    }

    fn reported(&mut self, event: &DeviceEvent) {
        let mut books = lock(&self.0);
        books.whole.report_event(event);
        books.parts.report_event(event);
        books.flight.reported(event);
    }

    fn clock_set(&mut self, by: SignedDuration) {
        let mut books = lock(&self.0);
        let Books {
            began_at,
            ended_at,
            read_at,
            ..
        } = &mut *books;
        for at in [began_at, ended_at, read_at].into_iter().flatten() {
            *at += by;
        }
        books.whole.clock_set(by);
        books.parts.clock_set(by);
    }
}

impl Watch {
    /// Begins to read devices, for somebody who may be given some.
    pub fn start(open: Open, holder: Holder) -> Self {
        let books = Arc::new(Mutex::new(Books {
            inventory: GpuInventory::default(),
            began_at: None,
            ended_at: None,
            read_at: None,
            tells_busy: false,
            whole: Ledger::new(WITNESSED_EVERY),
            parts: Ledger::new(WITNESSED_EVERY),
            flight: Flown::default(),
            silent: BTreeMap::new(),
        }));
        let clerk = Clerk(Arc::clone(&books));
        Self {
            collector: Collector::start_witnessed(open, Box::new(clerk)),
            books,
            holder,
            devices: Vec::new(),
            parts: Vec::new(),
            unanswered: None,
            devices_unknown: None,
            listened_to: None,
        }
    }

    /// Returns which devices there are.
    ///
    /// # Errors
    ///
    /// Why none can be read.
    pub fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        let asked_at = Instant::now();
        let collected = self.collector.collect(BEGIN_WITHIN);
        self.unanswered = collected.reading.is_none().then_some(asked_at);
        let inventory = match collected.reading.as_deref() {
            Some(Ok((inventory, _))) => Ok(inventory.clone()),
            Some(Err(error)) => Err(error.clone()),
            None => Err(not_answering()),
        };
        self.devices_unknown = unknown(&inventory);
        inventory
    }

    /// Notes that the job has these devices from now on.
    pub fn begin(&mut self, devices: &[DeviceUuid]) {
        self.devices = devices.to_vec();
        self.listened_to = None;
        let at = self.edge(BEGIN_WITHIN);
        let mut books = self.lock();
        books.began_at = Some(at);
        books.flight.begin();
        books.whole.hold(at, &self.holder, devices);
    }

    /// Notes that another part of the job begins now, which is known by its name.
    pub fn turn_to(&mut self, part: Holder) {
        let at = self.edge(EDGE_WITHIN);
        let mut books = self.lock();
        if let Some(before) = self.parts.last() {
            books.parts.release(at, before);
        }
        books.parts.hold(at, &part, &self.devices);
        drop(books);
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    /// Notes that the job has its devices no more, and waits for a moment for what is told of its last one.
    pub fn end(&mut self) {
        let at = self.edge(EDGE_WITHIN);
        let mut books = self.lock();
        books.ended_at = Some(at);
        books.whole.release(at, &self.holder);
        if let Some(last) = self.parts.last() {
            books.parts.release(at, last);
        }
        drop(books);
        let ends = Instant::now() + SETTLES_WITHIN;
        while self.unanswered.is_none() && !self.is_settled() && Instant::now() < ends {
            thread::sleep(SETTLES_EVERY);
            self.edge(EDGE_WITHIN);
        }
    }

    /// Returns what the job made of its devices until now; `None` before it has begun.
    pub fn bill(&self) -> Option<Bill> {
        self.lock().whole.bill(&self.holder)
    }

    /// Returns what each part made of them until now.
    pub fn bills_of_parts(&self) -> Vec<Bill> {
        let books = self.lock();
        self.parts
            .iter()
            .filter_map(|part| books.parts.bill(part))
            .collect()
    }

    /// Returns what the job used until now; of what this cannot know, such as the use of processors, `used` tells. `None`
    /// before it has begun. A job without devices has a summary, too.
    pub fn summary(&self, used: &Used) -> Option<JobSummary> {
        let books = self.lock();
        let bill = books.whole.bill(&self.holder).or_else(|| {
            Some(Bill {
                holder: self.holder.clone(),
                from: books.began_at?,
                until: books.ended_at,
                devices: Vec::new(),
            })
        })?;
        let witnessed = Witnessed {
            seen_until: Some(Timestamp::now()),
            devices_unknown: self.devices_unknown.clone(),
            listened_to: self.listened_to.clone().unwrap_or_default(),
            silent: books.silent.clone(),
            judgement: (!self.devices.is_empty()).then(|| self.judged(&books)),
        };
        Some(JobSummary::new(&bill, &books.inventory, used, witnessed))
    }

    /// Returns who was at fault in the job, as far as its devices tell.
    pub fn judgement(&self) -> Judgement {
        self.judged(&self.lock())
    }

    fn judged(&self, books: &Books) -> Judgement {
        let nobody = BTreeSet::new();
        let listened_to = self.listened_to.as_ref().unwrap_or(&nobody);
        books.flight.judge(&self.devices, &books.inventory, listened_to)
    }

    /// Returns the models of the job's devices, and the version of their driver, as far as they were seen.
    fn models(&self) -> (Vec<String>, Option<String>) {
        let inventory = &self.lock().inventory;
        let has = |device: &&Device| {
            let parts = device.partitions.iter().map(|part| &part.uuid);
            parts
                .chain([&device.uuid])
                .any(|unit| self.devices.contains(unit))
        };
        let models = inventory
            .devices
            .iter()
            .filter(has)
            .map(|device| device.model.clone());
        (models.collect(), inventory.driver_version.clone())
    }

    /// Reads all devices now, and returns the time for which that holds: now, too, where they cannot be read.
    fn edge(&mut self, within: Duration) -> Timestamp {
        let asked_at = Instant::now();
        let hung_since = self.unanswered.filter(|since| !self.was_read_since(*since));
        let within = hung_since.map_or(within, |_| Duration::ZERO);
        let collected = self.collector.collect(within);
        let is_answered = !collected.is_cached && collected.reading.is_some();
        self.unanswered = (!is_answered).then(|| hung_since.unwrap_or(asked_at));
        let heard = &collected.listened_to - &collected.missed;
        self.listened_to = Some(match self.listened_to.take() {
            Some(before) => before.intersection(&heard).cloned().collect(),
            None => heard,
        });
        let is_read = is_answered && collected.reading.as_deref().is_some_and(Result::is_ok);
        let read_at = self.lock().read_at.filter(|_| is_read);
        read_at.unwrap_or_else(Timestamp::now)
    }

    /// Returns whether a reading has come to its end that began at a time or later.
    fn was_read_since(&self, asked_at: Instant) -> bool {
        let age = self.collector.collect(Duration::ZERO).age;
        age.is_some_and(|age| age <= asked_at.elapsed())
    }

    /// Returns whether all is known of how busy the devices were, or nothing ever will be.
    fn is_settled(&self) -> bool {
        let coverage = self.bill().and_then(|bill| bill.total().coverage());
        !self.lock().tells_busy || coverage.is_none_or(|coverage| coverage.busy > 0.999)
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        lock(&self.books)
    }
}

/// Measures an attempt's devices; nothing is opened before it has some.
pub struct AttemptMeter {
    opens: Option<(Open, Holder)>,
    watch: Option<Watch>,
}

impl AttemptMeter {
    /// Returns one for an attempt that may be given devices.
    pub fn new(open: Open, attempt: Holder) -> Self {
        Self {
            opens: Some((open, attempt)),
            watch: None,
        }
    }
}

impl GpuMeter for AttemptMeter {
    fn begin(&mut self, devices: &[DeviceUuid]) {
        if let Some((open, attempt)) = self.opens.take() {
            self.watch.insert(Watch::start(open, attempt)).begin(devices);
        }
    }

    fn turn_to(&mut self, cell: u32) {
        if let Some(watch) = &mut self.watch {
            watch.turn_to(Holder(cell.to_string()));
        }
    }

    fn end(&mut self) -> GpuUsed {
        let Some(mut watch) = self.watch.take() else {
            return GpuUsed::default();
        };
        watch.end();
        let cells = watch.bills_of_parts().into_iter();
        let of_cell = |bill: Bill| Some((bill.holder.0.parse().ok()?, bill.used()));
        let judgement = watch.judgement();
        let (models, driver) = watch.models();
        GpuUsed {
            models,
            driver,
            whole: watch.bill().map(|bill| bill.used()),
            cells: cells.filter_map(of_cell).collect(),
            fault: flown::fault(&judgement).map(Box::new),
            notices: flown::notices(&judgement),
            unfit: judgement.unfit,
        }
    }
}

fn lock(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().expect("nobody panics while they hold it")
}

#[cfg(test)]
mod tests;
