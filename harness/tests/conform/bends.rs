//! Wrong answers on purpose: what, in which area, wrong in which aspect, and how.

use smalt_harness::conform::expect::Aspect;
use smalt_harness::conform::target::bent::Bend;
use smalt_harness::replay::wire::{Request, Response};

/// One row of the table.
type Row = (&'static str, &'static str, Aspect, Bend);

fn bend(change: impl Fn(&Request, &mut Response) + Send + Sync + 'static) -> Bend {
    Box::new(move |request, answer| {
        let mut answer = answer.clone();
        change(request, &mut answer);
        Some(answer)
    })
}

fn set(name: &'static str, value: &'static str) -> Bend {
    bend(move |_, answer| {
        if answer.headers.has(name) {
            answer.headers.set(name, value);
        }
    })
}

fn drop_header(name: &'static str) -> Bend {
    bend(move |_, answer| answer.headers.remove(name))
}

fn status(from: u16, to: u16) -> Bend {
    bend(move |_, answer| {
        if answer.status == from {
            answer.status = to;
        }
    })
}

fn code(from: &'static str, to: &'static str) -> Bend {
    bend(move |_, answer| {
        if answer.headers.get("x-ms-error-code") == Some(from) {
            answer.headers.set("x-ms-error-code", to);
        }
    })
}

fn text(from: &'static str, to: &'static str) -> Bend {
    bend(move |_, answer| {
        if let Ok(body) = std::str::from_utf8(&answer.body) {
            answer.body = body.replace(from, to).into();
        }
    })
}

/// The text of an element, wherever it stands.
fn element(name: &'static str, value: &'static str) -> Bend {
    bend(move |_, answer| {
        let Ok(body) = std::str::from_utf8(&answer.body) else {
            return;
        };
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let mut out = String::new();
        let mut rest = body;
        while let Some((before, after)) = rest.split_once(&open) {
            let (_, behind) = after.split_once(&close).unwrap_or(("", ""));
            out += &format!("{before}{open}{value}{close}");
            rest = behind;
        }
        answer.body = (out + rest).into();
    })
}

/// Reads show another ETag than writes gave.
fn fresh_etag() -> Bend {
    bend(|request, answer| {
        if request.method != "PUT" && answer.headers.has("etag") {
            answer.headers.set("etag", "\"0xFFFFFFFFFFFFFFF\"");
        }
    })
}

/// The last byte of a body is missing.
fn short_body() -> Bend {
    bend(|request, answer| {
        if request.method == "GET" && !answer.body.is_empty() {
            answer.body = answer.body.slice(..answer.body.len() - 1);
        }
    })
}

/// The table.
#[rustfmt::skip]
pub(crate) fn all() -> Vec<Row> {
    use Aspect::{Body, Code, Headers, Relations, Status};
    vec![
        ("a missing ETag", "blobs", Headers, drop_header("etag")),
        ("a missing request id", "blobs", Headers, drop_header("x-ms-request-id")),
        ("a missing date", "queues", Headers, drop_header("date")),
        ("another version than asked for", "containers", Headers, set("x-ms-version", "2009-09-19")),
        ("200 in place of 201", "blobs", Status, status(201, 200)),
        ("409 in place of 412", "conditions", Status, status(412, 409)),
        ("200 in place of 304", "conditions", Status, status(304, 200)),
        ("404 in place of 400", "messages", Status, status(400, 404)),
        ("another code", "blobs", Code, code("BlobNotFound", "ResourceNotFound")),
        ("another code of a lease", "blob leases", Code, code("LeaseIdMissing", "LeaseLost")),
        ("another code of a receipt", "messages", Code, code("PopReceiptMismatch", "MessageNotFound")),
        ("an ETag that never changes", "blobs", Relations, set("etag", "\"0x1\"")),
        ("an ETag that no write gave", "blobs", Relations, fresh_etag()),
        ("a snapshot twice at one time", "snapshots and versions", Relations, set("x-ms-snapshot", "2027-01-15T08:00:00.0000000Z")),
        ("one receipt for every message", "messages", Relations, element("PopReceipt", "AgAAAAMAAAAAAAAA")),
        ("a copy that changes its id", "copies", Relations, bend(|request, answer| {
            if request.method == "GET" && answer.headers.has("x-ms-copy-id") {
                answer.headers.set("x-ms-copy-id", "11111111-1111-4111-8111-111111111111");
            }
        })),
        ("a date that is none", "blobs", Headers, set("last-modified", "2027-01-15T08:00:00Z")),
        ("another hash", "blobs", Headers, set("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")),
        ("a range of another whole", "blobs", Headers, set("content-range", "bytes 0-1/2")),
        ("a lease that is never shown", "blob leases", Headers, set("x-ms-lease-state", "available")),
        ("an append always at the start", "append blobs", Headers, set("x-ms-blob-append-offset", "0")),
        ("a count of messages that is wrong", "queues", Headers, set("x-ms-approximate-messages-count", "7")),
        ("a body without its end", "blobs", Body, short_body()),
        ("a document with another code", "blobs", Body, text("<Code>", "<Code>Other")),
        ("a count of deliveries that stays", "messages", Body, element("DequeueCount", "1")),
        ("names in another order", "listings", Body, bend(|_, answer| {
            if let Ok(body) = std::str::from_utf8(&answer.body) {
                let swapped = body.replace("<Name>a<", "<Name>?<").replace("<Name>C<", "<Name>a<");
                answer.body = swapped.replace("<Name>?<", "<Name>C<").into();
            }
        })),
        ("blocks of another size", "blocks", Body, element("Size", "1")),
        ("a page listed too many", "page blobs", Body, text("<PageRange>", "<PageRange></PageRange><PageRange>")),
    ]
}
