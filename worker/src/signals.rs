//! Signals. The first order to stop (SIGTERM, Ctrl-C) ends the work in order, the second aborts it.

use std::io;

use tokio::sync::watch;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask a worker for something beside its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SIGHUP.
    Hangup,
    /// SIGUSR1.
    Status,
}

/// Calls `act` at each such signal. Never ends; where the signal does not exist, nothing happens.
pub async fn each(request: Request, mut act: impl FnMut()) {
    #[cfg(unix)]
    {
        let kind = match request {
            Request::Hangup => SignalKind::hangup(),
            Request::Status => SignalKind::user_defined1(),
        };
        if let Ok(mut asked) = signal(kind) {
            while asked.recv().await.is_some() {
                act();
            }
        }
    }
    #[cfg(not(unix))]
    let _ = (request, &mut act);
    std::future::pending::<()>().await;
}

/// The orders to stop that arrive after this was made.
#[derive(Debug)]
pub struct Orders {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hangup: Option<Signal>,
}

impl Orders {
    /// SIGTERM and Ctrl-C.
    ///
    /// # Errors
    /// The system refuses to register the signals.
    pub fn new() -> io::Result<Self> {
        Ok(Orders {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            hangup: None,
        })
    }

    /// SIGHUP as well, unless the process was started with SIGHUP ignored, as `nohup` does. It
    /// never counts as the second order: a terminal that closes sends it more than once.
    ///
    /// # Errors
    /// As [`Orders::new`].
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no SIGHUP to add"))]
    pub fn with_hangup() -> io::Result<Self> {
        let mut orders = Orders::new()?;
        #[cfg(unix)]
        if !ignores_hangup() {
            orders.hangup = Some(signal(SignalKind::hangup())?);
        }
        Ok(orders)
    }

    #[cfg(unix)]
    async fn first(&mut self) -> io::Result<()> {
        let hangup = async {
            match self.hangup.as_mut() {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup => {}
        }
        Ok(())
    }

    #[cfg(unix)]
    async fn second(&mut self) -> io::Result<()> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        Ok(())
    }

    #[cfg(not(unix))]
    async fn first(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }

    #[cfg(not(unix))]
    async fn second(&mut self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }

    /// Lets `work` go on until its end, or until the second order; then it is dropped, and the
    /// result is `None`. The first order sets `stop`.
    ///
    /// # Errors
    /// The signals cannot be received.
    pub async fn obey<T>(
        mut self,
        stop: &watch::Sender<bool>,
        work: impl Future<Output = T>,
    ) -> io::Result<Option<T>> {
        let aborted = async {
            self.first().await?;
            tracing::info!(op = "stop", "stopping; signal again to abort");
            stop.send_replace(true);
            self.second().await?;
            tracing::warn!(op = "stop", "aborting; open work is taken up again later");
            Ok(())
        };
        tokio::select! {
            biased;
            done = work => Ok(Some(done)),
            aborted = aborted => aborted.map(|()| None),
        }
    }
}

/// Waits until `stop` is set.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Whether this process was started with SIGHUP ignored, where the system says so.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    use crate::process::{Process, Sources};
    ignores_signal_1(&Process.file("/proc/self/status").unwrap_or_default())
}

/// Reads the mask of ignored signals from `/proc/self/status`: SIGHUP is signal 1, its lowest bit.
#[cfg(unix)]
fn ignores_signal_1(facts: &str) -> bool {
    let mask = facts.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_recognised() {
        assert!(ignores_signal_1("Name:\tx\nSigIgn:\t0000000000000001\n"));
        assert!(ignores_signal_1("SigIgn:\t0000000000001003\n"));
        assert!(!ignores_signal_1("SigBlk:\t1\nSigIgn:\t0000000000001002\n"));
        assert!(!ignores_signal_1(""));
    }

    #[tokio::test]
    async fn work_that_ends_is_not_aborted() {
        let (stop, stopped) = watch::channel(false);
        let orders = Orders::with_hangup().unwrap();
        assert_eq!(orders.obey(&stop, async { 7 }).await.unwrap(), Some(7));
        assert!(!*stopped.borrow());
    }
}
