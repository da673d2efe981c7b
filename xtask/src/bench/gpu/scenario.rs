//! What the driver of the bench has: devices at work, each in seven parts.

use serde_json::{Map, Value, json};

/// How many parts a device has.
pub(super) const PARTS: u32 = 7;

/// The metrics of performance monitors that parts have, by NVML's numbers, and those that only whole devices have.
const MONITORS: [u32; 10] = [1, 2, 3, 5, 10, 11, 12, 13, 20, 21];
const OF_LINKS: [u32; 2] = [60, 61];

const MIB: u64 = 1 << 20;

/// Returns a scenario of the fake driver: so many H100s.
pub(super) fn of(devices: u32) -> Value {
    json!({
        "clock": "real",
        "driverVersion": "580.159.03",
        "devices": (0..devices).map(device).collect::<Vec<_>>(),
    })
}

/// Returns the same where reading a device's power hangs from a second on.
pub(super) fn hanging(devices: u32, from: f64, milliseconds: u64) -> Value {
    let mut scenario = of(devices);
    scenario["delays"] = json!([{
        "function": "nvmlDeviceGetPowerUsage", "device": 0, "from": from, "milliseconds": milliseconds,
    }]);
    scenario
}

fn device(number: u32) -> Value {
    json!({
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": format!("GPU-b1e0be55-0000-4000-8000-{number:012x}"),
        "serial": format!("16500{number:08}"),
        "minorNumber": number,
        "pci": { "bus": 0x10 + number, "pciDeviceId": 0x2330_10de, "pciSubSystemId": 0x16c1_10de },
        "vbiosVersion": "96.00.74.00.01",
        "architecture": 9,
        "cudaComputeCapability": [9, 0],
        "memoryTotalBytes": 81_559 * MIB,
        "memoryReservedBytes": 610 * MIB,
        "maxPcieLink": [5, 16],
        "eccEnabled": true,
        "persistenceMode": true,
        "accounting": false,
        "samples": true,
        "supportedEventTypes": 8,
        "figures": figures(),
        "mig": {
            "enabled": true,
            "maxDevices": PARTS,
            "instances": (0..PARTS).map(|place| instance(number, place)).collect::<Vec<_>>(),
        },
        "processes": (0..PARTS).map(|place| process(number, place)).collect::<Vec<_>>(),
    })
}

fn figures() -> Value {
    let mut figures = json!({
        "gpuUtilizationPercent": 50, "memoryUtilizationPercent": 20,
        "encoderUtilizationPercent": 0, "decoderUtilizationPercent": 0,
        "powerMilliwatts": 412_345, "temperatureCelsius": 61, "memoryTemperatureCelsius": 72,
        "smClockMhz": 1755, "memoryClockMhz": 2619, "throttleReasons": 0,
        "memoryUsedBytes": 7 * 1024 * MIB,
        "pcieLinkGeneration": 5, "pcieLinkWidth": 16, "pcieReplayCounter": 0,
        "eccCorrectedVolatile": 1, "eccCorrectedAggregate": 2,
        "eccUncorrectedVolatile": 0, "eccUncorrectedAggregate": 0,
        "remappedRowsCorrectable": 0, "remappedRowsUncorrectable": 0,
        "remappedRowsPending": 0, "remappedRowsFailure": 0,
    });
    figures["gpm"] = monitors(&[MONITORS.as_slice(), &OF_LINKS].concat());
    figures
}

fn instance(device: u32, place: u32) -> Value {
    json!({
        "uuid": format!("MIG-b1e0be55-0000-4000-8000-{device:06x}{place:06x}"),
        "profile": "1g.10gb",
        "gpuInstanceId": 7 + place,
        "memoryTotalBytes": 9984 * MIB,
        "memoryUsedBytes": 1024 * MIB,
        "multiprocessorCount": 16,
        "sliceCount": 1,
        "gpm": monitors(&MONITORS),
    })
}

fn process(device: u32, place: u32) -> Value {
    json!({
        "pid": 4000 + device * PARTS + place,
        "name": "python3",
        "mig": place,
        "memoryUsedBytes": 900 * MIB,
    })
}

fn monitors(numbers: &[u32]) -> Value {
    let metrics = numbers.iter().map(|number| (number.to_string(), json!(20.5)));
    Value::Object(metrics.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_and_each_part_has_a_name_of_its_own() {
        let scenario = of(16);
        let devices = scenario["devices"].as_array().expect("a list");
        let parts = devices
            .iter()
            .flat_map(|device| device["mig"]["instances"].as_array().expect("a list"));
        let names: std::collections::BTreeSet<_> = devices
            .iter()
            .chain(parts)
            .map(|named| named["uuid"].as_str().expect("a text"))
            .collect();
        assert_eq!(names.len(), 16 + 16 * 7);
    }
}
