//! One run of a handler in its own task: it may hang or panic without affecting anything else.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::handler::{Context, Message, Verdict};
use crate::payload::Claimed;
use crate::shared::Shared;

/// Time that a cancelled handler gets to end before it is dropped.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(3);

/// A running handler. Dropping it drops the handler at its next await.
pub(crate) struct Run {
    task: JoinHandle<Verdict>,
    switch: watch::Sender<bool>,
    started: Instant,
}

impl Run {
    /// Starts the handler on a message, whose payload it fetches first.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        payload: Option<Claimed>,
        mut message: Message,
    ) -> Self {
        let shared = Arc::clone(shared);
        let config = &shared.config;
        let (ctx, switch) =
            Context::new(&config.worker, config.handler_timeout, config.max_dequeue);
        let task = tokio::spawn(async move {
            if let Some(payload) = payload
                && let Err(verdict) = payload.fetch(&mut message).await
            {
                return verdict;
            }
            shared.observers.tell(|o| o.handling(&message));
            shared.handler.handle(&message, &ctx).await
        });
        Run {
            task,
            switch,
            started: Instant::now(),
        }
    }

    /// Waits for the verdict; a panic counts as a retry.
    pub(crate) async fn verdict(&mut self) -> Verdict {
        match (&mut self.task).await {
            Ok(verdict) => verdict,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Verdict::retry(format!("handler panicked: {}", what(&*panic))),
                Err(_) => Verdict::retry("handler was dropped"),
            },
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Cancels the handler and drops it after `within`. Its verdict is ignored: a command that ends
    /// on SIGTERM with status 0 has not done its work.
    pub(crate) async fn cancel(mut self, within: Duration) {
        let _ = self.switch.send(true);
        let _ = tokio::time::timeout(within, self.verdict()).await;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn what(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
