//! Functions that NVML does not have: they move the time, change the scenario and count calls.

use super::{read_text, reply, write_text};
use crate::library;
use nvml_wrapper_sys::bindings::nvmlReturn_t;
use std::ffi::{c_char, c_double, c_uint};
use std::path::PathBuf;

/// Sets the time, in seconds of the scenario. With a real clock it goes on from there.
#[unsafe(no_mangle)]
extern "C" fn fakeNvmlSetTime(seconds: c_double) {
    library::set_time(|_| seconds);
}

/// Lets some seconds pass at once.
#[unsafe(no_mangle)]
extern "C" fn fakeNvmlAdvance(seconds: c_double) {
    library::set_time(|now| now + seconds);
}

/// Returns how often a function was called, whatever it returned; `*` is all of NVML's functions together.
#[unsafe(no_mangle)]
unsafe extern "C" fn fakeNvmlCalls(function: *const c_char) -> u64 {
    // SAFETY: the caller hands over null or a C string.
    unsafe { read_text(function) }.map_or(0, library::n_calls)
}

/// Writes the names of all functions that were called, each in a line of its own and in the order of the alphabet.
#[unsafe(no_mangle)]
unsafe extern "C" fn fakeNvmlCalled(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    // SAFETY: the caller hands over null or room for as many bytes as it says.
    reply(unsafe { write_text(out, length, &library::called()) })
}

/// Answers from another scenario from now on, and after every later `nvmlInit`; one that cannot be read changes nothing.
#[unsafe(no_mangle)]
unsafe extern "C" fn fakeNvmlLoadScenario(path: *const c_char) -> nvmlReturn_t {
    // SAFETY: the caller hands over null or a C string.
    let path = unsafe { read_text(path) };
    reply(path.and_then(|path| library::replace_scenario(PathBuf::from(path))))
}
