//! Compares a store after a crash with what was acknowledged: messages and their pop receipts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::model::{Message, Model, Op, Unique};
use super::property::{Flaw, Property};
use super::verify::Verified;
use super::wire::{Client, Shown};
use crate::servers::ServerError;

/// Number of pop receipts of a queue that are tried.
const RECEIPTS_TRIED: usize = 10;
/// Visibility timeout in seconds of the check's own gets.
const HIDDEN_S: u64 = 2;
/// Time within which every message must become visible: those that were taken last before the crash
/// are hidden for as long as the work or the earlier check asked for.
const SHOW_UP: Duration = Duration::from_secs(5);
/// A message whose deletion was not answered may exist and be hidden: it is certainly gone only
/// after this time.
const CERTAIN: Duration = Duration::from_millis(HIDDEN_S * 1_000 + 500);
/// Pause between two gets from a queue that returns nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// Tries pop receipts, then takes and checks every message; afterwards the model contains what
/// exists.
///
/// # Errors
/// When the server does not answer.
pub async fn messages(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    receipts(client, model, verified).await?;
    let (doubtful, certain) = model
        .messages
        .keys()
        .cloned()
        .partition(|id| is_doomed(model, id));
    let found = take_all(client, &Awaited { certain, doubtful }, verified).await?;
    verified.messages += found.len() as u64;
    let mut there = BTreeMap::new();
    for (id, taken) in &found {
        match judge(model, id, taken, unique) {
            Ok(message) => drop(there.insert(id.clone(), message)),
            Err(flaw) => verified.flaws.push(flaw),
        }
    }
    for id in model.messages.keys() {
        if !found.contains_key(id) && !is_doomed(model, id) {
            let text = format!("message {id} is gone");
            verified.flaws.push(Flaw::new(Property::C1, text));
        }
    }
    model.messages = there;
    model.uncertain_gets = 0;
    Ok(())
}

/// Whether the unanswered operation would have deleted this message.
fn is_doomed(model: &Model, id: &str) -> bool {
    matches!(&model.pending, Some(Op::DeleteMessage { id: deleted }) if deleted == id)
}

/// The messages for which the check of a queue waits.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// Messages that exist.
    pub certain: BTreeSet<String>,
    /// Messages that may exist.
    pub doubtful: BTreeSet<String>,
}

/// A message as it was taken last, and how often this check has taken it.
pub(super) struct Taken {
    pub shown: Shown,
    pub times: u32,
    /// Time of the last get.
    asked: Instant,
}

/// C4: checks that a valid pop receipt works, and that a replaced one does not.
pub(super) async fn receipts(
    client: &mut Client,
    model: &mut Model,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let certain: Vec<String> = model
        .messages
        .keys()
        .filter(|id| !model.is_uncertain(id))
        .take(RECEIPTS_TRIED)
        .cloned()
        .collect();
    for id in certain {
        let Some(message) = model.messages.get_mut(&id) else {
            continue;
        };
        if let Some(replaced) = &message.replaced {
            let answer = client.try_delete_message(&id, replaced).await?;
            if !matches!(answer.status, 400 | 404) {
                let text = format!("message {id}: a replaced receipt was honoured");
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
        }
        let content = message.content;
        match client.update_message(&id, &message.receipt, content).await {
            Ok(new) => message.receipt = new,
            Err(ServerError::Call(text)) => {
                let text = format!("message {id}: its receipt is not honoured: {text}");
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes messages until every expected one was seen and no more appears.
pub(super) async fn take_all(
    client: &mut Client,
    awaited: &Awaited,
    verified: &mut Verified,
) -> Result<BTreeMap<String, Taken>, ServerError> {
    let mut found: BTreeMap<String, Taken> = BTreeMap::new();
    let begun = Instant::now();
    loop {
        let asked = Instant::now();
        let batch = client.get_messages(32, HIDDEN_S).await?;
        let answered = Instant::now();
        let is_empty = batch.is_empty();
        for shown in batch {
            let before = found.get(&shown.id);
            let hidden_until = before.map(|taken| taken.asked + Duration::from_secs(HIDDEN_S));
            if hidden_until.is_some_and(|until| answered < until) {
                let text = format!("message {} was delivered twice while hidden", shown.id);
                verified.flaws.push(Flaw::new(Property::C4, text));
            }
            let times = before.map_or(1, |taken| taken.times + 1);
            let id = shown.id.clone();
            found.insert(
                id,
                Taken {
                    shown,
                    times,
                    asked,
                },
            );
        }
        if is_empty && is_enough(awaited, &found, begun.elapsed()) {
            return Ok(found);
        }
        if is_empty {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether nothing more can appear.
fn is_enough(awaited: &Awaited, found: &BTreeMap<String, Taken>, waited: Duration) -> bool {
    let are_found = |ids: &BTreeSet<String>| ids.iter().all(|id| found.contains_key(id));
    let is_all = are_found(&awaited.certain);
    waited > SHOW_UP || is_all && (waited > CERTAIN || are_found(&awaited.doubtful))
}

/// Checks that a message is what was acknowledged, or completely what was not.
fn judge(model: &Model, id: &str, taken: &Taken, unique: &Unique) -> Result<Message, Flaw> {
    let (shown, times) = (&taken.shown, taken.times);
    let taken = |content| Message {
        content,
        receipt: shown.receipt.clone(),
        replaced: None,
        dequeue_count: shown.dequeue_count,
    };
    let Some(message) = model.messages.get(id) else {
        return match &model.pending {
            Some(Op::PutMessage { content }) if content.text() == shown.text => unique
                .note("message id", id)
                .map_or(Ok(taken(*content)), Err),
            _ => Err(Flaw::new(
                Property::C1,
                format!("message {id} was deleted or never put"),
            )),
        };
    };
    let least = message.dequeue_count + times;
    let unanswered = u32::from(model.pending == Some(Op::GetMessages));
    let most = least + unanswered + model.uncertain_gets;
    let is_counted = (least..=most).contains(&shown.dequeue_count);
    if !is_counted {
        let (was, is) = (message.dequeue_count, shown.dequeue_count);
        let text = format!("message {id} had count {was}, was taken {times} times, and has {is}");
        return Err(Flaw::new(Property::C1, text));
    }
    if message.content.text() == shown.text {
        return Ok(taken(message.content));
    }
    match &model.pending {
        Some(Op::UpdateMessage {
            id: updated,
            content,
        }) if updated == id && content.text() == shown.text => Ok(taken(*content)),
        _ => Err(Flaw::new(
            Property::C3,
            format!("message {id} has another text"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::content::Content;

    /// C1 and C2 as a table: what was in flight, what exists.
    #[test]
    fn messages_are_checked() {
        let (old, new) = (
            Content { seed: 1, length: 9 },
            Content { seed: 2, length: 9 },
        );
        let message = Message {
            content: old,
            receipt: "r".to_owned(),
            replaced: None,
            dequeue_count: 3,
        };
        let id = || "m".to_owned();
        let ok = |pending: Option<Op>, at: &str, content: Content, dequeue_count| {
            let mut model = Model::default();
            model.messages.insert(id(), message.clone());
            model.pending = pending;
            let taken = Taken {
                shown: Shown {
                    id: at.to_owned(),
                    receipt: "s".to_owned(),
                    dequeue_count,
                    text: content.text(),
                },
                times: 1,
                asked: Instant::now(),
            };
            judge(&model, at, &taken, &Unique::default()).is_ok()
        };
        assert!(ok(None, "m", old, 4));
        assert!(!ok(None, "m", old, 3) && !ok(None, "m", old, 5));
        assert!(!ok(None, "m", new, 4) && !ok(None, "other", old, 1));
        let update = || {
            Some(Op::UpdateMessage {
                id: id(),
                content: new,
            })
        };
        assert!(ok(update(), "m", old, 4) && ok(update(), "m", new, 4));
        assert!(ok(Some(Op::GetMessages), "m", old, 5));
        let put = || Some(Op::PutMessage { content: new });
        assert!(ok(put(), "other", new, 1) && !ok(put(), "other", old, 1));
    }
}
