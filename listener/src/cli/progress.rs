//! A progress bar on standard error.

use indicatif::ProgressBar;

/// Returns a bar for `total` steps, or a spinner if the number is unknown.
pub(crate) fn bar(total: Option<u64>, what: &'static str) -> ProgressBar {
    let template = match total {
        Some(_) => "{prefix} {wide_bar} {pos}/{len} {per_sec} {msg}",
        None => "{prefix} {spinner} {pos} {per_sec} {msg}",
    };
    smalt_worker::progress::line(total, template).with_prefix(what)
}
