//! Watches what one job makes of its devices, from its beginning to its end, and part by part.
//!
//! Devices are read every second, and at every edge, so that nobody is charged with what was before or after them. Parts,
//! such as the cells of a notebook, follow one another and have books of their own: what they come to is the whole.

mod flight_recorder;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::{Duration, Instant},
};

use blueproof_core::{
    figures::RunUsage,
    gpu::{Device, DeviceEvent, DeviceUuid, GpuInventory, GpuSnapshot, Reading},
    ports::{GpuMeter, GpuUsed, ProbeError, ProbeErrorKind},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};

use crate::{
    account::{Holder, JobSummary, Ledger, Silence, UsageRecord, Witnessed},
    collect::{Collector, Open, SnapshotSink, WITNESSED_EVERY},
    health::Judgement,
};
use flight_recorder::FlightRecorder;

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
    job_account: Arc<Mutex<JobAccount>>,
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
struct JobAccount {
    inventory: GpuInventory,
    began_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    read_at: Option<Timestamp>,
    /// Whether any driver tells how busy its devices were, a little later.
    tells_busy: bool,
    whole: Ledger,
    parts: Ledger,
    flight: FlightRecorder,
    /// The devices that did not answer since the job began.
    silent: BTreeMap<DeviceUuid, Silence>,
}

impl JobAccount {
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
            ProbeErrorKind::LibraryMissing | ProbeErrorKind::NoDevices => None,
            ProbeErrorKind::DriverNotLoaded
            | ProbeErrorKind::NoPermission
            | ProbeErrorKind::VersionMismatch
            | ProbeErrorKind::DriverError
            | ProbeErrorKind::NotAnswering
            | ProbeErrorKind::Released => Some(error.diagnostic.message.clone()),
        },
    }
}

fn not_answering() -> ProbeError {
    let message = format!("the driver did not answer within {BEGIN_WITHIN:?}");
    let diagnostic = Diagnostic::error(Code::GpuHangs, message).hint(
        "see `dmesg | grep -i -e nvrm -e xid`; what goes on so needs a reset, or a restart of the machine",
    );
    ProbeError {
        reason: ProbeErrorKind::NotAnswering,
        diagnostic: Box::new(diagnostic),
    }
}

/// Writes what is read into the books.
struct JobAccountant(Arc<Mutex<JobAccount>>);

impl SnapshotSink for JobAccountant {
    fn read(&mut self, inventory: &GpuInventory, snapshot: &GpuSnapshot) {
        let mut job_account = lock(&self.0);
        job_account.read_at = Some(snapshot.at);
        job_account.tells_busy = snapshot
            .samples
            .iter()
            .any(|sample| matches!(sample.busy, Reading::Value(_)));
        job_account.whole.observe(snapshot);
        job_account.parts.observe(snapshot);
        job_account.flight.read(snapshot);
        if job_account.began_at.is_some() {
            job_account.note_silent(snapshot);
        }
        if job_account.inventory != *inventory {
            job_account.inventory.clone_from(inventory);
        }
    }

    fn reported(&mut self, event: &DeviceEvent) {
        let mut job_account = lock(&self.0);
        job_account.whole.report_event(event);
        job_account.parts.report_event(event);
        job_account.flight.reported(event);
    }

    fn clock_set(&mut self, by: SignedDuration) {
        let mut job_account = lock(&self.0);
        let JobAccount {
            began_at,
            ended_at,
            read_at,
            ..
        } = &mut *job_account;
        for at in [began_at, ended_at, read_at].into_iter().flatten() {
            *at += by;
        }
        job_account.whole.clock_set(by);
        job_account.parts.clock_set(by);
    }
}

impl Watch {
    /// Begins to read devices, for somebody who may be given some.
    pub fn start(open: Open, holder: Holder) -> Self {
        let job_account = Arc::new(Mutex::new(JobAccount {
            inventory: GpuInventory::default(),
            began_at: None,
            ended_at: None,
            read_at: None,
            tells_busy: false,
            whole: Ledger::new(WITNESSED_EVERY),
            parts: Ledger::new(WITNESSED_EVERY),
            flight: FlightRecorder::default(),
            silent: BTreeMap::new(),
        }));
        let accountant = JobAccountant(Arc::clone(&job_account));
        Self {
            collector: Collector::start_witnessed(open, Box::new(accountant)),
            job_account,
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
        let mut job_account = self.lock();
        job_account.began_at = Some(at);
        job_account.flight.begin();
        job_account.whole.hold(at, &self.holder, devices);
    }

    /// Notes that another part of the job begins now, which is known by its name.
    pub fn turn_to(&mut self, part: Holder) {
        let at = self.edge(EDGE_WITHIN);
        let mut job_account = self.lock();
        if let Some(before) = self.parts.last() {
            job_account.parts.release(at, before);
        }
        job_account.parts.hold(at, &part, &self.devices);
        drop(job_account);
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    /// Notes that the job has its devices no more, and waits for a moment for what is told of its last one.
    pub fn end(&mut self) {
        let at = self.edge(EDGE_WITHIN);
        let mut job_account = self.lock();
        job_account.ended_at = Some(at);
        job_account.whole.release(at, &self.holder);
        if let Some(last) = self.parts.last() {
            job_account.parts.release(at, last);
        }
        drop(job_account);
        let ends = Instant::now() + SETTLES_WITHIN;
        while self.unanswered.is_none() && !self.is_settled() && Instant::now() < ends {
            thread::sleep(SETTLES_EVERY);
            self.edge(EDGE_WITHIN);
        }
    }

    /// Returns what the job made of its devices until now; `None` before it has begun.
    pub fn usage_record(&self) -> Option<UsageRecord> {
        self.lock().whole.usage_record(&self.holder)
    }

    /// Returns what each part made of them until now.
    pub fn usage_records_of_parts(&self) -> Vec<UsageRecord> {
        let job_account = self.lock();
        self.parts
            .iter()
            .filter_map(|part| job_account.parts.usage_record(part))
            .collect()
    }

    /// Returns what the job used until now; of what this cannot know, such as the use of processors, `used` tells. `None`
    /// before it has begun. A job without devices has a summary, too.
    pub fn summary(&self, used: &RunUsage) -> Option<JobSummary> {
        let job_account = self.lock();
        let usage_record = job_account.whole.usage_record(&self.holder).or_else(|| {
            Some(UsageRecord {
                holder: self.holder.clone(),
                from: job_account.began_at?,
                until: job_account.ended_at,
                devices: Vec::new(),
            })
        })?;
        let witnessed = Witnessed {
            seen_until: Some(Timestamp::now()),
            devices_unknown: self.devices_unknown.clone(),
            listened_to: self.listened_to.clone().unwrap_or_default(),
            silent: job_account.silent.clone(),
            judgement: (!self.devices.is_empty()).then(|| self.judged(&job_account)),
        };
        Some(JobSummary::new(
            &usage_record,
            &job_account.inventory,
            used,
            witnessed,
        ))
    }

    /// Returns who was at fault in the job, as far as its devices tell.
    pub fn judgement(&self) -> Judgement {
        self.judged(&self.lock())
    }

    fn judged(&self, job_account: &JobAccount) -> Judgement {
        let nobody = BTreeSet::new();
        let listened_to = self.listened_to.as_ref().unwrap_or(&nobody);
        job_account
            .flight
            .judge(&self.devices, &job_account.inventory, listened_to)
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
        let coverage = self
            .usage_record()
            .and_then(|usage_record| usage_record.total().coverage());
        !self.lock().tells_busy || coverage.is_none_or(|coverage| coverage.busy > 0.999)
    }

    fn lock(&self) -> MutexGuard<'_, JobAccount> {
        lock(&self.job_account)
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
        let cells = watch.usage_records_of_parts().into_iter();
        let of_cell =
            |usage_record: UsageRecord| Some((usage_record.holder.0.parse().ok()?, usage_record.used()));
        let judgement = watch.judgement();
        let (models, driver) = watch.models();
        GpuUsed {
            models,
            driver,
            whole: watch.usage_record().map(|usage_record| usage_record.used()),
            cells: cells.filter_map(of_cell).collect(),
            fault: flight_recorder::fault(&judgement).map(Box::new),
            notices: flight_recorder::notices(&judgement),
            unhealthy: judgement.unhealthy,
        }
    }
}

fn lock(job_account: &Mutex<JobAccount>) -> MutexGuard<'_, JobAccount> {
    job_account.lock().expect("nobody panics while they hold it")
}

#[cfg(test)]
mod tests;
