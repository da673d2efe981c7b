//! From what a kubelet told to who has which device of an inventory.

use std::collections::{BTreeMap, BTreeSet};

use blueproof_core::gpu::{DeviceUuid, GpuInventory};

use super::{
    Advertised, DeviceAllocation, KubeletReport,
    ids::{DeviceId, Found},
};

/// How many resources that are none of ours, and how many drivers, are told by name; a node has a handful.
const OTHERS_BY_NAME: usize = 32;

/// How many pods may share a device. NVIDIA's MPS has room for some dozens; more is a mistake that would fill pages.
const SHARING: usize = 256;

/// Which resources are devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    patterns: Vec<String>,
}

/// Who has what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Who has which device, or part of one; one that nobody claims is not here.
    pub devices: BTreeMap<DeviceUuid, Holders>,
    /// How many of the devices that were given away were found, by resource. Resources beyond a certain number that are
    /// none of ours stand together under an empty name.
    pub ids: BTreeMap<(String, IdState), u64>,
    /// How many devices were given by dynamic resource allocation, by driver; many drivers stand together likewise.
    pub dynamic: BTreeMap<String, u64>,
    /// How many devices the kubelet has to give, where it tells. A share counts as one, and of a device that is given in
    /// parts the part with the most shares counts: where this is more than there are devices, some are given several times.
    pub advertised: Option<u64>,
}

/// What came of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdState {
    /// Its device was found, and it is known who has it.
    Matched,
    /// Its device was found, and several pods claim it that cannot share it.
    Disputed,
    /// It is no device that is known.
    Unmatched,
    /// Its resource is none of ours.
    Ignored,
}

/// Who has a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holders {
    /// The pods that have it, or shares of it. None where all that is claimed is disputed.
    pub pods: BTreeSet<Holder>,
    /// Whether it is given in shares.
    pub sharing: Sharing,
    /// How many pods claim what only one of them can have.
    pub disputing: u64,
}

/// A pod that has a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// Its UID, where that is known.
    pub uid: Option<String>,
    /// The container; empty where several containers of the pod have the device, as an init container and the next one.
    pub container: String,
    /// How many shares of the device it has. Where it is more than one, the pod asked for several devices, and got this one
    /// several times.
    pub shares: u64,
}

/// Whether a device is given in shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One pod has it.
    Exclusive,
    /// Several may have it, as by time slicing or MPS.
    Shared,
}

/// The pods that claim a device or a share, and their containers.
type Claimants<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// The UIDs of pods, by namespace and name.
type Uids<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<Option<&'a str>>>;

/// The claims on a device, by share.
type Claims<'a> = BTreeMap<Option<&'a str>, Claimants<'a>>;

impl Resources {
    /// Returns those of NVIDIA's plugin and GKE's, and more; a `*` at the end of a name stands for anything.
    pub fn with(more: impl IntoIterator<Item = String>) -> Self {
        // `.shared` is what the plugin may call devices in shares.
        let usual = ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"];
        let usual = usual.map(str::to_owned).into_iter();
        Self {
            patterns: usual.chain(more).collect(),
        }
    }

    fn accept(&self, resource: &str) -> bool {
        self.patterns
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => resource.starts_with(start),
                None => resource == pattern,
            })
    }
}

impl Default for Resources {
    fn default() -> Self {
        Self::with([])
    }
}

/// Says who has which device of an inventory.
pub fn attribute(told: &KubeletReport, inventory: &GpuInventory, resources: &Resources) -> Attribution {
    // A kubelet that says the same thing twice says it once.
    let given: BTreeSet<&DeviceAllocation> = told.given.iter().collect();
    let mut claims: BTreeMap<&DeviceUuid, Claims<'_>> = BTreeMap::new();
    let mut uids = Uids::new();
    let mut found = Vec::new();
    let mut attribution = Attribution::default();
    for given in given {
        if !resources.accept(&given.device.resource) {
            attribution.count(given, IdState::Ignored);
            continue;
        }
        let Some((Found { uuid, .. }, share)) = find(&given.device, inventory) else {
            attribution.count(given, IdState::Unmatched);
            continue;
        };
        let shares = claims.entry(uuid).or_default();
        let pods = shares.entry(share).or_default();
        let containers = pods.entry((&given.namespace, &given.pod)).or_default();
        containers.insert(&given.container);
        let of_pod = uids.entry((&given.namespace, &given.pod)).or_default();
        of_pod.insert(given.pod_uid.as_deref());
        found.push((given, uuid, share));
    }
    for (given, uuid, share) in found {
        let state = match is_disputed(&claims[uuid], share) {
            true => IdState::Disputed,
            false => IdState::Matched,
        };
        attribution.count(given, state);
    }
    let devices = claims.iter();
    attribution.devices = devices
        .map(|(uuid, claims)| ((*uuid).clone(), Holders::of(claims, &uids)))
        .collect();
    attribution.dynamic = dynamic(told);
    let allocatable = told.allocatable.as_ref();
    attribution.advertised = allocatable.map(|devices| advertised(devices, inventory, resources));
    attribution
}

fn find<'a>(device: &'a Advertised, inventory: &'a GpuInventory) -> Option<(Found<'a>, Option<&'a str>)> {
    let id = DeviceId::parse(&device.id)?;
    Some((id.find(inventory)?, id.share))
}

/// Returns whether several pods claim what one of them can have: the same share, or the whole and a share of it.
fn is_disputed(claims: &Claims<'_>, share: Option<&str>) -> bool {
    let others = claims.iter().filter(|(other, _)| {
        let is_same = **other == share;
        is_same || other.is_none() || share.is_none()
    });
    let pods: BTreeSet<_> = others.flat_map(|(_, pods)| pods.keys()).collect();
    pods.len() > 1
}

impl Holders {
    fn of(claims: &Claims<'_>, uids: &Uids<'_>) -> Self {
        let mut disputing: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut holding: BTreeMap<(&str, &str), (BTreeSet<&str>, u64)> = BTreeMap::new();
        for (share, pods) in claims {
            if is_disputed(claims, *share) {
                disputing.extend(pods.keys().copied());
                continue;
            }
            for (pod, containers) in pods {
                let (of_pod, shares) = holding.entry(*pod).or_default();
                of_pod.extend(containers);
                *shares += 1;
            }
        }
        if holding.len() > SHARING {
            disputing.extend(holding.keys().copied());
            holding.clear();
        }
        let disputing = disputing.len() as u64;
        let holder = |((namespace, pod), (containers, shares)): ((&str, &str), (BTreeSet<&str>, u64))| {
            let mut containers = containers.iter();
            let (first, second) = (containers.next(), containers.next());
            let only = first.filter(|_| second.is_none());
            Holder {
                namespace: namespace.to_owned(),
                pod: pod.to_owned(),
                uid: only_uid(&uids[&(namespace, pod)]),
                container: only.map_or_else(String::new, |only| (*only).to_owned()),
                shares,
            }
        };
        Self {
            pods: holding.into_iter().map(holder).collect(),
            sharing: match claims.contains_key(&None) {
                true => Sharing::Exclusive,
                false => Sharing::Shared,
            },
            disputing,
        }
    }
}

/// Returns the UID on which all that a pod was given agrees; of two pods of one name, one is gone.
fn only_uid(uids: &BTreeSet<Option<&str>>) -> Option<String> {
    let mut uids = uids.iter();
    let only = uids.next().filter(|_| uids.next().is_none());
    only.and_then(|uid| uid.map(str::to_owned))
}

impl Attribution {
    fn count(&mut self, given: &DeviceAllocation, state: IdState) {
        let mut name = given.device.resource.clone();
        if state == IdState::Ignored {
            let others = self.ids.keys().filter(|(_, state)| *state == IdState::Ignored);
            let is_new = !self.ids.contains_key(&(name.clone(), state));
            if is_new && others.count() >= OTHERS_BY_NAME {
                name = String::new();
            }
        }
        *self.ids.entry((name, state)).or_default() += 1;
    }
}

fn dynamic(told: &KubeletReport) -> BTreeMap<String, u64> {
    let mut dynamic: BTreeMap<String, u64> = BTreeMap::new();
    for (driver, count) in &told.dynamic {
        let is_one_too_many = dynamic.len() >= OTHERS_BY_NAME;
        let name = if is_one_too_many { "" } else { driver };
        *dynamic.entry(name.to_owned()).or_default() += count;
    }
    dynamic
}

fn advertised(devices: &[Advertised], inventory: &GpuInventory, resources: &Resources) -> u64 {
    let accepted: BTreeSet<_> = devices
        .iter()
        .filter(|device| resources.accept(&device.resource))
        .collect();
    let mut count = 0;
    let mut parts: BTreeMap<&DeviceUuid, BTreeMap<&DeviceUuid, u64>> = BTreeMap::new();
    for device in accepted {
        match find(device, inventory) {
            Some((
                Found {
                    uuid,
                    part_of: Some(device),
                },
                _,
            )) => *parts.entry(device).or_default().entry(uuid).or_default() += 1,
            Some((Found { part_of: None, .. }, _)) | None => count += 1,
        }
    }
    let of_parts = parts.values().filter_map(|shares| shares.values().max());
    count + of_parts.sum::<u64>()
}

impl IdState {
    /// Returns it as a label of metrics has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Disputed => "disputed",
            Self::Unmatched => "unmatched",
            Self::Ignored => "ignored",
        }
    }
}

#[cfg(test)]
mod tests;
