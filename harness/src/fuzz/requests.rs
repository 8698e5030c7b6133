//! Whole requests, in process, on an account with one entity of each kind.
//!
//! An input has up to 16 requests separated by lines of `---`, each with a line of method, service
//! and path (`PUT blob ccc/b?comp=block&blockid=QQ==`), header lines, an empty line and a body.
//! Every request carries a signature that permits everything, so that the fuzzer gets past
//! authorization. The service `control` is the control endpoint (`PUT control clock`). Afterwards
//! the state must be consistent.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::BodyExt as _;
use smalt::{Clock, Emulator, Service, Timestamp, control};
use smalt_protocol::ApiVersion;
use smalt_protocol::connection_string::emulator_port;

use crate::wire::access::Access;
use crate::wire::in_process;

/// Time at which every input starts.
const NOW_UNIX_S: u64 = 1_700_000_000;
/// Maximum number of requests in one input.
const REQUESTS_MAX: usize = 16;

/// Requests that create one entity of each kind, before the input.
pub(super) const WORLD: &[u8] = b"PUT blob ccc?restype=container
---
PUT blob ccc/b
x-ms-blob-type: BlockBlob
x-ms-meta-a: 1
x-ms-tags: a=1

{\"a\": 1, \"b\": [1, 2]}
{\"a\": \"x\"}
---
PUT blob ccc/csv
x-ms-blob-type: BlockBlob

a,b
1,\"x y\"
---
PUT blob ccc/b?comp=snapshot
---
PUT blob ccc/a
x-ms-blob-type: AppendBlob
---
PUT blob ccc/p
x-ms-blob-type: PageBlob
x-ms-blob-content-length: 2048
---
PUT queue qqq
---
POST queue qqq/messages

<QueueMessage><MessageText>m</MessageText></QueueMessage>
---
POST table Tables
content-type: application/json

{\"TableName\":\"ttt\"}
---
POST table ttt
content-type: application/json

{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1,\"b\":\"x\"}";

/// Serves the requests of an input.
///
/// # Panics
/// When an answer is a 5xx that no fault rule asked for, when a request is not answered, when a
/// rejected control request changes state, or when the state is inconsistent.
pub fn requests(input: &[u8]) {
    let emulator = world();
    in_paused_time(serve(&emulator, input));
    agrees(&emulator);
}

pub(super) fn world() -> Emulator {
    let emulator = emulator();
    let made = in_paused_time(serve(&emulator, WORLD));
    assert!(made.iter().all(|status| *status < 300), "{made:?}");
    emulator
}

/// Serves requests in sequence and returns the statuses of their answers.
pub(super) async fn serve(emulator: &Emulator, requests: &[u8]) -> Vec<u16> {
    let access = Access::full(ApiVersion::LATEST);
    let mut statuses = Vec::new();
    for text in split(requests) {
        match parsed(text, &access) {
            Some((Some(_), request)) => statuses.extend(ask(emulator, request).await),
            Some((None, request)) => statuses.push(steer(emulator, request).await),
            None => {}
        }
    }
    statuses
}

async fn ask(emulator: &Emulator, request: Request<Bytes>) -> Option<u16> {
    let shown = format!("{} {}", request.method(), request.uri().path());
    let is_faulted = !emulator.faults().account().is_empty();
    let answer = in_process::call(emulator, request).await;
    let status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
    let is_served = status.is_some_and(|status| status < 500);
    assert!(is_served || is_faulted, "{shown}: {answer:?}");
    status
}

async fn steer(emulator: &Emulator, request: Request<Bytes>) -> u16 {
    let shown = format!("{} {}", request.method(), request.uri());
    // `/ready` answers 503 while the clock is behind the store.
    let is_ready = request.uri().path() == "/ready";
    let before = exported(emulator);
    let answer = control::answer(emulator, None, request.map(smalt::body::full)).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await;
    assert!(body.is_ok(), "{shown}: {body:?}");
    assert!(status < 500 || is_ready, "{shown}: {status} {body:?}");
    let is_kept = status < 400 || exported(emulator) == before;
    assert!(is_kept, "{shown}: {status} {body:?} changes the state");
    status
}

/// Checks that the state is consistent: references are counted correctly, and importing an export
/// gives the same state.
pub(super) fn agrees(emulator: &Emulator) {
    let audit = emulator.audit();
    let agrees = audit.as_ref().is_ok_and(|a| a.differences.is_empty());
    assert!(agrees, "{audit:?}");
    let (stream, again) = (exported(emulator), self::emulator());
    let imported = again.import(stream.as_slice());
    assert!(imported.is_ok(), "{imported:?}");
    let is_same = exported(&again) == stream;
    assert!(is_same, "importing an export gives a different state");
}

/// Returns the whole state as an archive.
pub(super) fn exported(emulator: &Emulator) -> Vec<u8> {
    let mut stream = Vec::new();
    let exported = emulator.export(&mut stream);
    assert!(exported.is_ok(), "{exported:?}");
    stream
}

/// Returns a new emulator in memory, the same for every input.
pub(super) fn emulator() -> Emulator {
    let clock = Clock::manual(Timestamp::from_unix_s(NOW_UNIX_S));
    let opened = Emulator::builder().clock(clock).seed(1).open();
    opened.unwrap_or_else(|error| unreachable!("{error}"))
}

/// Runs on one thread in paused time, so that no input waits for a delay that it asks for.
pub(super) fn in_paused_time<T>(work: impl Future<Output = T>) -> T {
    runtime(true).block_on(work)
}

pub(super) fn runtime(is_paused: bool) -> tokio::runtime::Runtime {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(is_paused)
        .build();
    built.unwrap_or_else(|error| unreachable!("{error}"))
}

pub(super) fn split(input: &[u8]) -> Vec<&[u8]> {
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

/// Parses a request; the service is `None` for the control endpoint. Returns `None` when HTTP could
/// not carry the request.
fn parsed(text: &[u8], access: &Access) -> Option<(Option<Service>, Request<Bytes>)> {
    let at = find(text, b"\n\n");
    let (head, body) = at.map_or((text, &[][..]), |at| (&text[..at], &text[at + 2..]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut line = lines.next()?.splitn(3, |byte| *byte == b' ');
    let method = Method::from_bytes(line.next()?).ok()?;
    let name = line.next()?;
    let path = std::str::from_utf8(line.next()?).ok()?;
    let (service, uri) = if name == b"control" {
        let path: PathAndQuery = format!("/{path}").parse().ok()?;
        (None, path.to_string())
    } else {
        let mut all = Service::ALL.into_iter();
        let service = all.find(|service| service.as_str().as_bytes() == name)?;
        let port = emulator_port(service);
        let uri = format!("http://127.0.0.1:{port}{}", access.path(path));
        (Some(service), uri)
    };
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "127.0.0.1")
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
    Some((service, request))
}
