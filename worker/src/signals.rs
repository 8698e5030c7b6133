//! Signals. The first SIGTERM or Ctrl-C stops the work in an orderly way, the second aborts it.

use std::io;

use tokio::sync::watch;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that request something other than a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// SIGHUP.
    Hangup,
    /// SIGUSR1.
    Status,
}

/// Calls `act` for each such signal. Never returns. Does nothing on systems without the signal.
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

/// Stop signals that arrive after its creation.
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
    /// Listens for SIGTERM and Ctrl-C.
    ///
    /// # Errors
    /// If the system cannot register the signals.
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

    /// Listens for SIGTERM, Ctrl-C and SIGHUP. Ignores SIGHUP if the process was started so, as by
    /// `nohup`. SIGHUP never counts as the second signal: a closing terminal sends it repeatedly.
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

    /// Runs `work` until it ends or the second signal arrives; then drops it and returns `None`.
    /// The first signal sets `stop`.
    ///
    /// # Errors
    /// If the signals cannot be received.
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
            tracing::warn!(op = "stop", "aborting; unfinished work resumes later");
            Ok(())
        };
        tokio::select! {
            biased;
            done = work => Ok(Some(done)),
            aborted = aborted => aborted.map(|()| None),
        }
    }
}

/// Waits for Ctrl-C; forever if the system cannot report it.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until `stop` is set.
pub async fn stopped(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns whether this process was started with SIGHUP ignored; `false` if the system does not
/// say.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    use crate::process::{Process, Sources};
    ignores_signal_1(&Process.file("/proc/self/status").unwrap_or_default())
}

/// Parses the mask of ignored signals in `/proc/self/status`: SIGHUP is signal 1, the lowest bit.
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
    fn nohup_is_recognized() {
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
