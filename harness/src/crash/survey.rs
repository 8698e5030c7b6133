//! Examines a store after a crash: reads everything that a connection wrote, and compares it with
//! what is expected.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{self, Seen, SeenMessage};
use super::items::{self, Known};
use super::model::{Kind, Model, Op, Unique};
use super::property::{Flaw, Property, Verified};
use super::verify_lease;
use super::verify_queue::{self, Awaited, Taken};
use super::wire::Client;
use crate::servers::ServerError;

/// Examines all data of a connection. Returns the state at the start of the next round. If
/// `expires`, waits for a lease to expire, which requires paused time.
pub async fn connection(
    client: &mut Client,
    model: &Model,
    expires: bool,
    unique: &Unique,
    verified: &mut Verified,
) -> Result<Model, ServerError> {
    let mut seen = look(client, model, verified).await?;
    let lease = verify_lease::honoured(client, leases(model), verified).await?;
    let is_over = expires && lease.is_some();
    seen.lease = Some(lease);
    if is_over {
        verify_lease::expiry(client, verified).await?;
    }
    seen.messages = Some(messages(client, model, verified).await?);
    verified.flaws.extend(compare::differences(model, &seen));
    let mut next = compare::settled(model, &seen, unique, &mut verified.flaws);
    if is_over {
        next.lease = None;
    }
    Ok(next)
}

/// Reads all blobs and entities.
pub async fn look(
    client: &mut Client,
    model: &Model,
    verified: &mut Verified,
) -> Result<Seen, ServerError> {
    Ok(Seen {
        blobs: blobs(client, model, verified).await?,
        entities: entities(client, model, verified).await?,
        ..Seen::default()
    })
}

async fn blobs(
    client: &mut Client,
    model: &Model,
    verified: &mut Verified,
) -> Result<items::Seen, ServerError> {
    let known = Known::of(Kind::Blob, model);
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
    model: &Model,
    verified: &mut Verified,
) -> Result<items::Seen, ServerError> {
    let known = Known::of(Kind::Entity, model);
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

/// Returns the leases that may exist.
fn leases(model: &Model) -> BTreeSet<String> {
    let unanswered = match &model.pending {
        Some(Op::AcquireLease { id }) => Some(id),
        _ => None,
    };
    model.lease.iter().chain(unanswered).cloned().collect()
}

/// Checks C4 for pop receipts; then takes every message.
async fn messages(
    client: &mut Client,
    model: &Model,
    verified: &mut Verified,
) -> Result<BTreeMap<String, SeenMessage>, ServerError> {
    verify_queue::receipts(client, model, verified).await?;
    let found = verify_queue::take_all(client, &awaited(model), verified).await?;
    verified.messages += found.len() as u64;
    let message = |(id, taken): (String, Taken)| {
        let content = model
            .texts(&id)
            .find(|content| content.text() == taken.shown.text);
        let message = SeenMessage {
            content,
            receipt: taken.shown.receipt,
            dequeue_count: taken.shown.dequeue_count,
            times: taken.times,
        };
        (id, message)
    };
    Ok(found.into_iter().map(message).collect())
}

/// Returns the messages that exist, and those that may.
fn awaited(model: &Model) -> Awaited {
    let doubtful = match &model.pending {
        Some(Op::DeleteMessage { id }) => BTreeSet::from([id.clone()]),
        _ => BTreeSet::new(),
    };
    let certain = model.messages.keys().filter(|id| !doubtful.contains(*id));
    Awaited {
        certain: certain.cloned().collect(),
        doubtful,
    }
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
            let found = connection(client, model, false, &unique, &mut verified).await;
            let pending = model.pending.take();
            *model = Model {
                pending,
                ..found.unwrap()
            };
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
