//! The comparison must find every kind of difference: small recordings, played against a target
//! that answers as recorded except for one change.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::compare::Aspect;
use super::mirror::Mirror;
use super::player::{Outcome, Played, play};
use super::recording::{Recording, parse};
use super::report::Collector;
use crate::target::{Ability, About, Setup, Target, TargetError};
use crate::wire::{Answer, Request};

const ID_1: &str = "11111111-1111-1111-1111-111111111111";
const ID_2: &str = "22222222-2222-2222-2222-222222222222";

struct Exchange<'a> {
    request: (&'a str, &'a str, &'a [(&'a str, &'a str)]),
    status: u16,
    headers: &'a [(&'a str, &'a str)],
    body: String,
}

/// Formats a recording in the corpus's format.
fn text_of(service: &str, exchanges: &[Exchange<'_>]) -> String {
    use base64::Engine as _;
    let count = exchanges.len();
    let header = serde_json::json!({ "service": service, "sdk": "own", "interactions": count });
    let mut lines = vec![header.to_string()];
    for (n, exchange) in exchanges.iter().enumerate() {
        let (method, path, request_headers) = exchange.request;
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).into()));
            serde_json::Value::Object(pairs.collect())
        };
        let mut headers = vec![("Date", "Thu, 09 May 2019 00:57:59 GMT")];
        headers.extend_from_slice(exchange.headers);
        let body = base64::engine::general_purpose::STANDARD.encode(&exchange.body);
        let line = serde_json::json!({
            "n": n, "op": format!("{method} {path}"),
            "request": {
                "method": method,
                "url": format!("https://account.{service}.core.windows.net{path}"),
                "headers": map(request_headers),
            },
            "response": { "status": exchange.status, "headers": map(&headers), "body_b64": body },
        });
        lines.push(line.to_string());
    }
    lines.join("\n")
}

fn message(id: &str, receipt: &str, text: &str) -> String {
    format!(
        "<QueueMessage><MessageId>{id}</MessageId><PopReceipt>{receipt}</PopReceipt>\
         <MessageText>{text}</MessageText></QueueMessage>"
    )
}

fn list(messages: &[String]) -> String {
    let messages = messages.concat();
    format!("\u{feff}<?xml version=\"1.0\"?><QueueMessagesList>{messages}</QueueMessagesList>")
}

/// A queue: two messages fetched twice, one deleted, one answer an error.
fn queue_text() -> String {
    const XML: (&str, &str) = ("Content-Type", "application/xml");
    let page = [
        message(ID_1, "receipt-one", "a"),
        message(ID_2, "receipt-two", "b"),
    ];
    let delete = format!("/q/messages/{ID_1}?popreceipt=receipt-one");
    let error = "<?xml version=\"1.0\"?><Error><Code>MessageNotFound</Code>\
        <Message>Gone.\nRequestId:x\nTime:y</Message></Error>";
    let exchange = |method, path, status, headers, body| Exchange {
        request: (method, path, &[]),
        status,
        headers,
        body,
    };
    text_of(
        "queue",
        &[
            exchange(
                "PUT",
                "/q",
                201,
                &[("x-ms-version", "2018-03-28")],
                String::new(),
            ),
            exchange("GET", "/q/messages", 200, &[XML], list(&page)),
            exchange("GET", "/q/messages?peekonly=true", 200, &[XML], list(&page)),
            exchange("DELETE", &delete, 204, &[], String::new()),
            exchange(
                "DELETE",
                &delete,
                404,
                &[XML, ("x-ms-error-code", "MessageNotFound")],
                error.to_owned(),
            ),
        ],
    )
}

/// A blob: two puts with ETags, a conditional read, a JSON answer as tables have it.
fn blob_text() -> String {
    const ETAG: &str = "\"0x8D6D4173A7F45B7\"";
    const OTHER: &str = "\"0x8D6D4173A7F45B8\"";
    let md5 = ("Content-MD5", "XrY7u+Ae7tCTyyK7j1rNww==");
    let exchange = |method, path, request, status, headers, body: &str| Exchange {
        request: (method, path, request),
        status,
        headers,
        body: body.to_owned(),
    };
    let json = r#"{"odata.etag":"W/\"0xAB\"","a":"1","b":"2"}"#;
    text_of(
        "blob",
        &[
            exchange("PUT", "/c/a", &[], 201, &[("ETag", ETAG), md5], ""),
            exchange("PUT", "/c/b", &[], 201, &[("ETag", OTHER), md5], ""),
            exchange(
                "GET",
                "/c/a",
                &[("If-Match", ETAG)],
                200,
                &[("ETag", ETAG)],
                "hello",
            ),
            exchange(
                "GET",
                "/c/b",
                &[],
                200,
                &[("Content-Type", "application/json")],
                json,
            ),
        ],
    )
}

fn recording(text: &str) -> Recording {
    parse("own.jsonl", text).unwrap()
}

/// Plays a recording against its mirror, after `change`.
async fn played(text: &str, change: impl FnOnce(&mut Recording)) -> Played {
    let original = recording(text);
    let mut changed = original.clone();
    change(&mut changed);
    play(Arc::new(Mirror::of(&changed)), &original).await
}

/// Returns the aspects that differ, with the index of the interaction.
fn differing(played: &Played) -> Vec<(usize, Aspect)> {
    let mut found = Vec::new();
    for (n, outcome) in played.outcomes.iter().enumerate() {
        match outcome {
            Outcome::Failed(differences) => {
                found.extend(differences.iter().map(|d| (n, d.aspect)));
            }
            Outcome::Passed => {}
            other => panic!("{n}: {other:?}"),
        }
    }
    found.dedup();
    found
}

fn edit_body(recording: &mut Recording, n: usize, edit: impl Fn(&str) -> String) {
    let body = &mut recording.interactions[n].response.body;
    *body = Bytes::from(edit(std::str::from_utf8(body).unwrap()));
}

/// The mirror itself passes: other ETags, same relations.
#[tokio::test]
async fn an_equal_answer_passes() {
    for text in [queue_text(), blob_text()] {
        assert_eq!(differing(&played(&text, |_| {}).await), []);
    }
}

type Change = fn(&mut Recording);
/// Name of the change, the change, and the interaction and aspect in which it must be found.
type Case = (&'static str, Change, (usize, Aspect));

/// Changes to [`queue_text`].
const QUEUE_CHANGES: &[Case] = &[
    (
        "status",
        |r| r.interactions[3].response.status = 200,
        (3, Aspect::Status),
    ),
    (
        "dropped header",
        |r| r.interactions[0].response.headers.remove("x-ms-version"),
        (0, Aspect::HeaderNames),
    ),
    (
        "added header",
        |r| r.interactions[0].response.headers.set("x-ms-other", "1"),
        (0, Aspect::HeaderNames),
    ),
    (
        "header value",
        |r| {
            r.interactions[0]
                .response
                .headers
                .set("x-ms-version", "2019-02-02");
        },
        (0, Aspect::HeaderValues),
    ),
    (
        "code",
        |r| {
            r.interactions[4]
                .response
                .headers
                .set("x-ms-error-code", "QueueNotFound");
        },
        (4, Aspect::Code),
    ),
    (
        "message",
        |r| edit_body(r, 4, |b| b.replace("Gone.", "Here.")),
        (4, Aspect::Body),
    ),
    (
        "swapped ids",
        |r| {
            edit_body(r, 2, |b| {
                b.replace(ID_1, "?")
                    .replace(ID_2, ID_1)
                    .replace("<MessageId>?", &format!("<MessageId>{ID_2}"))
            });
        },
        (2, Aspect::Relations),
    ),
    (
        "one receipt for two",
        |r| edit_body(r, 1, |b| b.replace("receipt-two", "receipt-one")),
        (1, Aspect::Relations),
    ),
    (
        "id of another form",
        |r| edit_body(r, 1, |b| b.replace(ID_1, "1")),
        (1, Aspect::Body),
    ),
    (
        "text",
        |r| edit_body(r, 2, |b| b.replace(">a<", ">c<")),
        (2, Aspect::Body),
    ),
    (
        "order",
        |r| {
            let page = [
                message(ID_2, "receipt-two", "b"),
                message(ID_1, "receipt-one", "a"),
            ];
            edit_body(r, 2, |_| list(&page));
        },
        (2, Aspect::Body),
    ),
    (
        "one message less",
        |r| edit_body(r, 2, |_| list(&[message(ID_1, "receipt-one", "a")])),
        (2, Aspect::Body),
    ),
    (
        "byte order mark",
        |r| edit_body(r, 2, |b| b.trim_start_matches('\u{feff}').to_owned()),
        (2, Aspect::Body),
    ),
    (
        "not XML",
        |r| edit_body(r, 2, |_| "<".to_owned()),
        (2, Aspect::Body),
    ),
    (
        "no body",
        |r| edit_body(r, 1, |_| String::new()),
        (1, Aspect::Body),
    ),
];

/// Changes to [`blob_text`].
const BLOB_CHANGES: &[Case] = &[
    (
        "same ETag for two writes",
        |r| {
            let etag = r.interactions[0]
                .response
                .headers
                .get("etag")
                .unwrap()
                .to_owned();
            r.interactions[1].response.headers.set("etag", etag);
        },
        (1, Aspect::Relations),
    ),
    (
        "ETag changed by a read",
        |r| {
            r.interactions[2]
                .response
                .headers
                .set("etag", "\"0x8D6D4173A7F45B9\"");
        },
        (2, Aspect::Relations),
    ),
    (
        "ETag without quotes",
        |r| {
            r.interactions[0]
                .response
                .headers
                .set("etag", "0x8D6D4173A7F45B7");
        },
        (0, Aspect::HeaderValues),
    ),
    (
        "hash",
        |r| {
            r.interactions[0]
                .response
                .headers
                .set("content-md5", "AAAA");
        },
        (0, Aspect::HeaderValues),
    ),
    (
        "date",
        |r| {
            r.interactions[0]
                .response
                .headers
                .set("date", "Thu, 09 May 2019 00:58:59 GMT");
        },
        (0, Aspect::HeaderValues),
    ),
    (
        "length",
        |r| {
            r.interactions[0]
                .response
                .headers
                .set("content-length", "7");
        },
        (0, Aspect::HeaderValues),
    ),
    (
        "bytes",
        |r| edit_body(r, 2, |_| "hellO".into()),
        (2, Aspect::Body),
    ),
    (
        "order of members",
        |r| {
            edit_body(r, 3, |_| {
                r#"{"odata.etag":"W/\"0xAB\"","b":"2","a":"1"}"#.into()
            });
        },
        (3, Aspect::Body),
    ),
    (
        "kind of member",
        |r| edit_body(r, 3, |b| b.replace("\"1\"", "1")),
        (3, Aspect::Body),
    ),
];

/// The comparison finds each change in its interaction and aspect.
#[tokio::test]
async fn every_change_is_caught() {
    for (text, changes) in [(queue_text(), QUEUE_CHANGES), (blob_text(), BLOB_CHANGES)] {
        for (what, change, expected) in changes {
            let found = differing(&played(&text, change).await);
            assert!(found.contains(expected), "{what}: {found:?}");
            let elsewhere = found.iter().filter(|(n, _)| n < &expected.0).count();
            assert_eq!(elsewhere, 0, "{what}: {found:?}");
        }
    }
}

/// A recording that lost an interaction is rejected, and one that was not played to its end has not
/// passed.
#[tokio::test]
async fn a_missing_interaction_is_caught() {
    let text = queue_text();
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    assert!(parse("f", &cut).is_err());
    let mut short = played(&text, |_| {}).await;
    short.outcomes.pop();
    let mut collector = Collector::new("mirror", true);
    collector.add(&recording(&text), &short);
    assert_eq!(collector.finish().recordings_passed, 0);
}

/// A target that fails in the way that the path names, and does not wait for later dates.
struct Moody(About);

impl Moody {
    fn target() -> Arc<Moody> {
        let able = [Ability::Clock, Ability::Settings];
        Arc::new(Moody(About::by_host("moody").able(able)))
    }
}

#[async_trait]
impl Target for Moody {
    fn about(&self) -> &About {
        &self.0
    }

    async fn reset(&self, _: &Setup) -> Result<(), TargetError> {
        Ok(())
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        match now.iso_s().starts_with("2019-05-09") {
            true => Ok(()),
            false => Err(TargetError::TooFarAhead { ahead_s: 1 }),
        }
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let answer = |status, code| {
            let headers = [
                ("date", "Thu, 09 May 2019 00:57:59 GMT"),
                ("x-ms-error-code", code),
            ];
            Answer {
                status,
                headers: headers.into_iter().collect(),
                body: Bytes::new(),
            }
        };
        match request.url.rsplit('/').next() {
            Some("panics") => panic!("as asked"),
            Some("hangs") => std::future::pending().await,
            Some("missing") => Ok(answer(501, "NotImplemented")),
            _ => Ok(answer(404, "QueueNotFound")),
        }
    }
}

/// A panic, a hang and a missing operation each end their own interaction only.
#[tokio::test(start_paused = true)]
async fn a_failing_target_affects_one_interaction() {
    let exchange = |path| Exchange {
        request: ("GET", path, &[]),
        status: 404,
        headers: &[("x-ms-error-code", "QueueNotFound")],
        body: String::new(),
    };
    let paths = ["/panics", "/hangs", "/missing", "/fine"];
    let text = text_of("queue", &paths.map(exchange));
    let recording = recording(&text);
    let played = play(Moody::target(), &recording).await;
    let call = |n: usize, part: &str| match &played.outcomes[n] {
        Outcome::Failed(d) => d[0].aspect == Aspect::Call && d[0].live.contains(part),
        _ => false,
    };
    assert!(call(0, "panicked"), "{:?}", played.outcomes[0]);
    assert!(call(1, "none within"), "{:?}", played.outcomes[1]);
    assert_eq!(played.outcomes[2], Outcome::NotBuilt);
    assert_eq!(played.outcomes[3], Outcome::Passed);
    let mut collector = Collector::new("moody", true);
    collector.add(&recording, &played);
    let report = collector.finish();
    // In the slice only the missing operation is counted, and not as passed.
    assert_eq!((report.total.compared, report.total.not_built), (0, 1));
    assert_eq!((report.recordings, report.recordings_not_built), (0, 1));
    let mut collector = Collector::new("moody", false);
    collector.add(&recording, &played);
    let report = collector.finish();
    assert_eq!((report.total.compared, report.total.passed), (3, 1));
    assert_eq!(report.recordings_passed, 0);
    assert_eq!(played.too_far_ahead, None);
    let mut late = recording.clone();
    late.interactions[2].date = late.interactions[2].date.plus_s(86_400);
    let played = play(Moody::target(), &late).await;
    assert_eq!(played.too_far_ahead, Some(2));
}
