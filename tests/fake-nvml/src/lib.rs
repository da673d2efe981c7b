//! An NVIDIA driver's library without the driver: what it answers stands in a file.
//!
//! Built as a `cdylib`, this crate is a `libnvidia-ml.so.1` that programs load as they are: our exporter through
//! nvml-wrapper, others through pynvml or C. It answers from a *scenario*, which says which devices there are, what
//! they read from second to second, which calls fail, and which hang. What it cannot show is how the real library
//! lays out its structs, since both sides take them from the same bindings, and how long its calls really take.
//!
//! As an `rlib`, it has the scenario as types, cards that are ready to use, and [`Installed`], which gives a test a
//! copy of the library with a state of its own.
//!
//! # In a Rust test
//!
//! ```no_run
//! use fake_nvml::{Installed, Scenario, Steps, h200};
//!
//! let mut device = h200();
//! device.figures.power_milliwatts = Steps::of([(0.0, 75_000.0), (10.0, 690_000.0)]);
//! let installed = Installed::new(&Scenario::of([device])).unwrap();
//! // let nvml = Nvml::builder().lib_path(installed.path().as_os_str()).init()?;
//! installed.set_time(12.0);
//! // 75 W for 10 s and 690 W for 2 s: `total_energy_consumption` returns 2 130 000 mJ.
//! ```
//!
//! Cargo builds the library for every package that has this crate among its dev-dependencies.
//!
//! # A scenario as a file
//!
//! A figure is a list of `[second, value]`, or one number if it never changes. A figure that is left out is one that
//! the card does not have: its functions return `NVML_ERROR_NOT_SUPPORTED`. Keys that do not exist are refused.
//!
//! ```
//! let scenario: fake_nvml::Scenario = serde_json::from_str(r#"
//! {
//!   "driverVersion": "580.159.03",
//!   "devices": [
//!     {
//!       "name": "NVIDIA A10",
//!       "uuid": "GPU-00000000-0000-0000-0000-000000000001",
//!       "pci": { "bus": 24 },
//!       "memoryTotalBytes": 24146608128,
//!       "supportedEventTypes": 8,
//!       "samples": true,
//!       "figures": {
//!         "gpuUtilizationPercent": [[0, 0], [10, 95], [60, 0]],
//!         "memoryUtilizationPercent": 0,
//!         "memoryUsedBytes": [[0, 0], [10, 8000000000], [60, 0]],
//!         "powerMilliwatts": [[0, 16000], [10, 148000], [60, 16000]]
//!       },
//!       "processes": [
//!         {
//!           "pid": 4001, "name": "python3", "begin": 10, "end": 60,
//!           "memoryUsedBytes": 8000000000, "smUtilizationPercent": 95
//!         }
//!       ],
//!       "xids": [{ "at": 45, "code": 31 }]
//!     }
//!   ],
//!   "faults": [
//!     { "function": "*", "device": 0, "from": 90, "returns": "NVML_ERROR_GPU_IS_LOST" }
//!   ],
//!   "delays": [
//!     { "function": "nvmlDeviceGetPowerUsage", "from": 70, "to": 80, "milliseconds": 30000 }
//!   ]
//! }
//! "#).unwrap();
//!
//! assert_eq!(scenario.devices[0].figures.gpu_utilization_percent.at(12.0), Some(95.0));
//! assert!(!scenario.devices[0].figures.temperature_celsius.is_supported());
//! ```
//!
//! Time stands at second 0 until it is moved; with `"clock": "real"` it passes, from the first `nvmlInit` on, and with
//! `"clock": "file"` it is what stands in the file `time` beside the library, which moves it for other processes. Calls that
//! are slow take real time with each clock, and so do waits for events.
//!
//! # In other languages
//!
//! ```sh
//! cargo build -p fake-nvml
//! mkdir fake && cp target/debug/libfake_nvml.so fake/libnvidia-ml.so.1
//! cp my-scenario.json fake/scenario.json   # Or name it in FAKE_NVML_SCENARIO.
//! LD_LIBRARY_PATH=fake python3 my_test.py  # With `pip install nvidia-ml-py`.
//! ```
//!
//! ```python
//! import ctypes, pynvml
//!
//! pynvml.nvmlInit()
//! device = pynvml.nvmlDeviceGetHandleByIndex(0)
//! fake = ctypes.CDLL("libnvidia-ml.so.1")
//! fake.fakeNvmlSetTime(ctypes.c_double(50))
//! print(pynvml.nvmlDeviceGetUtilizationRates(device).gpu)         # 95
//! print(pynvml.nvmlDeviceGetTotalEnergyConsumption(device))      # 6080000
//! print(fake.fakeNvmlCalls(b"nvmlDeviceGetUtilizationRates"))    # 1
//! ```
//!
//! Five functions are the fake's own: `fakeNvmlSetTime(double)`, `fakeNvmlAdvance(double)`,
//! `fakeNvmlCalls(const char *)`, which returns 64 bits, `fakeNvmlCalled(char *, unsigned)`, which writes the names of
//! what was called, and `fakeNvmlLoadScenario(const char *)`; the last two return NVML's codes. Without a scenario, `nvmlInit` returns `NVML_ERROR_DRIVER_NOT_LOADED`; why a file could not be read
//! stands on stderr.

mod abi;
mod answers;
mod driven;
mod handle;
mod installed;
mod library;
mod profiles;
mod returns;
mod scenario;
mod source;
mod steps;

pub use driven::DRIVEN;
pub use installed::{InstallError, Installed};
pub use profiles::{a10, h100_with_mig, h200};
pub use returns::NvmlReturn;
pub use scenario::{
    Clock, Clocks, Delay, Device, Fault, Figures, Mig, MigInstance, NvLink, Pci, PowerLimits, Process,
    ProcessKind, Scenario, Xid,
};
pub use steps::Steps;
