//! Charts in SVG. The page sets the colours for light or dark mode. Lines have marks too, for
//! readers who cannot distinguish the colours.

use maud::{Markup, html};

use super::number::{short, tick};
use crate::stats::Interval;

/// Size of a chart in its own units, and margins for axes. The chart is small, so that its letters
/// are readable on a phone.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 40.0;

/// Height of a bar with its name above.
const BAR: f64 = 34.0;

/// Number of colours of the page.
const COLOURS: usize = 8;

/// The ratio of largest to smallest value above which an axis becomes logarithmic.
const WIDE: f64 = 25.0;

/// A chart of values by a dimension, or of one value each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    pub title: String,
    /// Name of the axis of values.
    pub values: String,
    /// Name of the other axis. Without a dimension the chart has a bar for each line.
    pub dimension: Option<String>,
    pub lines: Vec<Line>,
}

/// A line of the chart, in one colour.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub label: String,
    /// True if the line is only for comparison.
    pub reference: bool,
    pub points: Vec<DataPoint>,
}

/// A point: a value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DataPoint {
    pub at: f64,
    pub value: Interval,
}

/// A mapping from values to coordinates.
struct Axis {
    least: f64,
    most: f64,
    logarithmic: bool,
    /// Coordinates of the least and the greatest value in the chart.
    ends: [f64; 2],
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, from_zero: bool, ends: [f64; 2]) -> Axis {
        let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let smallest = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let logarithmic = least >= 0.0 && most / smallest > WIDE;
        let least = match (from_zero, logarithmic) {
            // A logarithmic axis of values ends at a power of ten. A dimension's may include zero.
            (true, true) => 10_f64.powf(smallest.log10().floor()),
            (true, false) => least.min(0.0),
            (false, _) => least,
        };
        let most = if most > least { most } else { least + 1.0 };
        Axis { least, most, logarithmic, ends }
    }

    /// Returns the coordinate of a value. A logarithmic axis has a place for zero too, before 1.
    fn coordinate(&self, value: f64) -> f64 {
        let scale = |value: f64| match self.logarithmic {
            true if self.least == 0.0 => (1.0 + value).ln(),
            true => value.max(self.least).ln(),
            false => value,
        };
        let share = (scale(value) - scale(self.least)) / (scale(self.most) - scale(self.least));
        self.ends[0] + share.clamp(0.0, 1.0) * (self.ends[1] - self.ends[0])
    }

    /// Returns about five round values.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let first = self.least.max(1e-9).log10().ceil() as i32;
            let last = self.most.log10().floor() as i32;
            let factors: &[f64] = if last - first < 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let decade = |power| factors.iter().map(move |factor| factor * 10_f64.powi(power));
            let within = |value: &f64| (self.least..=self.most).contains(value);
            return (first - 1..=last).flat_map(decade).filter(within).collect();
        }
        let rough = (self.most - self.least) / 5.0;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * unit)
            .find(|step| *step >= rough);
        let step = step.unwrap_or(unit * 10.0);
        let first = (self.least / step).ceil() as i64;
        let last = (self.most / step + 1e-9).floor() as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }
}

/// Returns a chart with its legend.
pub(super) fn figure(chart: &Chart) -> Markup {
    html! {
        figure {
            @match &chart.dimension {
                Some(dimension) => { (lines(chart, dimension)) (legend(chart)) },
                None => (bars(chart)),
            }
        }
    }
}

/// Returns a picture with a title for readers who cannot see it, and the name of the values.
fn picture(chart: &Chart, height: f64, inside: &Markup) -> Markup {
    let title = format!("{}: {}", chart.title, chart.values);
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(title) {
            title { (title) }
            (text([4.0, 12.0], "start", &chart.values))
            (inside)
        }
    }
}

/// Returns a coordinate as text, with one digit after the point.
fn coordinate(value: f64) -> String {
    format!("{value:.1}")
}

/// Returns the corners of a shape as text.
fn corners(points: impl IntoIterator<Item = [f64; 2]>) -> String {
    let points = points.into_iter().map(|[x, y]| format!("{x:.1},{y:.1}"));
    points.collect::<Vec<_>>().join(" ")
}

fn text([x, y]: [f64; 2], anchor: &str, text: &str) -> Markup {
    html! { text x=(coordinate(x)) y=(coordinate(y)) text-anchor=(anchor) { (text) } }
}

fn rule([x1, y1]: [f64; 2], [x2, y2]: [f64; 2], class: &str) -> Markup {
    html! {
        line x1=(coordinate(x1)) y1=(coordinate(y1)) x2=(coordinate(x2)) y2=(coordinate(y2))
            class=(class) {}
    }
}

fn lines(chart: &Chart, dimension: &str) -> Markup {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let x = Axis::new(points().map(|point| point.at), false, [LEFT, WIDTH - RIGHT]);
    let ends = points().flat_map(|point| [point.value.low, point.value.high]);
    let y = Axis::new(ends, true, [HEIGHT - BOTTOM, TOP]);
    let inside = html! {
        @for value in y.ticks() {
            @let place = y.coordinate(value);
            (rule([LEFT, place], [WIDTH - RIGHT, place], "grid"))
            (text([LEFT - 5.0, place + 4.0], "end", &tick(value)))
        }
        (dimension_ticks(points().map(|point| point.at).collect(), &x))
        (text([(LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6.0], "middle", dimension))
        @for (index, one) in chart.lines.iter().enumerate() { (line(one, index, &x, &y)) }
    };
    picture(chart, HEIGHT, &inside)
}

/// Returns a tick for each value, and its label if there is room.
fn dimension_ticks(mut values: Vec<f64>, x: &Axis) -> Markup {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut free = 0.0;
    let mut has_room = |place: f64, half: f64| {
        let has_room = place - half > free;
        if has_room {
            free = place + half + 4.0;
        }
        has_room
    };
    html! {
        @for value in values {
            @let label = tick(value);
            @let half = label.chars().count() as f64 * 3.2;
            @let place = x.coordinate(value);
            (rule([place, HEIGHT - BOTTOM], [place, HEIGHT - BOTTOM + 4.0], "grid"))
            @if has_room(place, half) {
                (text([place.min(WIDTH - half - 1.0), HEIGHT - BOTTOM + 16.0], "middle", &label))
            }
        }
    }
}

/// Returns a line, its marks, and the band of its 95 % confidence interval.
fn line(line: &Line, index: usize, x: &Axis, y: &Axis) -> Markup {
    let place = |at: f64, value: f64| [x.coordinate(at), y.coordinate(value)];
    let high = line.points.iter().map(|point| place(point.at, point.value.high));
    let low = line.points.iter().map(|point| place(point.at, point.value.low));
    let middle = line.points.iter().map(|point| place(point.at, point.value.middle));
    html! {
        polygon.band style={ "fill:" (colour(index)) } points=(corners(high.chain(low.rev()))) {}
        polyline.line.reference[line.reference] style={ "stroke:" (colour(index)) }
            points=(corners(middle)) {}
        @for point in &line.points {
            @let value = short(point.value.middle);
            (mark(
                index,
                place(point.at, point.value.middle),
                &format!("{}, {}: {value}", line.label, short(point.at)),
            ))
        }
    }
}

fn colour(index: usize) -> String {
    format!("var(--c{})", index % COLOURS)
}

/// Returns the mark of a line. Its shape distinguishes the first four lines without colours.
fn mark(index: usize, [x, y]: [f64; 2], title: &str) -> Markup {
    let shape: &[[f64; 2]] = match index % 4 {
        0 => &[[-3.0, -3.0], [3.0, -3.0], [3.0, 3.0], [-3.0, 3.0]],
        1 => &[[0.0, -4.0], [4.0, 3.0], [-4.0, 3.0]],
        2 => &[[0.0, -4.2], [4.2, 0.0], [0.0, 4.2], [-4.2, 0.0]],
        _ => &[[0.0, 4.0], [4.0, -3.0], [-4.0, -3.0]],
    };
    let points = corners(shape.iter().map(|[dx, dy]| [x + dx, y + dy]));
    html! {
        polygon style={ "fill:" (colour(index)) } points=(points) { title { (title) } }
    }
}

fn legend(chart: &Chart) -> Markup {
    html! {
        figcaption {
            @for (index, line) in chart.lines.iter().enumerate() {
                span {
                    svg viewBox="0 0 30 12" aria-hidden="true" {
                        line.line.reference[line.reference] x1="0" y1="6" x2="30" y2="6"
                            style={ "stroke:" (colour(index)) } {}
                        (mark(index, [15.0, 6.0], &line.label))
                    }
                    (line.label)
                }
            }
        }
    }
}

fn bars(chart: &Chart) -> Markup {
    let bars = || chart.lines.iter().filter_map(|line| Some((line, line.points.first()?.value)));
    let height = TOP + BAR * bars().count() as f64 + 22.0;
    let most = bars().map(|(_, value)| value.high).fold(0.0, f64::max);
    let x = Axis {
        least: 0.0,
        most: if most > 0.0 { most } else { 1.0 },
        logarithmic: false,
        ends: [4.0, WIDTH - RIGHT - 4.0],
    };
    let inside = html! {
        @for value in x.ticks() {
            @let place = x.coordinate(value);
            @let anchor = if value == 0.0 { "start" } else { "middle" };
            (rule([place, TOP], [place, height - 18.0], "grid"))
            (text([place.min(WIDTH - 16.0), height - 5.0], anchor, &tick(value)))
        }
        @for (index, (line, value)) in bars().enumerate() {
            (bar(line, value, index, &x))
        }
    };
    picture(chart, height, &inside)
}

/// Returns a bar with its name above, and the whiskers of its 95 % confidence interval.
fn bar(line: &Line, value: Interval, index: usize, x: &Axis) -> Markup {
    let top = TOP + BAR * index as f64;
    let middle = top + 23.5;
    let opacity = if line.reference { 0.45 } else { 0.85 };
    let [low, high] = [value.low, value.high].map(|end| x.coordinate(end));
    html! {
        text.name x="6" y=(coordinate(top + 13.0)) { (line.label) "  " (short(value.middle)) }
        rect x="4" y=(coordinate(top + 18.0))
            width=(coordinate((x.coordinate(value.middle) - 4.0).max(0.5))) height="11"
            style={ "fill:" (colour(index)) ";opacity:" (opacity) } {}
        (rule([low, middle], [high, middle], "whisker"))
        @for end in [low, high] { (rule([end, middle - 3.0], [end, middle + 3.0], "whisker")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[f64], from_zero: bool) -> Axis {
        Axis::new(values.iter().copied(), from_zero, [0.0, 100.0])
    }

    #[test]
    fn axes_have_round_ticks() {
        assert_eq!(axis(&[3.0, 47.0], true).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(axis(&[0.5, 3.0], true).ticks(), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(axis(&[20.0, 90_000.0], true).ticks(), [10.0, 100.0, 1e3, 1e4]);
        assert_eq!(axis(&[30.0, 900.0], true).ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
    }

    #[test]
    fn a_wide_dimension_is_logarithmic_and_has_room_for_zero() {
        let rules = axis(&[0.0, 10.0, 100.0, 1000.0], false);
        assert!(rules.logarithmic);
        assert_eq!(rules.coordinate(0.0), 0.0);
        assert_eq!(rules.coordinate(1000.0), 100.0);
        let gap = rules.coordinate(1000.0) - rules.coordinate(100.0);
        assert!((gap - (rules.coordinate(100.0) - rules.coordinate(10.0))).abs() < 2.0);
        assert!(!axis(&[64.0, 1518.0], false).logarithmic);
    }

    #[test]
    fn one_value_is_no_division_by_zero() {
        let one = axis(&[5.0], false);
        assert_eq!(one.coordinate(5.0), 0.0);
        let nothing = axis(&[0.0, 0.0], true);
        assert!(nothing.coordinate(0.0).is_finite() && nothing.ticks().len() < 20);
    }

    #[test]
    fn every_line_is_drawn_and_named() {
        let point = |at, middle: f64| DataPoint {
            at,
            value: Interval { low: middle - 1.0, middle, high: middle + 1.0 },
        };
        let line = |label: &str| Line {
            label: label.to_string(),
            reference: false,
            points: vec![point(0.0, 10.0), point(100.0, 30.0)],
        };
        let mut chart = Chart {
            title: "t".to_string(),
            values: "time, ns".to_string(),
            dimension: Some("rules".to_string()),
            lines: vec![line("one"), line("two & three")],
        };
        let out = figure(&chart).into_string();
        assert_eq!(out.matches("<polyline").count(), 2);
        assert!(out.contains("</svg>two &amp; three</span>"), "{out}");
        assert!(!out.contains("NaN"), "{out}");
        chart.dimension = None;
        let out = figure(&chart).into_string();
        assert_eq!(out.matches("<rect").count(), 2);
    }
}
