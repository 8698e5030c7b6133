//! One connection that works until the server is gone.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;

use super::content::{Content, below};
use super::model::{Change, Model, Op, Outcome, Unique};
use super::property::{Flaw, Property};
use super::wire::Client;
use crate::servers::ServerError;

/// Number of new blob names of a connection per round: the store grows, and blobs are overwritten
/// too.
const NAMES_PER_ROUND: u64 = 20;
/// Most messages that a connection leaves in its queue.
const MESSAGES_MAX: usize = 150;
/// Visibility timeout in seconds of messages that are taken during the work.
const HIDDEN_S: u64 = 1;
/// Number of messages that a get takes during the work.
const TAKEN_AT_ONCE: u32 = 3;
/// Lengths of blobs: within the metadata engine, beyond it, and of several writes.
const BLOB_LENGTHS: [usize; 3] = [4 * 1024, 64 * 1024, 1024 * 1024];
/// Lengths of messages: most are short, some are stored beside the metadata engine.
const TEXT_LENGTHS: [usize; 2] = [1024, 40 * 1024];

/// Number of directories of a hierarchical container.
const DIRECTORIES: u64 = 6;

/// Rows of a connection's partition: so few that they are rewritten again and again.
const ROWS: u64 = 24;
/// Entities of a transaction.
const CHANGED_AT_ONCE: usize = 3;
/// Lengths of entities: most are short, some take a page of the metadata engine for themselves.
const ENTITY_LENGTHS: [usize; 2] = [256, 20 * 1024];

/// Results of one connection's work before the server was gone.
#[derive(Debug, Default)]
pub struct Work {
    /// Number of acknowledged operations.
    pub acknowledged: u64,
    /// Flaws that were found meanwhile.
    pub flaws: Vec<Flaw>,
}

/// Works until the connection breaks. Afterwards the model contains the acknowledged operations and
/// the unanswered one.
pub async fn work(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    (mut random, round): (ChaCha8Rng, u64),
) -> Work {
    let mut work = Work::default();
    loop {
        let op = choose(model, &mut random, round);
        model.pending = Some(op.clone());
        match perform(client, model, &op).await {
            Ok(outcome) => {
                work.flaws.extend(model.acknowledge(op, outcome, unique));
                work.acknowledged += 1;
            }
            Err(error) => {
                // An error answer to an operation that must succeed is a flaw; a broken connection
                // is expected.
                if let Some(text) = refusal(&error) {
                    let op = model.pending.take();
                    let text = format!("{op:?} was answered {text}");
                    work.flaws.push(Flaw::new(Property::C1, text));
                }
                return work;
            }
        }
    }
}

/// Returns the text of an error answer; `None` when there was no answer.
pub fn refusal(error: &ServerError) -> Option<&str> {
    match error {
        ServerError::Call(text) if text.contains("in place of") => Some(text),
        _ => None,
    }
}

/// Chooses the next operation among those that the state allows.
pub fn choose(model: &Model, random: &mut ChaCha8Rng, round: u64) -> Op {
    let blob = pick(random, model.blobs.keys());
    let message = pick(random, model.messages.keys());
    let mark = random.next_u64();
    let is_full = model.messages.len() >= MESSAGES_MAX;
    match (below(random, 20), blob, message) {
        (0..=1, Some(name), _) => Op::SetMetadata { name, mark },
        (2..=3, Some(name), _) => Op::DeleteBlob { name },
        (4..=5, _, Some(id)) => Op::UpdateMessage {
            id,
            content: content(random, &TEXT_LENGTHS),
        },
        (6..=7, _, Some(id)) => Op::DeleteMessage { id },
        (8, _, Some(_)) => Op::GetMessages,
        (9..=11, _, Some(id)) if is_full => Op::DeleteMessage { id },
        (9..=11, _, _) => Op::PutMessage {
            content: content(random, &TEXT_LENGTHS),
        },
        (12, _, _) => match &model.lease {
            Some(id) => Op::ReleaseLease { id: id.clone() },
            None => Op::AcquireLease { id: guid(random) },
        },
        (16, Some(name), _) if model.is_lake => rename(model, random, &name),
        (17, _, _) => change_entities(model, random, 1),
        (18..=19, _, _) => change_entities(model, random, CHANGED_AT_ONCE),
        _ => Op::PutBlob {
            name: match model.is_lake {
                true => directory(random) + "/",
                false => String::new(),
            } + &format!("b{}", below(random, NAMES_PER_ROUND * (round + 2))),
            content: content(random, &BLOB_LENGTHS),
            mark,
            in_blocks: below(random, 4) == 0,
        },
    }
}

fn directory(random: &mut ChaCha8Rng) -> String {
    format!("d{}", below(random, DIRECTORIES))
}

/// Returns the rename of the directory of a blob to a name under which there is nothing.
fn rename(model: &Model, random: &mut ChaCha8Rng, blob: &str) -> Op {
    let from = blob.split('/').next().unwrap_or_default().to_owned();
    let is_taken = |name: &str| {
        let mut blobs = model.blobs.keys();
        blobs.any(|blob| blob.split('/').next() == Some(name))
    };
    let mut to = directory(random);
    while is_taken(&to) {
        to.push('x');
    }
    Op::Rename { from, to }
}

/// Returns a content of one of these lengths; each class is about three times as rare as the
/// previous one.
fn content(random: &mut ChaCha8Rng, lengths: &[usize]) -> Content {
    let mut class = 0;
    while class + 1 < lengths.len() && below(random, 4) == 0 {
        class += 1;
    }
    let most = lengths.get(class).copied().unwrap_or(1) as u64;
    let length = if class == 0 {
        below(random, most + 1)
    } else {
        most
    };
    Content {
        seed: random.next_u64(),
        length: usize::try_from(length).unwrap_or_default(),
    }
}

/// Returns a change of this many entities, which together form a transaction.
fn change_entities(model: &Model, random: &mut ChaCha8Rng, count: usize) -> Op {
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    while changes.len() < count {
        let row = format!("r{}", below(random, ROWS));
        let change = match model.entities.contains_key(&row) {
            false => Change::Insert(content(random, &ENTITY_LENGTHS)),
            true if below(random, 4) == 0 => Change::Delete,
            true => Change::Replace(content(random, &ENTITY_LENGTHS)),
        };
        changes.insert(row, change);
    }
    Op::ChangeEntities {
        changes: changes.into_iter().collect(),
        // Fits into a signed number of an entity.
        mark: random.next_u64() >> 1,
    }
}

/// Returns a random lease id.
fn guid(random: &mut ChaCha8Rng) -> String {
    let (high, low) = (random.next_u64(), random.next_u64());
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

fn pick<'a>(
    random: &mut ChaCha8Rng,
    names: impl ExactSizeIterator<Item = &'a String>,
) -> Option<String> {
    let place = below(random, names.len() as u64);
    let mut names = names;
    names.nth(usize::try_from(place).ok()?).cloned()
}

/// Performs the operation. Returns the contents of the acknowledgement.
pub async fn perform(client: &mut Client, model: &Model, op: &Op) -> Result<Outcome, ServerError> {
    let mut outcome = Outcome::default();
    match op {
        Op::PutBlob {
            name,
            content,
            mark,
            in_blocks,
        } => {
            outcome.etag = if *in_blocks {
                client.put_blocks(name, *content, *mark).await?
            } else {
                client.put_blob(name, *content, *mark).await?
            };
        }
        Op::SetMetadata { name, mark } => outcome.etag = client.set_metadata(name, *mark).await?,
        Op::DeleteBlob { name } => client.delete_blob(name).await?,
        Op::Rename { from, to } => client.rename(from, to).await?,
        Op::ChangeEntities { changes, mark } => {
            outcome.etags = client.change_entities(changes, *mark).await?;
        }
        Op::AcquireLease { id } => drop(client.try_lease("acquire", id).await?.expect(201)?),
        Op::ReleaseLease { id } => drop(client.try_lease("release", id).await?.expect(200)?),
        Op::PutMessage { content } => {
            let shown = client.put_message(*content).await?;
            (outcome.id, outcome.receipt) = (shown.id, shown.receipt);
        }
        Op::UpdateMessage { id, content } => {
            let receipt = receipt(model, id);
            outcome.receipt = client.update_message(id, receipt, *content).await?;
        }
        Op::DeleteMessage { id } => {
            let deleted = client.try_delete_message(id, receipt(model, id)).await?;
            deleted.expect(204)?;
        }
        Op::GetMessages => {
            let shown = client.get_messages(TAKEN_AT_ONCE, HIDDEN_S).await?;
            let taken = shown.into_iter().map(|shown| (shown.id, shown.receipt));
            outcome.taken = taken.collect();
        }
    }
    Ok(outcome)
}

fn receipt<'a>(model: &'a Model, id: &str) -> &'a str {
    let message = model.messages.get(id);
    message.map_or("", |message| message.receipt.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::content::stream;
    use crate::crash::model::{Item, Message};

    /// Every operation is chosen, and the same seed chooses the same ones.
    #[test]
    fn the_choice_is_wide_and_repeatable() {
        let mut model = Model::default();
        let content = Content { seed: 1, length: 1 };
        let blob = Item {
            content,
            mark: 1,
            etag: "e".to_owned(),
        };
        let message = Message {
            content,
            receipt: "r".to_owned(),
            replaced: None,
            dequeue_count: 0,
        };
        for row in 0..ROWS / 2 {
            let entity = Item {
                content,
                mark: 1,
                etag: "e".to_owned(),
            };
            model.entities.insert(format!("r{row}"), entity);
        }
        model.blobs.insert("b1".to_owned(), blob);
        model.messages.insert("m1".to_owned(), message);
        let run = |model: &Model| -> Vec<Op> {
            let mut random = stream(1, 0, 0);
            (0..200).map(|_| choose(model, &mut random, 0)).collect()
        };
        let ops = run(&model);
        assert_eq!(ops, run(&model));
        let kinds: std::collections::HashSet<_> = ops.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 9, "a lease is not released that nobody has");

        let changes = |op: &Op| match op {
            Op::ChangeEntities { changes, .. } => changes.clone(),
            _ => Vec::new(),
        };
        let all: Vec<_> = ops.iter().map(changes).collect();
        let counts: Vec<_> = all.iter().map(Vec::len).collect();
        assert!(counts.contains(&1) && counts.contains(&CHANGED_AT_ONCE));
        let kinds: std::collections::HashSet<_> = all
            .iter()
            .flatten()
            .map(|(_, change)| std::mem::discriminant(change))
            .collect();
        assert_eq!(kinds.len(), 3, "inserts, replacements, deletions");
        model.is_lake = true;
        let is_rename = |op: &Op| matches!(op, Op::Rename { .. });
        assert!(run(&model).iter().any(is_rename));
    }
}
