//! Copy sources outside the emulator, fetched by a function of the test without a socket.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use smalt::body::{self, Body};
use smalt::fetch::{FetchError, SourceRules};
use smalt::http::SourceClient;
use smalt_protocol::{ApiVersion, ErrorCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Answer, BLOCK, Client};

const SYNC: (&str, &str) = ("x-ms-requires-sync", "true");

type Asked = Arc<Mutex<Vec<(String, HeaderMap)>>>;

/// Answers as the web: one page with range support, one without, and failures.
fn world(request: &Request<Bytes>) -> Result<Response<Body>, FetchError> {
    let answer = |status: u16, headers: &[(&str, &str)], body: Body| {
        let mut answer = Response::builder().status(status);
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        Ok(answer.body(body).unwrap())
    };
    let described = [
        ("content-type", "text/html"),
        ("cache-control", "no-cache"),
        ("x-ms-meta-team", "web"),
    ];
    let range = request.headers().get("range").map(|r| r.to_str().unwrap());
    match (request.uri().path(), range) {
        ("/page", Some("bytes=6-8")) => {
            let ranged = [("content-range", "bytes 6-8/11")];
            answer(206, &ranged, body::full("wor"))
        }
        ("/lies", Some(_)) => {
            let ranged = [("content-range", "bytes 0-2/11")];
            answer(206, &ranged, body::full("hel"))
        }
        ("/page" | "/plain", _) => answer(200, &described, body::full("hello world")),
        ("/empty", _) => answer(200, &[], body::empty()),
        ("/unsized", _) => answer(200, &[], unsized_body(1)),
        ("/endless", _) => answer(200, &[], unsized_body(1_000)),
        ("/cut", _) => answer(200, &[("content-length", "99")], body::full("hello")),
        ("/huge", _) => answer(
            200,
            &[("content-length", "9999999999")],
            body::full("hello"),
        ),
        ("/moved", _) => answer(302, &[("location", "/page")], body::empty()),
        ("/gone", _) => answer(404, &[], body::empty()),
        ("/broken", _) => answer(503, &[], body::empty()),
        ("/known", _) => answer(304, &[], body::empty()),
        ("/azure", _) => answer(409, &[("x-ms-error-code", "BlobArchived")], body::empty()),
        ("/locked", _) => answer(401, &[], body::empty()),
        ("/changed", _) => answer(412, &[], body::empty()),
        ("/slow", _) => Err(FetchError::TimedOut("it".to_owned())),
        ("/private", _) => Err(FetchError::Forbidden("web.example at 10.0.0.1".to_owned())),
        _ => Err(FetchError::Unreachable("nobody".to_owned())),
    }
}

/// Returns a body of this many pieces of 16 KiB, without a known length.
fn unsized_body(pieces: usize) -> Body {
    let piece = || Ok(http_body::Frame::data(Bytes::from(vec![b'x'; 16 * 1024])));
    let pieces = futures_util::stream::iter((0..pieces).map(move |_| piece()));
    StreamBody::new(pieces).boxed_unsync()
}

async fn client() -> (Client, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let client = Client::of(|builder| {
        builder.fetch_sources_by(move |request: Request<Bytes>| {
            let seen = (request.uri().to_string(), request.headers().clone());
            log.lock().unwrap().push(seen);
            let answer = world(&request);
            async move { answer }
        })
    });
    client.create("box").await;
    (client, asked)
}

async fn put(client: &Client, source: &str, more: &[(&str, &str)]) -> Answer {
    let source = format!("https://web.example{source}");
    let headers = [&[("x-ms-copy-source", source.as_str())], more].concat();
    client.send("PUT", "/box/b", &headers, "").await
}

async fn bytes(client: &Client) -> Bytes {
    let got = client.get("/box/b").await;
    assert_eq!(got.status, 200);
    got.body
}

#[tokio::test]
async fn web_page_is_copied_to_a_blob() {
    let (client, asked) = client().await;
    for (how, status) in [(&[BLOCK][..], "201"), (&[SYNC], "202"), (&[], "202")] {
        let answer = put(&client, "/page?sig=secret&v=1", how).await;
        assert_eq!(answer.outcome(), status, "{how:?}");
        assert_eq!(bytes(&client).await, "hello world");
        let head = client.head("/box/b").await;
        for (name, value) in [
            ("content-type", "text/html"),
            ("cache-control", "no-cache"),
            ("x-ms-meta-team", "web"),
            BLOCK,
            ("content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="),
        ] {
            assert_eq!(head.header(name), value, "{how:?} {name}");
        }
        if how != [BLOCK] {
            assert_eq!(answer.header("x-ms-copy-status"), "success");
            let shown = "https://web.example/page?v=1";
            assert_eq!(head.header("x-ms-copy-source"), shown);
            assert_eq!(head.header("x-ms-copy-progress"), "11/11");
        }
        let (url, _) = asked.lock().unwrap().pop().unwrap();
        assert_eq!(url, "https://web.example/page?sig=secret&v=1");
        client.send("DELETE", "/box/b", &[], "").await;
    }
    assert_eq!(put(&client, "/empty", &[BLOCK]).await.status, 201);
    assert_eq!(bytes(&client).await, "");
    assert_eq!(put(&client, "/unsized", &[BLOCK]).await.status, 201);
    assert_eq!(bytes(&client).await.len(), 16 * 1024);
}

#[tokio::test]
async fn block_copies_a_range_with_or_without_range_support() {
    let (client, _) = client().await;
    let block = "/box/b?comp=block&blockid=YQ%3D%3D";
    let list = "<BlockList><Latest>YQ==</Latest></BlockList>";
    for (source, range, expected) in [
        ("/page", "bytes=6-8", "201"),
        ("/plain", "bytes=6-8", "201"),
        ("/plain", "bytes=6-", "201"),
        ("/plain", "bytes=11-", "416 CannotVerifyCopySource"),
        ("/lies", "bytes=6-8", "400 CannotVerifyCopySource"),
    ] {
        let url = format!("http://web.example{source}");
        let headers = [
            ("x-ms-copy-source", url.as_str()),
            ("x-ms-source-range", range),
        ];
        let answer = client.send("PUT", block, &headers, "").await;
        assert_eq!(answer.outcome(), expected, "{source} {range}");
        if expected == "201" {
            let put = client.send("PUT", "/box/b?comp=blocklist", &[], list).await;
            assert_eq!(put.status, 201);
            let wanted = if range.ends_with('8') { "wor" } else { "world" };
            assert_eq!(bytes(&client).await, wanted, "{source} {range}");
        }
    }
}

#[tokio::test]
async fn source_request_has_the_headers_of_the_copy_request() {
    let (client, asked) = client().await;
    let headers = [
        BLOCK,
        ("x-ms-source-if-match", "\"0x1\""),
        ("x-ms-source-if-tags", "a = '1'"),
        ("x-ms-copy-source-authorization", "Bearer token"),
        ("x-ms-encryption-scope", "not-the-source's"),
    ];
    put(&client.under(ApiVersion::V2020_10_02), "/page", &headers).await;
    let (_, sent) = asked.lock().unwrap().pop().unwrap();
    let mut sent: Vec<_> = sent
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    sent.sort_unstable();
    let expected = [
        ("authorization", "Bearer token"),
        ("if-match", "\"0x1\""),
        ("x-ms-if-tags", "a = '1'"),
        ("x-ms-version", "2020-10-02"),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn unreadable_source_keeps_its_status_and_stores_nothing() {
    let (client, _) = client().await;
    for (source, status) in [
        ("/moved", 400),
        ("/gone", 404),
        ("/broken", 503),
        ("/known", 304),
        ("/azure", 409),
        ("/nobody", 404),
        ("/private", 403),
        ("/slow", 500),
        ("/cut", 500),
        ("/huge", 409),
        ("/endless", 400),
    ] {
        for how in [BLOCK, SYNC, ("x-ms-meta-n", "1")] {
            let answer = put(&client, source, &[how]).await;
            let expected = if source == "/known" && ![BLOCK, SYNC].contains(&how) {
                "412 SourceConditionNotMet"
            } else {
                &format!("{status} CannotVerifyCopySource")
            };
            assert_eq!(answer.outcome(), expected, "{source} {how:?}");
        }
    }
    let listed = client.get("/box?restype=container&comp=list").await;
    assert!(!listed.text().contains("<Blob>"));
}

#[tokio::test]
async fn hashes_of_a_fetched_source_are_verified() {
    let (client, _) = client().await;
    let right = ("x-ms-source-content-md5", "XrY7u+Ae7tCTyyK7j1rNww==");
    let wrong = ("x-ms-source-content-md5", "XrY7u+Ae7tCTyyK7j1rNxw==");
    assert_eq!(put(&client, "/page", &[BLOCK, right]).await.status, 201);
    let refused = put(&client, "/page", &[BLOCK, wrong]).await;
    assert_eq!(refused.outcome(), "400 Md5Mismatch");
}

#[tokio::test]
async fn this_server_is_never_fetched_through_a_socket() {
    let (client, asked) = client().await;
    let unknown = "http://127.0.0.1:10000/nobody/c/b";
    let headers = [BLOCK, ("x-ms-copy-source", unknown)];
    let answer = client.send("PUT", "/box/b", &headers, "").await;
    assert_eq!(answer.outcome(), "404 CannotVerifyCopySource");
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn page_is_fetched_over_a_socket_if_a_rule_allows_it() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";
            let _asked = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(answer).await.unwrap();
        }
    });
    for (rule, expected) in [
        ("public", "403 CannotVerifyCopySource"),
        ("127.0.0.0/8", "201"),
    ] {
        let rules = SourceRules::new(vec![rule.parse().unwrap()]);
        let sources = SourceClient::new(rules).unwrap();
        let client = Client::of(|builder| builder.fetch_sources_by(sources));
        client.create("box").await;
        let headers = [BLOCK, ("x-ms-copy-source", url.as_str())];
        let put = client.send("PUT", "/box/b", &headers, "").await;
        assert_eq!(put.outcome(), expected, "{rule}");
        if expected == "201" {
            assert_eq!(bytes(&client).await, "page");
        }
    }
}

/// The error quotes the text of the source's error code, or else of its status.
#[tokio::test]
async fn refusal_quotes_the_sources_error_text() {
    let (client, _) = client().await;
    for (source, status, code) in [
        ("/azure", 409, ErrorCode::BlobArchived),
        ("/locked", 401, ErrorCode::AuthenticationFailed),
        ("/gone", 404, ErrorCode::ResourceNotFound),
        ("/changed", 412, ErrorCode::ConditionNotMet),
    ] {
        let refused = put(&client, source, &[BLOCK]).await;
        assert_eq!(
            refused.outcome(),
            format!("{status} CannotVerifyCopySource")
        );
        let text = refused.text();
        assert!(text.contains(code.message()), "{source}: {text}");
    }
    let huge = put(&client, "/huge", &[BLOCK]).await;
    let text = huge.text();
    assert!(text.contains("limit (5000MB)."), "{text}");
}
