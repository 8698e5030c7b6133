//! Writes events in the commit of the change that raises them, one copy for each subscription.
//!
//! The event is derived from the base blob before and after the change, so that no operation knows
//! about events. Without a subscription nothing is read or written.

use std::ops::ControlFlow;

use smalt_protocol::{StorageError, Timestamp};
use uuid::Uuid;

use super::schema;
use crate::call::Call;
use crate::keys::{self, Generation, Kind};
use crate::ops::lookup::BlobName;
use crate::records::{
    BlobRecord, DeliveryRecord, Diagnostics, EventData, EventRecord, Record, SubscriptionRecord,
};
use crate::rules::events::{EventKind, Raises};
use crate::rules::pending_copy;
use crate::rules::subscription::Schema;
use crate::store::{Stamp, StoreResult, Transaction, View};

/// What an event needs to know of the request that raises it.
pub struct Cause {
    raises: Raises,
    name: BlobName,
    id: Uuid,
    request_id: Uuid,
    client_request_id: Option<String>,
    url: String,
}

impl Cause {
    /// Returns `None` for a call whose operation raises no event.
    pub fn of(call: &Call) -> Option<Self> {
        let client_request_id = call.headers.get("x-ms-client-request-id");
        Some(Cause {
            raises: call.raises?,
            name: BlobName::of(call).ok()?,
            id: call.fresh_id,
            request_id: call.request_id,
            client_request_id: client_request_id
                .and_then(|id| id.to_str().ok())
                .map(str::to_owned),
            url: format!("{}{}", call.origin, call.target.raw_path),
        })
    }

    /// Returns the event of a change, if there is one.
    fn event(
        &self,
        before: Option<&BlobRecord>,
        after: Option<&BlobRecord>,
        stamp: &Stamp,
    ) -> Option<EventRecord> {
        let (kind, blob) = match (self.raises, before, after) {
            (Raises::Created(_), _, Some(new)) if new.etag == stamp.etag() => {
                (!pending_copy::is_pending(new)).then_some((EventKind::BlobCreated, new))
            }
            (Raises::Deleted(_), Some(old), None) => Some((EventKind::BlobDeleted, old)),
            (Raises::Tier(_), Some(old), Some(new)) => {
                let starts = old.access.rehydration != new.access.rehydration;
                let kind = match starts && new.access.rehydration.is_some() {
                    true => Some(EventKind::AsyncOperationInitiated),
                    false if self.tier(old) != self.tier(new) => Some(EventKind::BlobTierChanged),
                    false => None,
                };
                kind.map(|kind| (kind, new))
            }
            _ => None,
        }?;
        Some(self.record(kind, blob, before, stamp))
    }

    fn record(
        &self,
        kind: EventKind,
        blob: &BlobRecord,
        before: Option<&BlobRecord>,
        stamp: &Stamp,
    ) -> EventRecord {
        let is = |kinds: &[EventKind]| kinds.contains(&kind);
        let (created, tiered) = (EventKind::BlobCreated, EventKind::BlobTierChanged);
        let tier = || blob.access.tier.clone().unwrap_or("Default".to_owned());
        let container = &self.name.container;
        EventRecord {
            id: self.id,
            account: container.account.clone(),
            subject: format!(
                "/blobServices/default/containers/{}/blobs/{}",
                container.container, self.name.blob
            ),
            kind,
            at: stamp.now,
            data: EventData {
                api: self.raises.api().to_owned(),
                client_request_id: self.client_request_id.clone(),
                request_id: self.request_id,
                e_tag: is(&[created]).then(|| blob.etag.to_string()),
                content_type: blob.headers.content_type.clone(),
                content_length: (!is(&[EventKind::BlobDeleted])).then_some(blob.length),
                blob_type: blob.kind.as_str().to_owned(),
                access_tier: is(&[created, tiered]).then(tier),
                previous_tier: before
                    .filter(|_| is(&[tiered]))
                    .map(|old| self.tier(old).to_owned()),
                url: self.url.clone(),
                sequencer: sequencer(stamp.tick, 0),
                storage_diagnostics: Diagnostics {
                    batch_id: self.request_id,
                },
            },
        }
    }

    /// Returns the effective tier of a block blob.
    fn tier<'a>(&self, blob: &'a BlobRecord) -> &'a str {
        let default = self.name.container.settings.default_tier.as_str();
        blob.access.tier.as_deref().unwrap_or(default)
    }
}

/// Returns a string that grows with the tick and then with the place of the event in its commit,
/// in production's form.
fn sequencer(tick: Timestamp, place: u64) -> String {
    format!("{:032X}{place:016x}", tick.ticks())
}

/// Applies a change and writes the event that it raises. Also returns whether there is one for a
/// subscription.
///
/// # Errors
/// Those of `apply`; also when the store fails.
pub fn watch<T>(
    cause: Option<&Cause>,
    tx: &mut Transaction<'_>,
    stamp: &Stamp,
    apply: impl FnOnce(&mut Transaction<'_>) -> Result<T, StorageError>,
) -> Result<(T, bool), StorageError> {
    let Some(cause) = cause else {
        return Ok((apply(tx)?, false));
    };
    let subscriptions = subscriptions(tx)?;
    if subscriptions.is_empty() {
        return Ok((apply(tx)?, false));
    }
    let before = cause.name.find_place(tx, stamp.now)?.blob;
    let output = apply(tx)?;
    let after = cause.name.find_place(tx, stamp.now)?.blob;
    let event = cause.event(before.as_ref(), after.as_ref(), stamp);
    let is_raised = match event {
        Some(event) => fan_out(tx, &subscriptions, &event, (stamp.tick, 0))?,
        None => false,
    };
    Ok((output, is_raised))
}

/// Writes an event for each subscription that wants it. Returns whether there is one.
fn fan_out(
    tx: &mut Transaction<'_>,
    subscriptions: &[(String, SubscriptionRecord)],
    event: &EventRecord,
    (tick, place): (Timestamp, u8),
) -> StoreResult<bool> {
    let shown = schema::render(event, Schema::EventGridSchema);
    let mut is_wanted = false;
    for (_, subscription) in subscriptions {
        let settings = &subscription.settings;
        let is_of = |account: &String| *account == event.account;
        if settings.account.as_ref().is_none_or(is_of) && settings.filter.wants(event.kind, &shown)
        {
            let delivery = DeliveryRecord {
                event: event.clone(),
                due: event.at,
                attempts: 0,
                last: None,
                given_up: None,
            };
            delivery.save(tx, keys::event(subscription.generation, tick, place))?;
            is_wanted = true;
        }
    }
    Ok(is_wanted)
}

/// Returns every subscription with its name.
///
/// # Errors
/// When the store fails.
pub fn subscriptions(view: &dyn View) -> StoreResult<Vec<(String, SubscriptionRecord)>> {
    let from = keys::all_of(Kind::Subscription);
    let mut found = Vec::new();
    view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
        found.push((keys::subscription_name(key), value.clone()));
        ControlFlow::Continue(())
    })?;
    let decode =
        |(name, value): (String, bytes::Bytes)| Ok((name, SubscriptionRecord::decode(&value)?));
    found.into_iter().map(decode).collect()
}

/// Visits the events of a subscription in their order until `visit` breaks.
///
/// # Errors
/// When the store fails, or a record cannot be read.
pub fn events(
    view: &dyn View,
    subscription: Generation,
    mut visit: impl FnMut(&[u8], DeliveryRecord) -> ControlFlow<()>,
) -> StoreResult<()> {
    let from = keys::events(subscription);
    let mut failed = Ok(());
    view.scan(
        &from,
        &keys::after(from.clone()),
        &mut |key, value| match DeliveryRecord::decode(value) {
            Ok(event) => visit(key, event),
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        },
    )?;
    failed
}
