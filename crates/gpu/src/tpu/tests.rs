//! Pages as GKE's device plugin has them, with other values.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use blueproof_core::testing::contract::probe_keeps_its_promises;

use super::{page::tpus, *};

const PAGE: &str = r#"# HELP duty_cycle Percentage of time over the sample period during which the accelerator was processing
# TYPE duty_cycle gauge
duty_cycle{make="cloud-tpu",model="tpu-v6e-slice",tpu_topology="2x4",accelerator_id="77-0",container="c",namespace="n",pod="p"} 37.5
duty_cycle{make="cloud-tpu",model="tpu-v6e-slice",accelerator_id="77-1",container="c",namespace="n",pod="a,b=\"c\"}\\"} 0
tensorcore_utilization{make="cloud-tpu",model="tpu-v6e-slice",accelerator_id="77-0"} 12.5
memory_bandwidth_utilization{accelerator_id="77-0",make="cloud-tpu",model="tpu-v6e-slice",} 50 1767225600000
memory_used{make="cloud-tpu",model="tpu-v6e-slice",accelerator_id="77-0"} 1.073741824e+09
memory_total{make="cloud-tpu",model="tpu-v6e-slice",accelerator_id="77-0"} 3.4359738368e+10
memory_total{make="cloud-tpu",model="tpu-v6e-slice",accelerator_id="77-1"} NaN
duty_cycle{make="nvidia",model="nvidia-l4",accelerator_id="GPU-1"} 99
request_count 7
"#;

/// Serves one page again and again, until the test ends.
fn serve(page: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has one");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("somebody asks");
            let asked = BufReader::new(stream.try_clone().expect("a second handle"));
            let asked = asked.lines().map_while(Result::ok);
            asked.take_while(|line| !line.is_empty()).for_each(drop);
            let length = page.len();
            // Who asked may be gone already.
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
            );
        }
    });
    format!("http://{address}/metrics")
}

#[test]
fn it_keeps_the_promises_of_the_port() {
    probe_keeps_its_promises(&mut TpuProbe::new(serve(PAGE)));
}

#[test]
fn a_page_is_devices_and_what_they_do() {
    let mut probe = TpuProbe::new(serve(PAGE));
    let inventory = probe.inventory().expect("it answers");
    let names: Vec<_> = inventory
        .devices
        .iter()
        .map(|device| device.uuid.0.as_str())
        .collect();
    assert_eq!(names, ["TPU-77-0", "TPU-77-1"], "a GPU on such a page is none");
    let [first, second] = &inventory.devices[..] else {
        panic!("two")
    };
    assert_eq!(
        (first.vendor, first.model.as_str()),
        (Vendor::Google, "tpu-v6e-slice")
    );
    assert_eq!(first.memory, Reading::Value(Bytes(32 << 30)));
    assert_eq!(
        second.memory,
        Reading::Unsupported,
        "what is no number is not told"
    );

    let snapshot = probe.snapshot().expect("it answers");
    let sample = snapshot.of(&first.uuid).expect("it was read");
    for (figure, expected) in [
        (Figure::Utilization, 0.375),
        (Figure::TensorActive, 0.125),
        (Figure::DramActive, 0.5),
        (Figure::MemoryUsed, f64::from(1 << 30)),
        (Figure::MemoryFree, 31.0 * f64::from(1 << 30)),
    ] {
        assert_eq!(sample.readings.value(figure), Some(expected), "{figure:?}");
    }
    let sample = snapshot.of(&second.uuid).expect("it was read");
    assert_eq!(sample.readings.value(Figure::Utilization), Some(0.0));
    assert_eq!(sample.readings.get(Figure::TensorActive), Reading::Unsupported);
}

#[test]
fn a_plugin_that_is_not_there_or_serves_something_else_is_told_so() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/metrics", free.local_addr().expect("it has one"));
    drop(free);
    let gone = TpuProbe::new(address).inventory().expect_err("nobody listens");
    assert_eq!(
        (gone.reason, gone.diagnostic.code),
        (ProbeErrorKind::NotAnswering, Code::TpuPlugin)
    );
    let other = TpuProbe::new(serve("<html>hello</html>"))
        .snapshot()
        .expect_err("no page");
    assert_eq!(other.reason, ProbeErrorKind::DriverError);
    assert_eq!(
        other.diagnostic.causes,
        ["line 1 of its page is not Prometheus' text"]
    );
}

#[test]
fn whatever_is_no_line_is_counted_from_the_top() {
    for (page, expected) in [
        ("", Ok(0)),
        ("# only a word\n\n", Ok(0)),
        ("duty_cycle 3\n", Ok(0)),
        ("duty_cycle{make=\"cloud-tpu\",accelerator_id=\"\"} 3\n", Ok(0)),
        ("duty_cycle{make=\"cloud-tpu\",accelerator_id=\"1\"} 3", Ok(1)),
        ("duty_cycle{make=\"cloud-tpu\",accelerator_id=\"1\"}", Err(1)),
        ("# a\nduty_cycle{make=\"cloud", Err(2)),
        ("duty_cycle{make} 3", Err(1)),
        ("{a=\"b\"} 3", Err(1)),
        ("duty_cycle x", Err(1)),
    ] {
        assert_eq!(tpus(page).map(|tpus| tpus.len()), expected, "{page:?}");
    }
}
