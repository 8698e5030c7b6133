//! Dispatches each operation to its rule.

use smalt_protocol::{ErrorCode, Service};

use crate::content::Bytes;
use crate::copies::Wanted;
use crate::expected::{Answer, Expected, Fact, settle};
use crate::state::Model;
use crate::vocabulary::tables::TableOperation;
use crate::vocabulary::{
    BlobId, BlobOperation, ContainerOperation, NewBlob, Priority, Property, QueueOperation, Tier,
};

impl Model {
    pub(crate) fn container(&mut self, name: &str, operation: &ContainerOperation) -> Expected {
        settle(match operation {
            ContainerOperation::Create(metadata) => self.create_container(name, metadata),
            ContainerOperation::Delete(guard) => self.delete_container(name, *guard),
            ContainerOperation::Get { lease } => self.get_container(name, *lease),
            ContainerOperation::SetMetadata(metadata, guard) => {
                self.set_container_metadata(name, metadata, *guard)
            }
            ContainerOperation::Lease(action, condition) => {
                self.lease_container(name, *action, *condition)
            }
            ContainerOperation::List { .. } => self.list_blobs(name, operation),
        })
    }

    pub(crate) fn table(&mut self, name: &str, operation: &TableOperation) -> Expected {
        let expected: Expected = self.tables.step(name, operation).into();
        if *operation == TableOperation::Delete && expected.is_done() {
            self.forget_policy(Service::Table, name);
        }
        expected
    }

    pub(crate) fn queue(&mut self, name: &str, operation: &QueueOperation) -> Expected {
        use QueueOperation as On;
        settle(match operation {
            On::Create(metadata) => self.create_queue(name, metadata),
            On::Delete => self.delete_queue(name),
            On::Get => self.get_queue(name),
            On::SetMetadata(metadata) => self.find_queue(name).map(|queue| {
                queue.metadata.clone_from(metadata);
                Expected::ok(204)
            }),
            On::Put {
                text,
                ttl_s,
                visibility_timeout_s,
            } => self.put_message(name, text, *ttl_s, *visibility_timeout_s),
            On::Receive {
                most,
                visibility_timeout_s,
            } => self.receive(name, *most, *visibility_timeout_s),
            On::Peek { most } => self.peek(name, *most),
            On::Update {
                id,
                receipt,
                visibility_timeout_s,
                text,
            } => self.update(name, *id, *receipt, *visibility_timeout_s, text.as_deref()),
            On::DeleteMessage { id, receipt } => self.delete_message(name, *id, *receipt),
            On::Clear => self.find_queue(name).map(|queue| {
                queue.messages.clear();
                Expected::ok(204)
            }),
        })
    }

    pub(crate) fn blob(&mut self, id: &BlobId, operation: &BlobOperation) -> Expected {
        use BlobOperation as On;
        settle(match operation {
            On::Put(content, labels, guard) => {
                let block = Bytes::Blocks(vec![(None, content.bytes())]);
                self.create(id, block, labels, *guard)
            }
            On::Create(NewBlob::Append, labels, guard) => {
                self.create(id, Bytes::appended(), labels, *guard)
            }
            On::Create(NewBlob::Pages { pages, number }, labels, guard) => {
                self.create(id, Bytes::pages(*pages, *number), labels, *guard)
            }
            On::Get { .. } | On::Head { .. } | On::GetPages { .. } => self.read_blob(id, operation),
            On::Delete {
                snapshot,
                snapshots,
                guard,
            } => self.delete(id, *snapshot, *snapshots, *guard),
            On::Undelete => self.undelete(id),
            On::SetTier(to, priority) => self.set_tier(id, *to, *priority),
            On::Snapshot(metadata, guard) => self.snapshot(id, metadata, *guard),
            On::Lease(action, condition) => self.lease_blob(id, *action, *condition),
            On::PutBlock(block, content, lease) => self.put_block(id, block, *content, *lease),
            On::PutBlockList(list, labels, guard) => self.put_block_list(id, list, labels, *guard),
            On::GetBlockList { lease } => self.get_block_list(id, *lease),
            On::Copy {
                source,
                snapshot,
                source_condition: condition,
                labels,
                guard,
            } => {
                let (snapshot, condition, guard) = (*snapshot, *condition, *guard);
                self.copy(
                    id,
                    &Wanted {
                        source,
                        snapshot,
                        condition,
                        labels,
                        guard,
                    },
                )
            }
            On::FromUrl {
                sync,
                source,
                source_condition: condition,
                labels,
                guard,
            } => {
                let (snapshot, condition, guard) = (None, *condition, *guard);
                let wanted = Wanted {
                    source,
                    snapshot,
                    condition,
                    labels,
                    guard,
                };
                self.copy_bytes(id, &wanted, *sync)
            }
            On::SetTags(tags, lease) => self.set_tags(id, tags, *lease),
            On::GetTags(lease) => self.get_tags(id, *lease),
            _ => self.change_blob(id, operation),
        })
    }

    fn set_tier(&mut self, id: &BlobId, to: Tier, priority: Option<Priority>) -> Answer {
        let now_s = self.now_s;
        self.base(id)?.state.tier.set(to, priority, now_s)
    }

    /// Does an operation that reads a blob.
    fn read_blob(&mut self, id: &BlobId, operation: &BlobOperation) -> Answer {
        use BlobOperation as On;
        match operation {
            On::Get {
                snapshot,
                range,
                guard,
            } => self
                .read(id, *snapshot, *guard)
                .and_then(|(answer, state)| {
                    state.tier.check_online(self.now_s)?;
                    let state = answer.with_all(state.shown());
                    self.ranged(id, *snapshot, state, *range)
                }),
            On::Head { snapshot, guard } => self.read(id, *snapshot, *guard).map(|(answer, s)| {
                let length = Some(s.content.length().to_string());
                let is_tiered = snapshot.is_none() && matches!(s.content, Bytes::Blocks(_));
                let tier = is_tiered.then(|| s.tier.shown(self.now_s));
                let answer = answer.with_all(s.shown());
                let answer = answer.with_all(tier.into_iter().flatten());
                answer.with(Fact::Header("content-length", length))
            }),
            On::GetPages { snapshot, guard } => {
                let read = self.read(id, *snapshot, *guard);
                read.and_then(|(answer, state)| state.content.page_ranges(answer))
            }
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }

    /// Does an operation that changes an existing blob.
    fn change_blob(&mut self, id: &BlobId, operation: &BlobOperation) -> Answer {
        use BlobOperation as On;
        let now_s = self.now_s;
        match operation {
            On::SetMetadata(metadata, guard) => self.change(id, *guard, 200, |state| {
                state.tier.check_online(now_s)?;
                state.metadata.clone_from(metadata);
                Ok(Vec::new())
            }),
            On::SetProperties(property, guard) => self.change(id, *guard, 200, |state| {
                if let Property::Content(headers) = property {
                    state.headers = *headers;
                } else {
                    state.content.set(*property)?;
                }
                state.copied = false;
                Ok(state.content.number())
            }),
            On::Append(content, position, guard) => self.change(id, *guard, 201, |state| {
                state.content.append(content.bytes(), *position)
            }),
            On::Seal(position, guard) => {
                self.change(id, *guard, 200, |state| state.content.seal(*position))
            }
            On::WritePages {
                first,
                count,
                fill,
                sequence,
                guard,
            } => self.change(id, *guard, 201, |state| {
                state.content.write(*first, *count, *fill, *sequence)
            }),
            _ => Err(ErrorCode::InvalidInput.into()),
        }
    }
}
