//! What the delivery of events keeps in memory.

use tokio::sync::{Mutex, Notify};

/// Wakes whoever delivers events, and keeps two from delivering at the same time.
#[derive(Debug, Default)]
pub struct Wake {
    /// Held by whoever delivers.
    pub alone: Mutex<()>,
    raised: Notify,
}

impl Wake {
    /// Says that there may be events to deliver.
    pub fn wake(&self) {
        self.raised.notify_one();
    }

    /// Waits until there may be events to deliver.
    pub async fn woken(&self) {
        self.raised.notified().await;
    }
}
