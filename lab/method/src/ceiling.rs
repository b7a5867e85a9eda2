//! The ceiling: the highest rate of the generator. A figure close to it describes the generator,
//! and not the system.

use fwlab_results::summary::{self, Row};
use fwlab_results::{Mode, Point, Role, Run, Series};

/// Number of frames that measure the ceiling.
pub(crate) const FRAMES: u64 = 1 << 19;

/// The usable share of the ceiling. Above it, rates and losses may be the generator's.
pub(crate) const USABLE_SHARE: f64 = 0.8;

/// Returns the reason for which a point is void: a system was so fast that the generator was
/// measured. None if the point is valid.
pub fn void(run: &Run, series: &Series, point: &Point) -> Option<String> {
    let ceiling = point.ceiling?;
    let summary = summary::summarize(run, series, point);
    let judged = summary.rows.iter().filter(|row| row.system.role != Role::Null);
    let rate = |row: &Row<'_>| match run.mode {
        Mode::Cost => 1e9 / row.median.middle,
        Mode::Queue | Mode::Wire => row.median.middle,
    };
    let too_fast: Vec<_> = judged
        .filter(|row| rate(row) > USABLE_SHARE * ceiling)
        .map(|row| format!("{} at {:.0} %", row.system.label, 100.0 * rate(row) / ceiling))
        .collect();
    (!too_fast.is_empty()).then(|| {
        format!(
            "{} of the generator's maximum rate: the figure describes the generator",
            too_fast.join(", ")
        )
    })
}
