//! The five figures, by hand.

use jiff::SignedDuration;

use proptest::prelude::*;

use super::*;
use crate::domain::{Bytes, Cpus};

fn at(seconds: f64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(seconds)
}

fn busy(seconds: f64, seen: f64) -> GpuUse {
    GpuUse {
        seen_seconds: seen,
        busy_seconds: Some(seconds),
        ..GpuUse::default()
    }
}

#[test]
fn the_figures_of_a_run_are_what_a_hand_computes() {
    // 4 cores for 600 s of which 1200 s were used; two GPUs for 600 s of which 900 s were busy.
    let run = RunUsage {
        cpu_seconds: Some(1200.0),
        allocated_cpu_seconds: Some(2400.0),
        gpu: Some(GpuUse {
            peak_utilization: Some(0.98),
            peak_memory: Some(Bytes(12 << 30)),
            ..busy(900.0, 1200.0)
        }),
        queue_seconds: queue_seconds(Some(at(100.0)), Some(at(130.0))),
        start_seconds: start_seconds(Some(at(130.0)), Some(at(142.0))),
        build_seconds: build_seconds(Some(at(142.0)), Some(at(742.0))),
    };
    let figures = Figures {
        average_cpu: Some(0.5),
        average_gpu: Some(0.75),
        peak_gpu: Some(0.98),
        peak_gpu_memory_bytes: Some(12 << 30),
        average_queue_seconds: Some(30.0),
        average_start_seconds: Some(12.0),
        average_build_seconds: Some(600.0),
    };
    assert_eq!(Figures::of(&[run]), figures);
}

#[test]
fn what_an_attempt_used_is_divided_by_what_was_there_for_it() {
    let usage = Usage {
        duration: SignedDuration::from_secs(100),
        cpu_granted: Cpus::cores(2),
        cpu_time: Some(SignedDuration::from_secs(50)),
        memory_peak: None,
        gpu: Some(busy(30.0, 60.0)),
    };
    let figures = Figures::of(&[RunUsage::of(&usage)]);
    assert_eq!(figures.average_cpu, Some(0.25));
    assert_eq!(figures.average_gpu, Some(0.5));
    let unread = Usage {
        cpu_time: None,
        ..usage
    };
    assert_eq!(Figures::of(&[RunUsage::of(&unread)]).average_cpu, None);
}

#[test]
fn an_average_over_runs_is_no_average_of_averages() {
    let run = |of, over, queued| RunUsage {
        gpu: Some(busy(of, over)),
        queue_seconds: Some(queued),
        ..RunUsage::default()
    };
    let figures = Figures::of(&[run(10.0, 10.0, 0.0), run(0.0, 90.0, 30.0)]);

    // 10 s of 100 s; the average of 100 % and 0 % would be 50 %.
    assert_eq!(figures.average_gpu, Some(0.1));
    assert_eq!(figures.average_queue_seconds, Some(15.0));
}

#[test]
fn what_is_not_known_is_in_no_figure() {
    assert_eq!(Figures::of(&[]), Figures::default());
    assert_eq!(Figures::of(&[RunUsage::default()]), Figures::default());
    let half_known = RunUsage {
        cpu_seconds: Some(5.0),
        gpu: Some(GpuUse {
            peak_utilization: Some(f64::NAN),
            ..busy(0.0, 0.0)
        }),
        ..RunUsage::default()
    };
    assert_eq!(Figures::of(&[half_known]), Figures::default());

    // Of the second run nobody knows what it was given, so the first alone counts.
    let known = RunUsage {
        cpu_seconds: Some(1.0),
        allocated_cpu_seconds: Some(4.0),
        ..RunUsage::default()
    };
    assert_eq!(Figures::of(&[known, half_known]).average_cpu, Some(0.25));
}

#[test]
fn a_run_that_has_not_started_or_whose_clock_went_back_has_no_times() {
    assert_eq!(queue_seconds(Some(at(1.0)), None), None);
    assert_eq!(queue_seconds(None, Some(at(1.0))), None);
    assert_eq!(build_seconds(Some(at(2.0)), Some(at(1.0))), None);
    assert_eq!(queue_seconds(Some(at(1.0)), Some(at(1.0))), Some(0.0));
}

proptest! {
    #[test]
    fn no_share_exceeds_what_was_granted(
        runs in proptest::collection::vec((0.0..1e9_f64, 0_i64..1_000_000, 0_u32..512), 0..8),
    ) {
        let used = |(cpu, seconds, cores): (f64, i64, u32)| {
            RunUsage::of(&Usage {
                duration: SignedDuration::from_secs(seconds),
                cpu_granted: Cpus::cores(cores),
                cpu_time: SignedDuration::try_from_secs_f64(cpu).ok(),
                memory_peak: None,
                gpu: None,
            })
        };
        let runs: Vec<RunUsage> = runs.into_iter().map(used).collect();
        if let Some(share) = Figures::of(&runs).average_cpu {
            prop_assert!((0.0..=1.0).contains(&share), "{share}");
        }
    }

    #[test]
    fn the_spans_of_a_run_sum_to_the_whole(eligible in 0.0..1e6_f64, spans in proptest::array::uniform3(0.0..1e6_f64)) {
        let admitted = eligible + spans[0];
        let (started, ended) = (admitted + spans[1], admitted + spans[1] + spans[2]);
        let (eligible, admitted, started, ended) =
            (Some(at(eligible)), Some(at(admitted)), Some(at(started)), Some(at(ended)));
        let parts = [
            queue_seconds(eligible, admitted),
            start_seconds(admitted, started),
            build_seconds(started, ended),
        ];
        let sum: f64 = parts.into_iter().map(|part| part.expect("it is known")).sum();
        let whole = seconds_between(eligible, ended).expect("it is known");
        prop_assert!((sum - whole).abs() < 1e-6, "{parts:?} are not {whole}");
    }
}
