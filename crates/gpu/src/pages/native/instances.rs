//! Of what figures are told: devices and parts, and a GPU instance once where several compute instances share it.
//!
//! NVML tells each of them all that their instance has and does: told of each, a sum would count it as often as there are.

use std::{borrow::Cow, collections::BTreeMap};

use blueproof_core::gpu::{Device, Figure, GpuInventory, GpuSnapshot, Partition, Reading, Sample};

/// What has figures of its own.
pub(super) struct Subject<'a> {
    device: &'a str,
    partition: Cow<'a, str>,
    /// What was read of it: of each of those that share it, where they do.
    samples: Vec<&'a Sample>,
}

impl Subject<'_> {
    pub(super) fn labels(&self) -> [(&'static str, &str); 2] {
        [("uuid", self.device), ("partition", &self.partition)]
    }

    pub(super) fn value(&self, figure: Figure) -> Option<f64> {
        self.find(|sample| sample.readings.value(figure))
    }

    /// Returns the first that is known.
    pub(super) fn find(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        self.samples.iter().find_map(|sample| of(sample))
    }
}

/// Returns all that there are, in the order in which they were read.
pub(super) fn subjects<'a>(inventory: &GpuInventory, snapshot: &'a GpuSnapshot) -> Vec<Subject<'a>> {
    let shared = inventory.devices.iter().flat_map(shared);
    let names: BTreeMap<_, _> = shared
        .flat_map(|instance| {
            let Shared { name, parts, .. } = instance;
            parts.into_iter().map(move |part| (&part.uuid, name.clone()))
        })
        .collect();
    let mut subjects: Vec<Subject<'a>> = Vec::new();
    for sample in &snapshot.samples {
        let (device, uuid) = (sample.device.0.as_str(), sample.partition.as_ref());
        let partition = match uuid.map(|uuid| (uuid, names.get(uuid))) {
            None => Cow::Borrowed(""),
            Some((uuid, None)) => Cow::Borrowed(uuid.0.as_str()),
            Some((_, Some(name))) => Cow::Owned(name.clone()),
        };
        let mut earlier = subjects.iter_mut().rev();
        let is_same = |subject: &&mut Subject<'_>| subject.device == device && subject.partition == partition;
        match earlier.find(is_same) {
            Some(subject) => subject.samples.push(sample),
            None => subjects.push(Subject {
                device,
                partition,
                samples: vec![sample],
            }),
        }
    }
    subjects
}

/// A GPU instance that several compute instances share.
pub(super) struct Shared<'a> {
    /// What it is called, in the manner of NVIDIA's older names, which end in the compute instance.
    pub(super) name: String,
    /// What it has of its device.
    pub(super) profile: &'a str,
    pub(super) parts: Vec<&'a Partition>,
}

/// Returns those of a device.
pub(super) fn shared(device: &Device) -> impl Iterator<Item = Shared<'_>> {
    let mut instances: BTreeMap<u32, Vec<&Partition>> = BTreeMap::new();
    for part in &device.partitions {
        if let Reading::Value(instance) = part.gpu_instance {
            instances.entry(instance).or_default().push(part);
        }
    }
    let shared = instances.into_iter().filter(|(_, parts)| parts.len() > 1);
    shared.map(|(instance, parts)| Shared {
        name: format!("MIG-{}/{instance}", device.uuid),
        profile: parts
            .iter()
            .find_map(|part| part.profile.as_ref().value())
            .map_or("", |profile| of_gpu_instance(profile)),
        parts,
    })
}

/// Returns what the GPU instance has of its device, from what a compute instance in it has: `2g.20gb` of `1c.2g.20gb`.
pub(in crate::pages) fn of_gpu_instance(profile: &str) -> &str {
    match profile.split_once('.') {
        Some((slices, rest)) if slices.ends_with('c') => rest,
        Some(_) | None => profile,
    }
}
