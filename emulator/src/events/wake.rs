//! What the delivery of events keeps in memory.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, Notify};

/// Wakes whoever delivers events, and keeps two from delivering at the same time.
#[derive(Debug, Default)]
pub struct Wake {
    /// Held by whoever delivers.
    pub alone: Mutex<()>,
    raised: Notify,
    /// Channels by the name of their subscription.
    channels: parking_lot::Mutex<BTreeMap<String, UnboundedSender<Value>>>,
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

    /// Opens the channel of a subscription. An earlier one of this name ends.
    pub fn open(&self, name: &str) -> UnboundedReceiver<Value> {
        let (sender, receiver) = unbounded_channel();
        self.channels.lock().insert(name.to_owned(), sender);
        receiver
    }

    /// Sends events into the channel of a subscription. Returns whether somebody receives them.
    pub fn tell(&self, name: &str, mut events: impl Iterator<Item = Value>) -> bool {
        let channels = self.channels.lock();
        let channel = channels.get(name);
        channel.is_some_and(|channel| events.all(|event| channel.send(event).is_ok()))
    }
}
