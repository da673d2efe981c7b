//! Who has which device, and how that is known.

use blueproof_core::{
    gpu::{Device, Partition},
    metrics::Exposition,
};

use super::{
    DISPUTED, DYNAMIC, KUBELET, KUBELET_AGE, KUBELET_DEVICES, KUBELET_FAILURES, KUBELET_PODS, OWNER,
    OWNER_SHARES, SILENT, count, each, instances, one,
};
use crate::pages::{Owner, Owners, PageInput};

/// Writes who has what. What is not certain is not told.
pub(super) fn owners(seen: &PageInput, page: &mut Exposition) {
    let Some((inventory, _)) = &seen.devices else {
        return;
    };
    let whole = inventory.devices.iter().map(|device| (device, None));
    let parts = inventory
        .devices
        .iter()
        .flat_map(|device| device.partitions.iter().map(move |part| (device, Some(part))));
    let owned = whole.chain(parts).filter_map(|(device, part)| {
        let uuid = part.map_or(&device.uuid, |part| &part.uuid);
        Some((place(device, part), seen.owners.get(uuid)?))
    });
    let instances: Vec<_> = inventory
        .devices
        .iter()
        .flat_map(|device| of_instances(device, seen))
        .collect();
    let of_instances = instances.iter().map(|(device, name, owners)| {
        let place = [("uuid", device.uuid.0.as_str()), ("partition", name.as_str())];
        (place, owners)
    });
    let owned: Vec<_> = owned.chain(of_instances).collect();
    if owned.iter().any(|(_, owners)| !owners.pods.is_empty()) {
        page.family(&OWNER);
    }
    for (place, owners) in &owned {
        of_device(place, owners, page);
    }
    let several = owned.iter().flat_map(|(place, owners)| {
        let several = owners.pods.iter().filter(|owner| owner.shares > 1);
        several.map(|owner| {
            let of_owner = [
                ("namespace", owner.namespace.as_str()),
                ("pod", owner.pod.as_str()),
            ];
            ([place.as_slice(), &of_owner].concat(), count(owner.shares))
        })
    });
    each(page, &OWNER_SHARES, several);
    let mut disputed = owned.iter().filter(|(_, owners)| owners.disputing > 0).peekable();
    if disputed.peek().is_some() {
        page.family(&DISPUTED);
    }
    for (place, owners) in disputed {
        page.sample(&DISPUTED, place, count(owners.disputing));
    }
}

/// Returns who has the GPU instances that several compute instances share: their figures stand under the instance, and whoever
/// joins figures with owners looks for both there. Of one whose compute instances are not all one pod's, nobody can be told
/// to do what all of it does.
fn of_instances<'a>(device: &'a Device, seen: &PageInput) -> Vec<(&'a Device, String, Owners)> {
    let owned = instances::shared(device).filter_map(|shared| {
        let owners = shared
            .parts
            .iter()
            .map(|part| seen.owners.get(&part.uuid)?.only());
        let owners: Vec<&Owner> = owners.collect::<Option<_>>()?;
        let (first, others) = owners.split_first()?;
        if !others.iter().all(|other| other.is_pod_of(first)) {
            return None;
        }
        let is_one_container = others.iter().all(|other| other.container == first.container);
        let owner = Owner {
            container: if is_one_container {
                first.container.clone()
            } else {
                String::new()
            },
            shares: 1,
            ..(*first).clone()
        };
        let owners = Owners {
            pods: vec![owner],
            ..Owners::default()
        };
        Some((device, shared.name, owners))
    });
    owned.collect()
}

fn of_device(place: &[(&'static str, &str)], owners: &Owners, page: &mut Exposition) {
    let sharing = if owners.is_shared { "shared" } else { "exclusive" };
    for owner in &owners.pods {
        let of_owner = [
            ("namespace", owner.namespace.as_str()),
            ("pod", owner.pod.as_str()),
            ("container", owner.container.as_str()),
            ("sharing", sharing),
        ];
        page.sample(&OWNER, &[place, of_owner.as_slice()].concat(), 1.0);
    }
}

fn place<'a>(device: &'a Device, part: Option<&'a Partition>) -> [(&'static str, &'a str); 2] {
    let partition = part.map_or("", |part| part.uuid.0.as_str());
    [("uuid", device.uuid.0.as_str()), ("partition", partition)]
}

/// Writes whether the kubelet told who has what, where it is asked.
pub(in crate::pages) fn told(seen: &PageInput, page: &mut Exposition) {
    let Some(attribution) = &seen.attribution else {
        return;
    };
    one(page, &KUBELET, f64::from(u8::from(attribution.silence.is_none())));
    if let Some(reason) = attribution.silence {
        page.family(&SILENT);
        page.sample(&SILENT, &[("reason", reason)], 1.0);
    }
}

/// Writes how it is known who has what, where somebody is asked for it.
pub(super) fn attribution(seen: &PageInput, page: &mut Exposition) {
    let Some(attribution) = &seen.attribution else {
        return;
    };
    told(seen, page);
    one(page, &KUBELET_FAILURES, count(attribution.failures));
    let Some(told) = &attribution.told else { return };
    if let Some(age) = attribution.age {
        one(page, &KUBELET_AGE, age.as_secs_f64());
    }
    one(page, &KUBELET_PODS, count(told.pods));
    let devices = told.devices.iter();
    let devices = devices.map(|(resource, state, number)| {
        let labels = vec![("resource", resource.as_str()), ("state", *state)];
        (labels, count(*number))
    });
    each(page, &KUBELET_DEVICES, devices);
    let dynamic = told.dynamic.iter();
    let dynamic = dynamic.map(|(driver, number)| (vec![("driver", driver.as_str())], count(*number)));
    each(page, &DYNAMIC, dynamic);
}
