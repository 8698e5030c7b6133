//! Replays recordings against a server whose clock cannot be set: dates are shifted, and checks
//! that need another clock or account are excused and do not count as passed.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use smalt::{Account, Config, Emulator};
use smalt_harness::replay::corpus;
use smalt_harness::replay::hosts::account_key_base64;
use smalt_harness::replay::player::{CLOCK_IS_FIXED, Outcome, Played, play_waiting};
use smalt_harness::replay::recording::{self, Recording};
use smalt_harness::replay::report::{Collector, Report};
use smalt_harness::replay::text;
use smalt_harness::target::About;
use smalt_harness::target::server::Server;
use smalt_harness::testing::Served;
use smalt_protocol::signing::AccountKey;

/// The accounts in the recordings.
const ACCOUNTS: [&str; 2] = ["account", "account2"];
/// The longest wait within a recording.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Traces that need account settings or a clock that this server does not have.
const EXCUSED: [&str; 2] = ["blob/soft_delete.ndjson", "blob/versions.ndjson"];

/// Starts smalt behind sockets without its control endpoint. Dropping the second value ends it.
async fn server() -> (Arc<Server>, Served) {
    let account = |name: &str| {
        let key = AccountKey::parse(&account_key_base64(name)).unwrap();
        (name.to_owned(), Account::with_key(key))
    };
    let config = Config {
        accounts: ACCOUNTS.into_iter().map(account).collect(),
        ..Config::default()
    };
    let emulator = Emulator::builder().config(config).open().unwrap();
    let served = Served::of(&emulator).await.unwrap();
    let authorities = served.addresses().map(|address| address.to_string());
    let live = Server::at(About::by_path("live", "http", authorities));
    (Arc::new(live.replayed(false)), served)
}

fn report(played: &[(Recording, Played)]) -> Report {
    let mut collector = Collector::new("live", true);
    for (recording, played) in played {
        collector.add(recording, played);
    }
    collector.finish()
}

/// The project's own traces pass as they do in process, except those that need settings.
#[tokio::test(flavor = "multi_thread")]
async fn traces_pass_at_another_time() {
    let (live, _servers) = server().await;
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/traces");
    let mut all = Vec::new();
    for name in corpus::names(&dir).unwrap() {
        let trace = corpus::load(&dir, &name).unwrap();
        let played = play_waiting(live.clone(), &trace, WAIT_MAX).await;
        assert_eq!(played.setup_problems, [""; 0], "{name}");
        for (n, outcome) in played.outcomes.iter().enumerate() {
            let is_excused = matches!(outcome, Outcome::Excused(_));
            let passed = *outcome == Outcome::Passed;
            let excusable = EXCUSED.contains(&name.as_str());
            assert!(
                passed || (excusable && is_excused),
                "{name} {n}: {outcome:?}"
            );
        }
        all.push((trace, played));
    }
    let report = report(&all);
    assert!(report.recordings > 20 && report.recordings_passed == report.recordings);
    assert!(report.recordings_excused <= EXCUSED.len() as u64);
}

/// One exchange with a blob service.
#[derive(Clone, Copy, Default)]
struct Exchange<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a str,
    status: u16,
    /// Seconds after 00:57 in the recording.
    second: u32,
    headers: &'a [(&'a str, &'a str)],
    answer: &'a str,
}

impl Exchange<'_> {
    fn line(&self, n: usize) -> String {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(n, v)| ((*n).to_owned(), json!(v)));
            serde_json::Value::Object(pairs.collect())
        };
        let (hour, second) = (self.second / 3_600, self.second % 60);
        let date = format!("Thu, 09 May 2019 {hour:02}:57:{second:02} GMT");
        let common = [
            ("Date", date.as_str()),
            ("Server", "Windows-Azure-Blob/1.0"),
            ("x-ms-request-id", "1"),
            ("x-ms-version", "2019-02-02"),
        ];
        let line = json!({
            "n": n, "op": self.method,
            "request": {
                "method": self.method,
                "url": format!("https://account.blob.core.windows.net{}", self.path),
                "headers": map(&[("x-ms-version", "2019-02-02"), XML]),
                "body_b64": STANDARD.encode(self.body),
            },
            "response": {
                "status": self.status,
                "headers": map(&[&common, self.headers].concat()),
                "body_b64": STANDARD.encode(self.answer),
            },
        });
        line.to_string()
    }
}

fn blob_recording(exchanges: &[Exchange<'_>]) -> Recording {
    let header = json!({ "service": "blob", "sdk": "own", "interactions": exchanges.len() });
    let lines = exchanges.iter().enumerate().map(|(n, one)| one.line(n));
    let lines: Vec<String> = [header.to_string()].into_iter().chain(lines).collect();
    recording::parse("own.jsonl", &lines.join("\n")).unwrap()
}

const CONTAINER: &str = "/one?restype=container";
const ACL: &str = "/one?restype=container&comp=acl";
/// Valid by its own times, which surround the recording.
const TIMES: &str = "/one/b?sv=2019-02-02&sr=b&sp=r&st=2019-05-09T00%3A50%3A00Z\
                     &se=2019-05-09T01:50:00Z&sig=R";
/// Valid by the times of the stored policy.
const POLICY: &str = "/one/b?sv=2019-02-02&sr=b&si=one&sig=R";
const ETAG: (&str, &str) = ("ETag", "\"0x8D6D4173A7F45B7\"");
const LATER_ETAG: (&str, &str) = ("ETag", "\"0x8D6D4173A7F45B8\"");
const CHANGED: (&str, &str) = ("Last-Modified", "Thu, 09 May 2019 00:57:10 GMT");
const XML: (&str, &str) = ("Content-Type", "application/xml");

fn policy(fraction: &str) -> String {
    format!(
        "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>\
         <Start>2019-05-08T00:00:00{fraction}Z</Start><Expiry>2019-05-10T00:00:00{fraction}Z\
         </Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
}

fn dated() -> Recording {
    let (set, read) = (policy(""), policy(".0000000"));
    let read = format!("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>{read}");
    let exchange = |method, path, status, headers| Exchange {
        method,
        path,
        status,
        headers,
        second: 11,
        ..Exchange::default()
    };
    let not_found: &[(&str, &str)] = &[("x-ms-error-code", "BlobNotFound")];
    let later = Exchange {
        second: 3_600,
        ..exchange("HEAD", CONTAINER, 404, &[])
    };
    blob_recording(&[
        Exchange {
            second: 10,
            ..exchange("PUT", CONTAINER, 201, &[ETAG, CHANGED])
        },
        Exchange {
            body: &set,
            ..exchange("PUT", ACL, 200, &[LATER_ETAG, CHANGED])
        },
        Exchange {
            answer: &read,
            ..exchange("GET", ACL, 200, &[LATER_ETAG, CHANGED, XML])
        },
        exchange("HEAD", TIMES, 404, not_found),
        exchange("HEAD", POLICY, 404, not_found),
        later,
        later,
    ])
}

/// Policies and signatures are valid only if they are shifted. Exchanges an hour ahead are not
/// replayed.
#[tokio::test(flavor = "multi_thread")]
async fn dates_are_shifted_and_long_waits_are_excused() {
    let (live, _servers) = server().await;
    let recording = dated();
    let played = play_waiting(live, &recording, WAIT_MAX).await;
    assert_eq!(played.setup_problems, [""; 0]);
    for (n, outcome) in played.outcomes.iter().enumerate() {
        let expected = if n < 5 {
            Outcome::Passed
        } else {
            Outcome::Excused(CLOCK_IS_FIXED.to_owned())
        };
        assert_eq!(*outcome, expected, "{n}");
    }
    let report = report(&[(recording, played)]);
    assert_eq!((report.total.compared, report.total.excused), (5, 2));
    assert_eq!(
        (report.recordings_passed, report.recordings_in_part),
        (1, 1)
    );
    assert_eq!(report.excuses.get(CLOCK_IS_FIXED), Some(&2));
    let text = text::table(&report);
    assert!(
        text.contains("excused: 2 interactions; 0 complete recordings"),
        "{text}"
    );
    assert!(text.contains("     2  the clock cannot be set"), "{text}");
}
