//! Continuation markers: where the next page starts.
//!
//! Clients must treat a marker as opaque; ours has the form of the recordings,
//! `2!68!MDAwMDA2IWJsb2JhMyEwMDAwMjghOTk5OS0...`: a length, and in Base64 with `-` for `=` the text
//! `000006!bloba3!000028!9999-12-31T23:59:59.9999999Z!`. It names the first item of the next page,
//! so that a page stays where it is whatever is added before it, and a blob that has gone since is
//! no obstacle.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use smalt_protocol::{StorageError, Timestamp};

use crate::ops::listing::bad_marker;

const FORMAT: &str = "2!";
/// Digits that a length is written with.
const LENGTH_DIGITS: usize = 6;

/// Place of an item in a listing: within a name, snapshots from the oldest on, the blob last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Blob.
    pub name: String,
    /// Time of the snapshot; [`Timestamp::MAX`] for the blob itself.
    pub time: Timestamp,
}

impl Position {
    /// The marker of a page that starts here.
    pub fn marker(&self) -> String {
        let time = self.time.iso_ticks();
        let (name_bytes, time_bytes) = (self.name.len(), time.len());
        let text = format!("{name_bytes:06}!{}!{time_bytes:06}!{time}!", self.name);
        let encoded = STANDARD.encode(text).replace('=', "-");
        format!("{FORMAT}{}!{encoded}", encoded.len())
    }

    /// Reads a marker.
    ///
    /// # Errors
    /// 400 `OutOfRangeInput` for what no page gave out.
    pub fn parse(marker: &str) -> Result<Self, StorageError> {
        read(marker).ok_or_else(bad_marker)
    }
}

fn read(marker: &str) -> Option<Position> {
    let (length, encoded) = marker.strip_prefix(FORMAT)?.split_once('!')?;
    if length.parse() != Ok(encoded.len()) {
        return None;
    }
    let text = STANDARD.decode(encoded.replace('-', "=")).ok()?;
    let text = String::from_utf8(text).ok()?;
    let (name, rest) = counted(&text)?;
    let (time, rest) = counted(rest)?;
    rest.is_empty().then_some(())?;
    Some(Position {
        name: name.to_owned(),
        time: Timestamp::parse_iso(time)?,
    })
}

/// A text behind its length in bytes, and what follows.
fn counted(text: &str) -> Option<(&str, &str)> {
    let (length, rest) = text.split_at_checked(LENGTH_DIGITS)?;
    let (counted, rest) = rest
        .strip_prefix('!')?
        .split_at_checked(length.parse().ok()?)?;
    Some((counted, rest.strip_prefix('!')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn has_the_form_of_the_recordings() {
        let marker = "2!68!MDAwMDA2IWJsb2JhMyEwMDAwMjghOTk5OS0xMi0zMVQyMzo1OTo1OS45OTk5OTk5WiE-";
        let position = Position {
            name: "bloba3".to_owned(),
            time: Timestamp::MAX,
        };
        assert_eq!(position.marker(), marker);
        assert_eq!(Position::parse(marker), Ok(position));
    }

    #[test]
    fn what_no_page_gave_out_is_refused() {
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
        fn every_position_reads_back(
            name in "[^\u{0}-\u{1f}]{1,40}",
            seconds in 0_u64..4_000_000_000,
        ) {
            for time in [Timestamp::from_unix_s(seconds), Timestamp::MAX] {
                let position = Position { name: name.clone(), time };
                prop_assert_eq!(Position::parse(&position.marker()), Ok(position));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(2![0-9]{1,3}!)?.{0,40}") {
            let _ = Position::parse(&text);
        }
    }
}
