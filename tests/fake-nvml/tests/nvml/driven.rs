//! Each function that the project calls, called once through nvml-wrapper: that it is there, counted, and answers well.
//! What it answers is tested beside this.

use crate::{init, install, raw};
use fake_nvml::{DRIVEN, Installed, Process, Scenario, Xid, h100_with_mig, h200};
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, PcieUtilCounter, PerformancePolicy, Sampling, TemperatureSensor,
};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Device, EventSet, Nvml};

/// Whom the functions are asked of.
struct Asked<'a> {
    installed: &'a Installed,
    nvml: &'a Nvml,
    whole: Device<'a>,
    divided: Device<'a>,
    part: Device<'a>,
}

type Drive = fn(&Asked<'_>) -> Result<(), NvmlError>;

const DRIVES: &[(&str, Drive)] = &[
    ("nvmlDeviceGetAttributes_v2", |on| on.part.attributes().map(drop)),
    ("nvmlDeviceGetClockInfo", |on| {
        on.whole.clock_info(Clock::SM).map(drop)
    }),
    ("nvmlDeviceGetComputeInstanceId", |on| {
        raw::compute_instance(&on.part).map(drop)
    }),
    ("nvmlDeviceGetComputeRunningProcesses_v3", |on| {
        on.whole.running_compute_processes().map(drop)
    }),
    ("nvmlDeviceGetCount_v2", |on| on.nvml.device_count().map(drop)),
    ("nvmlDeviceGetCurrPcieLinkGeneration", |on| {
        on.whole.current_pcie_link_gen().map(drop)
    }),
    ("nvmlDeviceGetCurrPcieLinkWidth", |on| {
        on.whole.current_pcie_link_width().map(drop)
    }),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", |on| {
        on.whole.current_throttle_reasons().map(drop)
    }),
    ("nvmlDeviceGetDecoderUtilization", |on| {
        on.whole.decoder_utilization().map(drop)
    }),
    ("nvmlDeviceGetEncoderUtilization", |on| {
        on.whole.encoder_utilization().map(drop)
    }),
    ("nvmlDeviceGetFieldValues", |on| {
        on.whole.field_values_for(&[FieldId(82)]).map(drop)
    }),
    ("nvmlDeviceGetGpuInstanceId", |on| {
        raw::gpu_instance(&on.part).map(drop)
    }),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", |on| {
        on.whole.running_graphics_processes().map(drop)
    }),
    ("nvmlDeviceGetHandleByIndex_v2", |on| {
        on.nvml.device_by_index(0).map(drop)
    }),
    ("nvmlDeviceGetHandleByUUID", |on| {
        on.nvml.device_by_uuid(on.part.uuid()?).map(drop)
    }),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", |on| {
        on.whole.mps_running_compute_processes().map(drop)
    }),
    ("nvmlDeviceGetMaxMigDeviceCount", |on| {
        on.divided.mig_device_count().map(drop)
    }),
    ("nvmlDeviceGetMaxPcieLinkGeneration", |on| {
        on.whole.max_pcie_link_gen().map(drop)
    }),
    ("nvmlDeviceGetMaxPcieLinkWidth", |on| {
        on.whole.max_pcie_link_width().map(drop)
    }),
    ("nvmlDeviceGetMemoryInfo_v2", |on| {
        on.whole.memory_info().map(drop)
    }),
    ("nvmlDeviceGetMigDeviceHandleByIndex", |on| {
        on.divided.mig_device_by_index(0).map(drop)
    }),
    ("nvmlDeviceGetMigMode", |on| on.divided.mig_mode().map(drop)),
    ("nvmlDeviceGetMinorNumber", |on| on.whole.minor_number().map(drop)),
    ("nvmlDeviceGetName", |on| on.whole.name().map(drop)),
    ("nvmlDeviceGetPciInfo_v3", |on| on.whole.pci_info().map(drop)),
    ("nvmlDeviceGetPcieReplayCounter", |on| {
        on.whole.pcie_replay_counter().map(drop)
    }),
    ("nvmlDeviceGetPcieThroughput", |on| {
        on.whole.pcie_throughput(PcieUtilCounter::Send).map(drop)
    }),
    ("nvmlDeviceGetPowerUsage", |on| on.whole.power_usage().map(drop)),
    ("nvmlDeviceGetProcessUtilization", |on| {
        on.whole.process_utilization_stats(None).map(drop)
    }),
    ("nvmlDeviceGetSamples", |on| {
        on.whole.samples(Sampling::GpuUtilization, None).map(drop)
    }),
    ("nvmlDeviceGetSerial", |on| on.whole.serial().map(drop)),
    ("nvmlDeviceGetSupportedEventTypes", |on| {
        on.whole.supported_event_types().map(drop)
    }),
    ("nvmlDeviceGetTemperature", |on| {
        on.whole.temperature(TemperatureSensor::Gpu).map(drop)
    }),
    ("nvmlDeviceGetTotalEccErrors", |on| {
        let errors = on
            .whole
            .total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile);
        errors.map(drop)
    }),
    ("nvmlDeviceGetTotalEnergyConsumption", |on| {
        on.whole.total_energy_consumption().map(drop)
    }),
    ("nvmlDeviceGetUUID", |on| on.whole.uuid().map(drop)),
    ("nvmlDeviceGetUtilizationRates", |on| {
        on.whole.utilization_rates().map(drop)
    }),
    ("nvmlDeviceGetViolationStatus", |on| {
        on.whole.violation_status(PerformancePolicy::Power).map(drop)
    }),
    ("nvmlDeviceGetVirtualizationMode", |on| {
        on.whole.virtualization_mode().map(drop)
    }),
    ("nvmlDeviceRegisterEvents", |on| listen(on).map(drop)),
    ("nvmlEventSetCreate", |on| on.nvml.create_event_set().map(drop)),
    ("nvmlEventSetFree", |on| on.nvml.create_event_set().map(drop)),
    ("nvmlEventSetWait_v2", |on| {
        let set = listen(on)?;
        on.installed.set_time(6.0);
        set.wait(0).map(drop)
    }),
    ("nvmlGpmMetricsGet", |on| {
        let first = on.whole.gpm_sample()?;
        on.installed.advance(1.0);
        let second = on.whole.gpm_sample()?;
        let metrics = gpm_metrics_get(on.nvml, &first, &second, &[GpmMetricId::SmUtil])?;
        metrics.into_iter().try_for_each(|metric| metric.map(drop))
    }),
    ("nvmlGpmMigSampleGet", |on| on.divided.gpm_mig_sample(7).map(drop)),
    ("nvmlGpmQueryDeviceSupport", |on| on.whole.gpm_support().map(drop)),
    ("nvmlGpmSampleAlloc", |on| on.whole.gpm_sample().map(drop)),
    ("nvmlGpmSampleFree", |on| on.whole.gpm_sample().map(drop)),
    ("nvmlGpmSampleGet", |on| on.whole.gpm_sample().map(drop)),
    ("nvmlInit_v2", begin_and_end),
    ("nvmlShutdown", begin_and_end),
    ("nvmlSystemGetCudaDriverVersion_v2", |on| {
        on.nvml.sys_cuda_driver_version().map(drop)
    }),
    ("nvmlSystemGetDriverVersion", |on| {
        on.nvml.sys_driver_version().map(drop)
    }),
];

fn listen<'a>(on: &Asked<'a>) -> Result<EventSet<'a>, NvmlError> {
    let set = on.nvml.create_event_set()?;
    on.whole
        .register_events(EventTypes::CRITICAL_XID_ERROR, set)
        .map_err(|error| error.error)
}

fn begin_and_end(on: &Asked<'_>) -> Result<(), NvmlError> {
    let path = on.installed.path();
    Nvml::builder().lib_path(path.as_os_str()).init().map(drop)
}

#[test]
fn each_function_is_there_and_counted_and_answers_well() {
    let mut whole = h200();
    whole.processes = vec![Process {
        pid: 4001,
        sm_utilization_percent: fake_nvml::Steps::constant(50.0),
        ..Process::default()
    }];
    whole.xids = vec![Xid {
        at: 5.0,
        code: 31,
        mig: None,
    }];
    let installed = install(&Scenario::of([whole, h100_with_mig(1)]));
    let nvml = init(&installed);
    installed.set_time(1.0);
    let divided = nvml.device_by_index(1).unwrap();
    let asked = Asked {
        installed: &installed,
        nvml: &nvml,
        whole: nvml.device_by_index(0).unwrap(),
        part: divided.mig_device_by_index(0).unwrap(),
        divided,
    };
    for (function, drive) in DRIVES {
        let before = installed.calls(function);
        drive(&asked).unwrap_or_else(|error| panic!("{function}: {error}"));
        assert!(installed.calls(function) > before, "{function} was not called");
    }
    let driven: Vec<_> = DRIVES.iter().map(|(function, _)| *function).collect();
    assert_eq!(driven, DRIVEN);
    let called = installed.called();
    assert!(driven.iter().all(|function| called.contains(*function)));
}
