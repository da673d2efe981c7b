//! What was in use over time, as a picture: a line for each policy and queue, a block for each interval.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    comparison::{Column, Comparison},
    text::span,
};
use crate::output::line;

/// What is drawn where there is any; of several it says more than processors and memory do.
const GPU: &str = "nvidia.com/gpu";

/// More queues than this are not drawn one by one.
const MOST_QUEUES: usize = 8;

/// From nothing to all of the quota.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the picture; empty where nothing was in use.
pub(crate) fn chart(comparison: &Comparison) -> String {
    let columns = &comparison.columns;
    let of_queues = columns
        .iter()
        .flat_map(|column| column.figures.series.used_by_queue.values());
    let resources: BTreeSet<&String> = of_queues.flat_map(|of_queue| of_queue.keys()).collect();
    let drawn = resources
        .iter()
        .filter(|resource| *resource.as_str() == *GPU || !resources.iter().any(|other| *other == GPU));
    let mut text = String::new();
    for resource in drawn {
        draw(&mut text, columns, resource);
    }
    text
}

fn draw(text: &mut String, columns: &[Column], resource: &str) {
    let name_width = columns
        .iter()
        .map(|column| line(&column.name).chars().count())
        .max()
        .unwrap_or(0);
    let queues = queues(columns);
    let queue_width = queues
        .iter()
        .map(|queue| line(queue).chars().count())
        .chain([5])
        .max()
        .unwrap_or(0);
    for (number, column) in columns.iter().enumerate() {
        let series = &column.figures.series;
        let capacity = series.capacity.get(resource).map_or(&[][..], Vec::as_slice);
        if number == 0 {
            let interval = span(series.interval_seconds);
            let _ = writeln!(
                text,
                "{resource} in use, {interval} a block, a full one is all of the quota"
            );
        }
        let rows = queues.iter().filter_map(|queue| {
            let means = series.used_by_queue.get(*queue)?.get(resource)?;
            Some((line(queue), blocks(means, capacity)))
        });
        let all = ("all".to_owned(), blocks(&series.used(resource), capacity));
        for (number, (queue, blocks)) in [all].into_iter().chain(rows).enumerate() {
            let name = if number == 0 {
                line(&column.name)
            } else {
                String::new()
            };
            let _ = writeln!(text, "{name:name_width$}  {queue:queue_width$}  {blocks}");
        }
    }
}

/// Returns the queues that are drawn one by one.
fn queues(columns: &[Column]) -> Vec<&String> {
    let queues = columns
        .iter()
        .flat_map(|column| column.figures.series.used_by_queue.keys());
    let queues: BTreeSet<&String> = queues.collect();
    if queues.len() < 2 || queues.len() > MOST_QUEUES {
        return Vec::new();
    }
    queues.into_iter().collect()
}

/// Returns a block for each mean, as high as its part of the most that there ever was.
fn blocks(means: &[f64], capacity: &[f64]) -> String {
    let most = capacity.iter().chain(means).copied().fold(0.0, f64::max);
    let highest = (BLOCKS.len() - 1) as f64;
    let block = |mean: &f64| match mean {
        mean if *mean <= 0.0 || most <= 0.0 => BLOCKS[0],
        // Whatever was in use at all is seen.
        mean => BLOCKS[((mean / most * highest).round() as usize).max(1)],
    };
    means.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_as_high_as_its_part_of_the_quota_and_what_is_used_is_seen() {
        assert_eq!(
            blocks(&[0.0, 0.01, 2.0, 4.0, 8.0], &[8.0, 8.0, 8.0, 8.0, 8.0]),
            "·▁▂▄█"
        );
        assert_eq!(blocks(&[], &[]), "");
        assert_eq!(blocks(&[0.0], &[]), "·");
        assert_eq!(
            blocks(&[9.0, 3.0], &[6.0, 6.0]),
            "█▃",
            "more is held than there is now"
        );
    }
}
