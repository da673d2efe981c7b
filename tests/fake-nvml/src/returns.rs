//! What NVML's functions return: the codes that a scenario can name and their texts.

use nvml_wrapper_sys::bindings::nvmlReturn_t;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;

/// What a function answers: its result, or why there is none.
pub(crate) type Answer<T> = Result<T, NvmlReturn>;

/// Makes the enum of return codes from one table, so that name, number and text stand on one line.
macro_rules! returns {
    ($($variant:ident = $code:literal, $name:literal, $text:literal;)*) => {
        /// A return code of NVML other than success, under NVML's own name in a scenario.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum NvmlReturn {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        impl NvmlReturn {
            /// Returns the number that NVML gives this code.
            pub const fn code(self) -> nvmlReturn_t {
                match self {
                    $(Self::$variant => $code,)*
                }
            }
        }

        /// Returns what NVML says about a code to people.
        pub(crate) fn text(code: nvmlReturn_t) -> &'static CStr {
            match code {
                0 => c"Success",
                $($code => $text,)*
                _ => c"Unknown Error",
            }
        }
    };
}

returns! {
    Uninitialized = 1, "NVML_ERROR_UNINITIALIZED", c"Uninitialized";
    InvalidArgument = 2, "NVML_ERROR_INVALID_ARGUMENT", c"Invalid Argument";
    NotSupported = 3, "NVML_ERROR_NOT_SUPPORTED", c"Not Supported";
    NoPermission = 4, "NVML_ERROR_NO_PERMISSION", c"Insufficient Permissions";
    AlreadyInitialized = 5, "NVML_ERROR_ALREADY_INITIALIZED", c"Already Initialized";
    NotFound = 6, "NVML_ERROR_NOT_FOUND", c"Not Found";
    InsufficientSize = 7, "NVML_ERROR_INSUFFICIENT_SIZE", c"Insufficient Size";
    InsufficientPower = 8, "NVML_ERROR_INSUFFICIENT_POWER", c"Insufficient External Power";
    DriverNotLoaded = 9, "NVML_ERROR_DRIVER_NOT_LOADED", c"Driver Not Loaded";
    Timeout = 10, "NVML_ERROR_TIMEOUT", c"Timeout";
    IrqIssue = 11, "NVML_ERROR_IRQ_ISSUE", c"Interrupt Request Issue";
    LibraryNotFound = 12, "NVML_ERROR_LIBRARY_NOT_FOUND", c"NVML Shared Library Not Found";
    FunctionNotFound = 13, "NVML_ERROR_FUNCTION_NOT_FOUND", c"Function Not Found";
    CorruptedInforom = 14, "NVML_ERROR_CORRUPTED_INFOROM", c"Corrupted infoROM";
    GpuIsLost = 15, "NVML_ERROR_GPU_IS_LOST", c"GPU is lost";
    ResetRequired = 16, "NVML_ERROR_RESET_REQUIRED", c"GPU requires reset";
    OperatingSystem = 17, "NVML_ERROR_OPERATING_SYSTEM", c"The operating system has blocked the request.";
    LibRmVersionMismatch = 18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
        c"RM has detected an NVML/RM version mismatch.";
    InUse = 19, "NVML_ERROR_IN_USE", c"In use by another client";
    Memory = 20, "NVML_ERROR_MEMORY", c"Insufficient Memory";
    NoData = 21, "NVML_ERROR_NO_DATA", c"No data";
    InsufficientResources = 23, "NVML_ERROR_INSUFFICIENT_RESOURCES", c"Insufficient Resources";
    ArgumentVersionMismatch = 25, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH", c"Argument version mismatch";
    NotReady = 27, "NVML_ERROR_NOT_READY", c"System is not ready for the request";
    GpuNotFound = 28, "NVML_ERROR_GPU_NOT_FOUND", c"No GPUs were found";
    Unknown = 999, "NVML_ERROR_UNKNOWN", c"Unknown Error";
}
