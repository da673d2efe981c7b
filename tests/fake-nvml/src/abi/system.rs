//! Functions of the library and the system: beginning and end, versions, and the finding of devices.

use super::{read_text, reply, write, write_text};
use crate::answers::{identity, processes};
use crate::handle::Handle;
use crate::library::{self, Library};
use crate::returns::{self, Answer};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};
use std::ffi::{c_char, c_int, c_uint};

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    reply(library::init("nvmlInit_v2"))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit() -> nvmlReturn_t {
    reply(library::init("nvmlInit"))
}

/// The flags say that GPUs may be missing or need not be attached: neither matters here.
#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    reply(library::init("nvmlInitWithFlags"))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    reply(library::shutdown("nvmlShutdown"))
}

/// Needs no `nvmlInit`.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    returns::text(result).as_ptr()
}

/// Functions with a number that is of no device.
macro_rules! numbers {
    ($($function:ident: $type:ty = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(out: *mut $type) -> nvmlReturn_t {
            let answer: fn(&mut Library) -> Answer<$type> = $answer;
            let value = library::call(stringify!($function), |_| Ok(None), answer);
            // SAFETY: a caller of NVML hands over null or room for the value.
            reply(value.and_then(|value| unsafe { write(out, value) }))
        }
    )*};
}

/// Functions with a text that is of no device.
macro_rules! texts {
    ($($function:ident = $answer:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
            let answer: fn(&mut Library) -> Answer<String> = $answer;
            let text = library::call(stringify!($function), |_| Ok(None), answer);
            // SAFETY: a caller of NVML hands over null or room for as many bytes as it says.
            reply(text.and_then(|text| unsafe { write_text(out, length, &text) }))
        }
    )*};
}

/// Functions that find a device by a text.
macro_rules! finders {
    ($($function:ident = $find:path;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(key: *const c_char, device: *mut nvmlDevice_t) -> nvmlReturn_t {
            let found = library::look_up(stringify!($function), |scenario| {
                // SAFETY: a caller of NVML hands over null or a C string.
                $find(scenario, unsafe { read_text(key) }?)
            });
            // SAFETY: a caller of NVML hands over null or room for the handle.
            reply(found.and_then(|found| unsafe { write(device, found.raw()) }))
        }
    )*};
}

/// Functions that find a device by its index.
macro_rules! indices {
    ($($function:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $function(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
            let found = library::look_up(stringify!($function), |scenario| identity::by_index(scenario, index));
            // SAFETY: a caller of NVML hands over null or room for the handle.
            reply(found.and_then(|found| unsafe { write(device, Handle::raw(found)) }))
        }
    )*};
}

texts! {
    nvmlSystemGetDriverVersion = |library| Ok(library.scenario.driver_version.clone());
    nvmlSystemGetNVMLVersion = |library| Ok(library.scenario.nvml_version.clone());
}

numbers! {
    nvmlSystemGetCudaDriverVersion: c_int = |library| Ok(library.scenario.cuda_driver_version);
    nvmlSystemGetCudaDriverVersion_v2: c_int = |library| Ok(library.scenario.cuda_driver_version);
    nvmlDeviceGetCount: c_uint = |library| Ok(library.scenario.devices.len() as c_uint);
    nvmlDeviceGetCount_v2: c_uint = |library| Ok(library.scenario.devices.len() as c_uint);
}

indices! {
    nvmlDeviceGetHandleByIndex;
    nvmlDeviceGetHandleByIndex_v2;
}

finders! {
    nvmlDeviceGetHandleByUUID = identity::by_uuid;
    nvmlDeviceGetHandleBySerial = identity::by_serial;
    nvmlDeviceGetHandleByPciBusId = identity::by_pci_bus_id;
    nvmlDeviceGetHandleByPciBusId_v2 = identity::by_pci_bus_id;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetProcessName(pid: c_uint, out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    let answer = |library: &mut Library| processes::name(&library.scenario, library.now(), pid);
    let name = library::call("nvmlSystemGetProcessName", |_| Ok(None), answer);
    // SAFETY: a caller of NVML hands over null or room for as many bytes as it says.
    reply(name.and_then(|name| unsafe { write_text(out, length, &name) }))
}
