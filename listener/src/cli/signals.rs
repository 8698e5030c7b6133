//! Signals: of the orders to stop the first drains and the second aborts; SIGUSR1 asks for the
//! status.
//!
//! SIGHUP drains as well, and never aborts: a terminal that closes sends it more than once. Its
//! sender starts the listener again to have a changed file read: queues, handlers and rates belong
//! to a run from its beginning. Who started the listener so that SIGHUP is ignored (`nohup`) keeps
//! that.

use std::sync::Arc;

#[cfg(unix)]
use smalt_listener::config::secret::{Process, Sources};
use tokio::sync::watch;

use super::serve::Surface;

/// Writes the status into the log at each SIGUSR1.
#[cfg(unix)]
pub(crate) async fn dumps(surface: Arc<Surface>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut asked) = signal(SignalKind::user_defined1()) else {
        return;
    };
    while asked.recv().await.is_some() {
        tracing::info!(op = "status", status = %surface.status(), "status");
    }
}

/// There is no such signal here.
#[cfg(not(unix))]
pub(crate) async fn dumps(_surface: Arc<Surface>) {}

/// Waits for the first order and passes it on; resolves at the second.
pub(crate) async fn second_order(
    mut orders: Orders,
    stop: watch::Sender<bool>,
) -> std::io::Result<()> {
    orders.first().await?;
    tracing::info!(op = "stop", "stopping: no more gets; again to abort");
    let _ = stop.send(true);
    orders.second().await?;
    tracing::warn!(
        op = "stop",
        "aborting: what was taken returns when its visibility lapses"
    );
    Ok(())
}

/// The orders to stop, from the moment on at which this was made.
#[cfg(unix)]
pub(crate) struct Orders {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Orders {
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Orders {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match ignores_hangup() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    async fn first(&mut self) -> std::io::Result<()> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hung_up(self.hangup.as_mut()) => {}
        }
        Ok(())
    }

    async fn second(&mut self) -> std::io::Result<()> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        Ok(())
    }
}

#[cfg(unix)]
async fn hung_up(hangup: Option<&mut tokio::signal::unix::Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started with SIGHUP ignored, where the system says so.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    ignores_signal_1(&Process.file("/proc/self/status").unwrap_or_default())
}

/// Reads the mask of ignored signals out of `/proc/self/status`: SIGHUP is signal 1, its lowest
/// bit.
#[cfg(unix)]
fn ignores_signal_1(facts: &str) -> bool {
    let mask = facts.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// The orders to stop.
#[cfg(not(unix))]
pub(crate) struct Orders;

#[cfg(not(unix))]
impl Orders {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Orders)
    }

    async fn first(&mut self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }

    async fn second(&mut self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_seen() {
        assert!(ignores_signal_1("Name:\tx\nSigIgn:\t0000000000000001\n"));
        assert!(ignores_signal_1("SigIgn:\t0000000000001003\n"));
        assert!(!ignores_signal_1("SigBlk:\t1\nSigIgn:\t0000000000001002\n"));
        assert!(!ignores_signal_1(""));
    }
}
