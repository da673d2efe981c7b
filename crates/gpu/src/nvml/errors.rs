//! From NVML's errors to ours: what a card does not have is told apart from what could not be read.

use blueproof_core::{
    gpu::{Fault, FaultKind, Reading},
    ports::{ProbeError, ProbeErrorKind},
};
use blueproof_diagnostic::{Code, Diagnostic};
use nvml_wrapper::error::NvmlError;

use super::progress::go_on;

/// Returns what came of a call.
pub(super) fn read<T>(result: Result<T, NvmlError>) -> Reading<T> {
    go_on();
    match result {
        Ok(value) => Reading::Value(value),
        Err(error) => unread(&error),
    }
}

/// Returns that something could not be read, or cannot be read at all.
pub(super) fn unread<T>(error: &NvmlError) -> Reading<T> {
    if is_unsupported(error) {
        return Reading::Unsupported;
    }
    Reading::Failed(fault(error))
}

/// Returns why something could not be read.
pub(super) fn fault(error: &NvmlError) -> Fault {
    let kind = if matches!(error, NvmlError::GpuLost) {
        FaultKind::Lost
    } else if matches!(
        error,
        // Of a device, the last one is that this process was not given its file.
        NvmlError::NoPermission | NvmlError::OperatingSystem | NvmlError::DriverNotLoaded
    ) {
        FaultKind::NoPermission
    } else {
        FaultKind::Driver
    };
    Fault::new(kind, word(error))
}

/// Returns what is said of whatever a device does not tell because it does not answer.
pub(super) fn hangs() -> Fault {
    Fault::new(FaultKind::Hangs, "NOT_ANSWERING")
}

/// Returns whether a card, or its driver, does not have something: an older library lacks the function.
fn is_unsupported(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound
    )
}

/// Returns NVML's own word, without what all of them begin with, or the number of one that is newer than this program.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list is the wrapper's, and grows"
)]
fn word(error: &NvmlError) -> String {
    let word = match error {
        NvmlError::Uninitialized => "UNINITIALIZED",
        NvmlError::InvalidArg => "INVALID_ARGUMENT",
        NvmlError::NotSupported => "NOT_SUPPORTED",
        NvmlError::NoPermission => "NO_PERMISSION",
        NvmlError::NotFound => "NOT_FOUND",
        NvmlError::InsufficientSize(_) => "INSUFFICIENT_SIZE",
        NvmlError::InsufficientPower => "INSUFFICIENT_POWER",
        NvmlError::DriverNotLoaded => "DRIVER_NOT_LOADED",
        NvmlError::Timeout => "TIMEOUT",
        NvmlError::IrqIssue => "IRQ_ISSUE",
        NvmlError::LibraryNotFound => "LIBRARY_NOT_FOUND",
        NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => "FUNCTION_NOT_FOUND",
        NvmlError::CorruptedInfoROM => "CORRUPTED_INFOROM",
        NvmlError::GpuLost => "GPU_IS_LOST",
        NvmlError::ResetRequired => "RESET_REQUIRED",
        NvmlError::OperatingSystem => "OPERATING_SYSTEM",
        NvmlError::LibRmVersionMismatch => "LIB_RM_VERSION_MISMATCH",
        NvmlError::InUse => "IN_USE",
        NvmlError::InsufficientMemory => "MEMORY",
        NvmlError::NoData => "NO_DATA",
        NvmlError::UnexpectedVariant(number) => return format!("ERROR_{number}"),
        _ => "UNKNOWN",
    };
    word.to_owned()
}

/// Returns why nothing can be said of any device.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list is the wrapper's, and grows"
)]
pub(super) fn blind(what: &str, error: &NvmlError) -> ProbeError {
    let (reason, code, hint) = match error {
        NvmlError::LibloadingError(why) if !is_missing(&why.to_string()) => (
            ProbeErrorKind::DriverError,
            Code::GpuLibrary,
            "what is there is no library of the driver: install the driver anew, or name another one with `--library`",
        ),
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => (
            ProbeErrorKind::LibraryMissing,
            Code::GpuLibrary,
            "install the NVIDIA driver, or run in a container that is given its libraries (runtime class `nvidia`)",
        ),
        NvmlError::DriverNotLoaded => (
            ProbeErrorKind::DriverNotLoaded,
            Code::GpuDriver,
            "load it (`modprobe nvidia`), and see `dmesg | grep -i nvrm` for why it is not",
        ),
        NvmlError::NoPermission | NvmlError::OperatingSystem => (
            ProbeErrorKind::NoPermission,
            Code::GpuPermission,
            "let this user open /dev/nvidiactl and /dev/nvidia*; in a container, ask for a GPU or for the devices",
        ),
        NvmlError::LibRmVersionMismatch => (
            ProbeErrorKind::VersionMismatch,
            Code::GpuVersions,
            "the driver was updated and not loaded anew: restart the machine, or unload and load its modules",
        ),
        _ => (
            ProbeErrorKind::DriverError,
            Code::GpuDriverError,
            "see what `nvidia-smi` and `dmesg | grep -i -e nvrm -e xid` say",
        ),
    };
    let diagnostic = Diagnostic::error(code, what)
        .because(error.to_string())
        .hint(hint);
    ProbeError {
        reason,
        diagnostic: Box::new(diagnostic),
    }
}

/// Returns whether a loader says that there is no such file, in the words of the C library.
fn is_missing(words: &str) -> bool {
    words.contains("No such file or directory")
}

/// Returns that no device says who it is, where there are some.
pub(super) fn silent(devices: u32, because: &[Fault]) -> ProbeError {
    let may_not = |fault: &Fault| fault.kind == FaultKind::NoPermission;
    if because.len() == devices as usize && because.iter().all(may_not) {
        return blind(
            "could not use any of the NVIDIA devices",
            &NvmlError::NoPermission,
        );
    }
    let message = format!("none of {devices} NVIDIA devices says who it is");
    let diagnostic = Diagnostic::error(Code::GpuHangs, message)
        .because("the driver counts them, and does not answer what is asked of them")
        .hint("see what `dmesg | grep -i -e nvrm -e xid` says; a device that hangs needs a reset, or a restart of the machine");
    ProbeError {
        reason: ProbeErrorKind::NotAnswering,
        diagnostic: Box::new(diagnostic),
    }
}
