//! Deliberately wrong answers: description, area, wrong aspect, and change.

use smalt_harness::cases::expect::Aspect;
use smalt_harness::target::bent::Bend;
use smalt_harness::wire::{Answer, Request};

/// One row of the table.
type Row = (&'static str, &'static str, Aspect, Bend);

fn bend(change: impl Fn(&Request, &mut Answer) + Send + Sync + 'static) -> Bend {
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

/// Replaces the text of an element, wherever it is.
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

/// Makes reads return another ETag than writes.
fn fresh_etag() -> Bend {
    bend(|request, answer| {
        if request.method != "PUT" && answer.headers.has("etag") {
            answer.headers.set("etag", "\"0xFFFFFFFFFFFFFFF\"");
        }
    })
}

/// Removes the last byte of a body.
fn short_body() -> Bend {
    bend(|request, answer| {
        if request.method == "GET" && !answer.body.is_empty() {
            answer.body = answer.body.slice(..answer.body.len() - 1);
        }
    })
}

/// Changes the id of the last copy.
fn another_copy() -> Bend {
    bend(|request, answer| {
        if request.method == "GET" && answer.headers.has("x-ms-copy-id") {
            let id = "11111111-1111-4111-8111-111111111111";
            answer.headers.set("x-ms-copy-id", id);
        }
    })
}

/// Swaps two names.
fn swapped_names() -> Bend {
    bend(|_, answer| {
        if let Ok(body) = std::str::from_utf8(&answer.body) {
            let swapped = body.replace("<Name>a<", "<Name>?<");
            let swapped = swapped.replace("<Name>C<", "<Name>a<");
            answer.body = swapped.replace("<Name>?<", "<Name>C<").into();
        }
    })
}

/// Returns all rows of the table.
pub(crate) fn all() -> Vec<Row> {
    let rows = [statuses(), codes(), headers(), relations(), bodies()];
    rows.into_iter().flatten().collect()
}

fn rows<const N: usize>(aspect: Aspect, rows: [(&'static str, &'static str, Bend); N]) -> Vec<Row> {
    let rows = rows.into_iter();
    rows.map(|(what, area, bend)| (what, area, aspect, bend))
        .collect()
}

fn statuses() -> Vec<Row> {
    let list = [
        ("200 in place of 201", "blobs", status(201, 200)),
        ("409 in place of 412", "conditions", status(412, 409)),
        ("200 in place of 304", "conditions", status(304, 200)),
        ("404 in place of 400", "messages", status(400, 404)),
    ];
    rows(Aspect::Status, list)
}

fn codes() -> Vec<Row> {
    let receipt = code("PopReceiptMismatch", "MessageNotFound");
    let list = [
        ("a code", "blobs", code("BlobNotFound", "ResourceNotFound")),
        (
            "a lease's",
            "blob leases",
            code("LeaseIdMissing", "LeaseLost"),
        ),
        ("a receipt's code", "messages", receipt),
    ];
    rows(Aspect::Code, list)
}

fn headers() -> Vec<Row> {
    let area = "anonymous and signatures";
    let md5 = set("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==");
    let count = set("x-ms-approximate-messages-count", "7");
    let date = set("last-modified", "2027-01-15T08:00:00Z");
    let state = set("x-ms-lease-state", "available");
    let offset = set("x-ms-blob-append-offset", "0");
    let range = set("content-range", "bytes 0-1/2");
    let list = [
        ("a missing ETag", "blobs", drop_header("etag")),
        ("a missing id", "blobs", drop_header("x-ms-request-id")),
        ("a missing date", "queues", drop_header("date")),
        ("another version", area, set("x-ms-version", "2009-09-18")),
        ("a date that is none", "blobs", date),
        ("another hash", "blobs", md5),
        ("a range of another whole", "blobs", range),
        ("a lease that is never shown", "blob leases", state),
        ("an append always at the start", "append blobs", offset),
        ("a wrong count of messages", "queues", count),
    ];
    rows(Aspect::Headers, list)
}

fn relations() -> Vec<Row> {
    let snapshot = set("x-ms-snapshot", "2027-01-15T08:00:00.0000000Z");
    let receipt = element("PopReceipt", "AgAAAAMAAAAAAAAA");
    let area = "snapshots and versions";
    let list = [
        ("an ETag that stays", "blobs", set("etag", "\"0x1\"")),
        ("an ETag that no write gave", "blobs", fresh_etag()),
        ("two snapshots of one time", area, snapshot),
        ("one receipt for all", "messages", receipt),
        ("a copy that changes its id", "copies", another_copy()),
    ];
    rows(Aspect::Relations, list)
}

fn bodies() -> Vec<Row> {
    let pages = text("<PageRange>", "<PageRange></PageRange><PageRange>");
    let list = [
        ("a body without its end", "blobs", short_body()),
        ("another code in it", "blobs", text("<Code>", "<Code>Other")),
        ("deliveries", "messages", element("DequeueCount", "1")),
        ("names in another order", "listings", swapped_names()),
        ("blocks of another size", "blocks", element("Size", "1")),
        ("a page listed too many", "page blobs", pages),
    ];
    rows(Aspect::Body, list)
}
