//! NVML's functions, as C calls them: pointers become values here, and values become what pointers point to.
//!
//! Nothing is decided here. Names are counted, delayed and failed as they stand, so an older name of a function is
//! another function. What this crate does not have is not exported: callers look symbols up one by one.
#![expect(unsafe_code, reason = "callers hand over pointers")]

mod control;
mod events;
mod getters;
mod gpm;
mod lists;
mod system;

use crate::returns::{Answer, NvmlReturn};
use nvml_wrapper_sys::bindings::{nvmlReturn_enum_NVML_SUCCESS, nvmlReturn_t};
use std::ffi::{CStr, c_char, c_uint};
use std::ptr;

/// Makes of an answer what a function returns.
fn reply(answer: Answer<()>) -> nvmlReturn_t {
    answer.map_or_else(NvmlReturn::code, |()| nvmlReturn_enum_NVML_SUCCESS)
}

/// Writes a value where a caller wants it.
///
/// # Safety
///
/// `out` is null, or may be written to.
unsafe fn write<T>(out: *mut T, value: T) -> Answer<()> {
    if out.is_null() {
        return Err(NvmlReturn::InvalidArgument);
    }
    // SAFETY: it is not null, so the caller may be taken at its word.
    unsafe { out.write(value) };
    Ok(())
}

/// Writes a text and its end where a caller has room for `length` bytes.
///
/// # Safety
///
/// `out` is null, or that many bytes may be written to it.
unsafe fn write_text(out: *mut c_char, length: c_uint, text: &str) -> Answer<()> {
    if out.is_null() {
        return Err(NvmlReturn::InvalidArgument);
    }
    if text.len() >= length as usize {
        return Err(NvmlReturn::InsufficientSize);
    }
    // SAFETY: there is room for the text and its end, as was just seen.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), out, text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// Reads a text that a caller hands over.
///
/// # Safety
///
/// `text` is null, or a C string that lives as long as the result.
unsafe fn read_text<'a>(text: *const c_char) -> Answer<&'a str> {
    if text.is_null() {
        return Err(NvmlReturn::InvalidArgument);
    }
    // SAFETY: it is not null, so it is a C string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| NvmlReturn::InvalidArgument)
}

/// Writes a list by NVML's protocol: `count` is the room before and the number of items after, and a list that does
/// not fit is not written at all.
///
/// # Safety
///
/// `count` is null or may be read and written, and `out` is null or has room for as many items as `count` says.
unsafe fn write_list<T: Copy>(items: &[T], count: *mut c_uint, out: *mut T) -> Answer<()> {
    if count.is_null() {
        return Err(NvmlReturn::InvalidArgument);
    }
    // SAFETY: it is not null, so it may be read and written.
    let room = unsafe { count.replace(items.len() as c_uint) };
    if items.is_empty() {
        return Ok(());
    }
    if out.is_null() || items.len() > room as usize {
        return Err(NvmlReturn::InsufficientSize);
    }
    // SAFETY: there is room for all of them, as was just seen.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr(), out, items.len()) };
    Ok(())
}
