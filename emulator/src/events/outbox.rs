//! Writes events in the commit of the change that raises them, one copy for each subscription.
//!
//! The event is derived from the base blob before and after the change, so that no operation knows
//! about events. Without a subscription nothing is read or written.

use std::ops::ControlFlow;

use smalt_protocol::{StorageError, Timestamp, uri};
use uuid::Uuid;

use super::{schema, waiting};
use crate::call::Call;
use crate::keys::{self, Kind};
use crate::ops::dfs::rename::Destination;
use crate::ops::lookup::BlobName;
use crate::ops::tree;
use crate::records::{
    BlobRecord, DeliveryRecord, Diagnostics, EventData, EventRecord, Record, SUBJECT,
    SubscriptionRecord, WaitingRecord,
};
use crate::rules::events::{EventKind, Raises};
use crate::rules::subscription::Schema;
use crate::store::{Stamp, StoreResult, Transaction, View};

/// The `api` of a flush, which raises an event when it closes the file.
pub const FLUSH: &str = "FlushWithClose";

/// What an event needs to know of the request that raises it.
#[derive(Clone)]
pub struct Cause {
    raises: Raises,
    name: BlobName,
    id: Uuid,
    request_id: Uuid,
    client_request_id: Option<String>,
    url: String,
    rename: Option<Destination>,
    /// The former URL of a path that is renamed.
    source_url: Option<String>,
    recursive: Option<bool>,
}

impl Cause {
    /// Returns `None` for a call whose operation raises no event.
    pub fn of(call: &Call) -> Option<Self> {
        let client_request_id = call.headers.get("x-ms-client-request-id");
        let is_true = |text: &str| text.eq_ignore_ascii_case("true");
        let raises = call.raises?;
        // A file that stays open raises no event.
        if raises == Raises::Created(FLUSH) && !call.query("close").is_some_and(is_true) {
            return None;
        }
        let rename = match raises {
            Raises::Renamed(_) => Some(Destination::of(call).ok()?),
            _ => None,
        };
        let named = rename.as_ref().map(|rename| rename.named.clone());
        Some(Cause {
            raises,
            source_url: rename.as_ref().map(|rename| url(call, &rename.source)),
            rename,
            recursive: call.query("recursive").map(is_true),
            name: named.or_else(|| BlobName::of(call).ok())?,
            id: call.fresh_id,
            request_id: call.request_id,
            client_request_id: client_request_id
                .and_then(|id| id.to_str().ok())
                .map(str::to_owned),
            url: format!("{}{}", call.origin, call.target.raw_path),
        })
    }

    /// Names the path that a rename makes: the one that is addressed, or one in it.
    fn settled(&self, view: &dyn View, now: Timestamp) -> Result<Self, StorageError> {
        let mut settled = self.clone();
        if let Some(rename) = &self.rename {
            settled.name = rename.find(view, now)?;
            if settled.name != self.name {
                let own = tree::segments(&settled.name.blob).next_back();
                let own = uri::encode_path(own.unwrap_or_default());
                settled.url = format!("{}/{own}", self.url.trim_end_matches('/'));
            }
        }
        Ok(settled)
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
                Some((EventKind::BlobCreated, new))
            }
            (Raises::Deleted(_), Some(old), None) => Some((EventKind::BlobDeleted, old)),
            (Raises::Renamed(_), _, Some(new)) => Some((EventKind::BlobRenamed, new)),
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
        let is_directory = blob.directory.is_some();
        let is_file = !is_directory && !is(&[EventKind::BlobRenamed]);
        let is_path = blob.posix.is_some();
        let api = match is_directory {
            true => self
                .raises
                .api()
                .replace("File", "Directory")
                .replace("Blob", "Directory"),
            false => self.raises.api().to_owned(),
        };
        let url = || self.url.clone();
        // A change of tier that takes its time is described as it will be.
        let thawed = blob.access.rehydration.as_ref().map(|way| &way.tier);
        let tier = thawed.or(blob.access.tier.as_ref()).cloned();
        let tier = || tier.unwrap_or_else(|| "Default".to_owned());
        let container = &self.name.container;
        EventRecord {
            id: self.id,
            account: container.account.clone(),
            subject: format!("{SUBJECT}{}/blobs/{}", container.container, self.name.blob),
            kind: if is_directory {
                kind.of_directory()
            } else {
                kind
            },
            at: stamp.now,
            data: EventData {
                api,
                client_request_id: self.client_request_id.clone(),
                request_id: self.request_id,
                e_tag: is(&[created]).then(|| blob.etag.to_string()),
                content_type: blob.headers.content_type.clone().filter(|_| is_file),
                content_length: (is_file && !is(&[EventKind::BlobDeleted])).then_some(blob.length),
                content_offset: (is_file && is_path && is(&[created])).then_some(blob.length),
                blob_type: is_file.then(|| blob.kind.as_str().to_owned()),
                access_tier: (is_file && is(&[created, tiered])).then(tier),
                previous_tier: before
                    .filter(|_| is(&[tiered]))
                    .map(|old| self.tier(old).to_owned()),
                url: self.source_url.is_none().then(url),
                source_url: self.source_url.clone(),
                destination_url: self.source_url.as_ref().map(|_| url()),
                recursive: self.recursive.filter(|_| is_directory),
                sequencer: String::new(),
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

/// Returns the URL of a path in the account that a request addresses.
fn url(call: &Call, path: &BlobName) -> String {
    let account = format!("/{}", call.account());
    let rest = call.target.raw_path.strip_prefix(&account);
    let is_path_style = rest.is_some_and(|rest| rest.starts_with('/'));
    let account = if is_path_style { account.as_str() } else { "" };
    let (container, blob) = (&path.container.container, uri::encode_path(&path.blob));
    format!("{}{account}/{container}/{blob}", call.origin)
}

/// Returns a string that grows with the tick and then with the place of the event in its commit,
/// in production's form.
fn sequencer(tick: Timestamp, place: u16) -> String {
    format!("{:032X}{place:016x}", tick.ticks())
}

/// What a commit found of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// There is no subscription.
    Unsubscribed,
    /// No subscription wants an event.
    No,
    /// There is an event to deliver.
    Yes,
}

/// Applies a change and writes the event that it raises.
///
/// # Errors
/// Those of `apply`; also when the store fails.
pub fn watch<T>(
    cause: Option<&Cause>,
    tx: &mut Transaction<'_>,
    stamp: &Stamp,
    apply: impl FnOnce(&mut Transaction<'_>) -> Result<T, StorageError>,
) -> Result<(T, Raised), StorageError> {
    let Some(cause) = cause else {
        return Ok((apply(tx)?, Raised::No));
    };
    let subscriptions = subscriptions(tx)?;
    if subscriptions.is_empty() {
        return Ok((apply(tx)?, Raised::Unsubscribed));
    }
    let cause = &cause.settled(tx, stamp.now)?;
    let place = cause.name.find_place(tx, stamp.now)?;
    let (before, generation) = (place.blob, place.container.generation);
    let key = keys::waiting(generation, &cause.name.blob);
    let earlier = waiting::take_due(tx, key, before.as_ref(), stamp.now)?;
    let output = apply(tx)?;
    // A write to a hierarchical container may have made the directory of its path.
    let place = cause.name.find_place(tx, stamp.now)?;
    let key = keys::waiting(place.container.generation, &cause.name.blob);
    let after = place.blob;
    let mut event = cause.event(before.as_ref(), after.as_ref(), stamp);
    match after.as_ref().and_then(waiting::ends) {
        // An event that waits has moved with its blob.
        _ if matches!(&event, Some(event) if event.kind == EventKind::BlobRenamed) => {}
        None => tx.delete(key),
        Some(due) => {
            let starts = EventKind::AsyncOperationInitiated;
            let record = |kind| {
                let blob = after.as_ref()?;
                Some(cause.record(kind, blob, before.as_ref(), stamp))
            };
            let later = match &event {
                Some(event) if event.kind == starts => record(EventKind::BlobTierChanged),
                Some(_) if after.as_ref().is_some_and(waiting::thaws) => {
                    std::mem::replace(&mut event, record(starts))
                }
                _ => event.take(),
            };
            if let Some(event) = later {
                WaitingRecord { event, due }.save(tx, key)?;
            }
        }
    }
    let mut is_raised = false;
    for (place, event) in (0..).zip(earlier.into_iter().chain(event)) {
        is_raised |= fan_out(tx, &subscriptions, event, (stamp.tick, place))?;
    }
    let raised = if is_raised { Raised::Yes } else { Raised::No };
    Ok((output, raised))
}

/// Writes an event for each subscription that wants it. Returns whether there is one.
///
/// # Errors
/// When the store fails.
pub fn fan_out(
    tx: &mut Transaction<'_>,
    subscriptions: &[(String, SubscriptionRecord)],
    mut event: EventRecord,
    (tick, place): (Timestamp, u16),
) -> StoreResult<bool> {
    event.data.sequencer = sequencer(tick, place);
    let shown = schema::render(&event, Schema::EventGridSchema);
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
                is_overtaken: false,
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
