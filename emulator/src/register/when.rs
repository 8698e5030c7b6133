//! Predicates that distinguish operations with the same method, resource and query.

use http::Method;
use smalt_protocol::ApiVersion;
use smalt_protocol::table::Resource as Table;

use crate::call::Call;
use crate::target::Resource;

/// Matches every request.
pub fn always(_: &Call) -> bool {
    true
}

fn has(call: &Call, header: &str) -> bool {
    call.headers.contains_key(header)
}

fn is(call: &Call, header: &str, value: &str) -> bool {
    call.headers
        .get(header)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.trim().eq_ignore_ascii_case(value))
}

/// The request has `x-ms-copy-source`.
pub fn from_url(call: &Call) -> bool {
    has(call, "x-ms-copy-source")
}

/// Put Blob without a copy source. The operation itself checks the blob type.
pub fn block_blob(call: &Call) -> bool {
    !from_url(call)
}

/// Put Blob of a page blob.
pub fn page_blob(call: &Call) -> bool {
    !from_url(call) && is(call, "x-ms-blob-type", "PageBlob")
}

/// Put Blob of an append blob.
pub fn append_blob(call: &Call) -> bool {
    !from_url(call) && is(call, "x-ms-blob-type", "AppendBlob")
}

/// Put Blob From URL: a copy source and a blob type.
pub fn put_from_url(call: &Call) -> bool {
    from_url(call) && has(call, "x-ms-blob-type")
}

/// Copy Blob From URL: a copy source and `x-ms-requires-sync: true`.
pub fn copy_sync(call: &Call) -> bool {
    from_url(call) && is(call, "x-ms-requires-sync", "true")
}

/// Put Page that clears a range.
pub fn page_clear(call: &Call) -> bool {
    is(call, "x-ms-page-write", "clear")
}

/// Get Page Ranges relative to a previous snapshot.
pub fn page_diff(call: &Call) -> bool {
    call.query("prevsnapshot").is_some() || has(call, "x-ms-previous-snapshot-url")
}

/// Set Blob Properties with a new length.
pub fn resize(call: &Call) -> bool {
    has(call, "x-ms-blob-content-length")
}

/// Set Blob Properties with a sequence number action.
pub fn sequence_number(call: &Call) -> bool {
    has(call, "x-ms-sequence-number-action")
}

/// A listing with a delimiter.
pub fn hierarchical(call: &Call) -> bool {
    call.query("delimiter").is_some_and(|d| !d.is_empty())
}

/// Peek Messages: `peekonly=true`.
pub fn peek(call: &Call) -> bool {
    call.query("peekonly")
        .is_some_and(|v| v.eq_ignore_ascii_case("true"))
}

/// Lease action `renew`.
pub fn lease_renew(call: &Call) -> bool {
    is(call, "x-ms-lease-action", "renew")
}

/// Lease action `change`.
pub fn lease_change(call: &Call) -> bool {
    is(call, "x-ms-lease-action", "change")
}

/// Lease action `release`.
pub fn lease_release(call: &Call) -> bool {
    is(call, "x-ms-lease-action", "release")
}

/// Lease action `break`.
pub fn lease_break(call: &Call) -> bool {
    is(call, "x-ms-lease-action", "break")
}

fn names(call: &Call, is: fn(&Table) -> bool) -> bool {
    matches!(&call.target.resource, Resource::Table(Ok(address)) if is(address))
}

/// The root of the account's Table service.
pub fn table_service(call: &Call) -> bool {
    names(call, |address| matches!(address, Table::Service))
}

/// `/Tables`.
pub fn tables(call: &Call) -> bool {
    names(call, |address| matches!(address, Table::Tables))
}

/// `/Tables('name')`.
pub fn table_by_name(call: &Call) -> bool {
    names(call, |address| matches!(address, Table::Table(_)))
}

/// `/Tables` or `/Tables('name')`.
pub fn tables_or_named(call: &Call) -> bool {
    tables(call) || table_by_name(call)
}

/// `/$batch`.
pub fn table_batch(call: &Call) -> bool {
    names(call, |address| matches!(address, Table::Batch))
}

/// `/name(PartitionKey='..',RowKey='..')`.
pub fn table_entity(call: &Call) -> bool {
    names(call, |address| matches!(address, Table::Entity { .. }))
}

/// `/name` or `/name()`.
pub fn entities(call: &Call) -> bool {
    names(call, |address| matches!(address, Table::Entities(_)))
}

/// Put Message by POST or, in versions before 2009-09-19, by PUT with the raw bytes.
pub fn post_or_raw(call: &Call) -> bool {
    call.method == Method::POST || call.version < ApiVersion::V2009_09_19
}

/// Update Message exists since 2011-08-18. *Update Message*, remarks.
pub fn updates(call: &Call) -> bool {
    call.version >= ApiVersion::V2011_08_18
}
