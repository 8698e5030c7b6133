//! Publish and subscribe: senders publish events about their puts, and every subscribed process
//! wakes its listeners.
//!
//! - A [`Destination`] takes events: a [`Topic`] of subscription queues, a [`Relay`] in this
//!   process, or any other, such as a webhook.
//! - A process with listeners has one [`Relay`], and one [`Subscription`] per topic. Each
//!   subscription has a queue of its own, so that every process gets every event.
//! - A [`Sender`](crate::payload::Sender) publishes by itself
//!   ([`notifying`](crate::payload::Sender::notifying)), [`When`] its rule says.
//!
//! Events only save time. One that is lost, late or doubled changes neither what is handled nor how
//! often: the listener's watchdog finds the messages.

mod publish;
mod relay;
mod subscription;
mod topic;

pub use crate::rules::trigger::{Trigger, When};
pub(crate) use publish::Publisher;
pub use publish::{Destination, Undelivered};
pub use relay::Relay;
pub use subscription::Subscription;
pub use topic::{EVENT_TTL, TOPIC_CHARS_MAX, Topic};
