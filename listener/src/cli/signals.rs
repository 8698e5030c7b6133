//! Signals: of the orders to stop the first drains and the second aborts; SIGUSR1 asks for the
//! status.

use std::sync::Arc;

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
pub(crate) async fn second_order(stop: watch::Sender<bool>) -> std::io::Result<()> {
    let mut orders = Orders::new()?;
    orders.next().await?;
    tracing::info!(op = "stop", "stopping: no more gets; again to abort");
    let _ = stop.send(true);
    orders.next().await?;
    tracing::warn!(
        op = "stop",
        "aborting: what was taken returns when its visibility lapses"
    );
    Ok(())
}

#[cfg(unix)]
struct Orders {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Orders {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Orders {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> std::io::Result<()> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        Ok(())
    }
}

#[cfg(not(unix))]
struct Orders;

#[cfg(not(unix))]
impl Orders {
    fn new() -> std::io::Result<Self> {
        Ok(Orders)
    }

    async fn next(&mut self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}
