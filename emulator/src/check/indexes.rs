//! Checks that every index agrees with its records and that every record has an owner.
//!
//! Each index entry is looked up from its record and each record from its index entry, so only the
//! generations and their counts are kept in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::Findings;
use super::records::name;
use crate::keys::{self, Generation, Kind};
use crate::records::{
    BlobRecord, ContainerRecord, MessageRecord, QueueRecord, Record, SubscriptionRecord,
    TableRecord, UncommittedRecord,
};
use crate::store::{StoreResult, View};

struct Pass<'a> {
    view: &'a dyn View,
    generations: BTreeSet<Generation>,
    /// Number of records of each generation that no container, queue, table or garbage marker has.
    orphans: BTreeMap<Generation, u64>,
    messages: BTreeMap<Generation, u64>,
    /// Number of uncommitted blocks of each blob, by the key of its [`UncommittedRecord`].
    blocks: BTreeMap<Vec<u8>, u64>,
}

pub(super) fn check(view: &dyn View, findings: &mut Findings) -> StoreResult<()> {
    let mut pass = Pass {
        view,
        generations: generations(view)?,
        orphans: BTreeMap::new(),
        messages: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    let mut failed = Ok(());
    let all = &keys::all_of(Kind::Container);
    view.scan(all, &[u8::MAX; 2], &mut |key, value| {
        let wrong = match pass.look(key, value) {
            Ok(wrong) => wrong,
            Err(error) => {
                failed = Err(error);
                return ControlFlow::Break(());
            }
        };
        if let Some(wrong) = wrong {
            findings.add("index", format!("{}: {wrong}", name(key)));
        }
        ControlFlow::Continue(())
    })?;
    failed?;
    for (generation, records) in pass.orphans {
        let text = format!("{records} records of generation {generation} have no owner");
        findings.add("index", text);
    }
    for (generation, messages) in pass.messages {
        let text = format!("{messages} messages of generation {generation} are not counted");
        findings.add("index", text);
    }
    for (key, blocks) in pass.blocks {
        findings.add(
            "index",
            format!("{}: does not count its {blocks} blocks", name(&key)),
        );
    }
    Ok(())
}

/// Returns the generations that have an owner or a garbage marker. Skips records that cannot be
/// read: `records::check` reports them.
fn generations(view: &dyn View) -> StoreResult<BTreeSet<Generation>> {
    let mut found = BTreeSet::new();
    let mut scan = |kind: Kind, generation: &dyn Fn(&[u8], &Bytes) -> Option<Generation>| {
        let from = keys::all_of(kind);
        view.scan(&from, &keys::after(from.clone()), &mut |key, value| {
            found.extend(generation(key, value));
            ControlFlow::Continue(())
        })
    };
    let container = |_: &[u8], value: &Bytes| Some(ContainerRecord::decode(value).ok()?.generation);
    scan(Kind::Container, &container)?;
    scan(Kind::DeletedContainer, &container)?;
    for kind in [Kind::Blob, Kind::DeletedBlob] {
        scan(kind, &|_, value| BlobRecord::decode(value).ok()?.directory)?;
    }
    scan(Kind::Queue, &|_, value| {
        Some(QueueRecord::decode(value).ok()?.generation)
    })?;
    scan(Kind::Table, &|_, value| {
        Some(TableRecord::decode(value).ok()?.generation)
    })?;
    scan(Kind::Subscription, &|_, value| {
        Some(SubscriptionRecord::decode(value).ok()?.generation)
    })?;
    scan(Kind::Garbage, &|key, _| Some(keys::generation(key)))?;
    Ok(found)
}

impl Pass<'_> {
    /// Returns what is wrong with an entry, or `None`.
    fn look(&mut self, key: &[u8], value: &Bytes) -> StoreResult<Option<&'static str>> {
        let Some(kind) = keys::kind(key) else {
            return Ok(None);
        };
        let generation = keys::generation(key);
        let is_content = keys::contents(generation)
            .iter()
            .any(|of| key.starts_with(of));
        if is_content && !self.generations.contains(&generation) {
            *self.orphans.entry(generation).or_default() += 1;
            return Ok(None);
        }
        match kind {
            Kind::Blob => self.blob(key, value),
            Kind::Tag => self.tag(key),
            Kind::Block => {
                let (blob, _) = split_last(key.get(9..).unwrap_or_default());
                let blob = String::from_utf8_lossy(blob).into_owned();
                *self
                    .blocks
                    .entry(keys::uncommitted(generation, &blob))
                    .or_default() += 1;
                Ok(None)
            }
            Kind::Uncommitted => Ok(self.uncommitted(key, value)),
            Kind::Message => self.message(key, value),
            Kind::Visible | Kind::Expiry => self.place(kind, key, value),
            Kind::MessageCount => {
                let counted = self.messages.remove(&generation).unwrap_or_default();
                let is_right = value.as_ref() == counted.to_be_bytes();
                Ok((!is_right).then_some("does not match the number of messages"))
            }
            _ => Ok(None),
        }
    }

    fn blob(&self, key: &[u8], value: &Bytes) -> StoreResult<Option<&'static str>> {
        let Ok(blob) = BlobRecord::decode(value) else {
            return Ok(None);
        };
        let (generation, name) = (keys::generation(key), keys::blob_name(key));
        for (tag, value) in &blob.tags {
            let place = keys::tag(generation, tag, value, &name, Timestamp::MAX);
            if self.view.get(&place)?.is_none() {
                return Ok(Some("one of its tags is missing from the index"));
            }
        }
        Ok(None)
    }

    fn tag(&self, key: &[u8]) -> StoreResult<Option<&'static str>> {
        let (generation, tag) = (keys::generation(key), keys::tag_name(key));
        let (value, blob, at) = keys::tag_place(key);
        let of = match at {
            Timestamp::MAX => keys::blob(generation, &blob),
            at => keys::version(generation, &blob, at),
        };
        let has_tag = |blob: BlobRecord| blob.tags.contains(&(tag, value));
        let found = BlobRecord::load(self.view, &of).unwrap_or_default();
        Ok((!found.is_some_and(has_tag)).then_some("its blob does not have the tag"))
    }

    /// In key order, the blocks come before the record of their blob, so they are counted by now.
    fn uncommitted(&mut self, key: &[u8], value: &Bytes) -> Option<&'static str> {
        let counted = UncommittedRecord::decode(value).ok()?.blocks;
        let blocks = self.blocks.remove(key).unwrap_or_default();
        (u64::from(counted) != blocks).then_some("does not match the number of uncommitted blocks")
    }

    fn message(&mut self, key: &[u8], value: &Bytes) -> StoreResult<Option<&'static str>> {
        let generation = keys::generation(key);
        *self.messages.entry(generation).or_default() += 1;
        let Ok(message) = MessageRecord::decode(value) else {
            return Ok(None);
        };
        let is_id = |place: Option<Bytes>| place.as_deref() == key.get(9..);
        let visible = keys::visible(generation, message.visible, message.place);
        if !is_id(self.view.get(&visible)?) {
            return Ok(Some("is missing from the delivery order"));
        }
        let expiry = keys::expiry(generation, message.expires, message.sequence);
        if message.expires < Timestamp::MAX && !is_id(self.view.get(&expiry)?) {
            return Ok(Some("is missing from the expiry order"));
        }
        Ok(None)
    }

    fn place(&self, kind: Kind, key: &[u8], id: &Bytes) -> StoreResult<Option<&'static str>> {
        let generation = keys::generation(key);
        let Ok(id) = id.as_ref().try_into() else {
            return Ok(None);
        };
        let message = MessageRecord::load(self.view, &keys::message(generation, id));
        let Some(message) = message.unwrap_or_default() else {
            return Ok(Some("its message is missing"));
        };
        let place = match kind {
            Kind::Visible => keys::visible(generation, message.visible, message.place),
            _ => keys::expiry(generation, message.expires, message.sequence),
        };
        Ok((place != key).then_some("its message has another place"))
    }
}

/// Splits at the first zero byte; names contain none.
fn split_last(rest: &[u8]) -> (&[u8], &[u8]) {
    let at = rest
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(rest.len());
    rest.split_at(at)
}
