//! Curves of a few characters.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns values as a curve at most `columns` characters wide. Values that are no finite numbers are left out, and
/// where all are the same the curve lies low.
pub(crate) fn sparkline(values: &[f64], columns: usize) -> String {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shown = columns.min(values.len());
    // The last value is always among those that are shown: it is the one that counts.
    let picked = (1..=shown).map(|nth| values[nth * values.len() / shown - 1]);
    // Halved first, because the difference of two finite numbers need not be one.
    let range = most / 2.0 - least / 2.0;
    picked
        .map(|value| {
            let height = if range > 0.0 {
                (value / 2.0 - least / 2.0) / range
            } else {
                0.0
            };
            let top = LEVELS.len() - 1;
            LEVELS[((height * top as f64).round() as usize).min(top)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_the_least_to_the_most() {
        assert_eq!(sparkline(&[4.0, 3.0, 2.0, 1.0, 0.0], 10), "█▆▅▃▁");
        assert_eq!(sparkline(&[1.0, 1.0], 10), "▁▁");
        assert_eq!(sparkline(&[], 10), "");
        assert_eq!(sparkline(&[1.0], 0), "");
        assert_eq!(sparkline(&[f64::NAN, 1.0, f64::INFINITY, 2.0], 10), "▁█");
        assert_eq!(sparkline(&[f64::MIN, 0.0, f64::MAX], 10), "▁▅█");
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_end() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let curve = sparkline(&values, 8);
        assert_eq!(curve.chars().count(), 8);
        assert!(curve.ends_with('█'), "{curve}");
    }
}
