//! Values that the service invents: each recorded value is paired with the first live one in its
//! place.
//!
//! A recorded ETag, lease id or pop receipt stands for the value that the target returned in the
//! same place. Later requests carry the live value where the recording has the recorded one. The
//! pairing must be one to one: equal values stay equal, different values stay different.

use std::collections::HashMap;

/// The kind of a value. Values of different kinds are never confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Entity tags without quotes.
    ETag,
    /// Lease ids, unless the client proposed them.
    LeaseId,
    /// Snapshot times.
    Snapshot,
    /// Version times.
    VersionId,
    /// Copy ids.
    CopyId,
    /// Message ids.
    MessageId,
    /// Pop receipts.
    PopReceipt,
    /// `NextMarker` and the continuation headers of tables.
    Marker,
    /// Versions of deleted containers.
    DeletedVersion,
    /// Keys of user delegations.
    DelegationKey,
}

/// Shortest value that is replaced anywhere in a text. Shorter ones are replaced only where a value
/// of their kind is expected, because other texts contain them by chance.
const UNMISTAKABLE_LENGTH: usize = 12;

/// The pairs of one recording so far.
#[derive(Debug, Default)]
pub struct Bindings {
    live: HashMap<(Kind, String), String>,
    recorded: HashMap<(Kind, String), String>,
    /// `Last-Modified` and similar dates: dates repeat, so they need not be one to one.
    dates: HashMap<String, String>,
}

/// A pairing that is not one to one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}: recorded {recorded} met live {live}, but {earlier}")]
pub struct RelationBroken {
    kind: Kind,
    recorded: String,
    live: String,
    earlier: String,
}

impl Bindings {
    /// Pairs two values; the first pairing stays.
    ///
    /// # Errors
    /// When one of the two already has another partner.
    pub fn bind(&mut self, kind: Kind, recorded: &str, live: &str) -> Result<(), RelationBroken> {
        let broken = |earlier: String| RelationBroken {
            kind,
            recorded: recorded.to_owned(),
            live: live.to_owned(),
            earlier,
        };
        let known_live = self.live.get(&(kind, recorded.to_owned()));
        if let Some(known) = known_live.filter(|known| *known != live) {
            return Err(broken(format!("the recorded one was {known} before")));
        }
        let known_recorded = self.recorded.get(&(kind, live.to_owned()));
        if let Some(known) = known_recorded.filter(|known| *known != recorded) {
            return Err(broken(format!("the live one stood for {known} before")));
        }
        self.live
            .insert((kind, recorded.to_owned()), live.to_owned());
        self.recorded
            .insert((kind, live.to_owned()), recorded.to_owned());
        Ok(())
    }

    /// Records the live date for a recorded one; the latest pairing stays.
    pub fn bind_date(&mut self, recorded: &str, live: &str) {
        self.dates.insert(recorded.to_owned(), live.to_owned());
    }

    /// Returns the live date for a recorded one.
    pub fn live_date(&self, recorded: &str) -> Option<&str> {
        self.dates.get(recorded).map(String::as_str)
    }

    /// Returns the live value for a recorded one of this kind.
    pub fn live(&self, kind: Kind, recorded: &str) -> Option<&str> {
        self.live
            .get(&(kind, recorded.to_owned()))
            .map(String::as_str)
    }

    /// Replaces every known recorded value in a text by its live value. Returns `None` when there
    /// is none. A text that is exactly a value of the `expected` kind is treated as that value.
    pub fn substitute(&self, text: &str, expected: Option<Kind>) -> Option<String> {
        if let Some(live) = expected.and_then(|kind| self.live(kind, text)) {
            return (live != text).then(|| live.to_owned());
        }
        let mut hits: Vec<(usize, &str, &str)> = Vec::new();
        for ((_, recorded), live) in &self.live {
            if recorded.len() < UNMISTAKABLE_LENGTH || recorded == live {
                continue;
            }
            hits.extend(
                text.match_indices(recorded.as_str())
                    .map(|(at, r)| (at, r, live.as_str())),
            );
        }
        // When two matches begin together, the longest wins; later overlaps are dropped.
        hits.sort_by(|a, b| {
            a.0.cmp(&b.0)
                .then(b.1.len().cmp(&a.1.len()))
                .then(a.2.cmp(b.2))
        });
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (at, recorded, live) in hits {
            if at >= done {
                out.push_str(&text[done..at]);
                out.push_str(live);
                done = at + recorded.len();
            }
        }
        out.push_str(&text[done..]);
        (done > 0).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_stay_equal_and_different_ones_different() {
        let mut bindings = Bindings::default();
        bindings.bind(Kind::ETag, "0xA", "0x1").unwrap();
        bindings.bind(Kind::ETag, "0xA", "0x1").unwrap();
        bindings.bind(Kind::LeaseId, "0xA", "0x9").unwrap();
        let changed = bindings.bind(Kind::ETag, "0xA", "0x2").unwrap_err();
        assert!(changed.to_string().contains("was 0x1 before"), "{changed}");
        let merged = bindings.bind(Kind::ETag, "0xB", "0x1").unwrap_err();
        assert!(
            merged.to_string().contains("stood for 0xA before"),
            "{merged}"
        );
    }

    #[test]
    fn substitutes_whole_values_and_parts() {
        let mut bindings = Bindings::default();
        bindings
            .bind(Kind::ETag, "0x8D6D4173A7F45B7", "0x1")
            .unwrap();
        bindings.bind(Kind::Marker, "2", "3").unwrap();
        let part = bindings.substitute("\"0x8D6D4173A7F45B7\", W/\"0x8D6D4173A7F45B7\"", None);
        assert_eq!(part.as_deref(), Some("\"0x1\", W/\"0x1\""));
        assert_eq!(
            bindings.substitute("2", Some(Kind::Marker)).as_deref(),
            Some("3")
        );
        assert_eq!(bindings.substitute("2", None), None);
        assert_eq!(bindings.substitute("other", Some(Kind::ETag)), None);
    }
}
