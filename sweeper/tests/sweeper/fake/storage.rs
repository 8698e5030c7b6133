//! Implements the port on the model.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::*;

use super::effects::{check, copy, describe, error, leased, list, new_blob, properties, tag};
use super::{Act, Fault, Inner, Key, World};
use std::sync::Mutex;

/// One worker's view of one account.
pub(crate) struct Account {
    world: Arc<World>,
    name: String,
    plan: Arc<Mutex<Plan>>,
}

/// Faults and latency of one worker, shared by its accounts.
#[derive(Default)]
pub(crate) struct Plan {
    faults: Vec<Fault>,
    calls: Vec<&'static str>,
    noise: u64,
}

impl Account {
    /// Returns the accounts `acct` and `archive` as one worker sees them.
    pub(crate) fn pair(
        world: &Arc<World>,
        faults: Vec<Fault>,
        noise: u64,
    ) -> (Arc<Account>, Arc<Account>) {
        let plan = Arc::new(Mutex::new(Plan {
            faults,
            calls: Vec::new(),
            noise,
        }));
        let account = |name: &str| {
            Arc::new(Account {
                world: Arc::clone(world),
                name: name.to_owned(),
                plan: Arc::clone(&plan),
            })
        };
        (account("acct"), account("archive"))
    }

    fn key(&self, blob: &BlobId) -> Key {
        (self.name.clone(), blob.container.clone(), blob.name.clone())
    }

    fn acts(&self, operation: &'static str) -> (Vec<Act>, Duration) {
        let mut plan = self.plan.lock().unwrap();
        plan.calls.push(operation);
        let of_kind = plan.calls.iter().filter(|c| **c == operation).count();
        let all = plan.calls.len();
        let due = |f: &&Fault| match f.operation {
            Some(wanted) => wanted == operation && f.nth == of_kind,
            None => f.nth == all,
        };
        let acts = plan
            .faults
            .iter()
            .filter(due)
            .map(|f| f.act.clone())
            .collect();
        // A small generator: the latency orders the workers' calls differently for each `noise`.
        let noise = plan
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        plan.noise = noise;
        (acts, Duration::from_millis((noise >> 33) % 20))
    }

    async fn die(&self) -> ! {
        self.world.died.notify_one();
        std::future::pending().await
    }

    /// Makes one call: latency, faults, and the effect at one moment in between.
    async fn call<T>(
        &self,
        operation: &'static str,
        resource: &str,
        effect: impl FnOnce(&mut Inner, Timestamp) -> Result<T, ErrorKind>,
    ) -> PortResult<T> {
        let (acts, latency) = self.acts(operation);
        {
            let under_way = &mut self.world.lock().under_way;
            under_way.0 += 1;
            under_way.1 = under_way.1.max(under_way.0);
        }
        tokio::time::sleep(latency).await;
        let fail = |kind| Err(error(operation, resource, kind));
        for act in &acts {
            match act {
                Act::Refuse(kind) => {
                    self.world.lock().under_way.0 -= 1;
                    return fail(*kind);
                }
                Act::DieBefore => self.die().await,
                Act::Stall(span) => tokio::time::sleep(*span).await,
                Act::Meanwhile(act) => act(&self.world),
                Act::LoseAnswer | Act::DieAfter => {}
            }
        }
        let now = self.world.now();
        let result = {
            let mut inner = self.world.lock();
            inner.under_way.0 -= 1;
            inner.settle(now);
            let container = resource.split('/').next().unwrap_or_default();
            let denied = inner.denied.contains(container);
            let result = if denied {
                Err(ErrorKind::Denied)
            } else {
                effect(&mut inner, now)
            };
            let shown = result
                .as_ref()
                .err()
                .map_or_else(|| "ok".to_owned(), |e| format!("{e:?}"));
            inner.calls.push(format!(
                "{operation} {}/{resource} {shown} {}",
                self.name,
                now.iso_s()
            ));
            result
        };
        tokio::time::sleep(latency / 2).await;
        for act in &acts {
            match act {
                Act::DieAfter => self.die().await,
                Act::LoseAnswer => return fail(ErrorKind::OutcomeUnknown),
                _ => {}
            }
        }
        result.map_err(|kind| error(operation, resource, kind))
    }

    async fn on_blob<T>(
        &self,
        operation: &'static str,
        blob: &BlobId,
        effect: impl FnOnce(&mut Inner, Timestamp, &Key) -> Result<T, ErrorKind>,
    ) -> PortResult<T> {
        let key = self.key(blob);
        let resource = format!("{}/{}", blob.container, blob.name);
        self.call(operation, &resource, |inner, now| {
            if !inner.containers.contains(&(key.0.clone(), key.1.clone())) {
                return Err(ErrorKind::NotFound);
            }
            effect(inner, now, &key)
        })
        .await
    }
}

#[async_trait]
impl Storage for Account {
    fn account(&self) -> &str {
        &self.name
    }

    fn blob_url(&self, blob: &BlobId) -> String {
        format!("fake://{}/{}/{}", self.name, blob.container, blob.name)
    }

    fn readable_url(&self, blob: &BlobId, _lifetime: Duration) -> PortResult<String> {
        Ok(format!("{}?sig=SECRET", self.blob_url(blob)))
    }

    async fn list_blobs(
        &self,
        _: &CallContext,
        container: &str,
        wanted: &ListBlobs,
    ) -> PortResult<BlobPage> {
        let place = (self.name.as_str(), container);
        self.call("list_blobs", container, |inner, now| {
            if !inner
                .containers
                .contains(&(place.0.to_owned(), place.1.to_owned()))
            {
                return Err(ErrorKind::NotFound);
            }
            Ok(list(inner, now, place, wanted))
        })
        .await
    }

    async fn blob_properties(
        &self,
        _: &CallContext,
        blob: &BlobId,
    ) -> PortResult<(BlobProperties, Timestamp)> {
        self.on_blob("blob_properties", blob, |inner, now, key| {
            let blob = inner.blobs.get(key).ok_or(ErrorKind::NotFound)?;
            Ok((properties(blob, now), now.floor_s()))
        })
        .await
    }

    async fn get_blob(
        &self,
        _: &CallContext,
        blob: &BlobId,
        most_bytes: u64,
    ) -> PortResult<Downloaded> {
        self.on_blob("get_blob", blob, |inner, now, key| {
            let blob = inner.blobs.get(key).ok_or(ErrorKind::NotFound)?;
            if blob.content.len() as u64 > most_bytes {
                return Err(ErrorKind::Invalid);
            }
            Ok(Downloaded {
                properties: properties(blob, now),
                content: blob.content.clone(),
                server_time: now.floor_s(),
            })
        })
        .await
    }

    async fn get_blob_range(
        &self,
        _: &CallContext,
        blob: &BlobId,
        version: &Tag,
        from: u64,
        bytes: u64,
    ) -> PortResult<Bytes> {
        self.on_blob("get_blob_range", blob, |inner, now, key| {
            let blob = inner.blobs.get(key).ok_or(ErrorKind::NotFound)?;
            check(Some(blob), &Conditions::matching(version), now)?;
            let range = from as usize..(from + bytes) as usize;
            Ok(blob.content.slice(range))
        })
        .await
    }

    async fn put_blob(
        &self,
        _: &CallContext,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        self.on_blob("put_blob", blob, |inner, now, key| {
            check(inner.blobs.get(key), &put.conditions, now)?;
            let conditional = put.conditions.if_match.is_some() || put.conditions.if_absent;
            inner.judge_write(key, Some(&content), conditional);
            let lease = inner.blobs.get(key).and_then(|b| b.lease.clone());
            let mut blob = new_blob(inner, now, content, put.metadata.clone());
            blob.lease = lease;
            let written = Written {
                etag: tag(blob.etag),
                server_time: now.floor_s(),
            };
            inner.blobs.insert(key.clone(), blob);
            Ok(written)
        })
        .await
    }

    async fn set_blob_metadata(
        &self,
        _: &CallContext,
        blob: &BlobId,
        metadata: &Metadata,
        conditions: &Conditions,
    ) -> PortResult<Written> {
        self.on_blob("set_blob_metadata", blob, |inner, now, key| {
            describe(inner, now, key, metadata, conditions)
        })
        .await
    }

    async fn delete_blob(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        conditions: &Conditions,
        snapshots: DeleteSnapshots,
    ) -> PortResult<()> {
        assert!(cx.muted, "a sweep is housekeeping (G8)");
        let said: serde_json::Value = serde_json::from_str(&cx.client_request_id).unwrap();
        let of = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let by = format!("{} {}", of("worker"), of("page"));
        self.on_blob("delete_blob", blob, |inner, now, key| {
            let blob = inner.blobs.get(key).ok_or(ErrorKind::NotFound)?;
            check(Some(blob), conditions, now)?;
            if blob.immutable {
                return Err(ErrorKind::Immutable);
            }
            if blob.snapshots && snapshots == DeleteSnapshots::Refuse {
                return Err(ErrorKind::SnapshotsPresent);
            }
            inner.judge_delete(key, &by, conditions.if_match.is_some(), now);
            inner.blobs.remove(key);
            Ok(())
        })
        .await
    }

    async fn start_copy(
        &self,
        cx: &CallContext,
        blob: &BlobId,
        wanted: &StartCopy,
    ) -> PortResult<CopyStarted> {
        assert!(cx.muted, "a sweep is housekeeping (G8)");
        self.on_blob("start_copy", blob, |inner, now, key| {
            let blob = copy(inner, now, key, wanted)?;
            Ok(CopyStarted {
                id: blob.copy.map(|c| c.id).unwrap_or_default(),
                status: CopyStatus::Pending,
                etag: tag(blob.etag),
            })
        })
        .await
    }

    async fn abort_copy(&self, _: &CallContext, blob: &BlobId, _: &str) -> PortResult<()> {
        self.on_blob("abort_copy", blob, |_, _, _| Err(ErrorKind::Refused))
            .await
    }

    async fn acquire_lease(
        &self,
        _: &CallContext,
        blob: &BlobId,
        id: &str,
        duration_s: u32,
    ) -> PortResult<Lease> {
        self.on_blob("acquire_lease", blob, |inner, now, key| {
            let blob = inner.blobs.get_mut(key).ok_or(ErrorKind::NotFound)?;
            if leased(blob, now).is_some_and(|held| held != id) {
                return Err(ErrorKind::LeaseTaken);
            }
            blob.lease = Some((id.to_owned(), now.plus_s(u64::from(duration_s))));
            Ok(Lease {
                id: id.to_owned(),
                server_time: now.floor_s(),
            })
        })
        .await
    }

    async fn renew_lease(&self, _: &CallContext, blob: &BlobId, _: &str) -> PortResult<Lease> {
        self.on_blob("renew_lease", blob, |_, _, _| Err(ErrorKind::Refused))
            .await
    }

    async fn release_lease(&self, _: &CallContext, blob: &BlobId, id: &str) -> PortResult<()> {
        self.on_blob("release_lease", blob, |inner, now, key| {
            let blob = inner.blobs.get_mut(key).ok_or(ErrorKind::NotFound)?;
            if leased(blob, now) != Some(id) {
                return Err(ErrorKind::LeaseLost);
            }
            blob.lease = None;
            Ok(())
        })
        .await
    }

    async fn break_lease(&self, _: &CallContext, blob: &BlobId) -> PortResult<bool> {
        self.on_blob("break_lease", blob, |inner, now, key| {
            let blob = inner.blobs.get_mut(key).ok_or(ErrorKind::NotFound)?;
            let held = leased(blob, now).is_some();
            blob.lease = None;
            Ok(held)
        })
        .await
    }

    async fn has_snapshots(&self, _: &CallContext, blob: &BlobId) -> PortResult<bool> {
        self.on_blob("has_snapshots", blob, |inner, _, key| {
            Ok(inner.blobs.get(key).is_some_and(|blob| blob.snapshots))
        })
        .await
    }

    async fn blob_tags(&self, _: &CallContext, blob: &BlobId) -> PortResult<Metadata> {
        self.on_blob("blob_tags", blob, |inner, _, key| {
            let blob = inner.blobs.get(key).ok_or(ErrorKind::NotFound)?;
            Ok(blob.tags.clone())
        })
        .await
    }

    async fn create_container(&self, _: &CallContext, container: &str) -> PortResult<bool> {
        let place = (self.name.clone(), container.to_owned());
        self.call("create_container", container, |inner, _| {
            Ok(inner.containers.insert(place))
        })
        .await
    }
}
