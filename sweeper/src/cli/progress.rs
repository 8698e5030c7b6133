//! A progress line on the terminal; it gets a bar when the total is known.

use std::time::Duration;

use indicatif::ProgressBar;
use smalt_worker::progress::{TICK, line, restyle};

const BAR: &str = "{spinner} [{bar:24}] {pos}/{len} containers, {msg} ({elapsed})";

pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    line(None, "{spinner} {msg} ({elapsed})").with_message(what)
}

/// Progress in containers, with a text for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) done: u64,
    pub(crate) all: u64,
    pub(crate) words: String,
}

pub(crate) fn rate(count: u64, since: Duration) -> String {
    let per_s = count as f64 / since.as_secs_f64().max(0.001);
    format!("{per_s:.0}/s")
}

/// Updates the line, and adds the bar when the total is first known.
pub(crate) fn show(bar: &ProgressBar, far: Far) {
    if far.all > 0 && bar.length() != Some(far.all) {
        restyle(bar, BAR);
        bar.set_length(far.all);
    }
    bar.set_position(far.done);
    bar.set_message(far.words);
}

/// Updates the line repeatedly. Never returns.
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
