//! Keys of the operations' records.
//!
//! A key is one prefix byte, then fixed-width big-endian numbers and names, so that byte order is
//! Azure's listing order. Contents are keyed by the *generation* of their container, queue or table
//! and never by its name: delete and clear are one write, and a re-created resource starts empty.
//!
//! ARCHITECTURE.md has the table of all prefixes, under *The store*; a test compares it with this
//! file. Prefixes below `0x10` belong to the store itself.

mod entity;
mod event;
mod kind;
mod queue;
pub mod tree;

pub use kind::{Kind, all_of, kind, owner, tag_name};

pub use event::{event, events, subscription, subscription_name, waiting, waiting_blob};
pub use queue::{expiry, message, message_count, queue, visible};
pub use tree::{deleted_name, deleted_path, deleted_paths};

pub use entity::{
    entities, entity, entity_names, entity_of_part, entity_part, partition, position, table,
};

use smalt_protocol::Timestamp;

const CONTAINER: u8 = 0x10;
const BLOB: u8 = 0x11;
const SNAPSHOT: u8 = 0x12;
const BLOCK: u8 = 0x13;
const UNCOMMITTED: u8 = 0x14;
const BLOCK_LIST: u8 = 0x15;
const BLOCK_LIST_REFS: u8 = 0x16;
const VERSION: u8 = 0x17;
const DELETED_BLOB: u8 = 0x18;
const DELETED_CONTAINER: u8 = 0x19;
const PAGE_NODE: u8 = 0x1a;
const PAGE_NODE_REFS: u8 = 0x1b;
const PAGE_NODE_LAST: u8 = 0x1c;
const PAGE_GARBAGE: u8 = 0x1d;
const TAG: u8 = 0x1e;
const DIRECTORY_LAST: u8 = 0x1f;
const QUEUE: u8 = 0x20;
const MESSAGE: u8 = 0x21;
const VISIBLE: u8 = 0x22;
const EXPIRY: u8 = 0x23;
const MESSAGE_COUNT: u8 = 0x24;
const TABLE: u8 = 0x25;
const ENTITY: u8 = 0x26;
const ENTITY_PART: u8 = 0x27;
const SERVICE: u8 = 0x30;
const GARBAGE: u8 = 0x40;
const EXPIRING: u8 = 0x41;
const SUBSCRIPTION: u8 = 0x50;
const EVENT: u8 = 0x51;
const WAITING: u8 = 0x52;

/// Distinguishes successive containers, queues or tables of one name: the tick of the creation. In
/// a hierarchical account, the id of a directory: see [`tree`].
pub type Generation = u64;

fn key(prefix: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|p| p.len()).sum::<usize>());
    key.push(prefix);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// Returns a key of something of a blob.
fn below(prefix: u8, generation: Generation, name: &str, rest: &[&[u8]]) -> Vec<u8> {
    let part = tree::part(generation, name);
    let rest_len: usize = rest.iter().map(|part| part.len()).sum();
    let mut key = Vec::with_capacity(1 + size_of::<Generation>() + part.len() + rest_len);
    key.push(prefix);
    key.extend_from_slice(&generation.to_be_bytes());
    key.extend_from_slice(part);
    for part in rest {
        key.extend_from_slice(part);
    }
    key
}

/// A record that refers to shared data, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A blob, snapshot or version, deleted or not.
    Blob,
    /// An uncommitted block.
    Block,
    /// Part of a committed block list, with the id of the content.
    BlockList(u64),
    /// A node of a page blob's map, with its id.
    PageNode(u64),
    /// A node that still has to be released, with its id.
    PageGarbage(u64),
    /// A message.
    Message,
    /// An entity.
    Entity,
    /// A further part of an entity.
    EntityPart,
}

/// Returns the kind of holder of a key; `None` for keys of other records.
pub fn holder(key: &[u8]) -> Option<Holder> {
    let id = || Some(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?));
    match *key.first()? {
        BLOB | SNAPSHOT | VERSION | DELETED_BLOB => Some(Holder::Blob),
        BLOCK => Some(Holder::Block),
        BLOCK_LIST => id().map(Holder::BlockList),
        PAGE_NODE => id().map(Holder::PageNode),
        PAGE_GARBAGE => id().map(Holder::PageGarbage),
        MESSAGE => Some(Holder::Message),
        ENTITY => Some(Holder::Entity),
        ENTITY_PART => Some(Holder::EntityPart),
        _ => None,
    }
}

/// Returns the first key after all keys that start with `prefix`.
pub fn after(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return prefix;
        }
    }
    vec![u8::MAX; 1]
}

/// Returns the key of a container. With an empty name, returns where the account's containers
/// start.
pub fn container(account: &str, name: &str) -> Vec<u8> {
    key(CONTAINER, &[account.as_bytes(), &[0], name.as_bytes()])
}

/// Returns the key of a base blob. With an empty name, returns where the container's blobs start.
pub fn blob(generation: Generation, name: &str) -> Vec<u8> {
    below(BLOB, generation, name, &[])
}

/// Returns the key of a snapshot.
pub fn snapshot(generation: Generation, name: &str, tick: Timestamp) -> Vec<u8> {
    below(
        SNAPSHOT,
        generation,
        name,
        &[&[0], &tick.ticks().to_be_bytes()],
    )
}

/// Returns the key of a previous version.
pub fn version(generation: Generation, name: &str, id: Timestamp) -> Vec<u8> {
    let mut key = versions(generation, name);
    key.extend_from_slice(&id.ticks().to_be_bytes());
    key
}

/// Returns where the previous versions of a blob start; [`after`] gives their end.
pub fn versions(generation: Generation, name: &str) -> Vec<u8> {
    below(VERSION, generation, name, &[&[0]])
}

/// Returns where the previous versions of a container's blobs start, from blob `name` on.
pub fn versions_from(generation: Generation, name: &str) -> Vec<u8> {
    below(VERSION, generation, name, &[])
}

/// Returns the key of a deleted base blob: one that can be undeleted, or that left previous
/// versions.
pub fn deleted_blob(generation: Generation, name: &str) -> Vec<u8> {
    below(DELETED_BLOB, generation, name, &[])
}

/// Returns the key of a container that was deleted at `at` and can be restored.
pub fn deleted_container(account: &str, name: &str, at: Timestamp) -> Vec<u8> {
    let parts: [&[u8]; 5] = [
        account.as_bytes(),
        &[0],
        name.as_bytes(),
        &[0],
        &at.ticks().to_be_bytes(),
    ];
    key(DELETED_CONTAINER, &parts)
}

/// Returns where the account's deleted containers start, from `name` on.
pub fn deleted_containers_from(account: &str, name: &str) -> Vec<u8> {
    let parts: [&[u8]; 3] = [account.as_bytes(), &[0], name.as_bytes()];
    key(DELETED_CONTAINER, &parts)
}

/// Returns name and time of deletion from the key of a deleted container.
pub fn deleted_container_name(key: &[u8], account: &str) -> (String, Timestamp) {
    timed_name(key.get(account.len() + 2..).unwrap_or_default())
}

/// Returns the key of a reminder that the record with the key `of` expires at `at`.
pub fn expiring(at: Timestamp, of: &[u8]) -> Vec<u8> {
    key(EXPIRING, &[&at.ticks().to_be_bytes(), of])
}

/// Returns where the reminders that are due at `at` or later start.
pub fn expiring_from(at: Timestamp) -> Vec<u8> {
    key(EXPIRING, &[&at.ticks().to_be_bytes()])
}

/// Returns the key of the record that a reminder is about.
pub fn expiring_key(key: &[u8]) -> &[u8] {
    key.get(9..).unwrap_or_default()
}

/// Returns where the snapshots of a blob start; [`after`] gives their end.
pub fn snapshots(generation: Generation, name: &str) -> Vec<u8> {
    below(SNAPSHOT, generation, name, &[&[0]])
}

/// Returns where the snapshots of a container's blobs start, from blob `name` on.
pub fn snapshots_from(generation: Generation, name: &str) -> Vec<u8> {
    below(SNAPSHOT, generation, name, &[])
}

/// Returns the key of an uncommitted block.
pub fn block(generation: Generation, name: &str, block_id: &[u8]) -> Vec<u8> {
    below(BLOCK, generation, name, &[&[0], block_id])
}

/// Returns where the uncommitted blocks of a blob start; [`after`] gives their end.
pub fn blocks(generation: Generation, name: &str) -> Vec<u8> {
    block(generation, name, &[])
}

/// Returns the key of the record of a blob's uncommitted blocks.
pub fn uncommitted(generation: Generation, name: &str) -> Vec<u8> {
    below(UNCOMMITTED, generation, name, &[])
}

/// Returns the key of a part of a committed block list.
pub fn block_list(content: u64, chunk: u32) -> Vec<u8> {
    key(BLOCK_LIST, &[&content.to_be_bytes(), &chunk.to_be_bytes()])
}

/// Returns the key of the number of records that share a committed block list.
pub fn block_list_refs(content: u64) -> Vec<u8> {
    key(BLOCK_LIST_REFS, &[&content.to_be_bytes()])
}

/// Returns the key of a blob in the tag index, which orders the blobs with a tag by its value. `at`
/// is the time of a version, or [`Timestamp::MAX`] for the base blob.
pub fn tag(generation: Generation, tag: &str, value: &str, blob: &str, at: Timestamp) -> Vec<u8> {
    let mut key = tag_value(generation, tag, value);
    key.extend_from_slice(tree::part(generation, blob));
    key.push(0);
    key.extend_from_slice(&at.ticks().to_be_bytes());
    key
}

/// Returns where the blobs with this value of a tag start; [`after`] gives their end.
pub fn tag_value(generation: Generation, tag: &str, value: &str) -> Vec<u8> {
    let mut key = tag_values(generation, tag);
    key.extend_from_slice(value.as_bytes());
    key.push(0);
    key
}

/// Returns where the blobs with a tag start; [`after`] gives their end.
pub fn tag_values(generation: Generation, tag: &str) -> Vec<u8> {
    key(TAG, &[&generation.to_be_bytes(), tag.as_bytes(), &[0]])
}

/// Returns value, blob name and time from the key of a [`tag`].
pub fn tag_place(key: &[u8]) -> (String, String, Timestamp) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut parts = key
        .get(9..)
        .unwrap_or_default()
        .splitn(3, |byte| *byte == 0);
    let value = parts.nth(1).unwrap_or_default();
    let (blob, at) = timed_name(parts.next().unwrap_or_default());
    (text(value), blob, at)
}

/// Returns the key of a node of a page blob's map.
pub fn page_node(id: u64) -> Vec<u8> {
    key(PAGE_NODE, &[&id.to_be_bytes()])
}

/// Returns the key of the number of nodes, blobs and snapshots that share a node.
pub fn page_node_refs(id: u64) -> Vec<u8> {
    key(PAGE_NODE_REFS, &[&id.to_be_bytes()])
}

/// Returns the key of the last node id that was assigned.
pub fn page_node_last() -> Vec<u8> {
    vec![PAGE_NODE_LAST]
}

/// Returns the key of a node without references that `maintain` still has to release.
pub fn page_garbage(id: u64) -> Vec<u8> {
    key(PAGE_GARBAGE, &[&id.to_be_bytes()])
}

/// Returns where the nodes that still have to be released start; [`after`] gives their end.
pub fn all_page_garbage() -> Vec<u8> {
    vec![PAGE_GARBAGE]
}

/// Returns the key of the properties of a service of an account.
pub fn service(account: &str, service: &str) -> Vec<u8> {
    key(SERVICE, &[account.as_bytes(), &[0], service.as_bytes()])
}

/// Returns the key of a garbage marker: a generation whose contents `maintain` still has to remove.
pub fn garbage(generation: Generation) -> Vec<u8> {
    key(GARBAGE, &[&generation.to_be_bytes()])
}

/// Returns the prefixes of all records that a generation keys.
pub fn contents(generation: Generation) -> [Vec<u8>; 15] {
    [
        TAG,
        BLOB,
        SNAPSHOT,
        VERSION,
        DELETED_BLOB,
        BLOCK,
        UNCOMMITTED,
        MESSAGE,
        VISIBLE,
        EXPIRY,
        MESSAGE_COUNT,
        ENTITY,
        ENTITY_PART,
        EVENT,
        WAITING,
    ]
    .map(|prefix| key(prefix, &[&generation.to_be_bytes()]))
}

/// Returns where the garbage markers start; [`after`] gives their end.
pub fn all_garbage() -> Vec<u8> {
    vec![GARBAGE]
}

/// Returns where the records of uncommitted blocks start; [`after`] gives their end.
pub fn all_uncommitted() -> Vec<u8> {
    vec![UNCOMMITTED]
}

/// What the record of a key of [`contents`] refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The content of a blob, snapshot or version.
    Content,
    /// The payload of a block.
    Block,
    /// The payload of a message.
    Message,
    /// Nothing.
    Nothing,
}

/// What a reminder of [`expiring`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A snapshot, previous version or base blob that was deleted, or a base blob that expires.
    Blob,
    /// A deleted container that can still be restored.
    Container,
    /// The record that reserves the name of such a container.
    Name,
}

/// Returns what a reminder is about, given the key of the record.
pub fn kept(key: &[u8]) -> Kept {
    match key.first() {
        Some(&DELETED_CONTAINER) => Kept::Container,
        Some(&CONTAINER) => Kept::Name,
        _ => Kept::Blob,
    }
}

/// Returns generation and name of the blob of a snapshot or version; `None` for other keys.
pub fn blob_of_part(key: &[u8]) -> Option<(Generation, String)> {
    matches!(key.first(), Some(&(SNAPSHOT | VERSION)))
        .then(|| (generation(key), snapshot_name(key).0))
}

/// Returns what the record of a key of [`contents`] refers to.
pub fn holds(key: &[u8]) -> Holds {
    match key.first() {
        Some(&(BLOB | SNAPSHOT | VERSION | DELETED_BLOB)) => Holds::Content,
        Some(&BLOCK) => Holds::Block,
        Some(&MESSAGE) => Holds::Message,
        _ => Holds::Nothing,
    }
}

/// Returns the generation of a key that starts with one.
pub fn generation(key: &[u8]) -> Generation {
    let bytes = key.get(1..9).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_be_bytes)
}

/// Returns the name from the key of a blob or of its uncommitted blocks.
pub fn blob_name(key: &[u8]) -> String {
    String::from_utf8_lossy(key.get(9..).unwrap_or_default()).into_owned()
}

/// Returns name and tick from the key of a snapshot or version.
pub fn snapshot_name(key: &[u8]) -> (String, Timestamp) {
    timed_name(key.get(9..).unwrap_or_default())
}

/// Parses `name 0 tick`.
fn timed_name(rest: &[u8]) -> (String, Timestamp) {
    let (name, tick) = rest.split_at(rest.len().saturating_sub(9));
    let tick = tick
        .get(1..)
        .and_then(|t| t.try_into().ok())
        .map_or(0, u64::from_be_bytes);
    (
        String::from_utf8_lossy(name).into_owned(),
        Timestamp::from_ticks(tick),
    )
}

/// Returns the account from the key of a container, queue, table or service; `None` for other keys.
pub fn account(key: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let (CONTAINER | DELETED_CONTAINER | QUEUE | TABLE | SERVICE) = *key.first()? else {
        return None;
    };
    let name = key.get(1..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name))
}

/// Returns the name from the key of a container or queue.
pub fn resource_name<'a>(key: &'a [u8], account: &str) -> std::borrow::Cow<'a, str> {
    String::from_utf8_lossy(key.get(account.len() + 2..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
