//! The stored form of the last stamp.

use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::error::StoreResult;
use super::keys;
use super::view::{Stamp, View};

pub(super) fn encode(stamp: Stamp) -> Bytes {
    keys::value(&[stamp.now.ticks(), stamp.tick.ticks()]).into()
}

/// Reads the last persisted stamp.
pub(super) fn read(view: &dyn View) -> StoreResult<Stamp> {
    let [now, tick] = match view.get(&keys::STAMP)? {
        Some(value) => keys::numbers(&value)?,
        None => [0, 0],
    };
    Ok(Stamp {
        now: Timestamp::from_ticks(now),
        tick: Timestamp::from_ticks(tick),
    })
}
