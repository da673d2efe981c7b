//! The fake as its callers meet it: through the unmodified nvml-wrapper, or as C does.
//!
//! Each test installs a copy of the library of its own, so all of them run side by side in one process.

mod devices;
mod driven;
mod events;
mod faults;
mod figures;
mod mig;
mod processes;
mod raw;

use fake_nvml::{Device, Installed, Scenario};
use nvml_wrapper::Nvml;

/// Installs a copy of the library.
fn install(scenario: &Scenario) -> Installed {
    Installed::new(scenario).expect("the library was built beside this test")
}

/// Installs a copy with one device.
fn install_device(device: Device) -> Installed {
    install(&Scenario {
        devices: vec![device],
        ..Scenario::default()
    })
}

/// Loads a copy as an exporter would.
fn init(installed: &Installed) -> Nvml {
    let path = installed.path();
    Nvml::builder()
        .lib_path(path.as_os_str())
        .init()
        .expect("the scenario lets it begin")
}
