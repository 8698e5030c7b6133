//! Fills the service, and reads what is there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use http::{Method, Request};
use http_body_util::Full;
use indicatif::ProgressBar;
use smalt_protocol::{ApiVersion, Timestamp};
use smalt_sleeve::port::{
    BlobId, BlobItem, CallContext, Conditions, DeleteSnapshots, ListBlobs, Storage, Tag,
};

use super::blobs::{Blobs, DEAD_CONTAINER, Number};
use super::judge::Copy;
use crate::bench::load::{self, Shot};
use crate::servers::ServerError;
use crate::wire::access::Access;

/// Number of concurrent requests for blobs, containers or copies.
const AT_ONCE: usize = 32;
/// Most blobs of a page in a listing.
const PAGE: u32 = 5_000;
/// Most bytes of a copy that are read: far more than any content has.
const CONTENT_MAX: u64 = 64 * 1024;

/// Creates the containers, and returns the service's time.
pub async fn prepare(
    storage: &dyn Storage,
    containers: impl Iterator<Item = String>,
) -> Result<Timestamp, ServerError> {
    let cx = CallContext::default();
    for container in containers.chain([DEAD_CONTAINER.to_owned()]) {
        storage.create_container(&cx, &container).await?;
    }
    let list = ListBlobs::default();
    let listed = storage.list_blobs(&cx, DEAD_CONTAINER, &list).await?;
    Ok(listed.server_time)
}

/// Puts these blobs.
pub async fn fill(
    address: SocketAddr,
    blobs: &Blobs,
    numbers: Vec<Number>,
    bar: &ProgressBar,
) -> Result<(), ServerError> {
    let access = Access::full(ApiVersion::V2021_12_02);
    let (blobs, count, bar) = (blobs.clone(), numbers.len() as u64, bar.clone());
    let put = move |at: u64| {
        bar.inc(1);
        let number = usize::try_from(at).ok().and_then(|at| numbers.get(at));
        put(&access, &blobs, number.copied().unwrap_or_default())
    };
    load::send_all(address, AT_ONCE, count, put).await
}

/// Deletes every dead blob.
pub async fn clear_dead(storage: &dyn Storage) -> Result<(), ServerError> {
    let mut names = Vec::new();
    each(storage, DEAD_CONTAINER, |item| names.push(item.name)).await?;
    let remove = |name: String| async move {
        let (cx, any) = (CallContext::default(), Conditions::default());
        let place = BlobId::new(DEAD_CONTAINER, name);
        let removed = storage.delete_blob(&cx, &place, &any, DeleteSnapshots::Refuse);
        removed.await.map_err(ServerError::call)
    };
    let mut removals = stream::iter(names).map(remove).buffer_unordered(AT_ONCE);
    while let Some(removed) = removals.next().await {
        removed?;
    }
    Ok(())
}

fn put(access: &Access, blobs: &Blobs, number: Number) -> Result<Shot, ServerError> {
    let (place, body) = (blobs.place(number), blobs.content(number));
    let path = format!("{}/{}", place.container, place.name.replace(' ', "%20"));
    let mut request = Request::builder()
        .method(Method::PUT)
        .uri(access.path(&path))
        .header("host", "127.0.0.1")
        .header("content-length", body.len())
        .header("x-ms-blob-type", "BlockBlob");
    for (name, value) in blobs.metadata(number) {
        request = request.header(format!("x-ms-meta-{name}"), value);
    }
    let request = request.body(Full::new(body.into()));
    Ok(Shot {
        request: request.map_err(ServerError::call)?,
        status: 201,
    })
}

/// Passes every blob of a container to `take`.
async fn each(
    storage: &dyn Storage,
    container: &str,
    mut take: impl FnMut(BlobItem),
) -> Result<(), ServerError> {
    let cx = CallContext::default();
    let mut list = ListBlobs {
        page_size: PAGE,
        ..ListBlobs::default()
    };
    loop {
        let page = storage.list_blobs(&cx, container, &list).await?;
        page.blobs.into_iter().for_each(&mut take);
        list.marker = page.next_marker;
        if list.marker.is_none() {
            return Ok(());
        }
    }
}

/// Returns the version of each blob that exists, and the places of those that are not from this
/// run.
pub async fn versions(
    storage: &dyn Storage,
    blobs: &Blobs,
) -> Result<(Vec<Option<Tag>>, Vec<String>), ServerError> {
    let mut tags = vec![None; usize::try_from(blobs.count).map_err(ServerError::call)?];
    let mut foreign = Vec::new();
    for container in blobs.containers() {
        let take = |item: BlobItem| {
            let place = BlobId::new(&container, item.name);
            let number = blobs.number(&place).and_then(|n| usize::try_from(n).ok());
            match number.and_then(|number| tags.get_mut(number)) {
                Some(tag) => *tag = Some(item.properties.etag),
                None => foreign.push(format!("{}/{}", place.container, place.name)),
            }
        };
        each(storage, &container, take).await?;
    }
    Ok((tags, foreign))
}

/// Returns the copies among the dead blobs with their contents, and the names of those that are not
/// from this run.
pub async fn copies(
    storage: &Arc<dyn Storage>,
    blobs: &Blobs,
) -> Result<(BTreeMap<Number, Copy>, Vec<String>), ServerError> {
    let mut found = Vec::new();
    let mut foreign = Vec::new();
    let take = |item: BlobItem| match blobs.dead_number(&item.name) {
        Some(number) => found.push((number, item)),
        None => foreign.push(format!("{DEAD_CONTAINER}/{}", item.name)),
    };
    each(storage.as_ref(), DEAD_CONTAINER, take).await?;
    let read = |(number, item): (Number, BlobItem)| async move {
        let (cx, place) = (
            CallContext::default(),
            BlobId::new(DEAD_CONTAINER, item.name),
        );
        let got = storage.get_blob(&cx, &place, CONTENT_MAX).await?;
        let copy = Copy {
            content: got.content,
            metadata: item.properties.metadata,
        };
        Ok::<_, ServerError>((number, copy))
    };
    let mut reads = stream::iter(found).map(read).buffer_unordered(AT_ONCE);
    let mut copies = BTreeMap::new();
    while let Some(copy) = reads.next().await {
        let (number, copy) = copy?;
        copies.insert(number, copy);
    }
    Ok((copies, foreign))
}
