//! A bar on standard error while something long runs; nothing when that is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a bar moves that has nothing new to show.
pub(crate) const TICK: Duration = Duration::from_millis(200);

/// A bar for `total` steps, or a spinner when nobody knows how many.
pub(crate) fn bar(total: Option<u64>, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match total {
        Some(_) => "{prefix} {wide_bar} {pos}/{len} {per_sec} {msg}",
        None => "{prefix} {spinner} {pos} {per_sec} {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(what);
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
    }
    bar
}
