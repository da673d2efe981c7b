//! Which devices nobody should be given.

use blueproof_core::gpu::{DeviceUuid, Figure, Partition, Reading, Readings};

use super::{super::unhealthy_devices, stories::*};

#[test]
fn only_a_device_that_no_attempt_can_work_on_is_unhealthy() {
    let rows: [(&str, Readings, &[u64], bool); 7] = [
        ("it is well", healthy(), &[], false),
        ("a program erred", healthy(), &[31], false),
        ("memory broke, and was contained", healthy(), &[94], false),
        ("a row waits", with(Figure::RowRemapPending, 1.0), &[], false),
        ("no row is left", with(Figure::RowRemapFailure, 1.0), &[], true),
        ("it needs a reset", healthy(), &[79], true),
        ("it is lost", lost(), &[], true),
    ];
    for (why, readings, xids, is_unhealthy) in rows {
        let found = unhealthy_devices(&looked([readings], xids), &inventory(1));
        let expected = is_unhealthy.then(|| gpu(0));
        assert_eq!(Vec::from_iter(found.keys()), Vec::from_iter(&expected), "{why}");
    }
}

#[test]
fn no_mig_instance_of_an_unhealthy_device_is_healthy() {
    let mut inventory = inventory(1);
    let part = DeviceUuid("MIG-1".into());
    inventory.devices[0].partitions = vec![Partition {
        uuid: part.clone(),
        profile: Reading::Unsupported,
        gpu_instance: Reading::Unsupported,
        compute_instance: Reading::Unsupported,
        memory: Reading::Unsupported,
    }];
    let found = unhealthy_devices(&looked([healthy()], &[31, 79]), &inventory);
    assert_eq!(Vec::from_iter(found.keys()), [&gpu(0), &part]);
    assert_eq!(found[&part], found[&gpu(0)]);
    assert!(found[&part].contains("XID 79"), "{found:?}");
}
