//! Events of changes that take their time: a pending copy, a rehydration.
//!
//! The event waits beside its blob, because what completes is computed from the time. It is raised
//! when deliveries are due, or in the commit of the next change of the blob if that is earlier.

use std::ops::ControlFlow;

use smalt_protocol::{StorageError, Timestamp};

use super::outbox;
use crate::core::Core;
use crate::keys::{self, Kind};
use crate::ops::lookup;
use crate::records::{BlobRecord, CopyStatus, EventRecord, Record, WaitingRecord};
use crate::rules::events::EventKind;
use crate::rules::tier;
use crate::store::{Stamp, StoreResult, Transaction, View};

/// Returns when the pending copy into a blob or its rehydration ends.
pub fn ends(blob: &BlobRecord) -> Option<Timestamp> {
    let pending = blob.copy.as_ref().and_then(|copy| copy.pending.as_ref());
    let thawed = blob.access.rehydration.as_ref();
    let thawed = thawed.map(|way| way.since.plus_s(tier::rehydration_s(&way.priority)));
    pending.map(|pending| pending.ends).or(thawed)
}

/// Returns whether the blob is a pending copy of an archived one.
pub fn thaws(blob: &BlobRecord) -> bool {
    let pending = blob.copy.as_ref().and_then(|copy| copy.pending.as_ref());
    pending.is_some_and(|pending| pending.thaws)
}

/// Returns the event that waits beside a blob if it has come true, and forgets it then. `blob` is
/// the blob as of now.
///
/// # Errors
/// When the store fails.
pub fn take_due(
    tx: &mut Transaction<'_>,
    key: Vec<u8>,
    blob: Option<&BlobRecord>,
    now: Timestamp,
) -> StoreResult<Option<EventRecord>> {
    let Some(waiting) = WaitingRecord::load(tx, &key)? else {
        return Ok(None);
    };
    if now < waiting.due {
        return Ok(None);
    }
    tx.delete(key);
    let came_true = blob.is_some_and(|blob| match waiting.event.kind {
        EventKind::BlobCreated => {
            let copy = blob.copy.as_ref();
            copy.is_some_and(|copy| copy.status == CopyStatus::Success)
        }
        _ => {
            blob.access.rehydration.is_none() && blob.access.tier == waiting.event.data.access_tier
        }
    });
    let mut event = waiting.event;
    event.at = waiting.due;
    if let Some(blob) = blob.filter(|_| event.kind == EventKind::BlobCreated) {
        event.data.e_tag = Some(blob.etag.to_string());
        event.data.content_length = Some(blob.length);
    }
    Ok(came_true.then_some(event))
}

/// Raises the events that have come true. Returns when the next one does.
///
/// # Errors
/// When the store fails.
pub async fn raise_due(core: &Core, now: Timestamp) -> Result<Option<Timestamp>, StorageError> {
    let (due, next) = core.store.read(|view| find(view, now))?;
    if !due.is_empty() {
        let raised = core.store.commit(move |tx, stamp| raise(tx, due, stamp));
        raised.await?;
    }
    Ok(next)
}

fn raise(tx: &mut Transaction<'_>, due: Vec<Vec<u8>>, stamp: &Stamp) -> Result<(), StorageError> {
    let subscriptions = outbox::subscriptions(tx)?;
    for (place, key) in due.into_iter().enumerate() {
        let of = keys::waiting_blob(&key);
        let blob = lookup::load(tx, &of, stamp.now)?;
        if let Some(event) = take_due(tx, key, blob.as_ref(), stamp.now)? {
            let place = u16::try_from(place).unwrap_or(u16::MAX);
            outbox::fan_out(tx, &subscriptions, event, (stamp.tick, place))?;
        }
    }
    Ok(())
}

/// Returns the keys of at most [`RAISED_MAX`] events that are due, and the time of the next other.
fn find(view: &dyn View, now: Timestamp) -> StoreResult<(Vec<Vec<u8>>, Option<Timestamp>)> {
    let from = keys::all_of(Kind::Waiting);
    let (mut due, mut next, mut failed) = (Vec::new(), None::<Timestamp>, Ok(()));
    view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
        match WaitingRecord::decode(value) {
            Ok(waiting) if waiting.due <= now && due.len() < RAISED_MAX => due.push(key.to_vec()),
            Ok(waiting) => next = Some(next.map_or(waiting.due, |next| next.min(waiting.due))),
            Err(error) => {
                failed = Err(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failed.map(|()| (due, next))
}

/// Most events that one commit raises.
const RAISED_MAX: usize = 1_000;
