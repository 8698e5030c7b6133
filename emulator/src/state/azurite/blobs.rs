//! Azurite's containers, blobs and blocks.

mod record;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use smalt_protocol::Service as ServiceName;

use self::record::Properties;
use super::AzuriteError;
use super::build::Build;
use super::document::{self, Lease, Pairs, Policy, Service, metadata, policies};
use super::extents::{Chunk, Extents};
use super::loki::Database;
use crate::keys::{self, Generation};
use crate::ops::blob::content::{blocks, pages};
use crate::ops::blob::tag_index::Owner;
use crate::records::{
    BlobContent, BlobKind, BlobRecord, BlockRecord, CommittedBlock, ContainerRecord, PublicAccess,
    Record, UncommittedRecord,
};

pub(super) struct Blobs {
    database: Database,
    services: Vec<Service>,
    containers: Vec<ContainerDocument>,
    blobs: Vec<BlobDocument>,
    blocks: Vec<BlockDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerDocument {
    account_name: String,
    name: String,
    metadata: Option<Pairs>,
    properties: ContainerProperties,
    container_acl: Option<Vec<Policy>>,
    #[serde(flatten)]
    lease: Lease,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerProperties {
    etag: String,
    last_modified: String,
    lease_state: Option<String>,
    lease_duration: Option<String>,
    public_access: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlobDocument {
    account_name: String,
    container_name: String,
    name: String,
    #[serde(default)]
    snapshot: String,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    is_committed: bool,
    metadata: Option<Pairs>,
    properties: Properties,
    persistency: Option<Chunk>,
    committed_blocks_in_order: Option<Vec<BlockDocument>>,
    page_ranges_in_order: Option<Vec<PageRange>>,
    blob_tags: Option<Tags>,
    #[serde(flatten)]
    lease: Lease,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDocument {
    account_name: String,
    container_name: String,
    blob_name: String,
    name: String,
    size: u64,
    persistency: Chunk,
}

#[derive(Deserialize)]
struct PageRange {
    start: u64,
    end: u64,
    persistency: Chunk,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tags {
    blob_tag_set: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    key: String,
    value: String,
}

/// Account, container and name of a blob.
type Place<'a> = (&'a str, &'a str, &'a str);

impl BlobDocument {
    fn place(&self) -> Place<'_> {
        (&self.account_name, &self.container_name, &self.name)
    }

    fn is_base(&self) -> bool {
        self.snapshot.is_empty()
    }
}

#[derive(Default)]
struct Places<'a> {
    generations: BTreeMap<(&'a str, &'a str), Generation>,
    /// A blob shares its origin with its snapshots, so that their pages can be compared.
    origins: BTreeMap<Place<'a>, u64>,
    snapshots: BTreeMap<Place<'a>, u64>,
}

impl Blobs {
    pub(super) fn read(mut database: Database) -> Result<Self, AzuriteError> {
        let services = database.take("$SERVICES_COLLECTION$")?;
        let containers = database.take("$CONTAINERS_COLLECTION$")?;
        let blobs = database.take("$BLOBS_COLLECTION$")?;
        let blocks = database.take("$BLOCKS_COLLECTION$")?;
        database.end()?;
        Ok(Blobs {
            database,
            services,
            containers,
            blobs,
            blocks,
        })
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        let single = self
            .blobs
            .iter()
            .filter_map(|blob| blob.persistency.as_ref());
        let lists = self
            .blobs
            .iter()
            .filter_map(|blob| blob.committed_blocks_in_order.as_ref());
        let pages = self
            .blobs
            .iter()
            .filter_map(|blob| blob.page_ranges_in_order.as_ref());
        let blocks = lists
            .flatten()
            .chain(&self.blocks)
            .map(|block| &block.persistency);
        single
            .chain(blocks)
            .chain(pages.flatten().map(|range| &range.persistency))
    }

    pub(super) fn accounts(&self) -> impl Iterator<Item = &str> {
        let services = self.services.iter().map(Service::account);
        services.chain(
            self.containers
                .iter()
                .map(|container| container.account_name.as_str()),
        )
    }

    pub(super) fn build(
        &self,
        build: &mut Build<'_, '_>,
        extents: &mut Extents,
    ) -> Result<(), AzuriteError> {
        build.services(ServiceName::Blob, &self.services)?;
        let mut places = Places::default();
        for container in &self.containers {
            let generation = build.tick();
            let at = |what| {
                self.database
                    .shape(format!("container {}: {what}", container.name))
            };
            let record = container.record(generation).map_err(at)?;
            let key = keys::container(&container.account_name, &container.name);
            build.successor.transact(|tx| record.save(tx, key))?;
            let place = (container.account_name.as_str(), container.name.as_str());
            places.generations.insert(place, generation);
            build.report.containers += 1;
        }
        // Snapshots come first, because the record of their blob contains their number.
        let is_kept = |blob: &&BlobDocument| blob.is_committed && !blob.deleted;
        for snapshot in self
            .blobs
            .iter()
            .filter(is_kept)
            .filter(|blob| !blob.is_base())
        {
            self.blob(build, extents, &mut places, snapshot)?;
        }
        for base in self
            .blobs
            .iter()
            .filter(is_kept)
            .filter(|blob| blob.is_base())
        {
            self.blob(build, extents, &mut places, base)?;
        }
        self.blocks(build, extents, &places)
    }

    fn blob<'a>(
        &self,
        build: &mut Build<'_, '_>,
        extents: &mut Extents,
        places: &mut Places<'a>,
        blob: &'a BlobDocument,
    ) -> Result<(), AzuriteError> {
        let (account, container, name) = blob.place();
        let Some(generation) = places.generations.get(&(account, container)).copied() else {
            // Azurite keeps blobs of deleted containers.
            return Ok(());
        };
        let at = |what| {
            self.database
                .shape(format!("blob {container}/{name}: {what}"))
        };
        let tick = build.tick();
        let mut record = blob.record().map_err(at)?;
        record.origin = *places.origins.entry(blob.place()).or_insert(tick);
        record.content = self.content(build, extents, blob, record.kind)?;
        let key = if blob.is_base() {
            record.snapshots = places
                .snapshots
                .get(&blob.place())
                .copied()
                .unwrap_or_default();
            build.report.blobs += 1;
            keys::blob(generation, name)
        } else {
            *places.snapshots.entry(blob.place()).or_default() += 1;
            build.report.snapshots += 1;
            keys::snapshot(
                generation,
                name,
                document::time(&blob.snapshot).map_err(at)?,
            )
        };
        build.successor.transact(|tx| {
            if blob.is_base() {
                Owner::base(generation, name).change(tx, &[], &record.tags);
            }
            record.save(tx, key)
        })?;
        Ok(())
    }

    fn content(
        &self,
        build: &mut Build<'_, '_>,
        extents: &mut Extents,
        blob: &BlobDocument,
        kind: BlobKind,
    ) -> Result<BlobContent, AzuriteError> {
        let at = |what: &str| self.database.shape(format!("blob {}: {what}", blob.name));
        if kind == BlobKind::Page {
            return self.pages(build, extents, blob);
        }
        if let Some(list) = blob
            .committed_blocks_in_order
            .as_ref()
            .filter(|l| !l.is_empty())
        {
            let mut committed = Vec::with_capacity(list.len());
            for block in list {
                if block.size != block.persistency.count {
                    return Err(at("the length of a block differs from that of its content"));
                }
                committed.push(CommittedBlock {
                    id: id(block).map_err(|what| at(&what))?,
                    length: block.size,
                    payload: extents.take(&block.persistency, build.successor)?,
                });
            }
            let id = build.tick();
            return Ok(build
                .successor
                .transact(|tx| blocks::write(tx, id, &committed))?);
        }
        match &blob.persistency {
            Some(chunk) if chunk.count != blob.properties.length() => {
                Err(at("its length differs from that of its content"))
            }
            Some(chunk) => {
                let payload = extents.take(chunk, build.successor)?;
                Ok(payload.map_or(BlobContent::Empty, BlobContent::Payload))
            }
            None if blob.properties.length() == 0 => Ok(BlobContent::Empty),
            None => Err(at("its content is missing")),
        }
    }

    fn pages(
        &self,
        build: &mut Build<'_, '_>,
        extents: &mut Extents,
        blob: &BlobDocument,
    ) -> Result<BlobContent, AzuriteError> {
        let mut content = BlobContent::Empty;
        for range in blob.page_ranges_in_order.iter().flatten() {
            let pages = range.start..range.end.saturating_add(1);
            let is_whole =
                pages.start.is_multiple_of(record::PAGE) && pages.end.is_multiple_of(record::PAGE);
            let fits = pages.end <= blob.properties.length() && pages.start < pages.end;
            let chunk = &range.persistency;
            if !is_whole || !fits || chunk.count != pages.end - pages.start {
                let what = format!("blob {}: pages {}-{}", blob.name, range.start, range.end);
                return Err(self.database.shape(what));
            }
            if chunk.is_zeros() {
                continue;
            }
            if let Some(payload) = extents.take(chunk, build.successor)? {
                content = build
                    .successor
                    .transact(|tx| pages::write(tx, content, pages, payload))?;
            }
        }
        Ok(content)
    }

    fn blocks(
        &self,
        build: &mut Build<'_, '_>,
        extents: &mut Extents,
        places: &Places<'_>,
    ) -> Result<(), AzuriteError> {
        let mut blobs: BTreeMap<Place<'_>, UncommittedRecord> = BTreeMap::new();
        for block in &self.blocks {
            let place = (
                block.account_name.as_str(),
                block.container_name.as_str(),
                block.blob_name.as_str(),
            );
            let Some(generation) = places.generations.get(&(place.0, place.1)).copied() else {
                continue;
            };
            let at = |what| {
                self.database
                    .shape(format!("a block of blob {}: {what}", place.2))
            };
            let id = id(block).map_err(at)?;
            let record = blobs.entry(place).or_insert_with(|| UncommittedRecord {
                created: build.now,
                touched: build.now,
                blocks: 0,
                // A block id has at most 64 bytes.
                id_length: id.len() as u32,
                encryption: None,
            });
            record.blocks += 1;
            let stored = BlockRecord {
                length: block.persistency.count,
                payload: extents.take(&block.persistency, build.successor)?,
            };
            let key = keys::block(generation, place.2, &id);
            build.successor.transact(|tx| stored.save(tx, key))?;
            build.report.uncommitted_blocks += 1;
        }
        for ((account, container, name), record) in blobs {
            if let Some(generation) = places.generations.get(&(account, container)) {
                let key = keys::uncommitted(*generation, name);
                build.successor.transact(|tx| record.save(tx, key))?;
            }
        }
        Ok(())
    }
}

impl ContainerDocument {
    fn record(&self, generation: Generation) -> Result<ContainerRecord, String> {
        let properties = &self.properties;
        let (state, duration) = (&properties.lease_state, &properties.lease_duration);
        Ok(ContainerRecord {
            posix: None,
            generation,
            etag: document::etag(&properties.etag)?,
            last_modified: document::time(&properties.last_modified)?,
            metadata: metadata(self.metadata.as_ref())?,
            public_access: match properties.public_access.as_deref() {
                None | Some("") => PublicAccess::Private,
                Some("blob") => PublicAccess::Blob,
                Some("container") => PublicAccess::Container,
                Some(other) => return Err(format!("unknown public access {other:?}")),
            },
            policies: policies(self.container_acl.as_ref())?,
            lease: self.lease.state(state.as_deref(), duration.as_deref())?,
            deleted_at: None,
            retention_days: None,
            encryption_scope: None,
        })
    }
}

impl BlobDocument {
    /// Creates the record without its content.
    fn record(&self) -> Result<BlobRecord, String> {
        let mut record = self.properties.record()?;
        record.metadata = metadata(self.metadata.as_ref())?;
        if self.is_base() {
            record.lease = self.properties.lease(&self.lease)?;
        }
        let tags = self.blob_tags.iter().flat_map(|tags| &tags.blob_tag_set);
        record.tags = tags
            .map(|tag| (tag.key.clone(), tag.value.clone()))
            .collect();
        Ok(record)
    }
}

/// Decodes a block id, which is empty for blocks of append blobs.
fn id(block: &BlockDocument) -> Result<Vec<u8>, String> {
    let id = STANDARD.decode(&block.name);
    id.map_err(|_| format!("block id {:?} is not Base64", block.name))
}
