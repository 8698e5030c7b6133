//! The map of a partitioned queue: which queues are written and which are read. Pure rules.
//!
//! A resize must not strand a message although senders and consumers learn of it at different
//! times. Therefore:
//! 1. Consumers read the current queues and those that are *draining*.
//! 2. A sender may trust a map for [`Map::max_age`] after requesting it. A message put within that
//!    time is sent. A put that was answered later counts only if a map read *after* the answer
//!    still names its queue as current; otherwise the message is sent once more.
//! 3. A draining queue is dropped if it is found empty after [`Map::settled_at`]: by then every
//!    message put under an earlier map has arrived and been counted.
//! 4. Every change is made under the ETag of the map that was read.
//!
//! Only time differences on one clock are used, either the service's or the sender's.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use super::hash::partition_of;

const FORM: u32 = 1;
/// Largest number of partitions; their numbers have two digits.
pub const PARTITIONS_MAX: u32 = 100;
/// Longest trust in a map, in seconds.
pub const MAX_AGE_MAX_S: u32 = 3600;
/// Slack for clocks of service and sender that run at slightly different speeds, and for the whole
/// seconds of `Last-Modified`.
const SETTLE_SLACK: Duration = Duration::from_secs(5);

/// The map of a partitioned queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    v: u32,
    /// Number of the change, from 1.
    pub version: u64,
    /// Name of the partitioned queue.
    pub name: String,
    /// Number of current queues: `name-00` and following.
    pub partitions: u32,
    /// How many seconds a sender may trust this map and earlier ones.
    pub max_age_s: u32,
    /// Queues that are still read but no longer written.
    pub draining: Vec<String>,
}

/// Returns the name of one partition's queue.
pub fn queue_name_of(name: &str, partition: u32) -> String {
    format!("{name}-{partition:02}")
}

impl Map {
    /// Returns the first map. An existing queue with the plain name is drained, because it may hold
    /// earlier messages.
    pub fn first(name: &str, partitions: u32, max_age_s: u32, drains_plain: bool) -> Self {
        Map {
            v: FORM,
            version: 1,
            name: name.to_owned(),
            partitions,
            max_age_s,
            draining: drains_plain.then(|| name.to_owned()).into_iter().collect(),
        }
    }

    /// Parses a document.
    ///
    /// # Errors
    /// Describes why the document cannot be followed.
    pub fn parse(document: &[u8], name: &str) -> Result<Self, String> {
        let map: Map = serde_json::from_slice(document).map_err(|error| error.to_string())?;
        let known = (0..PARTITIONS_MAX).map(|number| queue_name_of(name, number));
        let known: Vec<_> = known.chain([name.to_owned()]).collect();
        if map.v != FORM {
            return Err(format!("format version {} is not {FORM}", map.v));
        }
        if map.name != name {
            return Err(format!("it belongs to another queue than {name}"));
        }
        if map.partitions == 0 || map.partitions > PARTITIONS_MAX {
            return Err(format!("invalid number of partitions: {}", map.partitions));
        }
        if map.max_age_s == 0 || map.max_age_s > MAX_AGE_MAX_S {
            return Err(format!("invalid max_age_s: {}", map.max_age_s));
        }
        if map.draining.iter().any(|queue| !known.contains(queue)) {
            return Err("it drains queues with another name".to_owned());
        }
        Ok(map)
    }

    /// Returns the map as a JSON document.
    pub fn document(&self) -> String {
        // Serialising a struct of strings and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the next map, with this number of partitions; `None` if nothing changes. A draining
    /// queue that becomes current is written again.
    #[must_use]
    pub fn resized(&self, partitions: u32) -> Option<Map> {
        if partitions == self.partitions {
            return None;
        }
        let mut next = self.clone();
        next.version += 1;
        next.partitions = partitions;
        let current = next.current();
        next.draining.extend(self.current());
        next.draining.retain(|queue| !current.contains(queue));
        Some(next)
    }

    /// Returns the next map without these draining queues, which were found empty after
    /// [`Map::settled_at`]; `None` if nothing changes.
    #[must_use]
    pub fn without(&self, empty: &[String]) -> Option<Map> {
        let mut next = self.clone();
        next.version += 1;
        next.draining.retain(|queue| !empty.contains(queue));
        (next.draining.len() < self.draining.len()).then_some(next)
    }

    /// Returns the queues that are written.
    pub fn current(&self) -> Vec<String> {
        let numbers = 0..self.partitions;
        numbers.map(|n| queue_name_of(&self.name, n)).collect()
    }

    /// Returns the queues that are read: current and draining ones.
    pub fn read(&self) -> Vec<String> {
        let mut read = self.current();
        read.extend(self.draining.iter().cloned());
        read
    }

    /// Returns the queue of a key.
    pub fn queue_of(&self, key: &[u8]) -> String {
        queue_name_of(&self.name, partition_of(key, self.partitions))
    }

    /// Returns whether a queue is written.
    pub fn is_current(&self, queue: &str) -> bool {
        self.current().iter().any(|current| current == queue)
    }

    /// Returns how long a sender may trust this map, counted from its request.
    pub fn max_age(&self) -> Duration {
        Duration::from_secs(u64::from(self.max_age_s))
    }

    /// Returns the time from which an empty draining queue stays empty, for a map that was written
    /// at `modified`: by then no sender trusts the previous map.
    pub fn settled_at(&self, modified: Timestamp) -> Timestamp {
        modified.plus(self.max_age() * 2 + SETTLE_SLACK)
    }

    /// Returns whether an empty draining queue may be dropped at `now`.
    pub fn is_settled(&self, modified: Timestamp, now: Timestamp) -> bool {
        now >= self.settled_at(modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn growing_and_shrinking() {
        let first = Map::first("orders", 2, 60, true);
        assert_eq!(first.read(), ["orders-00", "orders-01", "orders"]);
        let grown = first.resized(3).unwrap();
        assert_eq!(grown.draining, ["orders"]);
        let shrunk = grown
            .without(&["orders".to_owned()])
            .unwrap()
            .resized(1)
            .unwrap();
        assert_eq!(shrunk.current(), ["orders-00"]);
        assert_eq!(shrunk.draining, ["orders-01", "orders-02"]);
        let back = shrunk.resized(2).unwrap();
        assert_eq!(back.draining, ["orders-02"]);
        assert_eq!(back.version, 5);
        assert_eq!(back.resized(2), None);
        assert_eq!(back.without(&["orders-01".to_owned()]), None);
    }

    #[test]
    fn documents_that_cannot_be_followed() {
        let good = Map::first("orders", 2, 60, true);
        assert_eq!(
            Map::parse(good.document().as_bytes(), "orders"),
            Ok(good.clone())
        );
        let document = good.document();
        for (from, to) in [
            (r#""v":1"#, r#""v":2"#),
            (r#""partitions":2"#, r#""partitions":0"#),
            (r#""partitions":2"#, r#""partitions":101"#),
            (r#""max_age_s":60"#, r#""max_age_s":0"#),
            (r#""max_age_s":60"#, r#""max_age_s":99999"#),
            (r#"["orders"]"#, r#"["salaries"]"#),
            (r#""v":1"#, r#""v":1,"w":2"#),
            (r#""name":"orders""#, r#""name":"salaries""#),
        ] {
            assert!(document.contains(from), "{from}");
            let changed = document.replace(from, to);
            assert!(Map::parse(changed.as_bytes(), "orders").is_err(), "{to}");
        }
    }

    proptest! {
        /// A queue that is read stays in the map through every resize, and keys map to current
        /// queues only.
        #[test]
        fn a_resize_keeps_reading_every_queue(
            sizes in proptest::collection::vec(1u32..=100, 1..6), key: u64,
        ) {
            let mut map = Map::first("orders", sizes[0], 60, true);
            for size in &sizes[1..] {
                let Some(next) = map.resized(*size) else { continue };
                let read = next.read();
                prop_assert!(map.read().iter().all(|queue| read.contains(queue)));
                prop_assert!(next.is_current(&next.queue_of(&key.to_le_bytes())));
                prop_assert!(next.draining.iter().all(|queue| !next.is_current(queue)));
                prop_assert_eq!(Map::parse(next.document().as_bytes(), "orders"), Ok(next.clone()));
                map = next;
            }
        }

        #[test]
        fn garbage_is_refused(document in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Map::parse(&document, "orders").is_err());
        }
    }
}
