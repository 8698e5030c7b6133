//! Whole requests, in process, on an account with one of everything.
//!
//! An input is a text: requests apart by lines of `---`, each with a line of method, service and
//! path (`PUT blob c/b?comp=block&blockid=QQ==`), header lines, an empty line and a body. Every
//! request carries a signature that permits everything, so that the fuzzer reaches what lies behind
//! the door. Afterwards the store must agree with itself.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use smalt::{Clock, Emulator, Service, Timestamp};
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::emulator_port;

use crate::wire::access::Access;
use crate::wire::in_process;

/// When every input begins.
const NOW_UNIX_S: u64 = 1_700_000_000;
/// Requests of one input.
const REQUESTS_MAX: usize = 16;

/// One of everything: what an input finds.
const WORLD: &[u8] = b"PUT blob c?restype=container
---
PUT blob c/b
x-ms-blob-type: BlockBlob
x-ms-meta-a: 1
x-ms-tags: a=1

{\"a\": 1, \"b\": [1, 2]}
{\"a\": \"x\"}
---
PUT blob c/csv
x-ms-blob-type: BlockBlob

a,b
1,\"x y\"
---
PUT blob c/b?comp=snapshot
---
PUT blob c/a
x-ms-blob-type: AppendBlob
---
PUT blob c/p
x-ms-blob-type: PageBlob
x-ms-blob-content-length: 2048
---
PUT queue q
---
POST queue q/messages

<QueueMessage><MessageText>m</MessageText></QueueMessage>
---
POST table Tables
content-type: application/json

{\"TableName\":\"t\"}
---
POST table t
content-type: application/json

{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1,\"b\":\"x\"}";

/// Serves the requests of an input.
///
/// # Panics
/// When an answer is a 5xx, when a request is not answered, or when the store no longer agrees with
/// itself.
pub fn requests(input: &[u8]) {
    let emulator = emulator();
    let access = Access::full(ApiVersion::LATEST);
    runtime().block_on(async {
        for request in [WORLD, input].into_iter().flat_map(split) {
            ask(&emulator, request, &access).await;
        }
    });
    let audit = emulator.audit();
    let agrees = audit.as_ref().is_ok_and(|a| a.differences.is_empty());
    assert!(agrees, "{audit:?}");
}

async fn ask(emulator: &Emulator, text: &[u8], access: &Access) {
    let Some(request) = parsed(text, access) else {
        return;
    };
    let shown = format!("{} {}", request.method(), request.uri().path());
    let answer = in_process::call(emulator, request).await;
    let served = answer.as_ref().is_ok_and(|a| a.status().as_u16() < 500);
    assert!(served, "{shown}: {answer:?}");
}

/// A new emulator in memory, the same for every input.
pub(super) fn emulator() -> Emulator {
    let clock = Clock::manual(Timestamp::from_unix_s(NOW_UNIX_S));
    let opened = Emulator::builder().clock(clock).seed(1).open();
    opened.unwrap_or_else(|error| unreachable!("{error}"))
}

/// A runtime of one thread.
pub(super) fn runtime() -> tokio::runtime::Runtime {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.unwrap_or_else(|error| unreachable!("{error}"))
}

/// The requests of an input.
fn split(input: &[u8]) -> Vec<&[u8]> {
    let mut rest = input;
    let mut requests = Vec::new();
    while let Some(at) = find(rest, b"\n---\n").filter(|_| requests.len() < REQUESTS_MAX) {
        requests.push(&rest[..at]);
        rest = &rest[at + 5..];
    }
    requests.push(rest);
    requests
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// The request of a text; `None` when HTTP could not carry it.
fn parsed(text: &[u8], access: &Access) -> Option<Request<Bytes>> {
    let at = find(text, b"\n\n");
    let (head, body) = at.map_or((text, &[][..]), |at| (&text[..at], &text[at + 2..]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut line = lines.next()?.splitn(3, |byte| *byte == b' ');
    let method = Method::from_bytes(line.next()?).ok()?;
    let name = line.next()?;
    let service = Service::ALL
        .into_iter()
        .find(|service| service.as_str().as_bytes() == name)?;
    let path = std::str::from_utf8(line.next()?).ok()?;
    let port = emulator_port(service);
    let uri = format!("http://127.0.0.1:{port}{}", access.path(path));
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-length", body.len())
        .header("x-ms-version", ApiVersion::LATEST.to_string())
        .body(Bytes::copy_from_slice(body))
        .ok()?;
    for line in lines {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        let name = HeaderName::from_bytes(name).ok()?;
        let value = HeaderValue::from_bytes(value[1..].trim_ascii()).ok()?;
        request.headers_mut().insert(name, value);
    }
    Some(request)
}
