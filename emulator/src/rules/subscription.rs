//! The settings of an event subscription.
//!
//! Sources: "Event Grid message delivery and retry"; the resource provider's *Event Subscriptions*
//! for defaults and bounds.

use serde::{Deserialize, Serialize};

use super::event_filter::Filter;

/// Valid numbers of delivery attempts.
const ATTEMPTS: std::ops::RangeInclusive<u32> = 1..=30;
/// Valid times to live, in minutes.
const TTL_MINUTES: std::ops::RangeInclusive<u32> = 1..=1440;

/// Valid numbers of events in a batch.
const BATCH_EVENTS: std::ops::RangeInclusive<usize> = 1..=5_000;
/// Valid sizes of a batch, in KiB.
const BATCH_KIB: std::ops::RangeInclusive<usize> = 1..=1_024;

/// An event subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// Account whose events are delivered; `None` for every account.
    #[serde(default)]
    pub account: Option<String>,
    /// Where events are delivered to.
    pub destination: Destination,
    /// The form of delivered events.
    #[serde(default)]
    pub schema: Schema,
    /// Which events are delivered.
    #[serde(default)]
    pub filter: Filter,
    /// Number of failed attempts after which an event is given up.
    #[serde(default = "attempts")]
    pub max_delivery_attempts: u32,
    /// Minutes after which an event is given up.
    #[serde(default = "ttl_minutes")]
    pub event_ttl_minutes: u32,
    /// Where events that are given up go; `None` drops them.
    #[serde(default)]
    pub dead_letter: Option<DeadLetter>,
}

/// Where events are delivered to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Destination {
    /// A queue of an account of this emulator; each event is one message in Base64.
    Queue {
        /// The account of the queue.
        account: String,
        /// The name of the queue.
        queue: String,
    },
    /// An HTTP endpoint that receives arrays of events by POST.
    Webhook {
        /// `http://` or `https://`.
        url: String,
        /// Most events of one request.
        #[serde(default = "one")]
        max_events_per_batch: usize,
        /// Size of a request, in KiB, beyond which it gets no further event.
        #[serde(default = "batch_kib")]
        preferred_batch_kib: usize,
    },
    /// The receiver of [`Emulator::event_channel`](crate::Emulator::event_channel).
    Channel,
}

impl Destination {
    /// Returns how many events and bytes a delivery may have.
    pub const fn batch(&self) -> (usize, usize) {
        match self {
            Destination::Webhook {
                max_events_per_batch,
                preferred_batch_kib,
                ..
            } => (*max_events_per_batch, *preferred_batch_kib * 1024),
            Destination::Queue { .. } | Destination::Channel => (1, usize::MAX),
        }
    }

    fn validate(&self) -> Result<(), String> {
        let Destination::Webhook {
            url,
            max_events_per_batch,
            preferred_batch_kib,
        } = self
        else {
            return Ok(());
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err("destination: `url` starts with http:// or https://".to_owned());
        }
        if !BATCH_EVENTS.contains(max_events_per_batch) {
            return Err("destination: max_events_per_batch is 1 to 5000".to_owned());
        }
        if !BATCH_KIB.contains(preferred_batch_kib) {
            return Err("destination: preferred_batch_kib is 1 to 1024".to_owned());
        }
        Ok(())
    }
}

/// The container for events that are given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetter {
    /// The account of the container.
    pub account: String,
    /// The name of the container.
    pub container: String,
}

/// The form of delivered events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    /// The Event Grid schema.
    #[default]
    EventGridSchema,
    /// CloudEvents 1.0 in JSON.
    #[serde(rename = "CloudEventSchemaV1_0")]
    CloudEvents,
}

fn one() -> usize {
    1
}

fn batch_kib() -> usize {
    64
}

fn attempts() -> u32 {
    *ATTEMPTS.end()
}

fn ttl_minutes() -> u32 {
    *TTL_MINUTES.end()
}

impl Subscription {
    /// Returns a subscription to every event, with Event Grid's defaults.
    pub fn to(destination: Destination) -> Self {
        Subscription {
            account: None,
            destination,
            schema: Schema::default(),
            filter: Filter::default(),
            max_delivery_attempts: attempts(),
            event_ttl_minutes: ttl_minutes(),
            dead_letter: None,
        }
    }

    /// Validates what the types do not express; `has_account` says whether an account exists.
    ///
    /// # Errors
    /// The field and its valid values.
    pub fn validate(&self, has_account: impl Fn(&str) -> bool) -> Result<(), String> {
        self.destination.validate()?;
        let queue = match &self.destination {
            Destination::Queue { account, .. } => Some(account),
            Destination::Webhook { .. } | Destination::Channel => None,
        };
        let dead = self.dead_letter.as_ref().map(|dead| &dead.account);
        let mut named = self.account.iter().chain(queue).chain(dead);
        if let Some(unknown) = named.find(|name| !has_account(name)) {
            return Err(format!(
                "unknown account {unknown}: name an account of this emulator"
            ));
        }
        if !ATTEMPTS.contains(&self.max_delivery_attempts) {
            return Err("invalid max_delivery_attempts: use 1 to 30".to_owned());
        }
        if !TTL_MINUTES.contains(&self.event_ttl_minutes) {
            return Err("invalid event_ttl_minutes: use 1 to 1440".to_owned());
        }
        self.filter.validate()
    }
}

/// Rejects names that Event Grid does not allow.
///
/// # Errors
/// The valid names.
pub fn validate_name(name: &str) -> Result<(), &'static str> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if (3..=64).contains(&name.len()) && name.chars().all(is_valid) {
        Ok(())
    } else {
        Err("invalid subscription name: use 3 to 64 letters, digits and hyphens")
    }
}
