//! A bar on standard error while something long runs; nothing when that is no terminal.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a bar moves that has nothing new to show.
pub(crate) const TICK: Duration = Duration::from_millis(200);

/// The bar that stands on the terminal now: who writes there has to clear it for a moment.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Standard error, beside the bar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside;

impl Write for Beside {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let write = || io::stderr().write_all(text);
        match shown.as_ref().filter(|bar| !bar.is_finished()) {
            Some(bar) => bar.suspend(write)?,
            None => write()?,
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

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
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    }
    bar
}
