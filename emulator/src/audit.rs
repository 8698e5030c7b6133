//! Whether the store agrees with itself: what records refer to is there, and is counted right.
//!
//! Payloads, block lists and nodes of page blobs are shared and counted. An audit reads every
//! record and counts again. What is counted and nothing refers to would be lost for ever; what is
//! referred to more often than counted would be freed too early.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::keys::{self, Holder};
use crate::ops::blob::content;
use crate::records::{
    BlobContent, BlobRecord, BlockListChunk, BlockRecord, Held, MessageRecord, MessageText,
    PageNode, Record,
};
use crate::store::{self, PayloadId, StoreResult, View};

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Payloads that are stored.
    pub payloads: usize,
    /// References to them.
    pub references: u64,
    /// What does not agree, in words.
    pub differences: Vec<String>,
}

/// References, counted again.
#[derive(Default)]
struct Counted {
    payloads: BTreeMap<PayloadId, u64>,
    /// Block lists: who refers to them, and whether they are there.
    lists: BTreeMap<u64, (u64, bool)>,
    /// Nodes: the same.
    nodes: BTreeMap<u64, (u64, bool)>,
    /// Nodes that wait to be released: one reference each is theirs.
    garbage: Vec<u64>,
    /// Records whose references cannot be told.
    unreadable: usize,
}

/// Counts everything again.
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
            let noted = keys::holder(key).map_or(Ok(()), |holder| counted.note(holder, value));
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
    fn note(&mut self, holder: Holder, value: &[u8]) -> StoreResult<()> {
        match holder {
            Holder::Blob => match BlobRecord::decode(value)?.content {
                BlobContent::Empty => {}
                BlobContent::Payload(id) => self.payload(Some(id)),
                BlobContent::Blocks { id, .. } => self.lists.entry(id).or_default().0 += 1,
                BlobContent::Pages { root } => self.nodes.entry(root).or_default().0 += 1,
            },
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
                let told = format!("{what} {id}: {counted} references, {stored} counted");
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

    /// A reference that nobody counted, and a count without a reference.
    #[tokio::test]
    async fn a_wrong_count_is_found() {
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
        let told = format!("payload {}: 0 references, 1 counted", id.0);
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
        let told = "payload 99: 1 references, 0 counted".to_owned();
        assert!(emulator.audit().unwrap().differences.contains(&told));
    }
}
