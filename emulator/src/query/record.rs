//! How long a record of the input may be.

use smalt_protocol::limits::MIB;

/// What is held of one record, in bytes: ours.
pub(super) const RECORD_BYTES_MAX: usize = 16 * MIB as usize;

/// A record is longer than [`RECORD_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordTooLong;

impl RecordTooLong {
    /// Refuses what would grow too long.
    pub(super) fn check(bytes: usize) -> Result<(), Self> {
        if bytes > RECORD_BYTES_MAX {
            Err(RecordTooLong)
        } else {
            Ok(())
        }
    }
}
