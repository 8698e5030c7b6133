//! A topic: events for every process that subscribed, each through a queue of its own.
//!
//! The queues' names are the registry: `TOPIC-sub-` and 16 hexadecimal digits. A publisher lists
//! them, keeps the list for a while, and puts the event into each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::json;
use smalt_sleeve::port::{CallContext, ErrorKind, MessageTtl, PortResult, Storage};
use tokio::time::Instant;

use super::publish::{Destination, Undelivered};
use crate::config::{ConfigError, queue_name};
use crate::rules::trigger::Trigger;

/// Time to live of an event. By then the watchdog has looked at the queue.
pub const EVENT_TTL: Duration = Duration::from_secs(600);
/// How long a list of the subscriptions is used. A process that subscribes meanwhile misses events
/// for at most this time.
const LISTED_FOR: Duration = Duration::from_secs(30);

/// Between the topic's name and the number of a subscription.
const INFIX: &str = "-sub-";
const DIGITS: usize = 16;
/// Longest name of a topic; a subscription's queue has at most 63 characters.
pub const TOPIC_CHARS_MAX: usize = 63 - INFIX.len() - DIGITS;

/// When the subscriptions were listed, and their queues.
type Listed = (Instant, Vec<String>);

/// The publisher's side of a topic. Clones share the list of the subscriptions.
#[derive(Clone)]
pub struct Topic {
    storage: Arc<dyn Storage>,
    name: String,
    listed: Arc<Mutex<Option<Listed>>>,
}

impl Topic {
    /// Creates the publisher's side of the topic `name`.
    ///
    /// # Errors
    /// The name is not that of a queue, or longer than [`TOPIC_CHARS_MAX`].
    pub fn new(storage: Arc<dyn Storage>, name: &str) -> Result<Self, ConfigError> {
        Topic::check("topic", name)?;
        Ok(Topic {
            storage,
            name: name.to_owned(),
            listed: Arc::default(),
        })
    }

    /// Checks the name of a topic, given in this setting.
    ///
    /// # Errors
    /// As [`Topic::new`].
    pub fn check(setting: &'static str, name: &str) -> Result<(), ConfigError> {
        queue_name(setting, name)?;
        match name.len() {
            ..=TOPIC_CHARS_MAX => Ok(()),
            length => Err(ConfigError::value(
                setting,
                format!("`{name}` has {length} characters; at most {TOPIC_CHARS_MAX} are allowed"),
            )),
        }
    }

    /// Puts an event into the queue of every subscription, visible after `delay`; returns their
    /// number.
    ///
    /// # Errors
    /// The subscriptions cannot be listed, or a put failed.
    pub async fn put(&self, event: &Trigger, delay: Duration) -> PortResult<u64> {
        let subscriptions = self.subscriptions().await?;
        let (cx, text) = (CallContext::housekeeping(), json!(event).to_string());
        let life = MessageTtl::After(EVENT_TTL.saturating_add(delay));
        let puts = subscriptions
            .iter()
            .map(|queue| self.storage.put_message(&cx, queue, &text, life, delay));
        let (mut reached, mut failed) = (0, None);
        for put in join_all(puts).await {
            match put {
                Ok(_) => reached += 1,
                // Its process has ended.
                Err(error) if error.kind == ErrorKind::NotFound => self.listed(|l| *l = None),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(reached), Err)
    }

    fn listed<T>(&self, with: impl FnOnce(&mut Option<Listed>) -> T) -> T {
        with(&mut self.listed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn subscriptions(&self) -> PortResult<Vec<String>> {
        let known = self.listed(|listed| listed.clone());
        if let Some((_, queues)) = known.filter(|(at, _)| at.elapsed() < LISTED_FOR) {
            return Ok(queues);
        }
        let queues = subscriptions(self.storage.as_ref(), &self.name).await?;
        // Without subscriptions there is nothing to put, and the first may come at any time.
        if !queues.is_empty() {
            self.listed(|listed| *listed = Some((Instant::now(), queues.clone())));
        }
        Ok(queues)
    }
}

#[async_trait]
impl Destination for Topic {
    async fn deliver(&self, event: &Trigger, delay: Duration) -> Result<u64, Undelivered> {
        Ok(self.put(event, delay).await?)
    }
}

pub(super) fn subscription_queue(topic: &str, number: u64) -> String {
    format!("{topic}{INFIX}{number:016x}")
}

pub(super) async fn subscriptions(storage: &dyn Storage, topic: &str) -> PortResult<Vec<String>> {
    let prefix = format!("{topic}{INFIX}");
    let mut queues = storage
        .list_queues(&CallContext::housekeeping(), &prefix)
        .await?;
    let is_number = |rest: &str| {
        rest.len() == DIGITS && rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    queues.retain(|queue| queue.strip_prefix(&prefix).is_some_and(is_number));
    Ok(queues)
}
