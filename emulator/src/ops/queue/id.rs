//! Message ids: GUIDs that increase with the time of the put.
//!
//! Messages are keyed by id. With random ids, every put, get and delete in a long queue would touch
//! another page of the store, which then has to be read; increasing ids keep messages of one time
//! together, so the cost does not depend on the queue's length.

use uuid::{Builder, Uuid};

/// Bits of the time before the GUID's version field, and after it.
const TIME_BITS: (u32, u32) = (48, 12);

/// Returns an id for a message that is put at `tick`: the upper 60 bits of the tick, then random
/// ones.
pub fn rising(tick: u64, random: Uuid) -> Uuid {
    let (front, behind) = TIME_BITS;
    let time = u128::from(tick >> (u64::BITS - front));
    let rest_of_time = tick >> (u64::BITS - front - behind);
    let rest_of_time = u128::from(rest_of_time & ((1 << behind) - 1));
    let random = random.as_u128() & u128::from(u64::MAX);
    let bits = (time << (u128::BITS - front)) | (rest_of_time << u64::BITS) | random;
    Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Ids increase with their ticks, except within 16 ticks (1.6 microseconds), and are
        /// unique.
        #[test]
        fn ids_increase_and_differ(tick: u64, later in 16_u64..1 << 40, one: u128, other: u128) {
            let tick = tick >> 1;
            let (one, other) = (Uuid::from_u128(one), Uuid::from_u128(other));
            prop_assert!(rising(tick, one) < rising(tick + later, other));
            prop_assert_eq!(rising(tick, one).get_version_num(), 8);
            let differ = (one.as_u128() ^ other.as_u128()) & u128::from(u64::MAX >> 2) != 0;
            prop_assert_eq!(rising(tick, one) != rising(tick, other), differ);
        }
    }
}
