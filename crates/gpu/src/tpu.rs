//! Google's TPUs, by the page that their device plugin serves on each node of GKE.
//!
//! There is no library to ask: the plugin has Prometheus' text at port 2112, with a series for each device and figure, and
//! already says which pod has it. Three of the five figures depend on the runtime that the pod uses, and are unsupported
//! where they are not there. Nothing tells of energy, of errors, or of processes.

mod page;

use std::time::Duration;

use blueproof_core::{
    domain::Bytes,
    gpu::{Device, DeviceUuid, Figure, GpuInventory, GpuSnapshot, Reading, Readings, Sample, Vendor},
    ports::{GpuProbe, ProbeError, ProbeErrorKind},
};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::{SignedDuration, Timestamp};

use page::Tpu;

/// Where the plugin serves its page.
pub const USUAL_ADDRESS: &str = "http://127.0.0.1:2112/metrics";

/// How long the plugin may take, and how long its page may be.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
const PAGE_AT_MOST: u64 = 4 << 20;

/// The TPUs of a node.
#[derive(Debug)]
pub struct TpuProbe {
    agent: ureq::Agent,
    address: String,
}

impl TpuProbe {
    /// Returns a probe that reads the page at an address, such as [`USUAL_ADDRESS`]. Nothing is read yet.
    pub fn new(address: impl Into<String>) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(ANSWERS_WITHIN));
        Self {
            agent: config.build().into(),
            address: address.into(),
        }
    }

    fn read(&self) -> Result<Vec<Tpu>, ProbeError> {
        let answer = self.agent.get(&self.address).call();
        let page = answer.and_then(|mut answer| {
            let body = answer.body_mut().with_config().limit(PAGE_AT_MOST);
            body.read_to_string()
        });
        let page = page.map_err(|error| self.blind(ProbeErrorKind::NotAnswering, &error.to_string()))?;
        page::tpus(&page).map_err(|line| {
            let what = format!("line {line} of its page is not Prometheus' text");
            self.blind(ProbeErrorKind::DriverError, &what)
        })
    }

    fn blind(&self, reason: ProbeErrorKind, why: &str) -> ProbeError {
        let message = format!(
            "the TPU device plugin does not tell of its devices at {}",
            self.address
        );
        let diagnostic = Diagnostic::error(Code::TpuPlugin, message).because(why);
        ProbeError {
            reason,
            diagnostic: Box::new(
                diagnostic.hint("see that this is a node with TPUs, and that its port is reachable"),
            ),
        }
    }
}

impl GpuProbe for TpuProbe {
    fn inventory(&mut self) -> Result<GpuInventory, ProbeError> {
        let tpus = self.read()?;
        let devices = (0..).zip(&tpus).map(|(index, tpu)| device(index, tpu));
        Ok(GpuInventory {
            devices: devices.collect(),
            ..GpuInventory::default()
        })
    }

    fn snapshot(&mut self) -> Result<GpuSnapshot, ProbeError> {
        let at = Timestamp::now();
        let tpus = self.read()?;
        Ok(GpuSnapshot {
            at,
            took: Timestamp::now().duration_since(at).max(SignedDuration::ZERO),
            samples: tpus.iter().map(sample).collect(),
        })
    }
}

fn uuid(tpu: &Tpu) -> DeviceUuid {
    DeviceUuid(format!("TPU-{}", tpu.id))
}

fn device(index: u32, tpu: &Tpu) -> Device {
    Device {
        uuid: uuid(tpu),
        index,
        vendor: Vendor::Google,
        model: tpu.model.clone(),
        pci_bus_id: Reading::Unsupported,
        minor: Reading::Unsupported,
        serial: Reading::Unsupported,
        memory: reading(tpu.memory_total).map(|bytes| Bytes(bytes as u64)),
        is_partitioned: Reading::Value(false),
        is_virtual: Reading::Unsupported,
        partitions: Vec::new(),
        unread_partitions: None,
    }
}

fn sample(tpu: &Tpu) -> Sample {
    let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    let free = tpu
        .memory_total
        .zip(tpu.memory_used)
        .map(|(total, used)| total - used);
    let mut readings = Readings::default();
    for (figure, value) in [
        (Figure::Utilization, share(tpu.duty_cycle)),
        (Figure::TensorActive, share(tpu.tensorcore_utilization)),
        (Figure::DramActive, share(tpu.memory_bandwidth_utilization)),
        (Figure::MemoryTotal, tpu.memory_total),
        (Figure::MemoryUsed, tpu.memory_used),
        (Figure::MemoryFree, free),
    ] {
        readings.set(figure, reading(value));
    }
    Sample {
        device: uuid(tpu),
        partition: None,
        readings,
        processes: Reading::Unsupported,
        busy: Reading::Unsupported,
    }
}

fn reading(value: Option<f64>) -> Reading<f64> {
    value.map_or(Reading::Unsupported, Reading::Value)
}

#[cfg(test)]
mod tests;
