//! Examines a store after a kill that may have taken the end of its history: compares everything
//! with every state of a connection's history.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Content;
use super::history::{Cut, History};
use super::model::{Model, Op, Unique};
use super::prefix::{self, Seen, SeenBlob, SeenMessage};
use super::property::{Flaw, Property};
use super::verify::Verified;
use super::verify_entities;
use super::verify_lease;
use super::verify_queue::{self, Awaited, Taken};
use super::wire::{Client, Read};
use crate::servers::ServerError;

/// The state of a connection's data.
#[derive(Debug)]
pub struct Found {
    /// How much of its history exists.
    pub cut: Cut,
    /// State at the start of the next round.
    pub model: Model,
}

/// Examines all data of a connection. If `expires`, waits for a lease to expire, which requires
/// paused time.
///
/// # Errors
/// When the server does not answer.
pub async fn connection(
    client: &mut Client,
    history: &History,
    expires: bool,
    unique: &Unique,
    verified: &mut Verified,
) -> Result<Found, ServerError> {
    let mut seen = Seen::default();
    blobs(client, history, &mut seen, verified).await?;
    let entities = verify_entities::look(client, history, verified).await?;
    seen.entities = entities.unwrap_or_default();
    let states = states(history, &seen);
    lease(client, history, &states, &mut seen, verified).await?;
    let mut leased = Model {
        lease: seen.lease.clone().flatten(),
        ..Model::default()
    };
    if expires {
        verify_lease::expiry(client, &mut leased, verified).await?;
    }
    messages(client, history, &mut seen, verified).await?;
    let (cut, flaws) = prefix::cut(history, &seen);
    verified.flaws.extend(flaws);
    let mut model = prefix::settled(history, cut, &seen, unique, &mut verified.flaws);
    model.lease = leased.lease;
    Ok(Found { cut, model })
}

/// Returns the states that explain what has been seen so far, or the nearest one.
fn states(history: &History, seen: &Seen) -> Vec<usize> {
    prefix::explained(history, seen).unwrap_or_else(|(nearest, _)| vec![nearest])
}

/// C3 for each blob: checks that an ETag has the bytes that were put with it.
async fn blobs(
    client: &mut Client,
    history: &History,
    seen: &mut Seen,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let told = history.blobs();
    let last = history.state(history.steps.len());
    for name in history.names() {
        verified.blobs += 1;
        let found = match client.get_blob(&name).await {
            Err(ServerError::Call(text)) => {
                let flaw = Flaw::new(Property::C3, format!("{name}: {text}"));
                verified.unreadable.push(flaw);
                client.reconnect().await?;
                continue;
            }
            found => found?,
        };
        let blob = match found {
            None => None,
            Some(read) => {
                let put = told.get(&read.etag).map(|blob| (blob.content, blob.mark));
                let unanswered = prefix::unanswered(history, &last, &name);
                match (put, unanswered) {
                    (Some(put), _) if is(&read, put) => Some(SeenBlob::Told(read.etag)),
                    (None, Some(put)) if is(&read, put) => Some(SeenBlob::Unanswered(read.etag)),
                    (put, _) => {
                        verified.flaws.push(strange(&name, put.is_some()));
                        continue;
                    }
                }
            }
        };
        seen.blobs.insert(name, blob);
    }
    let listed = client.list_blobs().await?;
    let there = seen.blobs.iter().filter(|(_, blob)| blob.is_some());
    if verified.all_readable() && listed.iter().ne(there.map(|(name, _)| name)) {
        let text = "the listing and the existing blobs have different names";
        verified.flaws.push(Flaw::new(Property::C2, text));
    }
    Ok(())
}

fn is(read: &Read, (content, mark): (Content, u64)) -> bool {
    read.mark == Some(mark) && read.bytes == content.bytes().as_slice()
}

fn strange(name: &str, is_told: bool) -> Flaw {
    if is_told {
        return Flaw::new(Property::C3, format!("{name} is not what was put"));
    }
    let text = format!("{name} has an ETag that was never acknowledged");
    Flaw::new(Property::C2, text)
}

/// C4: checks that one of the leases that may exist is honoured, or that anybody gets it.
async fn lease(
    client: &mut Client,
    history: &History,
    states: &[usize],
    seen: &mut Seen,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let mut ids = BTreeSet::new();
    history.each_state(|count, model| {
        if states.contains(&count) {
            ids.extend(model.lease.clone());
            if let Some(Op::AcquireLease { id }) = &model.pending {
                ids.insert(id.clone());
            }
        }
    });
    let mut honoured = None;
    for id in ids {
        if client.try_lease("renew", &id).await?.status == 200 {
            honoured = Some(id);
            break;
        }
    }
    // The rest is as in a store that loses nothing: whether anybody else gets it.
    let mut model = Model {
        lease: honoured,
        ..Model::default()
    };
    verify_lease::lease(client, &mut model, verified).await?;
    seen.lease = Some(model.lease);
    Ok(())
}

/// Checks C4 for pop receipts; then takes every message.
async fn messages(
    client: &mut Client,
    history: &History,
    seen: &mut Seen,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let states = states(history, seen);
    let (mut common, awaited) = expected(history, &states);
    verify_queue::receipts(client, &mut common, verified).await?;
    let found = verify_queue::take_all(client, &awaited, verified).await?;
    verified.messages += found.len() as u64;
    let texts = history.texts();
    let known = |id: &str| {
        texts
            .get(id)
            .or_else(|| texts.get(""))
            .into_iter()
            .flatten()
    };
    let message = |(id, taken): (String, Taken)| {
        let content = known(&id).find(|content| content.text() == taken.shown.text);
        let message = SeenMessage {
            content: content.copied(),
            receipt: taken.shown.receipt,
            dequeue_count: taken.shown.dequeue_count,
            times: taken.times,
        };
        (id, message)
    };
    seen.messages = Some(found.into_iter().map(message).collect::<BTreeMap<_, _>>());
    Ok(())
}

/// Returns what all of these states have in common, and the messages that one of them has.
fn expected(history: &History, states: &[usize]) -> (Model, Awaited) {
    let mut common: Option<Model> = None;
    let mut awaited = Awaited::default();
    history.each_state(|count, model| {
        if !states.contains(&count) {
            return;
        }
        awaited.doubtful.extend(model.messages.keys().cloned());
        let mut common_now = common.take().unwrap_or_else(|| model.clone());
        common_now.messages.retain(|id, message| {
            model.messages.get(id) == Some(message) && !model.is_uncertain(id)
        });
        common = Some(common_now);
    });
    let mut common = common.unwrap_or_default();
    common.pending = None;
    awaited.certain = common.messages.keys().cloned().collect();
    awaited.doubtful.retain(|id| !awaited.certain.contains(id));
    (common, awaited)
}
