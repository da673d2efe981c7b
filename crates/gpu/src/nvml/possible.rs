//! What figures can be: whatever else a card says is taken for what it does not tell.
//!
//! Cards without a sensor in their memory say 0 °C, NVML's and DCGM's words for no value are the largest numbers of 32 and 64
//! bits, and drivers have told shares of thousands of percent.

use std::ops::RangeInclusive;

use blueproof_core::gpu::{Figure, FigureKind, Readings};

/// By so much more than all may a share be told: monitors count time and work at instants that are not quite the same.
const ROUNDING: f64 = 0.01;

/// Leaves out what cannot be.
pub(super) fn possible(readings: Readings) -> Readings {
    let total = readings
        .value(Figure::MemoryTotal)
        .filter(|total| range(Figure::MemoryTotal).contains(total));
    let is_absurd = |used: f64| total.is_some_and(|total| used > total);
    let used_is_absurd = readings.value(Figure::MemoryUsed).is_some_and(is_absurd);
    let told = readings.into_iter().map(|(figure, reading)| {
        let reading = reading.filter_map(|value| rounded(figure, value));
        let is_part = matches!(
            figure,
            Figure::MemoryUsed | Figure::MemoryFree | Figure::MemoryReserved
        );
        let most = total.filter(|_| is_part).unwrap_or(f64::INFINITY);
        // What is left of it is the driver's difference of the two.
        let is_told = |value: f64| value <= most && !(figure == Figure::MemoryFree && used_is_absurd);
        (
            figure,
            reading.filter_map(|value| is_told(value).then_some(value)),
        )
    });
    told.collect()
}

fn rounded(figure: Figure, value: f64) -> Option<f64> {
    let range = range(figure);
    let within = value.clamp(*range.start(), *range.end());
    let is_share = range == SHARE && figure.kind() == FigureKind::Gauge;
    let beyond_at_most = if is_share { ROUNDING } else { 0.0 };
    // What is no number is not within either.
    ((value - within).abs() <= beyond_at_most).then_some(within)
}

const SHARE: RangeInclusive<f64> = 0.0..=1.0;

/// Returns between what a figure can be, in its unit. The largest cards draw 1.2 kW and have lanes for some 2 TB/s today.
fn range(figure: Figure) -> RangeInclusive<f64> {
    match figure {
        // The fastest are at some 3 and 15 GHz.
        Figure::SmClock => 0.0..=10e9,
        Figure::MemoryClock => 0.0..=50e9,
        Figure::Temperature => -50.0..=200.0,
        Figure::MemoryTemperature => 1.0..=200.0,
        Figure::Power => 0.0..=20e3,
        // 20 kW for 15 years.
        Figure::Energy => 0.0..=1e13,
        Figure::Utilization
        | Figure::MemoryUtilization
        | Figure::EncoderUtilization
        | Figure::DecoderUtilization
        | Figure::EngineActive
        | Figure::SmActive
        | Figure::SmOccupancy
        | Figure::TensorActive
        | Figure::DramActive
        | Figure::Fp64Active
        | Figure::Fp32Active
        | Figure::Fp16Active
        | Figure::RowRemapPending
        | Figure::RowRemapFailure
        | Figure::RetiredPagesPending
        | Figure::HardwareSlowdown
        | Figure::HardwareThermalSlowdown
        | Figure::HardwarePowerBrake
        | Figure::SoftwareThermalSlowdown
        | Figure::PowerCap => SHARE,
        Figure::MemoryTotal | Figure::MemoryUsed | Figure::MemoryFree | Figure::MemoryReserved => 0.0..=1e16,
        Figure::PcieReplays
        | Figure::UncorrectableRemappedRows
        | Figure::CorrectableRemappedRows
        | Figure::RetiredPagesCorrectable
        | Figure::RetiredPagesUncorrectable => 0.0..=f64::from(u32::MAX - 1),
        Figure::CorrectedErrors
        | Figure::UncorrectedErrors
        | Figure::CorrectedErrorsOfAllTime
        | Figure::UncorrectedErrorsOfAllTime => 0.0..=1e15,
        // Three centuries.
        Figure::PowerViolation
        | Figure::ThermalViolation
        | Figure::SyncBoostViolation
        | Figure::BoardLimitViolation
        | Figure::LowUtilizationViolation
        | Figure::ReliabilityViolation => 0.0..=1e10,
        Figure::PcieGeneration | Figure::PcieGenerationMost => 0.0..=16.0,
        Figure::PcieWidth | Figure::PcieWidthMost => 0.0..=32.0,
        Figure::PcieSent | Figure::PcieReceived | Figure::NvlinkSent | Figure::NvlinkReceived => 0.0..=1e14,
    }
}

#[cfg(test)]
mod tests {
    use blueproof_core::gpu::Reading;

    use super::*;

    fn told(figure: Figure, value: f64) -> Option<f64> {
        let readings = [
            (figure, Reading::Value(value)),
            (Figure::MemoryTotal, Reading::Value(80e9)),
        ];
        possible(readings.into_iter().collect()).value(figure)
    }

    #[test]
    fn no_figure_is_told_that_is_not_a_number_negative_or_without_end() {
        let below_zero = |figure| figure == Figure::Temperature;
        for figure in Figure::ALL
            .iter()
            .filter(|figure| **figure != Figure::MemoryTotal)
        {
            for value in [
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                u64::MAX as f64,
                1e28,
                -1e3,
            ] {
                assert_eq!(told(*figure, value), None, "{figure:?}: {value}");
            }
            assert!(below_zero(*figure) || told(*figure, -0.5).is_none(), "{figure:?}");
            assert_eq!(told(*figure, 1.0), Some(1.0), "{figure:?}");
        }
    }

    #[test]
    fn a_share_is_no_more_than_all_and_what_was_rounded_up_is_all() {
        for figure in [Figure::SmActive, Figure::EncoderUtilization, Figure::Utilization] {
            assert_eq!(told(figure, 1.004), Some(1.0));
            assert_eq!(told(figure, -0.004), Some(0.0));
            assert_eq!(told(figure, 1.02), None);
            assert_eq!(told(figure, -0.03), None);
        }
        assert_eq!(told(Figure::PowerCap, 1.004), None, "it is so or it is not");
    }

    #[test]
    fn of_memory_no_part_is_larger_than_all() {
        assert_eq!(told(Figure::MemoryUsed, 80e9), Some(80e9));
        assert_eq!(told(Figure::MemoryUsed, 81e9), None);
    }

    #[test]
    fn what_is_left_of_memory_is_not_known_where_what_is_used_cannot_be() {
        let left = |used: f64| {
            let readings = [
                (Figure::MemoryTotal, Reading::Value(80e9)),
                (Figure::MemoryUsed, Reading::Value(used)),
                (Figure::MemoryFree, Reading::Value(0.0)),
            ];
            possible(readings.into_iter().collect()).value(Figure::MemoryFree)
        };
        assert_eq!((left(80e9), left(81e9)), (Some(0.0), None));
    }

    #[test]
    fn no_clock_is_as_fast_as_drivers_have_told() {
        assert_eq!(told(Figure::SmClock, 20e9), None);
        assert_eq!(told(Figure::MemoryClock, 65.535e9), None);
        assert_eq!(told(Figure::MemoryClock, 15e9), Some(15e9));
    }
}
