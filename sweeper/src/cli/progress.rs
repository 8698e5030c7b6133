//! A line that lives while something long runs, with a bar once it is known how much there is to
//! do.

use std::time::Duration;

use indicatif::ProgressBar;
use smalt_worker::progress::{TICK, line, restyle};

/// The line with a bar.
const BAR: &str = "{spinner} [{bar:24}] {pos}/{len} containers, {msg} ({elapsed})";

/// A line with a message, for work whose length is not known yet.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    line(None, "{spinner} {msg} ({elapsed})").with_message(what)
}

/// How far something is: containers done, of how many, and words for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) done: u64,
    pub(crate) all: u64,
    pub(crate) words: String,
}

/// So many per second, on average so far.
pub(crate) fn rate(count: u64, since: Duration) -> String {
    let per_s = count as f64 / since.as_secs_f64().max(0.001);
    format!("{per_s:.0}/s")
}

/// Brings the line up to date. The first total that is known makes a bar of it.
pub(crate) fn show(bar: &ProgressBar, far: Far) {
    if far.all > 0 && bar.length() != Some(far.all) {
        restyle(bar, BAR);
        bar.set_length(far.all);
    }
    bar.set_position(far.done);
    bar.set_message(far.words);
}

/// Keeps the line new. Never ends.
pub(crate) async fn follow(bar: &ProgressBar, far: impl Fn() -> Far) {
    if bar.is_hidden() {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        show(bar, far());
    }
}

#[cfg(test)]
mod tests {
    use indicatif::{ProgressDrawTarget, ProgressStyle};

    use super::*;

    /// Before a total is known there is none; from then on there is.
    #[test]
    fn a_total_makes_a_bar() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let far = |done, all| Far {
            done,
            all,
            words: format!("{done} seen"),
        };
        show(&bar, far(0, 0));
        assert_eq!((bar.length(), bar.position()), (None, 0));
        show(&bar, far(2, 3));
        assert_eq!((bar.length(), bar.position()), (Some(3), 2));
        assert_eq!(bar.message(), "2 seen");
        show(&bar, far(4, 5));
        assert_eq!((bar.length(), bar.position()), (Some(5), 4));
        assert_eq!(rate(30, Duration::from_secs(20)), "2/s");
        assert_eq!(rate(0, Duration::ZERO), "0/s");
    }

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
