//! Operations on blobs as requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use smalt_model::vocabulary::{
    BlobId, BlobOperation, BlockSource, Metadata, Moment, NewBlob, PAGE_BYTES, Priority, Property,
    Snapshots, Tier,
};
use smalt_protocol::uri::encode_query;

use super::request::{Request, lease};
use crate::histories::names::Names;

fn path(id: &BlobId) -> String {
    format!("{}/{}", id.container, id.blob)
}

fn part(id: &BlobId, snapshot: Option<Moment>, names: &Names) -> String {
    match snapshot {
        Some(moment) => format!("{}?snapshot={}", path(id), names.moment(moment)),
        None => path(id),
    }
}

pub(super) fn blob(id: &BlobId, operation: &BlobOperation, names: &Names) -> Request {
    let comp = |comp: &str| Request::blob(Method::PUT, format!("{}?comp={comp}", path(id)));
    let get = |comp: &str| Request::blob(Method::GET, format!("{}?comp={comp}", path(id)));
    match operation {
        BlobOperation::Put(content, labels, guard) => Request::blob(Method::PUT, path(id))
            .with("x-ms-blob-type", "BlockBlob")
            .labels(labels)
            .guard(names, *guard)
            .body(content.bytes()),
        BlobOperation::Get {
            snapshot,
            range,
            guard,
        } => Request::blob(Method::GET, part(id, *snapshot, names))
            .maybe("x-ms-range", range.map(bytes))
            .guard(names, *guard),
        BlobOperation::Head { snapshot, guard } => {
            Request::blob(Method::HEAD, part(id, *snapshot, names)).guard(names, *guard)
        }
        BlobOperation::SetMetadata(metadata, guard) => {
            comp("metadata").metadata(metadata).guard(names, *guard)
        }
        BlobOperation::Delete {
            snapshot,
            snapshots,
            guard,
        } => {
            let wish = snapshots.map(|which| match which {
                Snapshots::Include => "include".to_owned(),
                Snapshots::Only => "only".to_owned(),
            });
            Request::blob(Method::DELETE, part(id, *snapshot, names))
                .maybe("x-ms-delete-snapshots", wish)
                .guard(names, *guard)
        }
        BlobOperation::Snapshot(metadata, guard) => {
            comp("snapshot").metadata(metadata).guard(names, *guard)
        }
        BlobOperation::Lease(action, condition) => {
            lease(comp("lease"), *action, names).condition(names, "", *condition)
        }
        BlobOperation::PutBlock(block, content, lease) => comp(&put_block(block))
            .lease(names, *lease)
            .body(content.bytes()),
        BlobOperation::PutBlockList(list, labels, guard) => comp("blocklist")
            .labels(labels)
            .guard(names, *guard)
            .body(block_list(list)),
        BlobOperation::GetBlockList { lease } => {
            get("blocklist&blocklisttype=all").lease(names, *lease)
        }
        BlobOperation::SetTags(tags, lease) => {
            comp("tags").lease(names, *lease).body(tag_set(tags))
        }
        BlobOperation::GetTags(lease) => get("tags").lease(names, *lease),
        BlobOperation::Undelete => comp("undelete"),
        _ => wide(id, operation, names),
    }
}

/// Copies, append blobs, page blobs and properties.
fn wide(id: &BlobId, operation: &BlobOperation, names: &Names) -> Request {
    let comp = |comp: &str| Request::blob(Method::PUT, format!("{}?comp={comp}", path(id)));
    match operation {
        BlobOperation::Copy {
            source,
            snapshot,
            source_condition,
            labels,
            guard,
        } => Request::blob(Method::PUT, path(id))
            .with("x-ms-copy-source", part(source, *snapshot, names))
            .condition(names, "x-ms-source-", *source_condition)
            .labels(labels)
            .guard(names, *guard),
        BlobOperation::FromUrl {
            sync,
            source,
            source_condition,
            labels,
            guard,
        } => {
            let request = Request::blob(Method::PUT, path(id));
            let request = match sync {
                true => request.with("x-ms-requires-sync", "true"),
                false => request.with("x-ms-blob-type", "BlockBlob"),
            };
            request
                .with("x-ms-copy-source", path(source))
                .condition(names, "x-ms-source-", *source_condition)
                .labels(labels)
                .guard(names, *guard)
        }
        BlobOperation::Create(new, labels, guard) => {
            create(id, *new).labels(labels).guard(names, *guard)
        }
        BlobOperation::SetProperties(property, guard) => {
            properties(comp("properties"), *property).guard(names, *guard)
        }
        BlobOperation::Append(content, given, guard) => comp("appendblock")
            .guard(names, *guard)
            .position(*given)
            .body(content.bytes()),
        BlobOperation::Seal(given, guard) => comp("seal").guard(names, *guard).position(*given),
        BlobOperation::WritePages {
            first,
            count,
            fill,
            sequence,
            guard,
        } => {
            let (from, end) = (first * PAGE_BYTES, (first + count) * PAGE_BYTES);
            let length = usize::try_from(end - from).unwrap_or(0);
            let action = if fill.is_some() { "update" } else { "clear" };
            comp("page")
                .with("x-ms-page-write", action)
                .with("x-ms-range", format!("bytes={from}-{}", end - 1))
                .guard(names, *guard)
                .sequence(*sequence)
                .body(fill.map_or_else(Vec::new, |byte| vec![byte; length]))
        }
        BlobOperation::GetPages { snapshot, guard } => {
            let part = part(id, *snapshot, names);
            let separator = if part.contains('?') { '&' } else { '?' };
            Request::blob(Method::GET, format!("{part}{separator}comp=pagelist"))
                .guard(names, *guard)
        }
        BlobOperation::SetTier(tier, priority) => set_tier(comp("tier"), *tier, *priority),
        _ => comp(""),
    }
}

fn set_tier(request: Request, tier: Tier, priority: Option<Priority>) -> Request {
    let priority = priority.map(|priority| priority.name().to_owned());
    request
        .with("x-ms-access-tier", tier.name())
        .maybe("x-ms-rehydrate-priority", priority)
}

fn create(id: &BlobId, new: NewBlob) -> Request {
    let request = Request::blob(Method::PUT, path(id));
    match new {
        NewBlob::Append => request.with("x-ms-blob-type", "AppendBlob"),
        NewBlob::Pages { pages, number } => request
            .with("x-ms-blob-type", "PageBlob")
            .with("x-ms-blob-content-length", (pages * PAGE_BYTES).to_string())
            .with("x-ms-blob-sequence-number", number.to_string()),
    }
}

fn properties(request: Request, property: Property) -> Request {
    let number = |action: &str, number: Option<u64>| {
        let request = request.clone().with("x-ms-sequence-number-action", action);
        let number = number.map(|number| number.to_string());
        request.maybe("x-ms-blob-sequence-number", number)
    };
    match property {
        Property::Content(headers) => {
            let text = |value: Option<&str>| value.map(str::to_owned);
            request
                .with("x-ms-blob-content-type", headers.content_type)
                .maybe("x-ms-blob-cache-control", text(headers.cache_control))
                .maybe("x-ms-blob-content-disposition", text(headers.disposition))
        }
        Property::Pages(pages) => {
            let length = (pages * PAGE_BYTES).to_string();
            request.with("x-ms-blob-content-length", length)
        }
        Property::NumberMax(least) => number("max", Some(least)),
        Property::NumberUpdate(new) => number("update", Some(new)),
        Property::NumberIncrement => number("increment", None),
    }
}

/// Renders a range from its first and last byte; `None` for the end.
fn bytes((first, last): (u64, Option<u64>)) -> String {
    let last = last.map_or_else(String::new, |last| last.to_string());
    format!("bytes={first}-{last}")
}

fn put_block(block: &[u8]) -> String {
    format!("block&blockid={}", encode_query(&BASE64.encode(block)))
}

fn block_list(list: &[(BlockSource, Vec<u8>)]) -> String {
    let entry = |(source, block): &(BlockSource, Vec<u8>)| {
        let name = match source {
            BlockSource::Committed => "Committed",
            BlockSource::Uncommitted => "Uncommitted",
            BlockSource::Latest => "Latest",
        };
        format!("<{name}>{}</{name}>", BASE64.encode(block))
    };
    let entries: String = list.iter().map(entry).collect();
    format!("<BlockList>{entries}</BlockList>")
}

fn tag_set(tags: &Metadata) -> String {
    let entry = |(key, value): (&String, &String)| {
        format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>")
    };
    let entries: String = tags.iter().map(entry).collect();
    format!("<Tags><TagSet>{entries}</TagSet></Tags>")
}
