//! Recordings, and files that are none.

use blueproof_core::{
    gpu::DeviceUuid,
    testing::{FakeProbe, contract::probe_keeps_its_promises, device, snapshot},
};
use jiff::Timestamp;

use super::*;

fn event(xid: u64) -> DeviceEvent {
    DeviceEvent {
        at: Timestamp::UNIX_EPOCH,
        device: DeviceUuid("GPU-00000000".into()),
        xid,
    }
}

/// A file that can be looked at while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Two snapshots with an event between them.
fn recording() -> Vec<u8> {
    let file = Shared::default();
    let probe = FakeProbe::of(vec![device(0)]);
    for second in [10, 20] {
        probe.will_read(snapshot(second, &[device(0)]));
    }
    let mut recorder = Recorder::new(probe.clone(), file.clone());
    recorder.inventory().expect("it is there");
    recorder.snapshot().expect("it is there");
    probe.report(event(31));
    recorder.events().take();
    recorder.snapshot().expect("it is there");
    file.0.lock().expect("nobody panics").clone()
}

fn recorded(file: &[u8]) -> Result<Recorded, Diagnostic> {
    Recorded::read("gpus.jsonl", file)
}

#[test]
fn what_was_read_is_played_back_in_its_order() {
    let mut probe = recorded(&recording()).expect("it was written here");
    assert_eq!(probe.inventory().expect("recorded").devices, [device(0)]);
    assert_eq!(
        probe.snapshot().expect("recorded").at,
        Timestamp::from_second(10).expect("small")
    );
    assert!(!probe.is_over());
    assert_eq!(probe.events().take(), [event(31)]);
    assert_eq!(probe.events().take(), []);
    assert_eq!(probe.events().listened_to(), [device(0).uuid].into());
    let last = probe.snapshot().expect("recorded");
    assert_eq!(last.at, Timestamp::from_second(20).expect("small"));
    assert!(probe.is_over());
    assert_eq!(probe.snapshot().expect("recorded").at, last.at);
}

#[test]
fn a_recording_keeps_the_promises_of_the_port() {
    probe_keeps_its_promises(&mut recorded(&recording()).expect("it was written here"));
}

#[test]
fn a_file_that_is_no_recording_is_refused_at_its_line() {
    let text = String::from_utf8(recording()).expect("it is text");
    let broken = text.replacen("\"snapshot\"", "\"snap\"", 1);
    let newer = text.replacen("\"version\":2", "\"version\":9", 1);
    let none = text.lines().next().expect("a header").to_owned() + "\n";
    for (text, line, says) in [
        (broken, 3, "snap"),
        (newer, 1, "version 9"),
        (none, 1, "nothing was read"),
        (String::new(), 1, "EOF"),
        ("{\"format\":\"x\",\"version\":1}\n".into(), 1, "`x`"),
    ] {
        let error = recorded(text.as_bytes()).expect_err(says);
        assert_eq!(
            error.place.as_ref().and_then(|place| place.line),
            Some(line),
            "{error:?}"
        );
        assert!(error.causes.concat().contains(says), "{error:?}");
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut recorder = Recorder::new(FakeProbe::of(vec![device(0)]), Full);
    for _ in 0..2 {
        assert_eq!(recorder.inventory().expect("it is there").devices.len(), 1);
    }
    assert_eq!(recorder.failure(), Some(io::ErrorKind::StorageFull));
}
