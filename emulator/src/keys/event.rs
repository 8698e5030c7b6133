//! Keys of event subscriptions and of their events.

use smalt_protocol::Timestamp;

use super::{EVENT, Generation, SUBSCRIPTION, WAITING, blob, blob_name, generation, key};

/// Returns the key of an event subscription.
pub fn subscription(name: &str) -> Vec<u8> {
    key(SUBSCRIPTION, &[name.as_bytes()])
}

/// Returns the name from the key of an event subscription.
pub fn subscription_name(key: &[u8]) -> String {
    String::from_utf8_lossy(key.get(1..).unwrap_or_default()).into_owned()
}

/// Returns the key of an event that a subscription has to deliver: the tick of its commit and its
/// place there.
pub fn event(subscription: Generation, tick: Timestamp, place: u16) -> Vec<u8> {
    let mut key = events(subscription);
    key.extend_from_slice(&tick.ticks().to_be_bytes());
    key.extend_from_slice(&place.to_be_bytes());
    key
}

/// Returns the key of an event that waits until a change of a blob completes.
pub fn waiting(generation: Generation, blob: &str) -> Vec<u8> {
    key(WAITING, &[&generation.to_be_bytes(), blob.as_bytes()])
}

/// Returns the key of the blob that an event waits for.
pub fn waiting_blob(key: &[u8]) -> Vec<u8> {
    blob(generation(key), &blob_name(key))
}

/// Returns where the events of a subscription start; [`after`] gives their end.
pub fn events(subscription: Generation) -> Vec<u8> {
    key(EVENT, &[&subscription.to_be_bytes()])
}
