//! Delivers events: the first of each blob at a time, so that the events of one blob keep their
//! order, and forgets an event after its destination has it. A crash between the two delivers it
//! again.
//!
//! Sources: "Event Grid message delivery and retry", "Dead letter and retry policies".

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use futures_util::future::join_all;
use http::StatusCode;
use smalt_protocol::{StorageError, Timestamp};

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
    let _alone = core.events.alone.lock().await;
    loop {
        let now = core.store.now();
        let mut next = waiting::raise_due(core, now).await?;
        let subscriptions = core.store.read(outbox::subscriptions)?;
        let mut attempts = Vec::new();
        for (name, subscription) in &subscriptions {
            let settings = &subscription.settings;
            let (events_max, bytes_max) = settings.destination.batch();
            let most = events_max.max(TOGETHER_MIN);
            let generation = subscription.generation;
            let find = |view: &dyn View| find(view, generation, now, most, &mut next);
            let due = core.store.read(find)?;
            let deliverer = Deliverer {
                core,
                name,
                settings,
                now,
            };
            for batch in batches(due, events_max, bytes_max) {
                attempts.push(deliverer.attempt(batch));
            }
        }
        if attempts.is_empty() {
            return Ok(next);
        }
        let done = join_all(attempts).await;
        let settled = core.store.commit(move |tx, _| {
            for (key, after) in done.into_iter().flatten() {
                // The subscription may have been deleted meanwhile.
                if tx.get(&key)?.is_none() {
                    continue;
                }
                match after {
                    None => tx.delete(key),
                    Some(delivery) => delivery.save(tx, key)?,
                }
            }
            Ok(())
        });
        settled.await?;
    }
}

/// Returns up to `most` events of a subscription that are due, and lowers `next` to the time of the
/// others.
fn find(
    view: &dyn View,
    generation: Generation,
    now: Timestamp,
    most: usize,
    next: &mut Option<Timestamp>,
) -> StoreResult<Vec<Due>> {
    let (mut due, mut before) = (Vec::new(), BTreeSet::new());
    outbox::events(view, generation, |key, delivery| {
        let waits_alone = delivery.given_up.is_some() || delivery.is_overtaken;
        let is_first = waits_alone || before.insert(delivery.event.subject.clone());
        if is_first && delivery.due <= now {
            due.push((key.to_vec(), delivery));
        } else if is_first {
            *next = Some(next.map_or(delivery.due, |next| next.min(delivery.due)));
        }
        match due.len() < most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
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
    async fn attempt(self, batch: Vec<Due>) -> Vec<(Vec<u8>, Left)> {
        let (mut done, mut sent) = (Vec::new(), Vec::new());
        let mut events = Vec::new();
        for (key, delivery) in batch {
            if delivery.given_up.is_some() {
                let after = self.bury(delivery).await;
                done.push((key, after));
                continue;
            }
            let ttl_s = u64::from(self.settings.event_ttl_minutes) * MINUTE_S;
            if self.now >= delivery.event.at.plus_s(ttl_s) {
                done.push((key, self.give_up(delivery, "TimeToLiveExceeded")));
                continue;
            }
            match self.core.faults.event(&delivery.event.path()) {
                Some(EventFault::Drop) => {
                    done.push((key, None));
                    continue;
                }
                Some(EventFault::Delay { delay_s, overtaken }) => {
                    let delayed = DeliveryRecord {
                        due: self.now.plus_s(delay_s),
                        is_overtaken: overtaken,
                        ..delivery
                    };
                    done.push((key, Some(delayed)));
                    continue;
                }
                Some(EventFault::Duplicate) => events.push(delivery.event.clone()),
                None => {}
            }
            events.push(delivery.event.clone());
            sent.push((key, delivery));
        }
        if sent.is_empty() {
            return done;
        }
        let attempts = sent.iter().map(|(_, delivery)| delivery.attempts).max();
        let to = (self.name, self.settings);
        let status = send::events(self.core, to, &events, attempts.unwrap_or_default()).await;
        let settled = sent.into_iter();
        done.extend(settled.map(|(key, delivery)| (key, self.after(delivery, status))));
        done
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
