//! The store's reference counts of payloads, and checks of their consistency.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::error::{StoreError, StoreResult};
use super::extents::framed_bytes;
use super::keys;
use super::payload::{Extent, Location, PayloadId, number_at};
use super::view::View;
use crate::clock::Clock;

/// Largest plausible number; no store counts this far.
const NUMBER_MAX: u64 = u64::MAX / 2;
/// How long a store must be able to run after the latest time of its clock, in seconds.
const TIME_LEFT_S: u64 = 365 * 24 * 60 * 60;

/// Returns descriptions of the inconsistencies between the payloads' places and the segments'
/// counts.
///
/// # Errors
/// When the store cannot be read.
pub fn disagreements(view: &dyn View) -> StoreResult<Vec<String>> {
    let mut wrong = Vec::new();
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    let payloads = references(view)?;
    let last = number_at(view, &keys::LAST_PAYLOAD)?;
    let most = payloads.keys().next_back().map_or(0, |id| id.0);
    if last < most || last > NUMBER_MAX {
        wrong.push(format!(
            "the highest payload id is {most}, but the last assigned one is {last}"
        ));
    }
    let tick = super::stamp::read(view)?.tick;
    if tick > Clock::LATEST.plus_s(TIME_LEFT_S) {
        wrong.push(format!("the last write was at {}", tick.iso_ticks()));
    }
    for id in payloads.into_keys() {
        match Location::read(view, id) {
            Ok(Some(Location::Extent(at))) => {
                *live.entry(at.segment).or_default() += framed_bytes(at.len);
                if view.get(&keys::segment_payload(at.segment, id))?.is_none() {
                    wrong.push(format!(
                        "segment {} does not list payload {}",
                        at.segment, id.0
                    ));
                }
            }
            Ok(Some(Location::Inline(_))) => {}
            Ok(None) => wrong.push(format!("payload {} has references but no place", id.0)),
            Err(error) => wrong.push(format!("payload {}: {error}", id.0)),
        }
    }
    let first = PayloadId(0);
    let (from, to) = (
        keys::segment_payload(0, first),
        keys::segment_payload(u64::MAX, first),
    );
    view.scan(&from, &to, &mut |key, _| {
        let id = keys::payload_of(key);
        let found = id.and_then(|id| Location::read(view, id).ok().flatten());
        let is_here =
            |at: Extent| id.is_some_and(|id| keys::segment_payload(at.segment, id) == key);
        if !matches!(found, Some(Location::Extent(at)) if is_here(at)) {
            let id = id.map_or(0, |id| id.0);
            wrong.push(format!("a segment lists payload {id}, which is not in it"));
        }
        ControlFlow::Continue(())
    })?;
    let (from, to) = (keys::segment(0), keys::segment(u64::MAX));
    view.scan(&from, &to, &mut |key, value| {
        let number = keys::segment_of(key).unwrap_or_default();
        let alive = live.remove(&number).unwrap_or_default();
        if keys::numbers::<1>(value).ok() != Some([alive]) {
            wrong.push(format!(
                "segment {number} has {alive} live bytes, but another count"
            ));
        }
        ControlFlow::Continue(())
    })?;
    wrong.extend(
        live.keys()
            .map(|number| format!("segment {number} has live bytes, but no count")),
    );
    Ok(wrong)
}

/// Returns every payload with its number of references.
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
            (Some(id), Some(further)) if further <= NUMBER_MAX => {
                *found.entry(PayloadId(id)).or_default() += further;
            }
            _ => broken = true,
        }
        ControlFlow::Continue(())
    })?;
    if broken {
        return Err(StoreError::Corrupt("a count of references".to_owned()));
    }
    Ok(found)
}
