//! Recordings of other tools: the same exchanges in every format, what each lacks, and what is no
//! recording at all.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::options::import;
use crate::replay::corpus;
use crate::replay::player::{Outcome, play};
use crate::target::in_process::InProcess;
use crate::traces::body::Body;
use crate::traces::convert;
use crate::traces::format::{Exchange, Trace};

const KEY: &str = "s3cret";
/// As long as the name that it gets: lengths stay right.
const REAL: &str = "realacc";

/// A trace of our own, which the formats below are made from.
fn trace(name: &str) -> Trace {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join(format!("../fixtures/traces/{name}.ndjson"));
    Trace::parse(name, &corpus::read(&path).unwrap()).unwrap()
}

/// As it was before it was scrubbed: another account, and a signature.
fn real(text: &str) -> String {
    text.replace("account.", &format!("{REAL}."))
}

fn headers(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = match name.as_str() {
            "authorization" => format!("SharedKey {REAL}:{KEY}"),
            _ => real(value),
        };
        (name.clone(), value)
    });
    let pairs = pairs.chain([("user-agent".to_owned(), "c0ffee".to_owned())]);
    pairs.collect()
}

/// A body as text, or the bytes that are none.
fn body(body: Option<&Body>) -> Result<String, Vec<u8>> {
    let bytes = body.map(|body| body.bytes().unwrap().to_vec());
    let text = String::from_utf8(bytes.unwrap_or_default());
    text.map(|text| real(&text))
        .map_err(std::string::FromUtf8Error::into_bytes)
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn vcr_yaml(trace: &Trace) -> String {
    let list = |pairs: &[(String, String)]| {
        let pairs = headers(pairs);
        let line = |(n, v): &(String, String)| format!("      {n}:\n      - {}\n", quoted(v));
        pairs.iter().map(line).collect::<String>()
    };
    let scalar = |from: Option<&Body>| match body(from) {
        Ok(text) => quoted(&text),
        Err(bytes) => format!("!!binary |\n        {}", base64(&bytes)),
    };
    let mut text = "interactions:\n".to_owned();
    for Exchange {
        request, response, ..
    } in &trace.exchanges
    {
        text += &format!(
            "- request:\n    body: {}\n    headers:\n{}    method: {}\n    uri: {}\n  \
             response:\n    body:\n      string: {}\n    headers:\n{}    status:\n      \
             code: {}\n      message: x\n",
            scalar(request.body.as_ref()),
            list(&request.headers),
            request.method,
            quoted(&real(&request.url)),
            scalar(response.body.as_ref()),
            list(&response.headers),
            response.status,
        );
    }
    text + "version: 1\n"
}

fn map(pairs: &[(String, String)]) -> Value {
    let pairs = headers(pairs).into_iter();
    Value::Object(pairs.map(|(n, v)| (n, Value::from(v))).collect())
}

fn vcr_json(trace: &Trace) -> String {
    let content = |from: Option<&Body>| match body(from) {
        Ok(text) => json!({ "string": text }),
        Err(bytes) => json!({ "base64_string": base64(&bytes) }),
    };
    let one = |e: &Exchange| {
        json!({
            "request": {
                "method": e.request.method, "uri": real(&e.request.url),
                "headers": map(&e.request.headers), "body": content(e.request.body.as_ref()),
            },
            "response": {
                "status": { "code": e.response.status, "message": "x" },
                "headers": map(&e.response.headers), "body": content(e.response.body.as_ref()),
            },
        })
    };
    let all: Vec<Value> = trace.exchanges.iter().map(one).collect();
    json!({ "interactions": all, "version": 1 }).to_string()
}

fn proxy(trace: &Trace) -> String {
    let content = |pairs: &[(String, String)], from: Option<&Body>| {
        let media_type = super::raw::header(pairs, "content-type").to_owned();
        match body(from) {
            Ok(text) if text.is_empty() => Value::Null,
            Ok(text)
                if ["xml", "text", "json"]
                    .iter()
                    .any(|t| media_type.contains(t)) =>
            {
                json!(text.split_inclusive('\n').collect::<Vec<_>>())
            }
            Ok(text) => json!(base64(text.as_bytes())),
            Err(bytes) => json!(base64(&bytes)),
        }
    };
    let one = |e: &Exchange| {
        json!({
            "RequestUri": real(&e.request.url), "RequestMethod": e.request.method,
            "RequestHeaders": map(&e.request.headers),
            "RequestBody": content(&e.request.headers, e.request.body.as_ref()),
            "StatusCode": e.response.status, "ResponseHeaders": map(&e.response.headers),
            "ResponseBody": content(&e.response.headers, e.response.body.as_ref()),
        })
    };
    let all: Vec<Value> = trace.exchanges.iter().map(one).collect();
    json!({ "Entries": all, "Variables": {} }).to_string()
}

fn har(trace: &Trace) -> String {
    let list = |pairs: &[(String, String)]| {
        let pairs = headers(pairs).into_iter();
        let pairs = pairs.map(|(n, v)| json!({ "name": n, "value": v }));
        Value::Array(pairs.collect())
    };
    let content = |from: Option<&Body>| match body(from) {
        Ok(text) => json!({ "mimeType": "x", "text": text }),
        Err(bytes) => json!({ "mimeType": "x", "encoding": "base64", "text": base64(&bytes) }),
    };
    let one = |e: &Exchange| {
        json!({
            "startedDateTime": "2026-11-21T11:00:00.000Z", "time": 1,
            "request": {
                "method": e.request.method, "url": real(&e.request.url),
                "headers": list(&e.request.headers),
                "postData": e.request.body.as_ref().map(|body| content(Some(body))),
            },
            "response": {
                "status": e.response.status, "headers": list(&e.response.headers),
                "content": content(e.response.body.as_ref()),
            },
        })
    };
    let all: Vec<Value> = trace.exchanges.iter().map(one).collect();
    json!({ "log": { "version": "1.2", "entries": all } }).to_string()
}

fn nock(trace: &Trace) -> String {
    let one = |e: &Exchange| {
        let url = real(&e.request.url);
        let at = url
            .match_indices('/')
            .nth(2)
            .map_or(url.len(), |(at, _)| at);
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let answer = body(e.response.body.as_ref());
        let raw: Vec<String> = headers(&e.response.headers)
            .into_iter()
            .flat_map(|(n, v)| [n, v])
            .collect();
        json!({
            "scope": format!("{}:443", &url[..at]), "path": url[at..], "method": e.request.method,
            "body": body(e.request.body.as_ref()).unwrap_or_else(|bytes| hex(&bytes)),
            "status": e.response.status,
            "reqheaders": map(&e.request.headers), "rawHeaders": raw,
            "responseIsBinary": answer.is_err(),
            "response": answer.unwrap_or_else(|bytes| hex(&bytes)),
        })
    };
    let all: Vec<Value> = trace.exchanges.iter().map(one).collect();
    json!(all).to_string()
}

/// The same exchanges come out of every format, without a secret in them, and replay.
#[tokio::test]
async fn every_format_gives_the_same_trace() {
    for name in [
        "queue/messages",
        "blob/blocks",
        "blob/block_blob",
        "table/entities",
        "table/queries",
        "table/transactions",
    ] {
        let own = trace(name);
        for (format, text, is_yaml) in [
            ("vcr yaml", vcr_yaml(&own), true),
            ("vcr json", vcr_json(&own), false),
            ("proxy", proxy(&own), false),
            ("har", har(&own), false),
            ("nock", nock(&own), false),
        ] {
            let what = format!("{name} as {format}");
            let traces = import(&text, is_yaml).unwrap_or_else(|e| panic!("{what}: {e}"));
            let [imported] = traces.as_slice() else {
                panic!("{what}: {} traces", traces.len());
            };
            assert_eq!(imported.exchanges.len(), own.exchanges.len(), "{what}");
            for (imported, own) in imported.exchanges.iter().zip(&own.exchanges) {
                assert_eq!(imported.request.url, own.request.url, "{what}");
                assert_eq!(imported.request.body, own.request.body, "{what}");
                assert_eq!(imported.response.body, own.response.body, "{what}");
                assert_eq!(imported.response.status, own.response.status, "{what}");
            }
            let written = imported.write().unwrap();
            for secret in [KEY, REAL, "c0ffee"] {
                assert!(!written.contains(secret), "{what}: {secret}");
            }
            assert_eq!(imported.header.notes, [], "{what}");
            replays(&what, &written).await;
        }
    }
}

async fn replays(what: &str, written: &str) {
    let recording = convert::recording(what, written).unwrap();
    let played = play(Arc::new(InProcess::default()), &recording).await;
    assert_eq!(played.setup_problems, Vec::<String>::new(), "{what}");
    for (n, outcome) in played.outcomes.iter().enumerate() {
        assert_eq!(*outcome, Outcome::Passed, "{what}: exchange {n}");
    }
}

/// A cassette as PyYAML writes it: folded texts, an alias for equal lists, no Date.
const CASSETTE: &str = r#"interactions:
- request:
    body: null
    headers:
      Content-Length: &id001
      - '0'
      x-ms-date:
      - Sat, 22 Jun 2019 20:13:16 GMT
      x-ms-version: &id002
      - '2018-03-28'
    method: PUT
    uri: https://realname.queue.core.windows.net/orders
  response:
    body:
      string: ''
    headers:
      Content-Length: *id001
      Server:
      - Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0
      x-ms-version: *id002
    status:
      code: 201
      message: Created
- request:
    body: null
    headers:
      Content-Length:
      - '98'
      Content-Type:
      - application/xml
      x-ms-version: *id002
    method: POST
    uri: https://realname.queue.core.windows.net/orders/messages
  response:
    body:
      string: "\uFEFF<?xml version=\"1.0\" encoding=\"utf-8\"?><Error>\
        <Code>InvalidXmlDocument</Code><Message>XML\
        \ specified is not syntactically valid.</Message></Error>"
    headers:
      Server:
      - Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0
      x-ms-version: *id002
    status:
      code: 400
      message: Bad Request
- request:
    body: null
    headers: {}
    method: GET
    uri: https://login.example.org/token
  response:
    body: {string: ''}
    headers: {}
    status: {code: 200, message: OK}
version: 1
"#;

/// nock marks the hex of an answer, and not that of a request.
#[test]
fn hex_of_nock_is_read() {
    let text = r#"[{"scope":"http://127.0.0.1:10000","method":"PUT","path":"/realname/c/b",
        "reqheaders":{"content-length":"2","x-ms-blob-type":"BlockBlob"},"body":"00ff",
        "status":201,"response":["fe","01"],"responseIsBinary":true,
        "rawHeaders":["Date","Sat, 22 Jun 2019 20:13:16 GMT","x-ms-version","2019-02-02"]}]"#;
    let exchange = &import(text, false).unwrap()[0].exchanges[0];
    let bytes = |body: &Option<Body>| body.as_ref().unwrap().bytes().unwrap();
    assert_eq!(bytes(&exchange.request.body), [0, 255].as_slice());
    assert_eq!(bytes(&exchange.response.body), [254, 1].as_slice());
    let url = "https://account.blob.core.windows.net/c/b";
    assert_eq!(exchange.request.url, url);
    let short = text.replace(r#""2""#, r#""9""#);
    let notes = &import(&short, false).unwrap()[0].header.notes;
    assert!(
        notes[0].text.contains("4 bytes where its header says 9"),
        "{notes:?}"
    );
}

/// What a cassette lacks is said, exchange by exchange, and nothing is passed off as recorded.
#[test]
fn what_is_lacking_is_noted() {
    let traces = import(CASSETTE, true).unwrap();
    let trace = &traces[0];
    let notes: Vec<String> = trace
        .header
        .notes
        .iter()
        .map(|note| format!("{:?} {}", note.exchange, note.text))
        .collect();
    assert_eq!(
        notes,
        [
            "Some(0) no Date in the answer: that of the request in its place",
            "Some(1) no Date in the answer: that of the exchange before in its place",
            "Some(1) the request's body of 98 bytes: zeroes in its place",
            "None no answer has x-ms-request-id: not compared",
            "None no answer has x-ms-client-request-id: not compared",
            "None 1 exchanges with other services left out",
        ]
    );
    let second = &trace.exchanges[1];
    assert_eq!(second.request.body, Some(Body::Missing { length: 98 }));
    let Some(Body::Text(text)) = &second.response.body else {
        panic!("{second:?}");
    };
    assert!(
        text.contains("XML specified is not") && text.starts_with('\u{feff}'),
        "{text}"
    );
}

/// An answer whose body was not kept is replayed, and only its body not compared.
#[tokio::test]
async fn a_lost_body_is_not_compared() {
    let own = trace("queue/messages");
    let mut document: Value = serde_json::from_str(&har(&own)).unwrap();
    let entries = document["log"]["entries"].as_array_mut().unwrap();
    let listing = &mut entries[4]["response"];
    assert_eq!(listing["status"], 200);
    let length = own.exchanges[4]
        .response
        .body
        .as_ref()
        .unwrap()
        .bytes()
        .unwrap()
        .len();
    listing["content"] = json!({ "mimeType": "application/xml" });
    let counted = json!({ "name": "Content-Length", "value": length.to_string() });
    listing["headers"].as_array_mut().unwrap().push(counted);
    let traces = import(&document.to_string(), false).unwrap();
    let body = traces[0].exchanges[4].response.body.clone();
    assert_eq!(
        body,
        Some(Body::Missing {
            length: length as u64
        })
    );
    assert!(traces[0].header.notes[0].text.contains("not compared"));
    replays("lost body", &traces[0].write().unwrap()).await;
}

/// Bad input is one line with the place.
#[test]
fn what_is_no_recording_is_refused_with_its_place() {
    let proxy = |entry: &str| format!("{{\"Entries\":[{entry}]}}");
    for (text, is_yaml, expected) in [
        (
            "{\"a\":".to_owned(),
            false,
            "1:5: not JSON: EOF while parsing a value",
        ),
        ("{}".to_owned(), false, "1:1: neither a cassette of vcrpy"),
        ("nock('https://a')".to_owned(), false, "1:2: not JSON"),
        (
            "interactions: 3".to_owned(),
            true,
            "1:15: this should be a list",
        ),
        (
            CASSETTE.replace("code: 201", "code: 2010"),
            true,
            "22:13: this should be a status code",
        ),
        (
            CASSETTE.replace("    method: PUT\n", ""),
            true,
            "3:5: method is missing",
        ),
        (proxy("{}"), false, "Entries[0]: RequestMethod is missing"),
        (
            proxy(r#"{"RequestMethod":"GET","RequestUri":"/c","StatusCode":200}"#),
            false,
            "Entries[0]: not an absolute URL: /c",
        ),
        (
            proxy(
                r#"{"RequestMethod":"GET","StatusCode":200,
                "RequestUri":"https://a.blob.core.windows.net/c"}"#,
            ),
            false,
            "Entries[0]: nothing tells when this was",
        ),
        (
            proxy(
                r#"{"RequestMethod":"GET","StatusCode":200,"ResponseHeaders":{"Date":"today"},
                "RequestUri":"https://a.blob.core.windows.net/c"}"#,
            ),
            false,
            "Entries[0]: the answer's Date is none: today",
        ),
    ] {
        let wrong = import(&text, is_yaml).unwrap_err().to_string();
        assert!(
            wrong.starts_with(expected),
            "{wrong} in place of {expected}"
        );
        assert!(!wrong.contains('\n'), "{wrong}");
    }
}
