//! Samples as a picture of characters, as ministat draws them. Close samples share a column of
//! marks. Below them, each set has a row with its quartiles (`|__|`) and its median (`M`).

use super::quantile;

/// Marks of the sets, in rotation.
const MARKS: [char; 6] = ['x', '+', '*', '%', '#', '@'];

/// Draws sets of samples, each with its name. The picture is `width` characters wide, and at least
/// 20.
pub fn picture(sets: &[(&str, &[f64])], width: usize) -> String {
    let width = width.max(20);
    let all: Vec<f64> = sets.iter().flat_map(|(_, samples)| samples.iter().copied()).collect();
    let (Some(least), Some(most)) = (quantile(&all, 0.0), quantile(&all, 1.0)) else {
        return String::new();
    };
    let place = |value: f64| match most - least {
        spread if spread > 0.0 => ((value - least) / spread * (width - 1) as f64).round() as usize,
        _ => width / 2,
    };
    let mut lines = Vec::new();
    for (set, (name, _)) in sets.iter().enumerate() {
        lines.push(format!("{} {name}", mark(set)));
    }
    lines.push(format!("+{}+", "-".repeat(width)));
    lines.extend(framed(marks(sets, width, place), width));
    for (set, (_, samples)) in sets.iter().enumerate() {
        lines.extend(framed(quarters(samples, width, place, mark(set)), width));
    }
    lines.push(format!("+{}+", "-".repeat(width)));
    lines.push(format!(
        "{:<half$}{:>rest$}",
        short(least),
        short(most),
        half = width / 2 + 1,
        rest = width - width / 2 + 1
    ));
    lines.join("\n") + "\n"
}

fn mark(set: usize) -> char {
    MARKS[set % MARKS.len()]
}

/// Returns the rows of marks from the top. Marks in the same column are stacked.
fn marks(sets: &[(&str, &[f64])], width: usize, place: impl Fn(f64) -> usize) -> Vec<String> {
    let mut columns = vec![Vec::new(); width];
    for (set, (_, samples)) in sets.iter().enumerate() {
        for &sample in *samples {
            columns[place(sample)].push(mark(set));
        }
    }
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |level: usize| columns.iter().map(|c| c.get(level).copied().unwrap_or(' ')).collect();
    (0..height).rev().map(row).collect()
}

/// Returns the row with a set's quartiles and median.
fn quarters(
    samples: &[f64],
    width: usize,
    place: impl Fn(f64) -> usize,
    mark: char,
) -> Vec<String> {
    let at = |share: f64| quantile(samples, share).map(&place);
    let (Some(low), Some(middle), Some(high)) = (at(0.25), at(0.5), at(0.75)) else {
        return Vec::new();
    };
    let mut row = vec![' '; width];
    row[low..=high].fill('_');
    row[low] = '|';
    row[high] = '|';
    row[middle] = 'M';
    // The mark of the set stands beside the quartiles, if there is room.
    match (high + 1 < width, low > 0) {
        (true, _) => row[high + 1] = mark,
        (false, true) => row[low - 1] = mark,
        (false, false) => {}
    }
    vec![row.into_iter().collect()]
}

fn framed(rows: Vec<String>, width: usize) -> impl Iterator<Item = String> {
    rows.into_iter().map(move |row| format!("|{row:<width$}|"))
}

/// Writes a number with about four significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sets_side_by_side() {
        let drawn = picture(
            &[("before", &[10.0, 10.0, 11.0, 12.0]), ("after", &[19.0, 20.0, 20.0, 21.0])],
            24,
        );
        let expected = "\
x before
+ after
+------------------------+
|x                    +  |
|x x x              + + +|
||M_|x                   |
|                    |M+ |
+------------------------+
10.00                21.00
";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn equal_samples_and_none() {
        assert_eq!(picture(&[], 40), "");
        assert_eq!(picture(&[("none", &[])], 40), "");
        let drawn = picture(&[("same", &[5.0; 3])], 20);
        assert_eq!(drawn.lines().filter(|line| line.contains('x')).count(), 1 + 3 + 1, "{drawn}");
    }
}
