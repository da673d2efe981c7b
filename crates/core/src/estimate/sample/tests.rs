//! Quantiles that were worked out by hand, and how often they hold.

use fastrand::Rng;

use super::*;

fn seconds(seconds: f64) -> SignedDuration {
    SignedDuration::from_secs_f64(seconds)
}

fn sample(took: &[f64]) -> Sample {
    let mut sample = Sample::default();
    took.iter().for_each(|took| sample.add(seconds(*took)));
    sample
}

fn quantile(sample: &Sample, p: f64, elapsed: f64) -> f64 {
    let quantile = sample.quantile(p, seconds(elapsed)).expect("there are some");
    (quantile.as_secs_f64() * 1e6).round() / 1e6
}

#[test]
fn quantiles_are_places_among_those_that_were_and_what_lies_between_is_straight() {
    let nine = sample(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]);
    for (why, p, elapsed, expected) in [
        ("the middle one of nine", 0.5, 0.0, 50.0),
        ("nine of ten stay below the longest of nine", 0.9, 0.0, 90.0),
        ("between the fifth and the sixth", 0.55, 0.0, 55.0),
        ("none is shorter than the shortest", 0.01, 0.0, 10.0),
        ("of the five places that are left, the middle", 0.5, 50.0, 75.0),
        ("what is passed is passed in parts, too", 0.5, 45.0, 72.5),
    ] {
        assert_eq!(quantile(&nine, p, elapsed), expected, "{why}");
    }
    assert_eq!(Sample::default().quantile(0.5, SignedDuration::ZERO), None);
}

#[test]
fn beyond_the_longest_is_what_the_longest_leave_open() {
    let one = sample(&[10.0]);
    assert_eq!(quantile(&one, 0.5, 0.0), 10.0, "as likely as not");
    assert_eq!(quantile(&one, 0.9, 0.0), 90.0, "nine times what one took");
    // Half of those that took 30 s in vain take as long as 10 + 10 + 20 s more.
    assert_eq!(quantile(&one, 0.5, 30.0), 70.0);
    // Of the three longest, 30 is as far from 10 as 20 s, and counts twice: S = 10 + 20 + 20, k = 2.
    let three = sample(&[10.0, 20.0, 30.0]);
    let excess = 50.0 * (0.4_f64.powf(-0.5) - 1.0);
    assert!((quantile(&three, 0.9, 0.0) - 30.0 - excess).abs() < 1e-3);
    let same = sample(&[7.0, 7.0, 7.0]);
    assert_eq!(quantile(&same, 0.99, 0.0), 7.0, "no spread was ever seen");
    assert!(quantile(&same, 0.5, 8.0) > 8.0, "until now");
}

#[test]
fn only_the_latest_count() {
    let mut sample = sample(&[1000.0]);
    (0..REMEMBERED).for_each(|_| sample.add(seconds(5.0)));
    assert_eq!((sample.count(), quantile(&sample, 0.99, 0.0)), (REMEMBERED, 5.0));
}

fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

type Draw = fn(&mut Rng) -> f64;

/// Returns how often one more stays below the quantile that `count` others give.
fn held(count: usize, p: f64, draw: Draw) -> f64 {
    const TRIALS: u32 = 2_000;
    let mut random = Rng::with_seed(count as u64);
    let held = (0..TRIALS).filter(|_| {
        let others: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
        let next = draw(&mut random);
        next <= quantile(&sample(&others), p, 0.0)
    });
    f64::from(u32::try_from(held.count()).expect("few")) / f64::from(TRIALS)
}

#[test]
fn quantiles_hold_as_often_as_they_say_however_few_there_are_and_however_they_are_spread() {
    let spreads: [(&str, Draw); 5] = [
        ("narrow", |random| 300.0 + 10.0 * normal(random)),
        ("even", |random| 100.0 + 200.0 * random.f64()),
        ("exponential", |random| -100.0 * (1.0 - random.f64()).ln()),
        ("lognormal", |random| 100.0 * normal(random).exp()),
        ("of two kinds", |random| {
            let fails_early = random.f64() < 0.3;
            (if fails_early { 20.0 } else { 300.0 }) + 5.0 * random.f64()
        }),
    ];
    for (name, draw) in spreads {
        for count in (1..=10).chain([40]) {
            let (p50, p90) = (held(count, 0.5, draw), held(count, 0.9, draw));
            // From one alone nobody can tell what varies little from what is of two kinds.
            let (least, most) = if count == 1 { (0.75, 1.0) } else { (0.85, 0.98) };
            assert!(
                (least..=most).contains(&p90),
                "{name}, {count}: p90 held in {p90}"
            );
            assert!((0.4..=0.6).contains(&p50), "{name}, {count}: p50 held in {p50}");
        }
    }
}
