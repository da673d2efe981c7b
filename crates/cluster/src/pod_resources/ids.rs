//! What device plugins call devices, and which of an inventory's that is.
//!
//! | id | is |
//! |---|---|
//! | `GPU-<uuid>` | a device |
//! | `MIG-<uuid>` | a part of one |
//! | `MIG-GPU-<uuid>/<gi>/<ci>` | a part of one, as drivers before R470 call it |
//! | `nvidia<N>` | the device with the file `/dev/nvidia<N>`; this and the next as on GKE |
//! | `nvidia<N>/gi<M>` | the part of it in that GPU instance |
//! | `<id>::<n>`, `<id>/vgpu<n>` | a share of any of these |

use blueproof_core::gpu::{DeviceUuid, GpuInventory, Partition};

/// A device, a part or a share of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceId<'a> {
    device: Named<'a>,
    /// Which share of it, if it is given in shares.
    pub(super) share: Option<&'a str>,
}

/// How a device is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named<'a> {
    /// By its UUID.
    Uuid(&'a str),
    /// By the device's UUID, a GPU instance and a compute instance.
    Instances(&'a str, u32, u32),
    /// By the number of the device's file, and a GPU instance where it is a part.
    Minor(u32, Option<u32>),
}

/// What of an inventory an id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found<'a> {
    /// The device, or the part of one.
    pub(super) uuid: &'a DeviceUuid,
    /// The device that it is a part of, if it is a part.
    pub(super) part_of: Option<&'a DeviceUuid>,
}

impl<'a> DeviceId<'a> {
    /// Reads an id; `None` is one of another shape.
    pub(super) fn parse(id: &'a str) -> Option<Self> {
        let (name, share) = match id.split_once("::") {
            Some((name, share)) => (name, Some(share)),
            None => match id.rsplit_once("/vgpu") {
                Some((name, share)) => (name, Some(share)),
                None => (id, None),
            },
        };
        let is_number = |share: &str| share.parse::<u32>().is_ok();
        if !share.is_none_or(is_number) {
            return None;
        }
        let device = Named::parse(name)?;
        Some(Self { device, share })
    }

    /// Returns what it means, if there is that.
    pub(super) fn find(self, inventory: &'a GpuInventory) -> Option<Found<'a>> {
        let mut devices = inventory.devices.iter();
        match self.device {
            Named::Uuid(uuid) => devices.find_map(|device| {
                if device.uuid.0 == uuid {
                    return Some(Found::whole(&device.uuid));
                }
                let part = device.partitions.iter().find(|part| part.uuid.0 == uuid)?;
                Some(Found::part(part, &device.uuid))
            }),
            Named::Instances(uuid, gpu, compute) => {
                let device = devices.find(|device| device.uuid.0 == uuid)?;
                let part = device.partitions.iter().find(|part| {
                    part.gpu_instance.as_ref().value() == Some(&gpu)
                        && part.compute_instance.as_ref().value() == Some(&compute)
                })?;
                Some(Found::part(part, &device.uuid))
            }
            Named::Minor(minor, instance) => {
                let device = devices.find(|device| device.minor.as_ref().value() == Some(&minor))?;
                let Some(instance) = instance else {
                    return Some(Found::whole(&device.uuid));
                };
                let mut parts = device
                    .partitions
                    .iter()
                    .filter(|part| part.gpu_instance.as_ref().value() == Some(&instance));
                let part = parts.next()?;
                // Of several compute instances in it the id does not tell which.
                parts.next().is_none().then(|| Found::part(part, &device.uuid))
            }
        }
    }
}

impl<'a> Named<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("MIG-GPU-") {
            let mut parts = rest.split('/');
            let uuid = parts.next()?;
            let (gpu, compute) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let uuid = &name["MIG-".len()..][..uuid.len() + "GPU-".len()];
            return parts
                .next()
                .is_none()
                .then_some(Self::Instances(uuid, gpu, compute));
        }
        if name.starts_with("GPU-") || name.starts_with("MIG-") {
            return Some(Self::Uuid(name));
        }
        let rest = name.strip_prefix("nvidia")?;
        match rest.split_once("/gi") {
            Some((minor, instance)) => Some(Self::Minor(minor.parse().ok()?, Some(instance.parse().ok()?))),
            None => Some(Self::Minor(rest.parse().ok()?, None)),
        }
    }
}

impl<'a> Found<'a> {
    fn whole(uuid: &'a DeviceUuid) -> Self {
        Self { uuid, part_of: None }
    }

    fn part(part: &'a Partition, device: &'a DeviceUuid) -> Self {
        Self {
            uuid: &part.uuid,
            part_of: Some(device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_id_is_read() {
        let of = |device| Some(DeviceId { device, share: None });
        let shared = |device, share| {
            Some(DeviceId {
                device,
                share: Some(share),
            })
        };
        for (id, expected) in [
            ("GPU-1-2", of(Named::Uuid("GPU-1-2"))),
            ("MIG-1-2", of(Named::Uuid("MIG-1-2"))),
            ("MIG-GPU-1-2/7/0", of(Named::Instances("GPU-1-2", 7, 0))),
            ("GPU-1::0", shared(Named::Uuid("GPU-1"), "0")),
            ("MIG-1::12", shared(Named::Uuid("MIG-1"), "12")),
            ("MIG-GPU-1/7/0::3", shared(Named::Instances("GPU-1", 7, 0), "3")),
            ("nvidia0", of(Named::Minor(0, None))),
            ("nvidia12/gi7", of(Named::Minor(12, Some(7)))),
            ("nvidia0/vgpu2", shared(Named::Minor(0, None), "2")),
            ("nvidia0/gi7/vgpu2", shared(Named::Minor(0, Some(7)), "2")),
        ] {
            assert_eq!(DeviceId::parse(id), expected, "{id}");
        }
    }

    #[test]
    fn what_has_no_known_shape_is_not_guessed() {
        for id in [
            "",
            "0",
            "tpu-1",
            "nvidia",
            "nvidia-0",
            "nvidia0/7",
            "nvidia0/gi",
            "MIG-GPU-1",
            "MIG-GPU-1/7",
            "MIG-GPU-1/7/0/1",
            "MIG-GPU-1/x/0",
            "GPU-1::",
            "GPU-1::x",
            "GPU-1::0::1",
            "MIG-GPU-ä/7",
        ] {
            assert_eq!(DeviceId::parse(id), None, "{id}");
        }
    }
}
