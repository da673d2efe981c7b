//! Functions of event sets.

use super::{reply, write};
use crate::answers::events::{self, Event};
use crate::handle::Handle;
use crate::library;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_uint, c_ulonglong};
use std::ptr;
use std::time::Duration;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetCreate(out: *mut nvmlEventSet_t) -> nvmlReturn_t {
    reply(library::call(
        "nvmlEventSetCreate",
        |_| Ok(None),
        |library| {
            // A set that nobody can be given is not made, for nobody could free it.
            // SAFETY: a caller of NVML hands over null or room for the handle.
            unsafe { write(out, ptr::null_mut()) }?;
            let set = library.event_sets.create();
            // SAFETY: as above.
            unsafe { write(out, ptr::without_provenance_mut(set)) }
        },
    ))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    reply(library::call(
        "nvmlEventSetFree",
        |_| Ok(None),
        |library| library.event_sets.free(set.addr()),
    ))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    types: c_ulonglong,
    set: nvmlEventSet_t,
) -> nvmlReturn_t {
    let handle = Handle::from_raw(device);
    reply(library::change(
        "nvmlDeviceRegisterEvents",
        handle,
        |library, handle| events::register(library, handle, types, set.addr()),
    ))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    out: *mut nvmlEventData_t,
    timeout_ms: c_uint,
) -> nvmlReturn_t {
    let timeout = Duration::from_millis(u64::from(timeout_ms));
    let event = events::wait("nvmlEventSetWait_v2", set.addr(), timeout);
    // SAFETY: a caller of NVML hands over null or room for the event.
    reply(event.and_then(|event| unsafe { write(out, data(event)) }))
}

fn data(event: Event) -> nvmlEventData_t {
    nvmlEventData_t {
        device: event.device.raw(),
        eventType: event.event_type,
        eventData: event.data,
        gpuInstanceId: event.gpu_instance,
        computeInstanceId: event.compute_instance,
    }
}
