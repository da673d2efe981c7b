//! What a bill says of the use of GPUs.

use blueproof_core::figures::{Figures, RunUsage};

use super::*;

#[test]
fn a_bill_tells_of_the_use_of_gpus_what_was_seen() {
    let mut told = Told::new();
    told.read(0.0, [sample().busy(&[])]);
    told.hold(0.0, "r-1.1");
    let used = sample().figure(Figure::MemoryUsed, 5e9);
    told.read(1.0, [used.busy(&[(1.0, 0.5)])]);
    told.read(4.0, [lost()]);
    let used = told
        .0
        .usage_record(&named("r-1.1"))
        .expect("it held something")
        .used();

    let expected = GpuUse {
        devices: 1,
        allocated_seconds: 4.0,
        seen_seconds: 1.0,
        busy_seconds: Some(0.5),
        peak_utilization: Some(0.5),
        peak_memory: Some(Bytes(5_000_000_000)),
        ..GpuUse::default()
    };
    assert_eq!(used, expected);
    // Of 4 s one was seen: the device was half busy, and not an eighth.
    let run = RunUsage {
        gpu: Some(used),
        ..RunUsage::default()
    };
    assert_eq!(Figures::of(&[run]).average_gpu, Some(0.5));
}
