//! Delivers events: the first of each blob at a time, so that the events of one blob keep their
//! order, and forgets an event after its destination has it. A crash between the two delivers it
//! again.
//!
//! Sources: "Event Grid message delivery and retry", "Dead letter and retry policies".

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use http::StatusCode;
use smalt_protocol::{StorageError, Timestamp};

use super::schedule::Schedule;
use super::{outbox, send, waiting};
use crate::core::Core;
use crate::faults::EventFault;
use crate::keys::Generation;
use crate::records::{DeliveryRecord, Record};
use crate::rules::events::pause_s;
use crate::rules::subscription::{Destination, Subscription};
use crate::store::{StoreResult, View};

const MINUTE_S: u64 = 60;
/// Events of one subscription that are delivered at the same time, at least.
const TOGETHER_MIN: usize = 64;
/// Wait of an event that was given up before it is written to the dead letters. Same page.
const DEAD_LETTER_WAIT_S: u64 = 5 * MINUTE_S;
/// Wait between attempts to write a dead letter; smalt's own choice.
const DEAD_LETTER_RETRY_S: u64 = 5 * MINUTE_S;
/// An event that cannot be written to the dead letters for this long is dropped. Same page.
const DEAD_LETTER_TRIES_S: u64 = 4 * 60 * MINUTE_S;

/// An event that is due, with its key.
type Due = (Vec<u8>, DeliveryRecord);

/// What stays of an event after an attempt; `None` when it was delivered, or is dropped.
type Left = Option<DeliveryRecord>;

/// An event that was attempted: its key, how it was, and what stays of it.
type Done = (Vec<u8>, DeliveryRecord, Left);

/// The deliveries of one subscription.
#[derive(Clone, Copy)]
struct Deliverer<'a> {
    core: &'a Core,
    name: &'a str,
    settings: &'a Subscription,
    now: Timestamp,
}

/// Delivers every event that is due. Returns when the next one is; `None` if there is no other.
///
/// # Errors
/// When the store fails.
pub async fn deliver(core: &Core) -> Result<Option<Timestamp>, StorageError> {
    let mut kept = core.events.schedule.lock().await;
    // A delivery that fails or is broken off loses its schedule, and the next one reads it again.
    let mut schedule = std::mem::take(&mut *kept);
    let next = deliver_due(core, &mut schedule).await?;
    *kept = schedule;
    Ok(next)
}

async fn deliver_due(
    core: &Core,
    schedule: &mut Schedule,
) -> Result<Option<Timestamp>, StorageError> {
    loop {
        let now = core.store.now();
        let next = waiting::raise_due(core, now).await?;
        let state = core.store.replacements();
        let subscriptions = core.store.read(outbox::subscriptions)?;
        let all = subscriptions.iter().map(|(_, one)| one.generation);
        schedule.keep(state, &all.collect());
        let mut attempts = Vec::new();
        for (name, subscription) in &subscriptions {
            let settings = &subscription.settings;
            let (events_max, bytes_max) = settings.destination.batch();
            let most = events_max.max(TOGETHER_MIN);
            let list = schedule.list(subscription.generation);
            let due = core.store.read(|view| {
                list.read(view, subscription.generation)?;
                find(view, list.due(now, most))
            })?;
            let deliverer = Deliverer {
                core,
                name,
                settings,
                now,
            };
            for batch in batches(due, events_max, bytes_max) {
                let done = deliverer.attempt(batch);
                attempts.push(done.map(move |done| (subscription.generation, done)));
            }
        }
        if attempts.is_empty() {
            let others = schedule.next();
            return Ok(next.into_iter().chain(others).min());
        }
        let done = join_all(attempts).await;
        settle(core, schedule, done).await?;
    }
}

/// Writes what is left of events after an attempt.
async fn settle(
    core: &Core,
    schedule: &mut Schedule,
    done: Vec<(Generation, Vec<Done>)>,
) -> Result<(), StorageError> {
    for (subscription, done) in &done {
        let list = schedule.list(*subscription);
        for (key, old, left) in done {
            list.settle(key.clone(), old, left.as_ref());
        }
    }
    let settled = core.store.commit(move |tx, _| {
        for (key, _, left) in done.into_iter().flat_map(|(_, done)| done) {
            // The subscription may have been deleted meanwhile.
            if tx.get(&key)?.is_none() {
                continue;
            }
            match left {
                None => tx.delete(key),
                Some(delivery) => delivery.save(tx, key)?,
            }
        }
        Ok(())
    });
    settled.await
}

/// Returns the events with these keys. One of a subscription that is being deleted may be gone.
fn find<'a>(view: &dyn View, keys: impl Iterator<Item = &'a Vec<u8>>) -> StoreResult<Vec<Due>> {
    let mut due = Vec::new();
    for key in keys {
        if let Some(delivery) = DeliveryRecord::load(view, key)? {
            due.push((key.clone(), delivery));
        }
    }
    Ok(due)
}

/// Splits events into batches of at most this many events and, beyond one event, bytes.
fn batches(due: Vec<Due>, events_max: usize, bytes_max: usize) -> Vec<Vec<Due>> {
    let (mut batches, mut bytes): (Vec<Vec<Due>>, _) = (Vec::new(), 0);
    for one in due {
        let more = send::length(&one.1.event);
        match batches.last_mut() {
            Some(last) if last.len() < events_max && bytes + more <= bytes_max => {
                last.push(one);
                bytes += more;
            }
            _ => {
                batches.push(vec![one]);
                bytes = more;
            }
        }
    }
    batches
}

impl Deliverer<'_> {
    /// Delivers one batch. Events that ran out are given up, and faults are caused, before.
    async fn attempt(self, batch: Vec<Due>) -> Vec<Done> {
        let (mut done, mut sent) = (Vec::new(), Vec::new());
        let mut events = Vec::new();
        for (key, delivery) in batch {
            if let Some(left) = self.settled_before(&delivery).await {
                done.push((key, delivery, left));
                continue;
            }
            let left = match self.core.faults.event(&delivery.event.path()) {
                Some(EventFault::Drop) => None,
                Some(EventFault::Delay { delay_s, overtaken }) => Some(DeliveryRecord {
                    due: self.now.plus_s(delay_s),
                    is_overtaken: delivery.is_overtaken || overtaken,
                    ..delivery.clone()
                }),
                fault => {
                    let times = 1 + usize::from(fault.is_some());
                    events.extend(std::iter::repeat_n(delivery.event.clone(), times));
                    sent.push((key, delivery));
                    continue;
                }
            };
            done.push((key, delivery, left));
        }
        if sent.is_empty() {
            return done;
        }
        let attempts = sent.iter().map(|(_, delivery)| delivery.attempts).max();
        let to = (self.name, self.settings);
        let status = send::events(self.core, to, &events, attempts.unwrap_or_default()).await;
        done.extend(sent.into_iter().map(|(key, delivery)| {
            let left = self.after(delivery.clone(), status);
            (key, delivery, left)
        }));
        done
    }

    /// Returns what becomes of an event that is not sent: one that ran out or was given up.
    async fn settled_before(&self, delivery: &DeliveryRecord) -> Option<Left> {
        if delivery.given_up.is_some() {
            return Some(self.bury(delivery.clone()).await);
        }
        let ttl_s = u64::from(self.settings.event_ttl_minutes) * MINUTE_S;
        let ran_out = self.now >= delivery.event.at.plus_s(ttl_s);
        ran_out.then(|| self.give_up(delivery.clone(), "TimeToLiveExceeded"))
    }

    /// Returns what becomes of an event after an attempt that ended with this status.
    fn after(&self, delivery: DeliveryRecord, status: StatusCode) -> Left {
        // Event Grid takes only these for success.
        if (200..=204).contains(&status.as_u16()) {
            return None;
        }
        let attempts = delivery.attempts + 1;
        let outcome = status.canonical_reason().unwrap_or("Unknown");
        tracing::debug!(subscription = self.name, attempts, %status, "cannot deliver an event");
        let failed = DeliveryRecord {
            attempts,
            last: Some((self.now, outcome.replace(' ', ""))),
            ..delivery
        };
        let is_webhook = matches!(self.settings.destination, Destination::Webhook { .. });
        match pause_s(attempts, status.as_u16(), is_webhook) {
            None => self.give_up(failed, "UndeliverableDueToClientError"),
            Some(_) if attempts >= self.settings.max_delivery_attempts => {
                self.give_up(failed, "MaxDeliveryAttemptsExceeded")
            }
            Some(pause_s) => Some(DeliveryRecord {
                due: self.now.plus_s(pause_s),
                ..failed
            }),
        }
    }

    fn give_up(&self, delivery: DeliveryRecord, reason: &str) -> Left {
        if self.settings.dead_letter.is_none() {
            tracing::warn!(id = %delivery.event.id, reason, "dropped an event");
            return None;
        }
        Some(DeliveryRecord {
            given_up: Some(reason.to_owned()),
            due: self.now.plus_s(DEAD_LETTER_WAIT_S),
            ..delivery
        })
    }

    /// Writes an event that was given up to its container.
    async fn bury(&self, delivery: DeliveryRecord) -> Left {
        let to = (self.name, self.settings);
        let status = send::dead_letter(self.core, to, &delivery, self.now).await;
        let last = delivery
            .last
            .as_ref()
            .map_or(delivery.event.at, |last| last.0);
        if status.is_success() {
            return None;
        }
        if self.now >= last.plus_s(DEAD_LETTER_TRIES_S) {
            tracing::warn!(id = %delivery.event.id, %status, "dropped a dead letter");
            return None;
        }
        Some(DeliveryRecord {
            due: self.now.plus_s(DEAD_LETTER_RETRY_S),
            ..delivery
        })
    }
}
