//! Checks the store's consistency: whether referenced records exist and the counts are right.
//!
//! Payloads, block lists and nodes of page blobs are shared and have reference counts. An audit
//! reads every record and counts again. A count that is too high would leak space for ever; one
//! that is too low would free data too early. A large entity counts its further parts; one that no
//! entity counts would never be removed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::keys::{self, Holder};
use crate::ops::blob::{content, pending};
use crate::records::{
    BlobContent, BlobRecord, BlockListChunk, BlockRecord, EntityRecord, Held, MessageRecord,
    MessageText, PageNode, Record,
};
use crate::store::{self, PayloadId, StoreResult, View};

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Number of stored payloads.
    pub payloads: usize,
    /// Number of references to payloads.
    pub references: u64,
    /// Descriptions of the inconsistencies; empty for a consistent store.
    pub differences: Vec<String>,
}

/// References found in the records.
#[derive(Default)]
struct Counted {
    payloads: BTreeMap<PayloadId, u64>,
    /// Block lists by id: number of references, and whether the list exists.
    lists: BTreeMap<u64, (u64, bool)>,
    /// Page nodes by id: number of references, and whether the node exists.
    nodes: BTreeMap<u64, (u64, bool)>,
    /// Nodes that wait for their release; each counts as one reference.
    garbage: Vec<u64>,
    /// Further parts by the key of their entity: how many it counts, and how many exist.
    parts: BTreeMap<Vec<u8>, (u16, u16)>,
    /// Number of records that cannot be decoded.
    unreadable: usize,
}

/// Counts all references again and compares them with the stored counts.
///
/// # Errors
/// When the store cannot be read.
pub fn audit(view: &dyn View) -> StoreResult<Audit> {
    let mut counted = Counted::default();
    let end = keys::after(vec![u8::MAX - 1]);
    view.scan(
        &[*store::OWN_PREFIXES.end() + 1],
        &end,
        &mut |key, value| {
            let noted = keys::holder(key).map_or(Ok(()), |holder| counted.note(holder, key, value));
            counted.unreadable += usize::from(noted.is_err());
            ControlFlow::Continue(())
        },
    )?;
    for id in std::mem::take(&mut counted.garbage) {
        counted.nodes.entry(id).or_default().0 += 1;
    }
    counted.compare(view)
}

impl Counted {
    fn note(&mut self, holder: Holder, key: &[u8], value: &[u8]) -> StoreResult<()> {
        match holder {
            // A copy that pends holds the content that its blob will have.
            Holder::Blob => {
                for content in pending::held(&BlobRecord::decode(value)?) {
                    match content {
                        BlobContent::Empty => {}
                        BlobContent::Payload(id) => self.payload(Some(id)),
                        BlobContent::Blocks { id, .. } => self.lists.entry(id).or_default().0 += 1,
                        BlobContent::Pages { root } => self.nodes.entry(root).or_default().0 += 1,
                    }
                }
            }
            Holder::Block => self.payload(BlockRecord::decode(value)?.payload),
            Holder::BlockList(id) => {
                self.lists.entry(id).or_default().1 = true;
                let chunk = BlockListChunk::decode(value)?;
                chunk
                    .blocks
                    .iter()
                    .for_each(|block| self.payload(block.payload));
            }
            Holder::PageNode(id) => {
                self.nodes.entry(id).or_default().1 = true;
                for run in PageNode::decode(value)?.runs {
                    match run.held {
                        Held::Data { payload, .. } => self.payload(Some(payload)),
                        Held::Cleared(_) => {}
                        Held::Node(id) => self.nodes.entry(id).or_default().0 += 1,
                    }
                }
            }
            Holder::PageGarbage(id) => self.garbage.push(id),
            Holder::Message => {
                if let MessageText::Payload(id, _) = MessageRecord::decode(value)?.text {
                    self.payload(Some(id));
                }
            }
            Holder::Entity => match EntityRecord::parts(value)? {
                0 => {}
                parts => self.parts.entry(key.to_vec()).or_default().0 = parts,
            },
            Holder::EntityPart => {
                let entity = self.parts.entry(keys::entity_of_part(key)).or_default();
                entity.1 = entity.1.saturating_add(1);
            }
        }
        Ok(())
    }

    fn payload(&mut self, id: Option<PayloadId>) {
        if let Some(id) = id {
            *self.payloads.entry(id).or_default() += 1;
        }
    }

    fn compare(self, view: &dyn View) -> StoreResult<Audit> {
        let stored = store::references(view)?;
        let mut differences = Vec::new();
        if self.unreadable > 0 {
            let told = format!("{} records cannot be read", self.unreadable);
            differences.push(told);
        }
        let mut differ = |what: &str, id: u64, stored: u64, counted: u64| {
            if stored != counted {
                let told = format!("{what} {id}: {counted} references, stored count {stored}");
                differences.push(told);
            }
        };
        for (id, stored) in &stored {
            let counted = self.payloads.get(id).copied().unwrap_or_default();
            differ("payload", id.0, *stored, counted);
        }
        for (id, counted) in &self.payloads {
            if !stored.contains_key(id) {
                differ("payload", id.0, 0, *counted);
            }
        }
        for (id, (counted, is_there)) in &self.lists {
            let holders = content::blocks::holders(view, *id)?;
            differ(
                "block list",
                *id,
                if *is_there { holders } else { 0 },
                *counted,
            );
        }
        for (id, (counted, is_there)) in &self.nodes {
            let holders = content::pages::holders(view, *id)?;
            differ(
                "page node",
                *id,
                if *is_there { holders } else { 0 },
                *counted,
            );
        }
        for (key, (counted, existing)) in &self.parts {
            // Those of a deleted table are removed step by step.
            let garbage = keys::garbage(keys::generation(key));
            if counted != existing && view.get(&garbage)?.is_none() {
                let (partition, row) = keys::entity_names(key);
                let told = format!("entity ({partition}, {row}): {existing} parts of {counted}");
                differences.push(told);
            }
        }
        Ok(Audit {
            payloads: stored.len(),
            references: stored.values().copied().fold(0, u64::saturating_add),
            differences,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Transaction;
    use crate::{Clock, Emulator, Timestamp, body};

    async fn put(emulator: &Emulator, path: &str) {
        let uri = format!("http://127.0.0.1:10000/devstoreaccount1/{path}");
        let request = http::Request::put(uri).body(body::empty()).unwrap();
        emulator.call(request).await.unwrap();
    }

    /// Finds a reference without a count, and a count without a reference.
    #[tokio::test]
    async fn wrong_reference_count_is_found() {
        let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
        let emulator = Emulator::builder().clock(clock).open().unwrap();
        put(&emulator, "c?restype=container").await;
        assert_eq!(emulator.audit().unwrap().differences, Vec::<String>::new());
        let store = &emulator.core().store;
        let mut writer = store.stage(4).unwrap();
        writer.write(b"lost").unwrap();
        let staged = writer.finish().await.unwrap();
        let lose = move |tx: &mut Transaction<'_>, _: &_| Ok(store::adopt(tx, staged)?);
        let id = store.commit(lose).await.unwrap();
        let found = emulator.audit().unwrap();
        assert_eq!((found.payloads, found.references), (1, 1));
        let told = format!("payload {}: 0 references, stored count 1", id.0);
        assert_eq!(found.differences, [told]);
        let block = BlockRecord {
            length: 4,
            payload: Some(PayloadId(99)),
        };
        let refer = move |tx: &mut Transaction<'_>, _: &_| {
            block.save(tx, keys::block(7, "b", b"id"))?;
            Ok(())
        };
        store.commit(refer).await.unwrap();
        let key = keys::entity(7, "p", "r");
        let leave = move |tx: &mut Transaction<'_>, _: &_| {
            tx.put(keys::entity_part(&key, 1), bytes::Bytes::new());
            Ok(())
        };
        store.commit(leave).await.unwrap();
        let told = "entity (p, r): 1 parts of 0".to_owned();
        assert!(emulator.audit().unwrap().differences.contains(&told));
        let told = "payload 99: 1 references, stored count 0".to_owned();
        assert!(emulator.audit().unwrap().differences.contains(&told));
    }
}
