//! The course of a metric as a small SVG drawing with labelled axes, in the colours of the page.

use blueproof_core::domain::MetricResult;

use super::markup::Html;

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 120.0;
/// Room for labels: left, right, top and bottom of the plot.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 20.0;

/// Returns the drawing, or `None` where there are fewer than two values to draw.
pub(super) fn chart(name: &str, metric: &MetricResult) -> Option<Html> {
    let course = Course::of(metric)?;
    let (first, last) = (course.values[0], course.values[course.values.len() - 1]);
    let mut svg = Html::default();
    svg.push_markup(format_args!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" class=\"chart\"><title>"
    ));
    svg.push_text(&format!(
        "{name}: {} values, from {} to {}",
        metric.count,
        number(first),
        number(last)
    ));
    svg.push_markup(format_args!("</title>"));
    course.draw_axes(&mut svg, metric.count);
    course.draw_line(&mut svg);
    svg.push_markup(format_args!("</svg>"));
    Some(svg)
}

/// Finite values, at least two, and how they fit into the frame.
struct Course {
    values: Vec<f64>,
    low: f64,
    high: f64,
}

impl Course {
    fn of(metric: &MetricResult) -> Option<Self> {
        let values: Vec<f64> = metric
            .trace
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        (values.len() > 1).then_some(Self { values, low, high })
    }

    fn x(&self, nth: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * nth as f64 / (self.values.len() - 1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        let height = HEIGHT - TOP - BOTTOM;
        if self.is_flat() {
            return TOP + height / 2.0;
        }
        // Halves, because the difference of two finite values need not be finite.
        let share =
            (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0).max(f64::MIN_POSITIVE);
        TOP + height * (1.0 - share)
    }

    fn is_flat(&self) -> bool {
        self.low == self.high
    }

    fn draw_axes(&self, svg: &mut Html, count: u64) {
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        svg.push_markup(format_args!(
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{floor}H{right}\"/>"
        ));
        let levels: &[f64] = if self.is_flat() {
            &[self.low]
        } else {
            &[self.high, self.low]
        };
        for level in levels {
            let line = self.y(*level);
            let (margin, below, label) = (LEFT - 5.0, line + 4.0, number(*level));
            svg.push_markup(format_args!(
                "<path class=\"grid\" d=\"M{LEFT} {line:.1}H{right}\"/>"
            ));
            svg.push_markup(format_args!(
                "<text x=\"{margin}\" y=\"{below:.1}\" class=\"end\">{label}</text>"
            ));
        }
        let under = HEIGHT - 6.0;
        svg.push_markup(format_args!("<text x=\"{LEFT}\" y=\"{under}\">value 1</text>"));
        svg.push_markup(format_args!(
            "<text x=\"{right}\" y=\"{under}\" class=\"end\">{count}</text>"
        ));
    }

    fn draw_line(&self, svg: &mut Html) {
        let point = |(nth, value): (usize, &f64)| format!("{:.1},{:.1}", self.x(nth), self.y(*value));
        let points: Vec<String> = self.values.iter().enumerate().map(point).collect();
        let last = self.values.len() - 1;
        let (x, y) = (self.x(last), self.y(self.values[last]));
        svg.push_markup(format_args!(
            "<polyline class=\"line\" points=\"{}\"/>",
            points.join(" ")
        ));
        svg.push_markup(format_args!(
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
        ));
    }
}

/// Returns a number in few characters: `0.352`, `1.2e-7`, `98123`.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return format!("{value:.2e}");
    }
    let decimals = if size >= 1000.0 {
        0
    } else if size >= 10.0 {
        2
    } else {
        4
    };
    let fixed = format!("{value:.decimals$}");
    if fixed.contains('.') {
        fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        fixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let rows = [
            (0.3524, "0.3524"),
            (0.5, "0.5"),
            (98_123.4, "98123"),
            (1.234e-7, "1.23e-7"),
            (0.0, "0"),
            (12.345, "12.35"),
            (1e300, "1.00e300"),
        ];
        for (value, text) in rows {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_course_is_drawn_within_its_frame_whatever_its_values() {
        let rows: &[&[f64]] = &[
            &[1.0, 1.0],
            &[f64::MAX, f64::MIN, 0.0],
            &[3.0, 2.0, f64::NAN, 1.0],
            &[5e-324, 0.0],
        ];
        for values in rows {
            let metric = MetricResult {
                last: None,
                count: 3,
                trace: values.to_vec(),
            };
            let svg = chart("<loss>", &metric)
                .expect("there are two values")
                .to_string();
            assert!(
                !svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<loss>"),
                "{svg}"
            );
        }
        let one = MetricResult {
            last: Some(1.0),
            count: 1,
            trace: vec![1.0],
        };
        assert_eq!(chart("loss", &one), None);
    }
}
