//! Recovers payloads from a segment whose metadata is lost.
//!
//! The checksum after each frame includes its place, so a frame can be recognised without any
//! record: a full one by its length, the last one of a payload by trying every length. A payload
//! whose length is a multiple of a frame's has no shorter last frame and runs into the next
//! payload.

use std::io;
use std::path::Path;

use super::segment::{checksum, number_of};
use super::{CHECKSUM_BYTES, FRAME_BYTES};
use crate::disk::Disk;

/// A piece of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carved<'a> {
    /// Bytes of the payload that starts at `start`.
    Bytes {
        /// Segment number.
        segment: u64,
        /// Offset of the payload in the segment.
        start: u64,
        /// The next bytes of the payload.
        bytes: &'a [u8],
    },
    /// A place without a valid checksum.
    Lost {
        /// Segment number.
        segment: u64,
        /// Offset in the segment.
        at: u64,
    },
}

/// Passes the pieces of a segment to `take`.
pub(in super::super) fn carve(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    take: &mut dyn FnMut(Carved<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let Some(segment) = number_of(name) else {
        return Ok(());
    };
    let file = disk.open_to_read(&dir.join(name))?;
    let end = file.len()?;
    let (mut at, mut start) = (0, None);
    let mut buffer = vec![0; FRAME_BYTES + CHECKSUM_BYTES];
    while at < end {
        let frame = &mut buffer[..(end - at).min((FRAME_BYTES + CHECKSUM_BYTES) as u64) as usize];
        file.read_at(frame, at)?;
        let Some(len) = frame_length(segment, at, frame) else {
            take(Carved::Lost { segment, at })?;
            // If the damaged frame was a full one, the next frame follows it.
            (at, start) = (at + frame.len() as u64, None);
            continue;
        };
        let begun = *start.get_or_insert(at);
        take(Carved::Bytes {
            segment,
            start: begun,
            bytes: &frame[..len],
        })?;
        at += (len + CHECKSUM_BYTES) as u64;
        if len < FRAME_BYTES {
            start = None;
        }
    }
    Ok(())
}

/// Returns the length of the frame that begins here; `None` when no checksum is valid.
fn frame_length(segment: u64, at: u64, bytes: &[u8]) -> Option<usize> {
    let is_sum = |hasher: &crc32fast::Hasher, len: usize| {
        bytes.get(len..len + CHECKSUM_BYTES) == Some(&hasher.clone().finalize().to_le_bytes()[..])
    };
    let mut hasher = checksum(segment, at);
    let mut whole = hasher.clone();
    whole.update(bytes.get(..FRAME_BYTES).unwrap_or_default());
    if bytes.len() > FRAME_BYTES && is_sum(&whole, FRAME_BYTES) {
        return Some(FRAME_BYTES);
    }
    for len in 1..=bytes.len().checked_sub(CHECKSUM_BYTES)? {
        hasher.update(&bytes[len - 1..len]);
        if is_sum(&hasher, len) {
            return Some(len);
        }
    }
    None
}
