//! Devices that answer, and tell nothing.

use fake_nvml::{Clock, Fault, Installed, NvmlReturn, Scenario, a10};

use super::program::{Server, install, lines, once, text};

fn two(faults: Vec<Fault>) -> Installed {
    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.clock = Clock::File;
    scenario.faults = faults;
    install(&scenario)
}

fn from(second: f64, device: Option<usize>, returns: NvmlReturn) -> Fault {
    Fault {
        function: "*".into(),
        device,
        from: second,
        to: None,
        returns,
    }
}

#[test]
fn a_device_of_which_every_call_fails_is_not_read_whatever_they_say() {
    for (returns, word, code) in [
        (NvmlReturn::ResetRequired, "RESET_REQUIRED", "BP0918"),
        (NvmlReturn::Unknown, "UNKNOWN", "BP0918"),
        (NvmlReturn::Timeout, "TIMEOUT", "BP0918"),
        (NvmlReturn::NoPermission, "NO_PERMISSION", "BP0903"),
    ] {
        let library = two(vec![from(5.0, Some(1), returns)]);
        let server = Server::start(&[], &library);
        assert_eq!(server.get("/ready", &[]).status, 200);
        library.write_time(6.0).expect("it can be written");
        let ready = server.get("/ready", &[]);
        assert_eq!(ready.status, 503, "{word}");
        let says = ready.text();
        assert!(
            says.contains("1 of 2 devices") && says.contains(word) && says.contains(code),
            "{says}"
        );
        let page = server.get("/metrics", &[]).text();
        assert!(page.contains("blueproof_gpu_probe_up 1\n"), "{page}");
        let dcgm = server.get("/metrics/dcgm", &[]).text();
        assert_eq!(lines(&dcgm, "DCGM_FI_DEV_XID_ERRORS{").len(), 1, "{dcgm}");
    }
}

#[test]
fn the_driver_is_not_up_where_all_devices_are_silent_or_lost() {
    for (returns, reason) in [
        (NvmlReturn::ResetRequired, "driver_error"),
        (NvmlReturn::NoPermission, "no_permission"),
        (NvmlReturn::GpuIsLost, "not_answering"),
    ] {
        let library = two([0, 1].map(|device| from(5.0, Some(device), returns)).into());
        let server = Server::start(&[], &library);
        assert_eq!(server.get("/ready", &[]).status, 200);
        library.write_time(6.0).expect("it can be written");
        let page = server.get("/metrics", &[]).text();
        let blind = format!("blueproof_gpu_probe_blind{{reason=\"{reason}\"}} 1\n");
        for line in ["blueproof_gpu_probe_up 0\n", &blind] {
            assert!(page.contains(line), "{line} in {page}");
        }
        assert!(!page.contains("collection_failures_total 0\n"), "{page}");
    }
}

#[test]
fn a_device_that_this_process_may_not_use_is_not_said_to_be_broken() {
    for returns in [NvmlReturn::NoPermission, NvmlReturn::DriverNotLoaded] {
        let may_not = Fault::always("nvmlDeviceGetHandleByIndex_v2", Some(1), returns);
        let library = two(vec![may_not]);
        let server = Server::start(&[], &library);
        let ready = server.get("/ready", &[]);
        let says = ready.text();
        assert_eq!(ready.status, 503, "{says}");
        assert!(
            says.contains("BP0903") && says.contains("a container") && !says.contains("reset"),
            "{says}"
        );
    }
}

#[test]
fn a_device_is_known_by_its_uuid_and_not_by_its_name() {
    let nameless = Fault::always("nvmlDeviceGetName", Some(0), NvmlReturn::Unknown);
    let output = once(&two(vec![nameless]), &[]);
    assert!(output.status.success(), "{output:?}");
    let page = text(&output.stdout);
    assert!(
        page.contains("blueproof_gpus{kind=\"unidentified\"} 0\n"),
        "{page}"
    );
    assert_eq!(lines(&page, "blueproof_gpu_info{").len(), 2, "{page}");

    let mut scenario = Scenario::of([a10(), a10()]);
    scenario.devices[1].uuid = String::new();
    let page = text(&once(&install(&scenario), &[]).stdout);
    assert!(
        page.contains("blueproof_gpus{kind=\"unidentified\"} 1\n"),
        "{page}"
    );
    assert!(!page.contains("uuid=\"\""), "{page}");
}
