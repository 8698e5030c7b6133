//! Maximum length of an input record.

use smalt_protocol::limits::MIB;

/// Maximum length of one record, in bytes. The limit is the emulator's own.
pub(super) const RECORD_BYTES_MAX: usize = 16 * MIB as usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordTooLong;

impl RecordTooLong {
    pub(super) fn check(bytes: usize) -> Result<(), Self> {
        if bytes > RECORD_BYTES_MAX {
            Err(RecordTooLong)
        } else {
            Ok(())
        }
    }
}
