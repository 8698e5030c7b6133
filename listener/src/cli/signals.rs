//! The orders to stop: the first drains, the second aborts.

use tokio::sync::watch;

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
