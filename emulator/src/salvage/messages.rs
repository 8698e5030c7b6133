//! Saves queues: one line for each message, in delivery order.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};
use uuid::Uuid;

use super::Salvaged;
use super::blobs::{entries, garbage, unknown};
use super::out::Out;
use crate::keys::{self, Generation, Kind};
use crate::ops::queue::messages::FoundText;
use crate::records::{MessageRecord, QueueRecord, Record};
use crate::store::Store;

pub(super) fn save(store: &Store, out: &mut Out, salvaged: &mut Salvaged) -> io::Result<()> {
    let mut owners = BTreeMap::new();
    for (key, value) in entries(store, Kind::Queue, salvaged) {
        let (account, name) = keys::owner(&key);
        match QueueRecord::decode(&value) {
            Ok(queue) => {
                salvaged.queues.push(json!({
                    "account": account, "name": name,
                    "deleted": queue.deleted_at.is_some(),
                    "metadata": queue.metadata.iter().collect::<BTreeMap<_, _>>(),
                }));
                owners.insert(queue.generation, (account, name));
            }
            Err(error) => salvaged.lose(format!("queue {account}/{name}"), &error),
        }
    }
    let garbage = garbage(store).unwrap_or_default();
    let mut queues: BTreeMap<Generation, Vec<(u64, Value)>> = BTreeMap::new();
    for (key, value) in entries(store, Kind::Message, salvaged) {
        let generation = keys::generation(&key);
        if garbage.contains(&generation) {
            continue;
        }
        let id = key.get(9..).and_then(|id| Uuid::from_slice(id).ok());
        let id = id.unwrap_or_default();
        match message(store, id, &value) {
            Ok(line) => queues.entry(generation).or_default().push(line),
            Err(why) => {
                let (account, queue) = owners.get(&generation).cloned().unwrap_or_default();
                salvaged.lose(format!("message {id} of queue {account}/{queue}"), &why);
            }
        }
    }
    for (generation, mut lines) in queues {
        let owner = owners.get(&generation).cloned();
        let (account, queue) = owner.unwrap_or_else(|| unknown(generation));
        let (_, mut file) = out.file(&["queues", &account], &format!("{queue}.jsonl"))?;
        lines.sort_by_key(|(place, _)| *place);
        salvaged.messages += lines.len() as u64;
        for (_, line) in &lines {
            file.line(line)?;
        }
        file.end(&[])?;
    }
    Ok(())
}

/// Returns the position of a message in delivery order, and its line.
fn message(store: &Store, id: Uuid, value: &[u8]) -> Result<(u64, Value), String> {
    let message = MessageRecord::decode(value).map_err(|error| error.to_string())?;
    let text = store.read(|view| FoundText::locate(view, &message.text));
    let text = text.map_err(|error| error.to_string())?;
    let text = text.read().map_err(|error| {
        let cause = error.cause().unwrap_or_default();
        format!("cannot read its text: {cause}")
    })?;
    let line = json!({
        "id": id.to_string(),
        "inserted": message.inserted.iso_ticks(),
        "expires": message.expires.iso_ticks(),
        "visible": message.visible.iso_ticks(),
        "dequeue_count": message.dequeue_count,
        "text": text,
    });
    Ok((message.place, line))
}
