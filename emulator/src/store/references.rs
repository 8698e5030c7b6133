//! How often payloads are referred to, as the store counts it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::error::{StoreError, StoreResult};
use super::keys;
use super::payload::PayloadId;
use super::view::View;

/// Every payload with its references.
///
/// # Errors
/// When the store's own records cannot be read.
pub fn references(view: &dyn View) -> StoreResult<BTreeMap<PayloadId, u64>> {
    let (first, last) = (PayloadId(0), PayloadId(u64::MAX));
    let mut found: BTreeMap<PayloadId, u64> = BTreeMap::new();
    let mut broken = false;
    let id = |key: &[u8]| key.get(1..)?.try_into().ok().map(u64::from_be_bytes);
    view.scan(
        &keys::location(first),
        &keys::location(last),
        &mut |key, _| {
            match id(key) {
                Some(id) => drop(found.insert(PayloadId(id), 1)),
                None => broken = true,
            }
            ControlFlow::Continue(())
        },
    )?;
    let (from, to) = (keys::references(first), keys::references(last));
    view.scan(&from, &to, &mut |key, value| {
        let further = value.as_ref().try_into().ok().map(u64::from_be_bytes);
        match (id(key), further) {
            (Some(id), Some(further)) => *found.entry(PayloadId(id)).or_default() += further,
            _ => broken = true,
        }
        ControlFlow::Continue(())
    })?;
    if broken {
        return Err(StoreError::Corrupt("a count of references".to_owned()));
    }
    Ok(found)
}
