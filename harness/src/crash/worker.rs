//! One connection at work until the server is gone.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;

use super::content::{Content, below};
use super::model::{Blob, Flaw, Message, Model, Op, Unique};
use super::wire::Client;
use crate::servers::ServerError;

/// Names of a connection's blobs grow by so many a round: the store grows, and is overwritten too.
const NAMES_PER_ROUND: u64 = 20;
/// Messages that a connection leaves in its queue.
const MESSAGES_MAX: usize = 150;
/// How long a message is hidden that was taken during work, in seconds.
const HIDDEN_S: u64 = 1;
/// Messages taken at once during work.
const TAKEN_AT_ONCE: u32 = 3;
/// Contents of blobs: within the metadata engine, beyond it, and of several writes.
const BLOB_LENGTHS: [usize; 3] = [4 * 1024, 64 * 1024, 1024 * 1024];
/// Texts of messages: most are short, some are stored beside the metadata engine.
const TEXT_LENGTHS: [usize; 2] = [1024, 40 * 1024];

/// What one connection did before the server was gone.
#[derive(Debug, Default)]
pub struct Work {
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// What went wrong meanwhile.
    pub flaws: Vec<Flaw>,
}

/// Works until the connection breaks. The model then holds what was acknowledged, and the operation
/// that was not.
pub async fn work(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    mut random: ChaCha8Rng,
    round: u64,
) -> Work {
    let mut work = Work::default();
    loop {
        let op = choose(model, &mut random, round);
        model.pending = Some(op.clone());
        match perform(client, model, unique, op).await {
            Ok(flaw) => {
                model.pending = None;
                work.acknowledged += 1;
                work.flaws.extend(flaw);
            }
            Err(error) => {
                // A refusal of what must succeed; a broken connection is what this is all about.
                if let ServerError::Call(text) = &error
                    && text.contains("in place of")
                {
                    let op = model.pending.take();
                    work.flaws
                        .push(Flaw::Lost(format!("{op:?} was answered {text}")));
                }
                return work;
            }
        }
    }
}

/// The next operation: what the state allows.
fn choose(model: &Model, random: &mut ChaCha8Rng, round: u64) -> Op {
    let content = |random: &mut ChaCha8Rng, lengths: &[usize]| {
        // Each class is about three times as rare as the one before.
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
    };
    let blob = pick(random, model.blobs.keys());
    let message = pick(random, model.messages.keys());
    let mark = random.next_u64();
    let is_full = model.messages.len() >= MESSAGES_MAX;
    match (below(random, 16), blob, message) {
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
        _ => Op::PutBlob {
            name: format!("b{}", below(random, NAMES_PER_ROUND * (round + 2))),
            content: content(random, &BLOB_LENGTHS),
            mark,
        },
    }
}

fn pick<'a>(
    random: &mut ChaCha8Rng,
    names: impl ExactSizeIterator<Item = &'a String>,
) -> Option<String> {
    let place = below(random, names.len() as u64);
    let mut names = names;
    names.nth(usize::try_from(place).ok()?).cloned()
}

/// Does it, and notes what was acknowledged.
async fn perform(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    op: Op,
) -> Result<Option<Flaw>, ServerError> {
    Ok(match op {
        Op::PutBlob {
            name,
            content,
            mark,
        } => {
            let etag = client.put_blob(&name, content, mark).await?;
            let flaw = unique.note("ETag", &etag);
            let blob = Blob {
                content,
                mark,
                etag,
            };
            model.blobs.insert(name, blob);
            flaw
        }
        Op::SetMetadata { name, mark } => {
            let etag = client.set_metadata(&name, mark).await?;
            let flaw = unique.note("ETag", &etag);
            if let Some(blob) = model.blobs.get_mut(&name) {
                (blob.mark, blob.etag) = (mark, etag);
            }
            flaw
        }
        Op::DeleteBlob { name } => {
            client.delete_blob(&name).await?;
            model.blobs.remove(&name);
            None
        }
        op => perform_on_queue(client, model, unique, op).await?,
    })
}

async fn perform_on_queue(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    op: Op,
) -> Result<Option<Flaw>, ServerError> {
    match op {
        Op::PutMessage { content } => {
            let shown = client.put_message(content).await?;
            let flaw = unique.note("message id", &shown.id);
            let message = Message {
                content,
                receipt: shown.receipt,
                replaced: None,
                dequeue_count: 0,
            };
            model.messages.insert(shown.id, message);
            return Ok(flaw);
        }
        Op::UpdateMessage { id, content } => {
            let Some(message) = model.messages.get_mut(&id) else {
                return Ok(None);
            };
            let new = client
                .update_message(&id, &message.receipt, content)
                .await?;
            message.replaced = Some(std::mem::replace(&mut message.receipt, new));
            message.content = content;
        }
        Op::DeleteMessage { id } => {
            let Some(message) = model.messages.get(&id) else {
                return Ok(None);
            };
            let deleted = client.try_delete_message(&id, &message.receipt).await?;
            deleted.expect(204)?;
            model.messages.remove(&id);
        }
        Op::GetMessages => {
            let mut flaw = None;
            for shown in client.get_messages(TAKEN_AT_ONCE, HIDDEN_S).await? {
                let Some(message) = model.messages.get_mut(&shown.id) else {
                    let text = format!("message {} was deleted or never put", shown.id);
                    flaw = Some(Flaw::Corrupt(text));
                    continue;
                };
                message.replaced = Some(std::mem::replace(&mut message.receipt, shown.receipt));
                message.dequeue_count += 1;
            }
            return Ok(flaw);
        }
        Op::PutBlob { .. } | Op::SetMetadata { .. } | Op::DeleteBlob { .. } => {}
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::content::stream;

    /// Every operation is reached, and the same seed chooses the same ones.
    #[test]
    fn the_choice_is_wide_and_repeatable() {
        let mut model = Model::default();
        let content = Content { seed: 1, length: 1 };
        let blob = Blob {
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
        model.blobs.insert("b1".to_owned(), blob);
        model.messages.insert("m1".to_owned(), message);
        let run = || -> Vec<Op> {
            let mut random = stream(1, 0, 0);
            (0..200).map(|_| choose(&model, &mut random, 0)).collect()
        };
        let ops = run();
        assert_eq!(ops, run());
        let kinds: std::collections::HashSet<_> = ops.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), 7);
    }
}
