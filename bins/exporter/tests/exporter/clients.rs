//! Clients that are slow, silent or many, and signals.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::Instant,
};

use fake_nvml::{Delay, Installed, Scenario, a10, h100_with_mig};
use rustix::process::Signal;

use super::program::{LONG, Server, install, lines};

/// More than may be connected at a time.
const MANY: usize = 300;

fn library() -> Installed {
    install(&Scenario::of([a10()]))
}

/// A client that sends half a request and nothing more.
fn half_a_request(server: &Server) -> TcpStream {
    let mut client = server.connect();
    client.write_all(b"GET /met").expect("it listens");
    client
}

/// Returns when the other side has closed.
fn is_closed(mut client: TcpStream) {
    let read = client.read_to_end(&mut Vec::new());
    // A reset is an end, too; that nothing came for long is none.
    let error = read.err().map(|error| error.kind());
    assert!(
        matches!(error, None | Some(ErrorKind::ConnectionReset)),
        "{error:?}"
    );
}

#[test]
fn it_ends_when_it_is_asked_to_though_a_client_has_sent_half_a_request() {
    let library = library();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&[], &library);
        let _client = half_a_request(&server);
        // The half is taken in before anything that comes later.
        assert_eq!(server.get("/health", &[]).status, 200);
        server.signal(signal);
        assert!(server.ended().success());
    }
}

#[test]
fn it_ends_when_it_is_asked_to_though_a_scrape_waits_for_a_driver_that_hangs() {
    let mut scenario = Scenario::of([a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetPowerUsage", None, 3_600_000)];
    let library = install(&scenario);
    let mut server = Server::start(&["--wait", "3600000"], &library);
    let mut client = server.connect();
    let scrape = "GET /metrics HTTP/1.1\r\nHost: a\r\nX-Prometheus-Scrape-Timeout-Seconds: 3600\r\n\r\n";
    client.write_all(scrape.as_bytes()).expect("it listens");
    assert_eq!(server.get("/health", &[]).status, 200);
    server.signal(Signal::TERM);
    assert!(server.ended().success());
}

#[test]
fn half_a_request_is_not_waited_for_without_end() {
    let library = library();
    let server = Server::start(&[], &library);
    is_closed(half_a_request(&server));
    is_closed(server.connect());
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn many_who_send_nothing_keep_nobody_out() {
    let library = library();
    let server = Server::with_files(128, &library);
    let mut clients: Vec<_> = std::iter::repeat_with(|| half_a_request(&server))
        .take(MANY)
        .collect();
    assert_eq!(server.get("/health", &[]).status, 200);
    assert!(
        server
            .get("/metrics", &[])
            .text()
            .contains("blueproof_gpu_probe_up 1\n")
    );
    is_closed(clients.remove(0));
}

#[test]
fn who_does_not_read_its_answers_is_not_waited_for_without_end() {
    let library = library();
    let server = Server::start(&[], &library);
    let mut client = server.connect();
    client.set_nonblocking(true).expect("it can be asked not to wait");
    let asks = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
    // As long as the other side is waited for, nothing more of what is asked is taken.
    let taken = |client: &mut TcpStream| match client.write(&asks) {
        Ok(_) => None,
        Err(error) => Some(error.kind()),
    };
    while taken(&mut client) != Some(ErrorKind::WouldBlock) {}
    assert_eq!(server.get("/health", &[]).status, 200);
    let began = Instant::now();
    while taken(&mut client).is_none_or(|kind| kind == ErrorKind::WouldBlock) {
        assert!(began.elapsed() < LONG, "it is closed");
        thread::yield_now();
    }
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn whether_it_is_alive_is_answered_though_all_others_wait_for_a_driver_that_hangs() {
    let mut scenario = Scenario::of([a10()]);
    scenario.delays = vec![Delay::always("nvmlDeviceGetCount_v2", None, 3_600_000)];
    let library = install(&scenario);
    let server = Server::with_files(128, &library);
    let ask = b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Prometheus-Scrape-Timeout-Seconds: 3600\r\n\r\n";
    let mut scrapers = Vec::new();
    for _ in 0..MANY {
        let mut scraper = server.connect();
        scraper.write_all(ask).expect("it listens");
        scrapers.push(scraper);
        assert_eq!(server.get("/health", &[]).status, 200);
    }
}

/// Returns the first line of the answer to these bytes, and whether it has a body.
fn answered(server: &Server, request: &str) -> (String, bool) {
    let mut client = server.connect();
    // Whoever is refused early may be refused before all is sent.
    let _ = client.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    (status.to_owned(), !body.is_empty())
}

#[test]
fn what_nobody_serves_is_refused_with_its_status() {
    let library = library();
    let server = Server::start(&[], &library);
    let asks = |line: &str, headers: &str| {
        format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n")
    };
    let long = format!("X-Long: {}\r\n", "a".repeat(1 << 20));
    for (request, status) in [
        (asks("GET /nowhere", ""), "404"),
        (asks("GET /../etc/passwd", ""), "404"),
        (asks("POST /metrics", "Content-Length: 0\r\n"), "405"),
        (asks("DELETE /metrics/dcgm", ""), "405"),
        (asks("GET /metrics", &long), "431"),
    ] {
        let (told, _) = answered(&server, &request);
        assert!(told.contains(status), "{status} for {}: {told}", &request[..20]);
    }
    let (told, has_body) = answered(&server, &asks("HEAD /metrics", ""));
    assert!(told.contains("200") && !has_body, "{told}");
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn fifty_scrapers_at_once_get_the_same_page_whole() {
    let library = install(&Scenario::of([a10(), a10()]));
    let server = Server::start(&[], &library);
    let expected = lines(&server.get("/metrics/dcgm", &[]).text(), "DCGM_FI_DEV_FB_FREE");
    assert_eq!(expected.len(), 2);
    thread::scope(|scope| {
        let scrapers: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| server.get("/metrics/dcgm", &[]).text()))
            .collect();
        for scraper in scrapers {
            let page = scraper.join().expect("it is answered");
            assert_eq!(lines(&page, "DCGM_FI_DEV_FB_FREE"), expected);
        }
    });
}

#[test]
fn fifty_scrapers_at_once_of_sixteen_divided_devices_take_no_more_than_forty_mebibytes() {
    let devices = (0..16).map(|number| h100_with_mig(7).numbered(number));
    let library = install(&Scenario::of(devices));
    let server = Server::start(&[], &library);
    thread::scope(|scope| {
        for path in ["/metrics", "/metrics/dcgm"].repeat(25) {
            let server = &server;
            scope.spawn(move || assert_eq!(server.get(path, &[]).status, 200));
        }
    });
    let peak = server.memory_peak();
    assert!(peak < 40 << 20, "{} MiB", peak >> 20);
}

#[test]
fn a_hang_up_reads_the_file_of_fields_anew_and_a_broken_one_changes_nothing() {
    let library = library();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counters.csv");
    let write = |text: &str| std::fs::write(&file, text).expect("a file");
    write("DCGM_FI_DEV_GPU_TEMP, gauge, how warm\n");
    let mut server = Server::start(&["-f", file.to_str().expect("it is text")], &library);
    let shown = |server: &Server, field: &str| !lines(&server.get("/metrics", &[]).text(), field).is_empty();
    assert!(shown(&server, "DCGM_FI_DEV_GPU_TEMP{") && !shown(&server, "DCGM_FI_DEV_FB_FREE{"));

    write("DCGM_FI_DEV_FB_FREE, gauge, what is left\n");
    server.signal(Signal::HUP);
    server.log_until("the driver is opened again");
    assert!(!shown(&server, "DCGM_FI_DEV_GPU_TEMP{") && shown(&server, "DCGM_FI_DEV_FB_FREE{"));

    write("no field of any kind\n");
    server.signal(Signal::HUP);
    let log = server.log_until("the driver is opened again");
    assert!(
        log.contains("BP0920") && log.contains("the fields of before"),
        "{log}"
    );
    assert!(shown(&server, "DCGM_FI_DEV_FB_FREE{"));
}

#[test]
fn the_driver_is_closed_and_opened_again_by_signals() {
    let library = library();
    let mut server = Server::start(&[], &library);
    let up = |server: &Server| lines(&server.get("/metrics", &[]).text(), "blueproof_gpu_probe_");
    let xids = |server: &Server| {
        let page = server.get("/metrics/native", &[]).text();
        let found = lines(&page, "blueproof_gpu_health{");
        let found = found.into_iter().filter(|line| line.contains("check=\"xids\""));
        found.collect::<Vec<_>>()
    };
    assert_eq!(up(&server), ["blueproof_gpu_probe_up 1"]);
    assert!(xids(&server).iter().all(|line| line.contains("\"ok\"")));
    server.signal(Signal::USR1);
    server.log_until("the driver is closed");
    assert_eq!(
        up(&server),
        [
            "blueproof_gpu_probe_up 0",
            "blueproof_gpu_probe_blind{reason=\"released\"} 1"
        ]
    );
    server.signal(Signal::HUP);
    server.log_until("the driver is opened again");
    assert_eq!(up(&server), ["blueproof_gpu_probe_up 1"]);

    // Nobody listened meanwhile.
    assert!(xids(&server).iter().all(|line| line.contains("unknown")));
    let dcgm = server.get("/metrics/dcgm", &[]).text();
    assert!(lines(&dcgm, "DCGM_FI_DEV_XID_ERRORS{").is_empty(), "{dcgm}");
}
