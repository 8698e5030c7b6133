//! What the delivery of events keeps in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use smalt_protocol::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, Notify};

use super::schedule::Schedule;
use crate::rules::subscription::Subscription;
use crate::store::Store;

/// A code, until when it is valid, and the settings of the subscription.
type Awaiting = (String, Timestamp, Subscription);

/// Wakes whoever delivers events, and keeps two from delivering at the same time.
#[derive(Debug)]
pub struct Wake {
    /// Held by whoever delivers.
    pub schedule: Mutex<Schedule>,
    raised: Notify,
    /// Number of subscriptions that were created or changed since the start.
    subscribed: AtomicU64,
    /// The epoch in which a commit found no subscription.
    unsubscribed: AtomicU64,
    /// Subscriptions whose webhooks have to be confirmed by hand, by name.
    awaiting: parking_lot::Mutex<BTreeMap<String, Awaiting>>,
    /// Channels by the name of their subscription.
    channels: parking_lot::Mutex<BTreeMap<String, UnboundedSender<Value>>>,
}

impl Default for Wake {
    fn default() -> Self {
        Wake {
            schedule: Mutex::default(),
            raised: Notify::new(),
            subscribed: AtomicU64::new(0),
            unsubscribed: AtomicU64::new(u64::MAX),
            awaiting: parking_lot::Mutex::default(),
            channels: parking_lot::Mutex::default(),
        }
    }
}

impl Wake {
    /// Returns a number that grows whenever there may be a first subscription. Both terms only
    /// grow, so that equal sums mean that neither did.
    pub fn epoch(&self, store: &Store) -> u64 {
        self.subscribed.load(Ordering::SeqCst) + store.replacements()
    }

    /// Returns whether there may be a subscription. Reads no record, so that writes without one
    /// cost nothing.
    pub fn may_be_subscribed(&self, epoch: u64) -> bool {
        self.unsubscribed.load(Ordering::SeqCst) != epoch
    }

    /// Notes that a commit which began in this epoch found no subscription.
    pub fn note_none(&self, epoch: u64) {
        self.unsubscribed.store(epoch, Ordering::SeqCst);
    }

    /// Notes a new subscription, after its commit and before its acknowledgement.
    pub fn note_subscription(&self) {
        self.subscribed.fetch_add(1, Ordering::SeqCst);
    }

    /// Says that there may be events to deliver.
    pub fn wake(&self) {
        self.raised.notify_one();
    }

    /// Waits until there may be events to deliver.
    pub async fn woken(&self) {
        self.raised.notified().await;
    }

    /// Keeps the settings of a subscription until it is confirmed.
    pub fn expect(&self, name: &str, awaiting: Awaiting) {
        self.awaiting.lock().insert(name.to_owned(), awaiting);
    }

    /// Returns the settings that await this code, once.
    pub fn expected(&self, name: &str, code: &str, now: Timestamp) -> Option<Subscription> {
        let mut all = self.awaiting.lock();
        all.retain(|_, (_, until, _)| now < *until);
        all.get(name).filter(|(right, _, _)| right == code)?;
        all.remove(name).map(|(_, _, settings)| settings)
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
