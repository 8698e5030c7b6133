//! The map of a partitioned queue: which queues are written and which are read. Pure rules.
//!
//! A resize must strand no message although senders and consumers learn of it at different times,
//! so:
//! 1. Consumers read the current queues and those that are *draining*.
//! 2. A sender may trust a map for [`Map::max_age`] after it asked for it. What it put within that
//!    time is sent. A put that was answered later counts only when a map read *after* the answer
//!    still names its queue as current; otherwise the message is sent once more.
//! 3. A draining queue is dropped when it is empty, looked at later than [`Map::settled_at`]: by
//!    then whatever was put under the map before is in it, and seen.
//! 4. Every change is made to the very version of the map that was read.
//!
//! Only differences of time on one clock are used, that of the service or that of the sender.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use super::hash::partition_of;

/// Version of the document's form.
const FORM: u32 = 1;
/// Most partitions: numbers have two digits.
pub const PARTITIONS_MAX: u32 = 100;
/// Longest trust in a map.
pub const MAX_AGE_MAX_S: u32 = 3600;
/// Clocks of service and sender may run at slightly different speed, and Last-Modified has whole
/// seconds.
const SETTLE_SLACK: Duration = Duration::from_secs(5);

/// The map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    v: u32,
    /// Counts the changes, from 1.
    pub version: u64,
    /// Name of the partitioned queue.
    pub name: String,
    /// Number of current queues: `name-00` and on.
    pub partitions: u32,
    /// For how many seconds a sender may trust this map, and those before it.
    pub max_age_s: u32,
    /// Queues that are read and no longer written.
    pub draining: Vec<String>,
}

/// Name of one partition's queue.
pub fn queue_name_of(name: &str, partition: u32) -> String {
    format!("{name}-{partition:02}")
}

impl Map {
    /// The first map. The queue of the plain name is drained where there is one: it is where
    /// messages were before.
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

    /// Reads a document.
    ///
    /// # Errors
    /// In words, when it is none that could be followed.
    pub fn parse(document: &[u8], name: &str) -> Result<Self, String> {
        let map: Map = serde_json::from_slice(document).map_err(|error| error.to_string())?;
        let known = (0..PARTITIONS_MAX).map(|number| queue_name_of(name, number));
        let known: Vec<_> = known.chain([name.to_owned()]).collect();
        if map.v != FORM {
            return Err(format!("a map of form {}, not {FORM}", map.v));
        }
        if map.name != name {
            return Err(format!("a map of another queue than {name}"));
        }
        if map.partitions == 0 || map.partitions > PARTITIONS_MAX {
            return Err(format!("{} partitions", map.partitions));
        }
        if map.max_age_s == 0 || map.max_age_s > MAX_AGE_MAX_S {
            return Err(format!("trusted for {} s", map.max_age_s));
        }
        if map.draining.iter().any(|queue| !known.contains(queue)) {
            return Err("drains queues of another name".to_owned());
        }
        Ok(map)
    }

    /// The document.
    pub fn document(&self) -> String {
        // A struct of strings and numbers always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The next map, with so many partitions; `None` when nothing changes. A draining queue that
    /// becomes current is written again.
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

    /// The next map without these draining queues, which were found empty after
    /// [`Map::settled_at`]; `None` when nothing changes.
    #[must_use]
    pub fn without(&self, empty: &[String]) -> Option<Map> {
        let mut next = self.clone();
        next.version += 1;
        next.draining.retain(|queue| !empty.contains(queue));
        (next.draining.len() < self.draining.len()).then_some(next)
    }

    /// The queues that are written.
    pub fn current(&self) -> Vec<String> {
        let numbers = 0..self.partitions;
        numbers.map(|n| queue_name_of(&self.name, n)).collect()
    }

    /// The queues that are read: current ones and draining ones.
    pub fn read(&self) -> Vec<String> {
        let mut read = self.current();
        read.extend(self.draining.iter().cloned());
        read
    }

    /// The queue of a key.
    pub fn queue_of(&self, key: &[u8]) -> String {
        queue_name_of(&self.name, partition_of(key, self.partitions))
    }

    /// Whether a queue is written.
    pub fn is_current(&self, queue: &str) -> bool {
        self.current().iter().any(|current| current == queue)
    }

    /// How long after it was asked for a sender may trust this map.
    pub fn max_age(&self) -> Duration {
        Duration::from_secs(u64::from(self.max_age_s))
    }

    /// From when on an empty draining queue stays empty, for a map that was written at `modified`:
    /// senders of the map before it have lost their trust in that.
    pub fn settled_at(&self, modified: Timestamp) -> Timestamp {
        modified.plus(self.max_age() * 2 + SETTLE_SLACK)
    }

    /// Whether an empty draining queue may be dropped now.
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
        /// Whatever is read stays read through any resize, and keys go to current queues only.
        #[test]
        fn a_resize_goes_on_reading(
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
