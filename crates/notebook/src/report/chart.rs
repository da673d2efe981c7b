//! The course of a metric as a small SVG drawing with labelled axes, in the colours of the page.

use blueproof_core::domain::MetricResult;

use super::{Bounds, markup::Html};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 120.0;
/// Room for labels: left, right, top and bottom of the plot.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 20.0;

/// Returns the drawing, or `None` where there are fewer than two values to draw.
pub(super) fn chart(name: &str, metric: &MetricResult, bounds: &[&Bounds]) -> Option<Html> {
    let course = Course::of(metric, bounds)?;
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
    course.draw_bounds(&mut svg);
    course.draw_line(&mut svg);
    svg.push_markup(format_args!("</svg>"));
    Some(svg)
}

/// Finite values, at least two, and how they fit into the frame.
struct Course {
    values: Vec<f64>,
    /// The smallest and the largest of them.
    least: f64,
    most: f64,
    /// What is expected, as far as it is near.
    bounds: Vec<Bound>,
    /// The ends of the vertical axis.
    low: f64,
    high: f64,
}

/// A value that is expected not to be passed.
#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn value(self) -> f64 {
        match self {
            Bound::AtLeast(value) | Bound::AtMost(value) => value,
        }
    }

    fn label(self) -> String {
        match self {
            Bound::AtLeast(value) => format!("at least {}", number(value)),
            Bound::AtMost(value) => format!("at most {}", number(value)),
        }
    }
}

impl Course {
    fn of(metric: &MetricResult, expected: &[&Bounds]) -> Option<Self> {
        let values: Vec<f64> = metric
            .trace
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        let near = |bound: &Bound| is_near(bound.value(), least, most);
        let bounds: Vec<Bound> = expected.iter().flat_map(|of| of_both(of)).filter(near).collect();
        let values_of_bounds = || bounds.iter().map(|bound| bound.value());
        let (low, high) = (
            values_of_bounds().fold(least, f64::min),
            values_of_bounds().fold(most, f64::max),
        );
        (values.len() > 1).then_some(Self {
            values,
            least,
            most,
            bounds,
            low,
            high,
        })
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
        let levels: &[f64] = if self.least == self.most {
            &[self.least]
        } else {
            &[self.most, self.least]
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
        self.draw_steps(svg, count);
    }

    /// Numbers the values below the axis: the first, the one in the middle, and the last.
    fn draw_steps(&self, svg: &mut Html, count: u64) {
        let (right, under, floor) = (WIDTH - RIGHT, HEIGHT - 6.0, HEIGHT - BOTTOM);
        let middle = (LEFT + right) / 2.0;
        let steps = [
            (LEFT, "start", "value 1".to_owned()),
            (middle, "middle", count.div_ceil(2).to_string()),
            (right, "end", count.to_string()),
        ];
        for (x, anchor, label) in steps
            .iter()
            .filter(|(_, anchor, _)| count > 3 || *anchor != "middle")
        {
            let tick = floor + 3.0;
            svg.push_markup(format_args!("<path class=\"axis\" d=\"M{x} {floor}V{tick}\"/>"));
            svg.push_markup(format_args!(
                "<text x=\"{x}\" y=\"{under}\" class=\"{anchor}\">{label}</text>"
            ));
        }
    }

    fn draw_bounds(&self, svg: &mut Html) {
        let right = WIDTH - RIGHT;
        for bound in &self.bounds {
            let line = self.y(bound.value());
            // The label stands on the side that is allowed, if there is room for it.
            let (above, below) = (line - 4.0, line + 12.0);
            let text = match bound {
                Bound::AtMost(_) if below < HEIGHT - BOTTOM => below,
                Bound::AtLeast(_) if above < TOP + 8.0 => below,
                Bound::AtMost(_) | Bound::AtLeast(_) => above,
            };
            svg.push_markup(format_args!(
                "<path class=\"bound\" d=\"M{LEFT} {line:.1}H{right}\"/>"
            ));
            svg.push_markup(format_args!(
                "<text x=\"{right}\" y=\"{text:.1}\" class=\"end expected\">{}</text>",
                bound.label()
            ));
        }
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

fn of_both(bounds: &Bounds) -> impl Iterator<Item = Bound> {
    let (min, max) = (bounds.min.map(Bound::AtLeast), bounds.max.map(Bound::AtMost));
    min.into_iter().chain(max)
}

/// Whether the values could still be told apart if the axis went as far as `bound`.
fn is_near(bound: f64, least: f64, most: f64) -> bool {
    const AT_MOST: f64 = 4.0;
    // Halves, because the difference of two finite values need not be finite.
    let span = (most / 2.0 - least / 2.0).max(most.abs().max(least.abs()) / 20.0);
    let beyond = (bound / 2.0 - most / 2.0).max(least / 2.0 - bound / 2.0);
    bound.is_finite() && beyond <= span * AT_MOST
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
            let bounds = Bounds {
                metric: "<loss>".into(),
                min: Some(-f64::MAX),
                max: Some(2.0),
            };
            let svg = chart("<loss>", &metric, &[&bounds])
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
        assert_eq!(chart("loss", &one, &[]), None);
    }

    #[test]
    fn what_is_expected_is_a_line_and_values_have_their_numbers() {
        let metric = MetricResult {
            last: Some(0.5),
            count: 400,
            trace: vec![2.0, 1.0, 0.5],
        };
        let bounds = Bounds {
            metric: "loss".into(),
            min: Some(0.1),
            max: Some(1e6),
        };
        let svg = chart("loss", &metric, &[&bounds])
            .expect("there are values")
            .to_string();
        for part in ["class=\"bound\"", ">at least 0.1<", ">value 1<", ">200<", ">400<"] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert!(
            !svg.contains("at most"),
            "values would be a flat line beside it: {svg}"
        );
    }
}
