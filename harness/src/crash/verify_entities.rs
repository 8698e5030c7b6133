//! Compares a store after a crash with what was acknowledged: entities, read by a query.

use super::entities::{Known, SeenEntities, differences, settled};
use super::history::History;
use super::model::{Model, Unique};
use super::property::{Flaw, Property};
use super::verify::Verified;
use super::wire::Client;
use crate::servers::ServerError;

/// Reads the partition; afterwards the model contains what exists.
///
/// # Errors
/// When the server does not answer.
pub async fn entities(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let history = History {
        base: model.clone(),
        pending: model.pending.clone().map(|op| (op, 0)),
        ..History::default()
    };
    if let Some(seen) = look(client, &history, verified).await? {
        verified.flaws.extend(differences(model, &seen));
        model.entities = settled(&history, &seen, unique, &mut verified.flaws);
    }
    Ok(())
}

/// Reads the partition; `None` when it cannot be read.
///
/// # Errors
/// When the server does not answer.
pub async fn look(
    client: &mut Client,
    history: &History,
    verified: &mut Verified,
) -> Result<Option<SeenEntities>, ServerError> {
    let rows = match client.query_entities().await {
        Err(ServerError::Call(text)) => {
            let flaw = Flaw::new(Property::C3, format!("the partition: {text}"));
            verified.unreadable.push(flaw);
            client.reconnect().await?;
            return Ok(None);
        }
        rows => rows?,
    };
    let seen = Known::of(history).recognise(&rows, &mut verified.flaws);
    verified.entities += seen.len() as u64;
    Ok(Some(seen))
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
            entities(client, model, &unique, &mut verified)
                .await
                .unwrap();
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
