//! Charts in SVG. The page sets the colours for light or dark mode. Lines have marks too, for
//! readers who cannot distinguish the colours.

use std::fmt::Write;

use super::escape::escaped;
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

/// Writes a chart.
pub(super) fn write(out: &mut String, chart: &Chart) {
    out.push_str("<figure>\n");
    match &chart.dimension {
        Some(dimension) => write_lines(out, chart, dimension),
        None => write_bars(out, chart),
    }
    out.push_str("</figure>\n");
}

fn begin(out: &mut String, chart: &Chart, height: f64) {
    let title = escaped(&format!("{}: {}", chart.title, chart.values));
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>"
    );
}

fn text(out: &mut String, at: [f64; 2], anchor: &str, class: &str, text: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
        at[0],
        at[1],
        escaped(text)
    );
}

fn rule(out: &mut String, from: [f64; 2], to: [f64; 2], class: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
        from[0], from[1], to[0], to[1]
    );
}

fn write_lines(out: &mut String, chart: &Chart, dimension: &str) {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let x = Axis::new(points().map(|point| point.at), false, [LEFT, WIDTH - RIGHT]);
    let ends = points().flat_map(|point| [point.value.low, point.value.high]);
    let y = Axis::new(ends, true, [HEIGHT - BOTTOM, TOP]);

    begin(out, chart, HEIGHT);
    text(out, [4.0, 12.0], "start", "", &chart.values);
    for value in y.ticks() {
        let place = y.coordinate(value);
        rule(out, [LEFT, place], [WIDTH - RIGHT, place], "grid");
        text(out, [LEFT - 5.0, place + 4.0], "end", "", &tick(value));
    }
    let mut values: Vec<f64> = points().map(|point| point.at).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut free = 0.0;
    for value in values {
        let label = tick(value);
        let half = label.chars().count() as f64 * 3.2;
        let place = x.coordinate(value);
        rule(out, [place, HEIGHT - BOTTOM], [place, HEIGHT - BOTTOM + 4.0], "grid");
        if place - half > free {
            let inside = place.min(WIDTH - half - 1.0);
            text(out, [inside, HEIGHT - BOTTOM + 16.0], "middle", "", &label);
            free = place + half + 4.0;
        }
    }
    text(out, [(LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6.0], "middle", "", dimension);
    for (index, line) in chart.lines.iter().enumerate() {
        write_line(out, line, index, &x, &y);
    }
    out.push_str("</svg>\n");
    write_legend(out, chart);
}

/// Writes a line, its marks, and the band of its 95 % confidence interval.
fn write_line(out: &mut String, line: &Line, index: usize, x: &Axis, y: &Axis) {
    let colour = format!("var(--c{})", index % COLOURS);
    let path = |value: fn(&DataPoint) -> f64| -> Vec<String> {
        let point = |point: &DataPoint| {
            format!("{:.1},{:.1}", x.coordinate(point.at), y.coordinate(value(point)))
        };
        line.points.iter().map(point).collect()
    };
    let mut around = path(|point| point.value.high);
    around.extend(path(|point| point.value.low).into_iter().rev());
    let _ = writeln!(
        out,
        "<polygon class=\"band\" style=\"fill:{colour}\" points=\"{}\"/>",
        around.join(" ")
    );
    let class = if line.reference { "line reference" } else { "line" };
    let _ = writeln!(
        out,
        "<polyline class=\"{class}\" style=\"stroke:{colour}\" points=\"{}\"/>",
        path(|point| point.value.middle).join(" ")
    );
    for point in &line.points {
        let title = format!("{}, {}: {}", line.label, short(point.at), short(point.value.middle));
        let at = [x.coordinate(point.at), y.coordinate(point.value.middle)];
        write_mark(out, index, at, &colour, &title);
    }
}

/// Writes the mark of a line. Its shape distinguishes the first four lines without colours.
fn write_mark(out: &mut String, index: usize, [x, y]: [f64; 2], colour: &str, title: &str) {
    let corners: &[[f64; 2]] = match index % 4 {
        0 => &[[-3.0, -3.0], [3.0, -3.0], [3.0, 3.0], [-3.0, 3.0]],
        1 => &[[0.0, -4.0], [4.0, 3.0], [-4.0, 3.0]],
        2 => &[[0.0, -4.2], [4.2, 0.0], [0.0, 4.2], [-4.2, 0.0]],
        _ => &[[0.0, 4.0], [4.0, -3.0], [-4.0, -3.0]],
    };
    let points: Vec<String> =
        corners.iter().map(|[dx, dy]| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    let _ = writeln!(
        out,
        "<polygon style=\"fill:{colour}\" points=\"{}\"><title>{}</title></polygon>",
        points.join(" "),
        escaped(title)
    );
}

fn write_legend(out: &mut String, chart: &Chart) {
    out.push_str("<figcaption>\n");
    for (index, line) in chart.lines.iter().enumerate() {
        let colour = format!("var(--c{})", index % COLOURS);
        let class = if line.reference { "line reference" } else { "line" };
        let _ = write!(
            out,
            "<span><svg viewBox=\"0 0 30 12\" aria-hidden=\"true\"><line x1=\"0\" y1=\"6\" x2=\"30\" y2=\"6\" \
             class=\"{class}\" style=\"stroke:{colour}\"/>"
        );
        write_mark(out, index, [15.0, 6.0], &colour, &line.label);
        let _ = writeln!(out, "</svg>{}</span>", escaped(&line.label));
    }
    out.push_str("</figcaption>\n");
}

fn write_bars(out: &mut String, chart: &Chart) {
    let bars: Vec<(usize, &Line, Interval)> = chart
        .lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| Some((index, line, line.points.first()?.value)))
        .collect();
    let height = TOP + BAR * bars.len() as f64 + 22.0;
    let most = bars.iter().map(|(_, _, value)| value.high).fold(0.0, f64::max);
    let x = Axis {
        least: 0.0,
        most: if most > 0.0 { most } else { 1.0 },
        logarithmic: false,
        ends: [4.0, WIDTH - RIGHT - 4.0],
    };
    begin(out, chart, height);
    text(out, [4.0, 12.0], "start", "", &chart.values);
    for value in x.ticks() {
        let place = x.coordinate(value);
        rule(out, [place, TOP], [place, height - 18.0], "grid");
        let anchor = if value == 0.0 { "start" } else { "middle" };
        text(out, [place.min(WIDTH - 16.0), height - 5.0], anchor, "", &tick(value));
    }
    for (row, (index, line, value)) in bars.into_iter().enumerate() {
        let top = TOP + BAR * row as f64;
        let name = format!("{}  {}", line.label, short(value.middle));
        text(out, [6.0, top + 13.0], "start", "name", &name);
        let opacity = if line.reference { 0.45 } else { 0.85 };
        let _ = writeln!(
            out,
            "<rect x=\"4\" y=\"{:.1}\" width=\"{:.1}\" height=\"11\" style=\"fill:var(--c{});opacity:{opacity}\"/>",
            top + 18.0,
            (x.coordinate(value.middle) - 4.0).max(0.5),
            index % COLOURS
        );
        let middle = top + 23.5;
        rule(out, [x.coordinate(value.low), middle], [x.coordinate(value.high), middle], "whisker");
        for end in [value.low, value.high] {
            rule(
                out,
                [x.coordinate(end), middle - 3.0],
                [x.coordinate(end), middle + 3.0],
                "whisker",
            );
        }
    }
    out.push_str("</svg>\n");
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
        let mut out = String::new();
        write(&mut out, &chart);
        assert_eq!(out.matches("<polyline").count(), 2);
        assert!(out.contains("</svg>two &amp; three</span>"), "{out}");
        assert!(!out.contains("NaN"), "{out}");
        chart.dimension = None;
        let mut out = String::new();
        write(&mut out, &chart);
        assert_eq!(out.matches("<rect").count(), 2);
    }
}
