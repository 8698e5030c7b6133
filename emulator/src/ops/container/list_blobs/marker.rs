//! Continuation markers: where the next page starts.
//!
//! A marker names the first item of the next page, so that items added before it do not move the
//! page, and the item itself may be deleted meanwhile.

use smalt_protocol::{StorageError, Timestamp};

use crate::ops::listing::bad_marker;
use crate::ops::marker;

/// The position of an item in a listing: within a name, snapshots come first, oldest first, and the
/// blob last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The blob's name.
    pub name: String,
    /// Time of the snapshot; [`Timestamp::MAX`] for the blob itself.
    pub time: Timestamp,
}

impl Position {
    /// Returns the marker of a page that starts here.
    pub fn marker(&self) -> String {
        marker::write(&[&self.name, &self.time.iso_ticks()])
    }

    /// Returns the marker of a page of deleted paths that starts here. Recorded: it differs with
    /// the time of the listing.
    pub fn marker_of_deleted(&self, now: Timestamp) -> String {
        marker::write(&[&self.name, &self.time.iso_ticks(), &now.iso_ticks()])
    }

    /// Parses a marker of a page of deleted paths.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for an invalid marker.
    pub fn parse_of_deleted(marker: &str) -> Result<Self, StorageError> {
        let read = || {
            let [name, time, at] = marker::read(marker)?;
            Timestamp::parse_iso(&at)?;
            let time = Timestamp::parse_iso(&time)?;
            Some(Position { name, time })
        };
        read().ok_or_else(bad_marker)
    }

    /// Parses a marker.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for an invalid marker.
    pub fn parse(marker: &str) -> Result<Self, StorageError> {
        read(marker).ok_or_else(bad_marker)
    }
}

fn read(marker: &str) -> Option<Position> {
    let [name, time] = marker::read(marker)?;
    let time = Timestamp::parse_iso(&time)?;
    Some(Position { name, time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markers_match_the_recordings() {
        let marker = "2!68!MDAwMDA2IWJsb2JhMyEwMDAwMjghOTk5OS0xMi0zMVQyMzo1OTo1OS45OTk5OTk5WiE-";
        let position = Position {
            name: "bloba3".to_owned(),
            time: Timestamp::MAX,
        };
        assert_eq!(position.marker(), marker);
        assert_eq!(Position::parse(marker), Ok(position));
    }

    #[test]
    fn invalid_markers_are_rejected() {
        for marker in [
            "garbage continuation token",
            "bloba3",
            "2!",
            "2!4!MDAw",
            "2!67!MDAwMDA2IWJsb2JhMyEwMDAwMjghOTk5OS0xMi0zMVQyMzo1OTo1OS45OTk5OTk5WiE-",
            "2!4!ÄÄ",
            "2!12!MDAwMDA5IWEh",
        ] {
            let error = Position::parse(marker).unwrap_err();
            assert_eq!(error.status(), 400, "{marker}");
        }
    }

    proptest! {
        #[test]
        fn every_position_round_trips(
            name in "[^\u{0}-\u{1f}]{1,40}",
            seconds in 0_u64..4_000_000_000,
        ) {
            for time in [Timestamp::from_unix_s(seconds), Timestamp::MAX] {
                let position = Position { name: name.clone(), time };
                prop_assert_eq!(Position::parse(&position.marker()), Ok(position));
            }
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "(2![0-9]{1,3}!)?.{0,40}") {
            let _ = Position::parse(&text);
        }
    }
}
