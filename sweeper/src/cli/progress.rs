//! A line that lives while something long runs; nothing where standard error is no terminal.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a line moves that has nothing new to show.
pub(crate) const TICK: Duration = Duration::from_millis(120);

/// The line that stands on the terminal now: who writes there has to clear it for a moment.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Standard error, beside the line.
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

/// A line with a message, for work of unknown length.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    }
    bar
}

/// Keeps the line's message new. Never ends.
pub(crate) async fn follow(bar: &ProgressBar, message: impl Fn() -> String) {
    if bar.is_hidden() {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        bar.set_message(message());
    }
}
