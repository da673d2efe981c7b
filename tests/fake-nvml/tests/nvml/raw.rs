//! What C callers meet and nvml-wrapper hides: null pointers, wrong sizes, and clients that come and go.
#![expect(unsafe_code, reason = "functions of C are called as C calls them")]

use crate::install;
use fake_nvml::{Installed, NvmlReturn, Scenario, a10, h100_with_mig};
use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::*;
use std::ffi::CStr;
use std::mem;
use std::ptr::{null_mut, without_provenance_mut};

const SUCCESS: nvmlReturn_t = nvmlReturn_enum_NVML_SUCCESS;

fn load(installed: &Installed) -> NvmlLib {
    // SAFETY: the copy is of the library that this is a test of.
    unsafe { NvmlLib::new(installed.path()) }.unwrap()
}

/// Returns the number of the GPU instance of a part, which nvml-wrapper has no call for.
pub(crate) fn gpu_instance(part: &Device<'_>) -> Result<u32, NvmlError> {
    let mut number = 0;
    let function = nvml_sym(part.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref())?;
    // SAFETY: the handle is the wrapper's own, and there is room for the number.
    nvml_try(unsafe { function(part.handle(), &mut number) })?;
    Ok(number)
}

/// Returns the number of the compute instance of a part.
pub(crate) fn compute_instance(part: &Device<'_>) -> Result<u32, NvmlError> {
    let mut number = 0;
    let function = nvml_sym(part.nvml().lib().nvmlDeviceGetComputeInstanceId.as_ref())?;
    // SAFETY: the handle is the wrapper's own, and there is room for the number.
    nvml_try(unsafe { function(part.handle(), &mut number) })?;
    Ok(number)
}

/// Loads a copy, begins, and finds its first device.
fn first_device(installed: &Installed) -> (NvmlLib, nvmlDevice_t) {
    let lib = load(installed);
    let mut device = null_mut();
    // SAFETY: there is room for the handle.
    unsafe {
        assert_eq!(lib.nvmlInitWithFlags(0), SUCCESS);
        assert_eq!(lib.nvmlDeviceGetHandleByIndex_v2(0, &mut device), SUCCESS);
    }
    (lib, device)
}

#[test]
fn clients_are_counted_and_nothing_is_answered_before_the_first_or_after_the_last() {
    let installed = install(&Scenario::of([a10()]));
    let lib = load(&installed);
    let mut count = 0;
    // SAFETY: there is room for the number.
    let mut n_devices = || unsafe { lib.nvmlDeviceGetCount_v2(&mut count) };
    let uninitialized = NvmlReturn::Uninitialized.code();
    assert_eq!(n_devices(), uninitialized);
    // SAFETY: these take no pointers.
    unsafe {
        assert_eq!(lib.nvmlInitWithFlags(0), SUCCESS);
        assert_eq!(lib.nvmlInitWithFlags(0), SUCCESS);
        assert_eq!(lib.nvmlShutdown(), SUCCESS);
        assert_eq!(n_devices(), SUCCESS);
        assert_eq!(lib.nvmlShutdown(), SUCCESS);
        assert_eq!(n_devices(), uninitialized);
        assert_eq!(lib.nvmlShutdown(), uninitialized);
    }
    assert_eq!(installed.calls("nvmlDeviceGetCount_v2"), 3);
    assert_eq!(installed.calls("*"), 8);
}

#[test]
fn sets_and_samples_are_gone_after_the_last_client() {
    let installed = install(&Scenario::of([a10()]));
    let (lib, _) = first_device(&installed);
    let (mut set, mut sample) = (null_mut(), null_mut());
    // SAFETY: there is room for each handle, and the library takes handles that are gone.
    unsafe {
        assert_eq!(lib.nvmlEventSetCreate(&mut set), SUCCESS);
        assert_eq!(lib.nvmlGpmSampleAlloc(&mut sample), SUCCESS);
        assert_eq!(lib.nvmlShutdown(), SUCCESS);
        assert_eq!(lib.nvmlInitWithFlags(0), SUCCESS);
        assert_eq!(lib.nvmlEventSetFree(set), NvmlReturn::InvalidArgument.code());
        assert_eq!(lib.nvmlGpmSampleFree(sample), NvmlReturn::InvalidArgument.code());
    }
}

#[test]
fn null_and_handles_of_nothing_are_invalid_arguments() {
    let installed = install(&Scenario::of([a10()]));
    let (lib, device) = first_device(&installed);
    let invalid = NvmlReturn::InvalidArgument.code();
    let mut number = 0;
    // SAFETY: the library takes null and handles of nothing.
    unsafe {
        assert_eq!(lib.nvmlDeviceGetPowerUsage(device, null_mut()), invalid);
        assert_eq!(lib.nvmlDeviceGetPowerUsage(null_mut(), &mut number), invalid);
        assert_eq!(
            lib.nvmlDeviceGetPowerUsage(without_provenance_mut(0x1234_5678), &mut number),
            invalid
        );
        assert_eq!(lib.nvmlDeviceGetName(device, null_mut(), 96), invalid);
        assert_eq!(lib.nvmlDeviceGetFieldValues(device, 1, null_mut()), invalid);
        assert_eq!(lib.nvmlEventSetWait_v2(null_mut(), null_mut(), 0), invalid);
        assert_eq!(lib.nvmlGpmMetricsGet(null_mut()), invalid);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_says_how_much_room_it_needs() {
    let mut device = a10();
    device.processes = (1..=3)
        .map(|pid| fake_nvml::Process {
            pid,
            ..Default::default()
        })
        .collect();
    let installed = install(&Scenario::of([device]));
    let (lib, device) = first_device(&installed);
    let too_small = NvmlReturn::InsufficientSize.code();
    let mut name = [1; 11];
    let mut count = 2;
    // SAFETY: there is room for as much as is said, and a process is plain numbers.
    unsafe {
        assert_eq!(lib.nvmlDeviceGetName(device, name.as_mut_ptr(), 10), too_small);
        assert_eq!(lib.nvmlDeviceGetName(device, name.as_mut_ptr(), 11), SUCCESS);
        assert_eq!(CStr::from_ptr(name.as_ptr()), c"NVIDIA A10");
        let mut processes: [nvmlProcessInfo_t; 3] = mem::zeroed();
        let infos = processes.as_mut_ptr();
        assert_eq!(
            lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &mut count, infos),
            too_small
        );
        assert_eq!(
            (count, processes[0].pid),
            (3, 0),
            "nothing is written, but the room that it needs is"
        );
        let infos = processes.as_mut_ptr();
        assert_eq!(
            lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &mut count, infos),
            SUCCESS
        );
        assert_eq!(processes.map(|process| process.pid), [1, 2, 3]);
    }
}

#[test]
fn structs_of_another_version_are_refused() {
    let installed = install(&Scenario::of([a10()]));
    let (lib, device) = first_device(&installed);
    let mismatch = NvmlReturn::ArgumentVersionMismatch.code();
    // SAFETY: all structs are plain numbers, and there is room for them.
    unsafe {
        let mut memory: nvmlMemory_v2_t = mem::zeroed();
        assert_eq!(lib.nvmlDeviceGetMemoryInfo_v2(device, &mut memory), mismatch);
        let mut support: nvmlGpmSupport_t = mem::zeroed();
        assert_eq!(lib.nvmlGpmQueryDeviceSupport(device, &mut support), mismatch);
        let mut temperature = nvmlTemperature_t {
            version: 0,
            sensorType: 0,
            temperature: 0,
        };
        assert_eq!(lib.nvmlDeviceGetTemperatureV(device, &mut temperature), mismatch);
        temperature.version = 0x0100_000c;
        assert_eq!(lib.nvmlDeviceGetTemperatureV(device, &mut temperature), SUCCESS);
        assert_eq!(temperature.temperature, 33);
    }
}

#[test]
fn functions_that_nvml_wrapper_does_not_have_are_there() {
    let mut device = h100_with_mig(1);
    device.figures.remapped_rows_uncorrectable = fake_nvml::Steps::constant(2.0);
    let installed = install(&Scenario::of([device]));
    let (lib, device) = first_device(&installed);
    let mut rows = [9; 4];
    let [correctable, uncorrectable, pending, failure] = &mut rows;
    let (mut instance, mut gpu_instance, mut compute_instance) = (null_mut(), 0, 9);
    // SAFETY: there is room for each value.
    unsafe {
        assert_eq!(
            lib.nvmlDeviceGetRemappedRows(device, correctable, uncorrectable, pending, failure),
            SUCCESS
        );
        assert_eq!(
            lib.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mut instance),
            SUCCESS
        );
        assert_eq!(
            lib.nvmlDeviceGetGpuInstanceId(instance, &mut gpu_instance),
            SUCCESS
        );
        assert_eq!(
            lib.nvmlDeviceGetComputeInstanceId(instance, &mut compute_instance),
            SUCCESS
        );
        let text = CStr::from_ptr(lib.nvmlErrorString(NvmlReturn::GpuIsLost.code()));
        assert_eq!(text, c"GPU is lost");
    }
    assert_eq!(rows, [0, 2, 0, 0]);
    assert_eq!((gpu_instance, compute_instance), (7, 0));
}
