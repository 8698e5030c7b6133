//! Examines a store after a crash: compares everything that a connection wrote with every state of
//! its history.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Cut, History};
use super::items::{self, Known};
use super::model::{Kind, Message, Model, Op, Unique};
use super::prefix::{self, Seen, SeenMessage};
use super::property::{Flaw, Property, Verified};
use super::verify_lease;
use super::verify_queue::{self, Awaited, Taken};
use super::wire::Client;
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
    let mut seen = look(client, history, verified).await?;
    let leases = leases(history, &states(history, &seen));
    let lease = verify_lease::honoured(client, leases, verified).await?;
    let is_over = expires && lease.is_some();
    seen.lease = Some(lease);
    if is_over {
        verify_lease::expiry(client, verified).await?;
    }
    messages(client, history, &mut seen, verified).await?;
    let (cut, flaws) = prefix::cut(history, &seen);
    verified.flaws.extend(flaws);
    let mut model = prefix::settled(history, &seen, unique, &mut verified.flaws);
    if is_over {
        model.lease = None;
    }
    Ok(Found { cut, model })
}

/// Reads all blobs and entities.
///
/// # Errors
/// When the server does not answer.
pub async fn look(
    client: &mut Client,
    history: &History,
    verified: &mut Verified,
) -> Result<Seen, ServerError> {
    Ok(Seen {
        blobs: blobs(client, history, verified).await?,
        entities: entities(client, history, verified).await?,
        ..Seen::default()
    })
}

/// Returns the states that explain what has been seen so far, or the nearest one.
fn states(history: &History, seen: &Seen) -> Vec<usize> {
    prefix::explained(history, seen).unwrap_or_else(|(nearest, _)| vec![nearest])
}

async fn blobs(
    client: &mut Client,
    history: &History,
    verified: &mut Verified,
) -> Result<items::Seen, ServerError> {
    let known = Known::of(Kind::Blob, history);
    let mut seen = items::Seen::new();
    let mut there = Vec::new();
    for name in &known.names {
        verified.blobs += 1;
        let read = match client.get_blob(name).await {
            // A 500, or a body that breaks off because of a checksum, means lost content.
            Err(ServerError::Call(text)) => {
                let flaw = Flaw::new(Property::C3, format!("{name}: {text}"));
                verified.unreadable.push(flaw);
                there.push(name);
                client.reconnect().await?;
                continue;
            }
            read => read?,
        };
        there.extend(read.as_ref().map(|_| name));
        match read.map(|read| known.recognise(name, &read)).transpose() {
            Ok(version) => drop(seen.insert(name.clone(), version)),
            Err(flaw) => verified.flaws.push(flaw),
        }
    }
    if client.list_blobs().await?.iter().ne(there) {
        let text = "the listing and the existing blobs have different names";
        verified.flaws.push(Flaw::new(Property::C2, text));
    }
    Ok(seen)
}

async fn entities(
    client: &mut Client,
    history: &History,
    verified: &mut Verified,
) -> Result<items::Seen, ServerError> {
    let known = Known::of(Kind::Entity, history);
    let rows = match client.query_entities().await {
        Err(ServerError::Call(text)) => {
            let flaw = Flaw::new(Property::C3, format!("the partition: {text}"));
            verified.unreadable.push(flaw);
            client.reconnect().await?;
            return Ok(items::Seen::new());
        }
        rows => rows?,
    };
    let mut seen: items::Seen = known.names.iter().map(|row| (row.clone(), None)).collect();
    for (row, read) in rows {
        match known.recognise(&row, &read) {
            Ok(version) => drop(seen.insert(row, Some(version))),
            Err(flaw) => {
                seen.remove(&row);
                verified.flaws.push(flaw);
            }
        }
    }
    verified.entities += seen.len() as u64;
    Ok(seen)
}

/// Returns the leases that one of these states has.
fn leases(history: &History, states: &[usize]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    history.each_state(|count, model| {
        if states.contains(&count) {
            ids.extend(model.lease.clone());
            if let Some(Op::AcquireLease { id }) = &model.pending {
                ids.insert(id.clone());
            }
        }
    });
    ids
}

/// Checks C4 for pop receipts; then takes every message.
async fn messages(
    client: &mut Client,
    history: &History,
    seen: &mut Seen,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let states = states(history, seen);
    let (common, awaited) = expected(history, &states);
    verify_queue::receipts(client, &common, verified).await?;
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

/// Returns the messages that are the same in all of these states, and those that one of them has.
fn expected(history: &History, states: &[usize]) -> (BTreeMap<String, Message>, Awaited) {
    let mut common: Option<BTreeMap<String, Message>> = None;
    let mut certain: Option<BTreeSet<String>> = None;
    let mut doubtful = BTreeSet::new();
    history.each_state(|count, model| {
        if !states.contains(&count) {
            return;
        }
        let ids = || model.messages.keys().cloned();
        doubtful.extend(ids());
        let is_doomed = |id: &String| {
            matches!(&model.pending, Some(Op::DeleteMessage { id: deleted }) if deleted == id)
        };
        certain
            .get_or_insert_with(|| ids().collect())
            .retain(|id| model.messages.contains_key(id) && !is_doomed(id));
        common
            .get_or_insert_with(|| model.messages.clone())
            .retain(|id, message| {
                model.messages.get(id) == Some(message) && !model.is_uncertain(id)
            });
    });
    let certain = certain.unwrap_or_default();
    doubtful.retain(|id| !certain.contains(id));
    (common.unwrap_or_default(), Awaited { certain, doubtful })
}

#[cfg(test)]
mod tests {
    use smalt::{Clock, Emulator, Timestamp};

    use super::*;
    use crate::crash::content::Content;
    use crate::crash::model::{Change, Op, Outcome};

    fn changes(all: &[(&str, Change)]) -> Vec<(String, Change)> {
        let named = |(row, change): &(&str, Change)| ((*row).to_owned(), *change);
        all.iter().map(named).collect()
    }

    /// The check reads a partition as a client does: it accepts what was done, and finds half of a
    /// transaction and a missing one.
    #[tokio::test(start_paused = true)]
    async fn transactions_are_read_and_checked() {
        let clock = Clock::tokio(Timestamp::from_unix_s(1_800_000_000));
        let emulator = Emulator::builder().clock(clock).open().unwrap();
        let mut client = Client::within(&emulator, "judged-0");
        client.create().await.unwrap();
        let mut model = Model::default();
        let text = |seed| Content {
            seed,
            length: 30_000,
        };
        let insert = |seed| Change::Insert(text(seed));
        let three = [("a", insert(1)), ("b", insert(2)), ("c", insert(3))];
        let next = [
            ("a", Change::Replace(text(4))),
            ("b", Change::Delete),
            ("d", insert(5)),
        ];
        let etags = client.change_entities(&changes(&three), 1).await.unwrap();
        let outcome = Outcome {
            etags,
            ..Outcome::default()
        };
        let op = |mark, all: &[(&str, Change)]| Op::ChangeEntities {
            changes: changes(all),
            mark,
        };
        let flaws = model.acknowledge(op(1, &three), outcome, &Unique::default());
        assert_eq!(flaws, []);
        let flaws = async |model: &mut Model, client: &mut Client| {
            let mut verified = Verified::default();
            // ETags that are seen twice were given once.
            let unique = Unique::default();
            let history = History::after(model);
            let found = connection(client, &history, false, &unique, &mut verified);
            let pending = model.pending.clone();
            *model = found.await.unwrap().model;
            model.pending = pending;
            verified.all_flaws().collect::<Vec<_>>()
        };
        model.pending = Some(op(2, &next));
        assert_eq!(flaws(&mut model, &mut client).await, []);
        assert_eq!(model.entities.len(), 3);
        // Two of the three unanswered changes, as if each were independent.
        let mut lost = model.clone();
        for change in &changes(&next)[..2] {
            let one = std::slice::from_ref(change);
            client.change_entities(one, 2).await.unwrap();
        }
        let found = flaws(&mut model.clone(), &mut client).await;
        assert_eq!((found.len(), found[0].property), (1, Property::C2));
        // With the third one the transaction is complete.
        let third = &changes(&next)[2..];
        client.change_entities(third, 2).await.unwrap();
        assert_eq!(flaws(&mut model, &mut client).await, []);
        assert_eq!(model.entities.len(), 3);
        // Without an operation in flight, acknowledged data would have been lost.
        lost.pending = None;
        let found = flaws(&mut lost, &mut client).await;
        let lost = found.iter().filter(|flaw| flaw.property == Property::C1);
        assert_eq!((lost.count(), found.len()), (2, 3), "{found:?}");
    }
}
