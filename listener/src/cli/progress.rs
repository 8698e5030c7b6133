//! A bar on standard error while something long runs.

use indicatif::ProgressBar;

/// A bar for `total` steps, or a spinner when the number is unknown.
pub(crate) fn bar(total: Option<u64>, what: &'static str) -> ProgressBar {
    let template = match total {
        Some(_) => "{prefix} {wide_bar} {pos}/{len} {per_sec} {msg}",
        None => "{prefix} {spinner} {pos} {per_sec} {msg}",
    };
    smalt_worker::progress::line(total, template).with_prefix(what)
}
