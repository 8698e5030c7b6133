//! Extents: storage for payloads that are too large for the metadata engine.
//!
//! A payload is a sequence of frames of 64 KiB in one append-only segment, `extents/<n>.seg`:
//!
//! ```text
//! segment:  | frame 0 | frame 1 | ... | last frame |   next payload ...
//! frame:    | up to 65,536 bytes | CRC-32 of segment number, frame offset, bytes |
//! ```
//!
//! Space is reserved under a lock and written without one, so that uploads do not wait for each
//! other. The checksum includes the place: bytes that were never written, or belong elsewhere,
//! fail. In memory a segment has one payload.

mod carve;
mod memory;
mod registry;
mod segment;

pub use carve::Carved;
pub(super) use carve::carve;
pub(super) use registry::{Extents, Reservation, Sweep};
pub use segment::Segment;

/// Segments by number.
pub(super) type Segments = std::collections::BTreeMap<u64, std::sync::Arc<Segment>>;

/// Payload bytes in one frame, the unit with a checksum.
pub(super) const FRAME_BYTES: usize = 64 * 1024;
/// Bytes of the checksum after each frame.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Returns the bytes that a payload of `len` bytes needs in its segment.
pub(super) fn framed_bytes(len: u64) -> u64 {
    len + len.div_ceil(FRAME_BYTES as u64) * CHECKSUM_BYTES as u64
}
