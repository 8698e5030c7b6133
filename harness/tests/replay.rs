//! Recordings against a server that cannot be told the time: dates are moved, and what the clock
//! or the account cannot be is excused, not passed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use smalt::http::{Listener, Patience};
use smalt::{Account, Config, Emulator};
use smalt_harness::replay::corpus;
use smalt_harness::replay::hosts::account_key_base64;
use smalt_harness::replay::player::{CLOCK_IS_FIXED, Outcome, Played, play_waiting};
use smalt_harness::replay::recording::{self, Recording};
use smalt_harness::replay::report::{Collector, Report};
use smalt_harness::replay::target::live::Live;
use smalt_harness::replay::text;
use smalt_protocol::Service;
use smalt_protocol::signing::AccountKey;
use tokio::task::JoinSet;

/// Accounts of the recordings here.
const ACCOUNTS: [&str; 2] = ["account", "account2"];
/// How long a recording is waited for.
const WAIT_MAX: Duration = Duration::from_secs(3);
/// Traces that need of the account, or of the clock, what this server cannot be given.
const EXCUSED: [&str; 2] = ["blob/soft_delete.ndjson", "blob/versions.ndjson"];

/// A smalt behind sockets without its control endpoint. It ends with the set.
async fn server() -> (Arc<Live>, JoinSet<()>) {
    let account = |name: &str| {
        let key = AccountKey::parse(&account_key_base64(name)).unwrap();
        (name.to_owned(), Account::with_key(key))
    };
    let config = Config {
        accounts: ACCOUNTS.into_iter().map(account).collect(),
        ..Config::default()
    };
    let emulator = Emulator::builder().config(config).open().unwrap();
    let mut servers = JoinSet::new();
    let mut addresses = Vec::new();
    for service in Service::ALL {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(service, any, None, Patience::default()).await;
        let listener = listener.unwrap();
        addresses.push(listener.address().unwrap().to_string());
        servers.spawn(listener.serve(emulator.clone(), std::future::pending()));
    }
    let live = Live::at(addresses.try_into().unwrap());
    (Arc::new(live.with_default_properties()), servers)
}

fn report(played: &[(Recording, Played)]) -> Report {
    let mut collector = Collector::new("live", true);
    for (recording, played) in played {
        collector.add(recording, played);
    }
    collector.finish()
}

/// The project's own traces pass whole, as they do in process, but for those that need settings.
#[tokio::test(flavor = "multi_thread")]
async fn the_traces_pass_at_another_time() {
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

/// One exchange with a blob service: method, path and query, request headers, request body, status,
/// second, response headers, response body.
type Exchange<'a> = (
    &'a str,
    &'a str,
    &'a [(&'a str, &'a str)],
    &'a str,
    u16,
    u32,
    &'a [(&'a str, &'a str)],
    &'a str,
);

fn blob_recording(exchanges: &[Exchange<'_>]) -> Recording {
    let map = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(n, v)| ((*n).to_owned(), json!(v)));
        serde_json::Value::Object(pairs.collect())
    };
    let header = json!({ "service": "blob", "sdk": "own", "interactions": exchanges.len() });
    let mut lines = vec![header.to_string()];
    for (n, (method, path, sent, body, status, second, answered, answer)) in
        exchanges.iter().enumerate()
    {
        let date = format!(
            "Thu, 09 May 2019 {:02}:57:{:02} GMT",
            second / 3_600,
            second % 60
        );
        let common = [
            ("Date", date.as_str()),
            ("Server", "Windows-Azure-Blob/1.0"),
            ("x-ms-request-id", "1"),
            ("x-ms-version", "2019-02-02"),
        ];
        let line = json!({
            "n": n, "op": method,
            "request": {
                "method": method,
                "url": format!("https://account.blob.core.windows.net{path}"),
                "headers": map(&[*sent, &[("x-ms-version", "2019-02-02")]].concat()),
                "body_b64": STANDARD.encode(body),
            },
            "response": {
                "status": status,
                "headers": map(&[&common, *answered].concat()),
                "body_b64": STANDARD.encode(answer),
            },
        });
        lines.push(line.to_string());
    }
    recording::parse("own.jsonl", &lines.join("\n")).unwrap()
}

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

/// Policies, signatures and conditions hold when they are moved, and only then; what lies an hour
/// ahead is not asked.
#[tokio::test(flavor = "multi_thread")]
async fn dates_are_moved_and_hours_are_not_waited_for() {
    let (live, _servers) = server().await;
    let (set, read) = (
        policy(""),
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>{}",
            policy(".0000000")
        ),
    );
    let acl = "/one?restype=container&comp=acl";
    let missing = |query| -> Exchange<'_> {
        let code = [("x-ms-error-code", "BlobNotFound")].as_slice();
        ("HEAD", query, &[], "", 404, 11, code, "")
    };
    let exchanges: Vec<Exchange<'_>> = vec![
        (
            "PUT",
            "/one?restype=container",
            &[],
            "",
            201,
            10,
            &[ETAG, CHANGED],
            "",
        ),
        (
            "PUT",
            acl,
            &[XML],
            &set,
            200,
            11,
            &[LATER_ETAG, CHANGED],
            "",
        ),
        (
            "GET",
            acl,
            &[],
            "",
            200,
            11,
            &[LATER_ETAG, CHANGED, XML],
            &read,
        ),
        // Valid by its own times, by the policy's; neither holds today.
        missing(
            "/one/b?sv=2019-02-02&sr=b&sp=r&st=2019-05-09T00%3A50%3A00Z&se=2019-05-09T01:50:00Z&sig=R",
        ),
        missing("/one/b?sv=2019-02-02&sr=b&si=one&sig=R"),
        (
            "HEAD",
            "/one?restype=container",
            &[],
            "",
            404,
            3_600,
            &[],
            "",
        ),
        (
            "HEAD",
            "/one?restype=container",
            &[],
            "",
            404,
            3_600,
            &[],
            "",
        ),
    ];
    let recording = blob_recording(&exchanges);
    let played = play_waiting(live, &recording, WAIT_MAX).await;
    assert_eq!(played.setup_problems, [""; 0]);
    for (n, outcome) in played.outcomes.iter().enumerate() {
        // What the answers have beside this is not what this is about.
        let wrong = match outcome {
            Outcome::Passed => Vec::new(),
            Outcome::Failed(differences) => differences.clone(),
            Outcome::Excused(why) => {
                assert!(n >= 5 && why == CLOCK_IS_FIXED, "{n}: {why}");
                continue;
            }
            Outcome::NotBuilt => panic!("{n} is not built"),
        };
        assert!(n < 5 && wrong.is_empty(), "{n}: {wrong:?}");
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
        text.contains("excused: 2 interactions; 0 recordings whole"),
        "{text}"
    );
    assert!(text.contains("     2  the clock cannot be set"), "{text}");
}
