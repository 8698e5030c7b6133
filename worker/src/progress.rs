//! A progress line on standard error that log lines do not corrupt.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Interval at which an unchanged line is redrawn.
pub const TICK: Duration = Duration::from_millis(150);

/// The line currently on the terminal, which is cleared while other output is written.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A writer to standard error that keeps the progress line intact.
#[derive(Clone, Copy, Debug)]
pub struct Beside;

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

/// Creates a progress line with this [template](ProgressStyle::with_template); hidden if standard
/// error is not a terminal.
pub fn line(total: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    restyle(&bar, template);
    if !bar.is_hidden() {
        bar.enable_steady_tick(TICK);
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
    }
    bar
}

/// Changes the template of a line.
pub fn restyle(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use std::io::IsTerminal;

    use super::*;

    #[test]
    fn a_line_is_hidden_without_a_terminal() {
        let hidden = line(None, "{msg}").is_hidden();
        assert_eq!(hidden, !io::stderr().is_terminal());
    }
}
