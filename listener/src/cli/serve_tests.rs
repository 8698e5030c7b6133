//! Tests of the answers, and of one exchange over a socket.

use smalt_listener::handler::{Verdict, function};
use smalt_listener::observers::Called;
use smalt_listener::{ListenerConfig, Observer, QueueListener};
use smalt_sleeve::port::Storage;
use smalt_worker::budget::Budget;
use smalt_worker::face::{Roles, answer, serve};

use super::*;
use crate::cli::support::{FakeStorage, QUEUE, run_for, s};
use crate::cli::token::Token;
use crate::cli::token::tests::Fixed;
use crate::cli::web;
use http::Request;

const ALL: Roles = Roles {
    health: true,
    metrics: true,
};

fn surface() -> (Arc<FakeStorage>, QueueListener, Arc<Surface>) {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let port = Arc::clone(&storage) as Arc<dyn Storage>;
    let handler = Arc::new(function(|_, _| async { Verdict::Ok }));
    let config = ListenerConfig::new(QUEUE);
    let listener = QueueListener::new(config, port, handler, 1).unwrap();
    let surface = Surface {
        worker: "w".to_owned(),
        relay: Relay::new("fake"),
        token: None,
        price: None,
        account: AccountLimit::new(1_000),
        queues: Mutex::default(),
        sets: Vec::new(),
        triggers: Vec::new(),
    };
    let listener = surface.add(listener, None);
    (storage, listener, Arc::new(surface))
}

fn ask(surface: &Surface, roles: Roles, request: &str, body: &str) -> (u16, String) {
    let (method, path) = request.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path);
    let (head, ()) = request.body(()).unwrap().into_parts();
    let answer = answer(surface, roles, &head, body.as_bytes());
    (answer.status.as_u16(), answer.text)
}

#[tokio::test(start_paused = true)]
async fn a_running_listener_is_ready_and_counted() {
    let (storage, listener, surface) = surface();
    for number in 0..5 {
        storage.put(QUEUE, &number.to_string());
    }
    assert_eq!(ask(&surface, ALL, "GET /readyz", "").0, 503, "not started");
    let report = run_for(&listener, s(5)).await;
    assert_eq!(ask(&surface, ALL, "GET /readyz", "").0, 200);
    let (_, metrics) = ask(&surface, ALL, "GET /metrics", "");
    assert!(metrics.contains("listener_handled{queue=\"orders\",verdict=\"done\"} 5"));
    assert!(metrics.contains("listener_received{queue=\"orders\"} 5"));
    let (_, status) = ask(&surface, ALL, "GET /status", "");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let queue = &status["queues"][0];
    assert_eq!(queue["state"], "stopped");
    assert_eq!(queue["outcomes"]["done"], 5);
    assert_eq!(queue["requests"], report.requests, "as the report has it");
    tokio::time::advance(s(91)).await;
    let (code, why) = ask(&surface, ALL, "GET /readyz", "");
    assert_eq!(code, 503);
    assert!(
        why.starts_with("orders: storage has not answered for 9"),
        "{why}"
    );
}

/// DL21: an event for another queue is ignored; an event for this queue matches in any spelling.
#[tokio::test(start_paused = true)]
async fn dl21_events_match_their_queue() {
    let (_storage, _listener, surface) = surface();
    for (event, code, woken) in [
        (r#"{"queue":"orders"}"#, 202, "{\n  \"woken\": 1\n}\n"),
        (
            r#"{"queue":"ORDERS","account":"Fake"}"#,
            202,
            "{\n  \"woken\": 1\n}\n",
        ),
        (r#"{"queue":"mails"}"#, 202, "{\n  \"woken\": 0\n}\n"),
        (
            r#"{"queue":"orders","account":"a"}"#,
            202,
            "{\n  \"woken\": 0\n}\n",
        ),
    ] {
        let answer = ask(&surface, ALL, "POST /notify", event);
        assert_eq!(answer, (code, woken.to_owned()), "{event}");
    }
    assert_eq!(ask(&surface, ALL, "POST /notify", "orders").0, 400);
    let page = Request::post("/notify").header("origin", "http://evil.example");
    let (head, ()) = page.body(()).unwrap().into_parts();
    let refused = answer(&*surface, ALL, &head, b"{\"queue\":\"orders\"}");
    assert_eq!(refused.status.as_u16(), 403);
}

/// An event for a partitioned queue wakes the listener of each of its queues; before the map is
/// read the queue is not ready.
#[tokio::test(start_paused = true)]
async fn a_partitioned_queue_is_addressed_by_its_name() {
    let (storage, listener, surface) = surface();
    let mut surface = Arc::into_inner(surface).unwrap();
    surface.sets = vec![Arc::new(Metrics::new("mails"))];
    run_for(&listener, s(5)).await;
    let (code, why) = ask(&surface, ALL, "GET /readyz", "");
    assert_eq!((code, why.contains("mails: the map")), (503, true), "{why}");
    for queue in ["mails-00", "mails-01", "mails-00"] {
        let port = Arc::clone(&storage) as Arc<dyn Storage>;
        let handler = Arc::new(function(|_, _| async { Verdict::Ok }));
        let part = QueueListener::new(ListenerConfig::new(queue), port, handler, 1).unwrap();
        surface.add(part, Some("mails"));
    }
    assert_eq!(surface.queues().len(), 3, "a restart adds no second one");
    let event = r#"{"queue":"MAILS"}"#;
    let answer = ask(&surface, ALL, "POST /notify", event);
    assert_eq!(answer, (202, "{\n  \"woken\": 2\n}\n".to_owned()));
}

/// Requests for a map count for its partitioned queue, in addition to those of the queue of that
/// name.
#[tokio::test(start_paused = true)]
async fn requests_about_maps_are_counted() {
    let (_storage, _listener, surface) = surface();
    let mut surface = Arc::into_inner(surface).unwrap();
    let call = |operation| Called {
        operation,
        error: None,
        throttled: false,
    };
    let set = |queue: &str| {
        let metrics = Metrics::new(queue);
        metrics.called(&call("Get Blob"));
        metrics.called(&call("Get Queue Metadata"));
        Arc::new(metrics)
    };
    surface.sets = vec![set(QUEUE), set("mails")];
    surface.price = Some(100.0);
    let of_queue = &surface.queues()[0].metrics;
    of_queue.called(&call("Get Queue Metadata"));
    let (_, metrics) = ask(&surface, ALL, "GET /metrics", "");
    let is_asked = |l: &&str| l.starts_with("listener_tx") || l.starts_with("listener_cost_e");
    let series: Vec<_> = metrics.lines().filter(is_asked).collect();
    let wanted = [
        "listener_tx_total{queue=\"orders\",op=\"Get Blob\"} 1",
        "listener_tx_total{queue=\"orders\",op=\"Get Queue Metadata\"} 2",
        "listener_tx_total{queue=\"mails\",op=\"Get Blob\"} 1",
        "listener_tx_total{queue=\"mails\",op=\"Get Queue Metadata\"} 1",
        "listener_cost_estimate{queue=\"orders\"} 0.03",
        "listener_cost_estimate{queue=\"mails\"} 0.02",
    ];
    assert_eq!(series, wanted);
}

/// With a token, requests without it are refused, and the answer says what is missing.
#[tokio::test(start_paused = true)]
async fn events_need_the_token() {
    let (_storage, _listener, surface) = surface();
    let mut surface = Arc::into_inner(surface).unwrap();
    surface.token = Some(Token::named("env:T", &Fixed("0123456789abcdef")).unwrap());
    let with = |authorization: Option<&str>| {
        let mut request = Request::post("/notify");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let answer = answer(&surface, ALL, &head, b"{\"queue\":\"orders\"}");
        answer.status.as_u16()
    };
    assert_eq!(with(None), 401);
    assert_eq!(with(Some("Bearer 0123456789abcdeg")), 401);
    assert_eq!(with(Some("Bearer 0123456789abcdef")), 202);
    assert_eq!(
        ask(&surface, ALL, "GET /livez", "").0,
        200,
        "for events only"
    );
}

/// Every address reports that the daily budget is spent and when work resumes.
#[tokio::test(start_paused = true)]
async fn a_spent_budget_is_shown() {
    let (storage, listener, surface) = surface();
    let mut surface = Arc::into_inner(surface).unwrap();
    surface.account = AccountLimit::new(1_000).with_budget(Budget {
        max_cost_per_day: 0.000_02,
        price_per_10k: 0.01,
    });
    let listener = listener.within(surface.account.clone());
    for number in 0..40 {
        storage.put(QUEUE, &number.to_string());
    }
    let budget = |surface: &Surface| {
        let (_, status) = ask(surface, ALL, "GET /status", "");
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let ready = status["queues"][0]["ready"].clone();
        (status["budget"].clone(), ready)
    };
    assert_eq!(budget(&surface).0["spent_until"], serde_json::Value::Null);
    run_for(&listener, s(5)).await;
    let (today, ready) = budget(&surface);
    assert_eq!(today["max_cost_per_day"], 0.000_02);
    assert_eq!(today["spent_until"], "2026-09-22T00:00:00Z");
    assert!(today["requests_today"].as_u64().unwrap() <= 20, "{today}");
    assert_eq!(ready, false);
    let (code, why) = ask(&surface, ALL, "GET /readyz", "");
    assert_eq!(code, 503);
    assert!(
        why.starts_with("the day's budget of 0.00002 is spent"),
        "{why}"
    );
    let (_, metrics) = ask(&surface, ALL, "GET /metrics", "");
    for line in [
        "listener_budget_spent 1",
        "listener_max_cost_per_day 0.00002",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line} in {metrics}");
    }
    tokio::time::advance(s(35_200)).await;
    assert_eq!(budget(&surface).0["requests_today"], 0);
    let (_, metrics) = ask(&surface, ALL, "GET /metrics", "");
    assert!(metrics.contains("\nlistener_budget_spent 0\n"));
}

#[tokio::test]
async fn one_exchange_over_a_socket() {
    let (_storage, _listener, surface) = surface();
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let server = tokio::spawn(serve(socket, Arc::clone(&surface), ALL));
    assert_eq!(
        web::get(&format!("http://{at}/livez")).await.unwrap(),
        "ok\n"
    );
    let event = json!({ "queue": "orders" });
    let woken = web::post(&format!("http://{at}/notify"), &event, None)
        .await
        .unwrap();
    assert_eq!(woken, "{\n  \"woken\": 1\n}\n");
    let long = json!({ "queue": "x".repeat(5000) });
    let refused = web::post(&format!("http://{at}/notify"), &long, None).await;
    assert!(refused.unwrap_err().to_string().contains("413"));
    let unready = web::get(&format!("http://{at}/readyz")).await.unwrap_err();
    assert!(unready.to_string().contains("503"), "{unready}");
    server.abort();
}
