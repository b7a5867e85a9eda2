//! The progress of a measurement, shown on standard error if it is a terminal. It disappears when
//! it is dropped. No thread draws it, because that would disturb the measured systems.

pub use indicatif::ProgressBar;
use indicatif::{ProgressFinish, ProgressStyle};

/// Returns the progress of a measurement in rounds.
pub fn of_rounds(title: String, rounds: u32) -> ProgressBar {
    with_template("{prefix}: round {pos} of {len}, {eta} left", title, rounds.into())
}

/// Returns the progress of planned work, whose length and position are in milliseconds.
pub fn of_work(title: String) -> ProgressBar {
    with_template("{prefix}: {percent} %, {eta} left", title, 0)
}

fn with_template(template: &str, title: String, length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a literal template");
    let bar = ProgressBar::new(length).with_finish(ProgressFinish::AndClear);
    bar.with_style(style).with_prefix(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_without_a_terminal_counts_and_draws_nothing() {
        let bar = of_rounds("100 rules".to_owned(), 10);
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        bar.set_position(3);
        assert_eq!((bar.position(), bar.length(), bar.is_hidden()), (3, Some(10), true));
        let work = of_work("a paper".to_owned());
        work.inc_length(2500);
        assert_eq!((work.position(), work.length()), (0, Some(2500)));
    }
}
