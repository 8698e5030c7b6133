//! Limits the memory of payloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::error::{StoreError, StoreResult};

/// The memory of all payloads, and its limit.
#[derive(Debug)]
pub(super) struct Memory {
    limit: u64,
    taken: Arc<AtomicU64>,
}

/// The memory of one payload; dropping it frees the memory.
#[derive(Debug)]
pub(super) struct Room {
    bytes: u64,
    taken: Arc<AtomicU64>,
}

impl Memory {
    pub(super) fn new(limit: u64) -> Self {
        Memory {
            limit,
            taken: Arc::default(),
        }
    }

    /// Reserves memory for a payload.
    pub(super) fn take(&self, bytes: u64) -> StoreResult<Room> {
        let more = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let taken = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        match taken {
            Ok(_) => Ok(Room {
                bytes,
                taken: Arc::clone(&self.taken),
            }),
            Err(taken) => Err(StoreError::Refused(format!(
                "contents use {taken} bytes of memory; {bytes} more would exceed the limit of {}",
                self.limit
            ))),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reserved_up_to_the_limit_and_freed() {
        let memory = Memory::new(10);
        let first = memory.take(6).unwrap();
        assert!(matches!(memory.take(5), Err(StoreError::Refused(_))));
        let _second = memory.take(4).unwrap();
        drop(first);
        assert!(memory.take(6).is_ok());
        assert!(memory.take(u64::MAX).is_err());
    }
}
