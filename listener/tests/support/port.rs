//! The storage port over [`FakeStorage`].

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::*;
use tokio::time::Instant;

use super::fake::{FakeStorage, State};
use super::faults::{Op, error};
use super::model::{Blob, Queue};

fn queue<'a>(state: &'a mut State, name: &str) -> Result<&'a mut Queue, ErrorKind> {
    state.queues.get_mut(name).ok_or(ErrorKind::NotFound)
}

fn blob<'a>(state: &'a mut State, id: &BlobId) -> Result<&'a mut Blob, ErrorKind> {
    let container = state.containers.get_mut(&id.container);
    let blob = container.and_then(|container| container.get_mut(&id.name));
    blob.ok_or(ErrorKind::NotFound)
}

#[async_trait]
impl Storage for FakeStorage {
    fn account(&self) -> &str {
        "fake"
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        format!("https://fake/{}/{}", blob.container, blob.name)
    }

    async fn create_queue(&self, cx: &CallContext, name: &str) -> PortResult<bool> {
        self.call(cx, (Op::Create, name), |state, _| {
            let fresh = !state.queues.contains_key(name);
            state.queues.entry(name.to_owned()).or_default();
            Ok(fresh)
        })
        .await
    }

    async fn list_queues(&self, cx: &CallContext, prefix: &str) -> PortResult<Vec<String>> {
        self.call(cx, (Op::List, ""), |state, _| {
            let names = state.queues.keys();
            Ok(names.filter(|n| n.starts_with(prefix)).cloned().collect())
        })
        .await
    }

    async fn delete_queue(&self, cx: &CallContext, name: &str) -> PortResult<()> {
        self.call(cx, (Op::DeleteQueue, name), |state, _| {
            let removed = state.queues.remove(name);
            removed.map(drop).ok_or(ErrorKind::NotFound)
        })
        .await
    }

    async fn queue_properties(&self, cx: &CallContext, name: &str) -> PortResult<QueueProperties> {
        self.call(cx, (Op::Depth, name), |state, now| {
            let queue = queue(state, name)?;
            queue.expire(now);
            Ok(QueueProperties {
                approximate_count: queue.messages.len() as u64,
                metadata: Metadata::new(),
            })
        })
        .await
    }

    async fn put_message(
        &self,
        cx: &CallContext,
        name: &str,
        text: &str,
        ttl: MessageTtl,
        visibility_timeout: Duration,
    ) -> PortResult<Receipt> {
        self.call(cx, (Op::Put, name), |state, now| {
            Ok(queue(state, name)?.put(now, text, ttl, visibility_timeout))
        })
        .await
    }

    async fn get_messages(
        &self,
        cx: &CallContext,
        name: &str,
        count: u32,
        visibility_timeout: Duration,
    ) -> PortResult<QueueMessages> {
        let messages = self
            .call(cx, (Op::Get, name), |state, now| {
                state.batch_sizes.push(count);
                Ok(queue(state, name)?.get(now, count, visibility_timeout))
            })
            .await?;
        Ok(QueueMessages {
            messages,
            server_time: self.now().floor_s(),
        })
    }

    async fn peek_messages(
        &self,
        cx: &CallContext,
        name: &str,
        count: u32,
    ) -> PortResult<QueueMessages> {
        self.call(cx, (Op::Peek, name), |state, now| {
            Ok(QueueMessages {
                messages: queue(state, name)?.peek(now, count),
                server_time: now,
            })
        })
        .await
    }

    async fn update_message(
        &self,
        cx: &CallContext,
        name: &str,
        id: &str,
        pop_receipt: &str,
        visibility_timeout: Duration,
        text: Option<&str>,
    ) -> PortResult<Receipt> {
        self.call(cx, (Op::Update, name), |state, now| {
            let answer = queue(state, name)?.update(now, id, pop_receipt, visibility_timeout, text);
            state.stale_receipts += u64::from(answer == Err(ErrorKind::ReceiptMismatch));
            answer
        })
        .await
    }

    async fn delete_message(
        &self,
        cx: &CallContext,
        name: &str,
        id: &str,
        pop_receipt: &str,
    ) -> PortResult<()> {
        self.call(cx, (Op::Delete, name), |state, now| {
            let answer = queue(state, name)?.delete(now, id, pop_receipt);
            state.stale_receipts += u64::from(answer == Err(ErrorKind::ReceiptMismatch));
            if answer.is_ok() {
                state.deleted.push((id.to_owned(), Instant::now()));
            }
            answer
        })
        .await
    }

    async fn put_blob(
        &self,
        cx: &CallContext,
        id: &BlobId,
        _content: Bytes,
        _put: &PutBlob,
    ) -> PortResult<Written> {
        self.call(cx, (Op::Lease, ""), |state, now| {
            let container = state.containers.get_mut(&id.container);
            let container = container.ok_or(ErrorKind::NotFound)?;
            match container.insert(id.name.clone(), Blob::default()) {
                Some(_) => Err(ErrorKind::AlreadyExists),
                None => Ok(Written {
                    etag: Tag("1".to_owned()),
                    server_time: now,
                }),
            }
        })
        .await
    }

    async fn acquire_lease(
        &self,
        cx: &CallContext,
        id: &BlobId,
        proposed_id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        self.call(cx, (Op::Lease, ""), |state, now| {
            blob(state, id)?.acquire(now, proposed_id, duration_s)
        })
        .await
    }

    async fn renew_lease(
        &self,
        cx: &CallContext,
        id: &BlobId,
        lease_id: &str,
    ) -> PortResult<Lease> {
        self.call(cx, (Op::Lease, ""), |state, now| {
            blob(state, id)?.renew(now, lease_id)
        })
        .await
    }

    async fn release_lease(&self, cx: &CallContext, id: &BlobId, lease_id: &str) -> PortResult<()> {
        self.call(cx, (Op::Lease, ""), |state, _| {
            blob(state, id)?.release(lease_id)
        })
        .await
    }

    async fn create_container(&self, cx: &CallContext, container: &str) -> PortResult<bool> {
        self.call(cx, (Op::Lease, ""), |state, _| {
            let fresh = !state.containers.contains_key(container);
            state.containers.entry(container.to_owned()).or_default();
            Ok(fresh)
        })
        .await
    }
}
