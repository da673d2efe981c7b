//! How devices fare, by the last few readings and by what their drivers reported since the exporter began.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Mutex,
};

use blueproof_core::{
    gpu::{DeviceEvent, GpuInventory, GpuSnapshot, Reading},
    ports::ProbeErrorKind,
};
use blueproof_gpu::{
    collect::Collected,
    health::{CheckId, CheckPolicy, Facts, Findings, Heard, Reports, check},
};

/// Looks devices over at each reading.
#[derive(Default)]
pub(crate) struct HealthWatch {
    policy: CheckPolicy,
    recent: Mutex<VecDeque<GpuSnapshot>>,
}

impl HealthWatch {
    /// Returns one that holds devices against this.
    pub(crate) fn by(policy: CheckPolicy) -> Self {
        Self {
            policy,
            recent: Mutex::default(),
        }
    }

    /// Returns how many of the last readings are looked at.
    pub(crate) fn readings(&self) -> usize {
        self.policy.slowdown_readings.max(2)
    }

    /// Returns what was found, and be it only that nothing can be read.
    pub(crate) fn findings(&self, collected: &Collected) -> Findings {
        self.look(collected).unwrap_or_else(|| self.blind(collected))
    }

    /// Returns what was found where nothing can be read: what drivers reported stands, and that one reported nothing says
    /// nothing.
    fn blind(&self, collected: &Collected) -> Findings {
        let blind = match collected.reading.as_deref() {
            Some(Err(error)) => error.reason,
            Some(Ok(_)) | None => ProbeErrorKind::NotAnswering,
        };
        let facts = Facts {
            inventory: Err(blind),
            snapshots: &[],
            reports: Reports {
                events: &events(collected),
                ..Reports::NONE
            },
        };
        check(&self.policy, &facts)
    }

    /// Returns the checks without which nothing is ok.
    pub(crate) fn counting(&self) -> &BTreeSet<CheckId> {
        &self.policy.counting
    }

    /// Returns how devices fare; `None` where none could be read.
    pub(crate) fn look(&self, collected: &Collected) -> Option<Findings> {
        let mut recent = self.recent.lock().expect("nobody panics while they hold it");
        let Some(Ok((inventory, snapshot))) = collected.reading.as_deref() else {
            // What was before a driver that was gone says nothing of devices now.
            recent.clear();
            return None;
        };
        if collected.is_cached {
            // How they fared before says nothing of now. What was reported stands all the same.
            return Some(self.check(inventory, &[], collected));
        }
        // One that seems to be older is new all the same: the clock was set back.
        if recent.back().is_none_or(|last| last.at != snapshot.at) {
            if recent.len() >= self.readings() {
                recent.pop_front();
            }
            recent.push_back(what_counts(snapshot));
        }
        Some(self.check(inventory, recent.make_contiguous(), collected))
    }

    fn check(&self, inventory: &GpuInventory, snapshots: &[GpuSnapshot], collected: &Collected) -> Findings {
        let facts = Facts {
            inventory: Ok(inventory),
            snapshots,
            reports: Reports {
                events: &events(collected),
                heard: Heard::Only(&collected.listened_to),
            },
        };
        check(&self.policy, &facts)
    }
}

/// Returns what drivers reported, each error of a device once.
fn events(collected: &Collected) -> Vec<DeviceEvent> {
    let counts = collected.errors.counts();
    let events = counts.map(|(device, xid, count)| DeviceEvent {
        at: count.last,
        device: device.clone(),
        xid,
    });
    events.collect()
}

/// Returns what checks look at, so that little is kept.
fn what_counts(snapshot: &GpuSnapshot) -> GpuSnapshot {
    let mut kept = GpuSnapshot {
        at: snapshot.at,
        took: snapshot.took,
        samples: snapshot.wholes().cloned().collect(),
    };
    for sample in &mut kept.samples {
        sample.busy = Reading::Unsupported;
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use blueproof_core::{
        gpu::{Device, Fault, FaultKind, Figure, Readings},
        testing::{FakeProbe, device, snapshot},
    };
    use blueproof_gpu::{
        collect::Collector,
        health::{Answer, CheckId, Health, LabelPolicy, Labels},
    };
    use jiff::Timestamp;

    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(60);

    struct Story {
        devices: Vec<Device>,
        probe: FakeProbe,
        collector: Collector,
        watch: HealthWatch,
        second: i64,
    }

    impl Story {
        fn new() -> Self {
            let devices: Vec<_> = (0..2).map(device).collect();
            let probe = FakeProbe::of(devices.clone());
            let opened = probe.clone();
            Self {
                devices,
                probe,
                collector: Collector::start(Box::new(move || Ok(Box::new(opened.clone())))),
                watch: HealthWatch::default(),
                second: 0,
            }
        }

        /// Returns what the next reading says of the second device.
        fn next(&mut self, check: CheckId) -> Answer {
            let read = self.read();
            self.look(read, check)
        }

        /// Returns what it says where that device is gone.
        fn next_without_it(&mut self, check: CheckId) -> Answer {
            let mut read = self.read();
            let lost = Reading::Failed(Fault::new(FaultKind::Lost, "GPU_IS_LOST"));
            let readings = Figure::ALL.iter().map(|figure| (*figure, lost.clone()));
            read.samples[1].readings = Readings::from_iter(readings);
            self.look(read, check)
        }

        fn read(&mut self) -> GpuSnapshot {
            self.second += 15;
            snapshot(self.second, &self.devices)
        }

        fn look(&self, read: GpuSnapshot, check: CheckId) -> Answer {
            self.probe.will_read(read);
            let findings = self.watch.look(&self.collector.collect(LONG));
            let findings = findings.expect("they were read");
            let first = findings.of(CheckId::Presence, Some(&self.devices[0].uuid));
            assert!(first.expect("it was done").is_ok(), "the other is well");
            let answer = findings.of(check, Some(&self.devices[1].uuid));
            answer.expect("it was done").clone()
        }
    }

    #[test]
    fn a_device_that_fell_off_the_bus_is_not_trusted_at_once_when_it_is_back() {
        let mut story = Story::new();
        assert!(story.next(CheckId::Presence).is_ok());
        assert!(story.next_without_it(CheckId::Presence).severity().is_some());
        for reading in 0..3 {
            let answer = story.next(CheckId::Presence);
            assert!(answer.severity().is_some(), "{reading}: {answer}");
        }
        assert!(story.next(CheckId::Presence).is_ok());
    }

    #[test]
    fn how_devices_fared_before_says_nothing_of_now() {
        let mut story = Story::new();
        assert!(story.next(CheckId::Presence).is_ok());
        let mut collected = story.collector.collect(LONG);
        collected.is_cached = true;
        let findings = story
            .watch
            .look(&collected)
            .expect("there is a reading from before");
        let of_devices = findings.0.iter().filter(|finding| finding.device.is_some());
        for finding in of_devices {
            assert!(!finding.answer.is_known(), "{finding:?}");
        }
        collected.reading = None;
        let findings = story.watch.findings(&collected);
        assert_eq!(findings.health(story.watch.counting()), Health::Unknown);
    }

    #[test]
    fn a_node_that_passed_is_unknown_as_soon_as_its_driver_hangs() {
        let mut story = Story::new();
        let policy = LabelPolicy {
            // Devices of a story have no more figures than that needs.
            counting: [CheckId::Presence].into(),
            ..LabelPolicy::default()
        };
        let mut labels = Labels::resume(policy, Timestamp::UNIX_EPOCH, &BTreeMap::new());
        let mut shown = BTreeMap::new();
        let mut look = |story: &Story, collected: &Collected| {
            let now = Timestamp::from_second(story.second).expect("it is a time");
            let changes = labels.next(now, &story.watch.findings(collected));
            shown.extend(
                changes
                    .into_iter()
                    .map(|change| (change.key, change.value.to_string())),
            );
            shown.get("blueproof.dev/gpu-health").cloned().unwrap_or_default()
        };
        let health: Vec<_> = (0..40)
            .map(|_| {
                let read = story.read();
                story.probe.will_read(read);
                let collected = story.collector.collect(LONG);
                look(&story, &collected)
            })
            .collect();
        assert_eq!(health.last().map(String::as_str), Some("ok"), "{health:?}");

        story.second += 15;
        let mut hung = story.collector.collect(LONG);
        hung.is_cached = true;
        assert_eq!(look(&story, &hung), "unknown");
        hung.reading = None;
        assert_eq!(look(&story, &hung), "unknown");
    }

    #[test]
    fn an_error_that_is_reported_while_the_driver_hangs_as_a_whole_empties_the_node() {
        let story = Story::new();
        let mut hung = story.collector.collect(LONG);
        hung.reading = None;
        let mut labels = Labels::resume(LabelPolicy::default(), Timestamp::UNIX_EPOCH, &BTreeMap::new());
        let mut evicts = |second: i64, collected: &Collected| {
            let now = Timestamp::from_second(second).expect("it is a time");
            let changes = labels.next(now, &story.watch.findings(collected));
            changes.iter().any(|change| change.value == "EVICT")
        };
        assert!(!evicts(15, &hung), "nothing is known");
        let (at, device) = (Timestamp::UNIX_EPOCH, story.devices[1].uuid.clone());
        hung.errors.count(&DeviceEvent { at, device, xid: 79 });
        assert!(evicts(30, &hung));
    }

    #[test]
    fn a_clock_that_is_set_back_hides_nothing() {
        let mut story = Story::new();
        story.second = 100_000;
        assert!(story.next(CheckId::Presence).is_ok());
        story.second = 15;
        assert!(story.next_without_it(CheckId::Presence).severity().is_some());
    }

    #[test]
    fn what_was_before_a_driver_that_was_gone_is_forgotten() {
        let mut story = Story::new();
        assert!(story.next_without_it(CheckId::Presence).severity().is_some());
        let mut collected = story.collector.collect(LONG);
        collected.reading = None;
        assert_eq!(story.watch.look(&collected), None);
        assert!(story.next(CheckId::Presence).is_ok());
    }

    #[test]
    fn no_news_is_good_news_only_where_somebody_listens() {
        let mut story = Story::new();
        assert!(story.next(CheckId::Xids).is_ok());
        let mut collected = story.collector.collect(LONG);
        collected.listened_to.remove(&story.devices[1].uuid);
        let findings = story.watch.look(&collected).expect("they were read");
        let of = |device: usize| findings.of(CheckId::Xids, Some(&story.devices[device].uuid));
        assert!(of(0).expect("it was done").is_ok());
        assert!(!of(1).expect("it was done").is_known());

        let (at, device) = (Timestamp::UNIX_EPOCH, story.devices[1].uuid.clone());
        let event = DeviceEvent { at, device, xid: 79 };
        collected.errors.count(&event);
        let findings = story.watch.look(&collected).expect("they were read");
        let found = findings.of(CheckId::Xids, Some(&story.devices[1].uuid));
        assert!(found.expect("it was done").severity().is_some());
    }
}
