//! Every bound of the message operations, with the error that each has.

use super::client::{Client, document};

const RANGE: &str = "400 OutOfRangeQueryParameterValue";
const VALUE: &str = "400 InvalidQueryParameterValue";
const LARGE: &str = "413 RequestBodyTooLarge";
const TEXT_MAX: usize = 65_536;

/// The parameter, its value, and its bounds as the refusal tells them.
#[tokio::test]
async fn numbers_out_of_range_name_their_range() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    let messages = "/que/messages".to_owned();
    let message = held.path("");
    for (method, path, name, values, bounds) in [
        ("GET", &messages, "numofmessages", ["0", "33"], ("1", "32")),
        (
            "GET",
            &messages,
            "numofmessages",
            ["-1", "1000"],
            ("1", "32"),
        ),
        (
            "GET",
            &messages,
            "visibilitytimeout",
            ["0", "604801"],
            ("1", "604800"),
        ),
        (
            "POST",
            &messages,
            "visibilitytimeout",
            ["-1", "604801"],
            ("0", "604800"),
        ),
        (
            "PUT",
            &message,
            "visibilitytimeout",
            ["-1", "604801"],
            ("0", "604800"),
        ),
    ] {
        for value in values {
            let join = if path.contains('?') { '&' } else { '?' };
            let path = format!("{path}{join}{name}={value}");
            let body = if method == "POST" {
                document("a")
            } else {
                String::new()
            };
            let answer = client.send(method, &path, body).await;
            assert_eq!(answer.outcome(), RANGE, "{method} {path}");
            assert_eq!(answer.one("QueryParameterName"), name);
            assert_eq!(answer.one("QueryParameterValue"), value);
            assert_eq!(answer.one("MinimumAllowed"), bounds.0);
            assert_eq!(answer.one("MaximumAllowed"), bounds.1);
        }
    }
    let peek = client.get("?peekonly=true&numofmessages=33").await;
    assert_eq!(peek.outcome(), RANGE);
    assert_eq!(peek.one("MaximumAllowed"), "32");
}

/// What is no number at all is an invalid value.
#[tokio::test]
async fn what_is_no_number_is_an_invalid_value() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    for (method, path) in [
        ("GET", "/que/messages?numofmessages=x".to_owned()),
        ("GET", "/que/messages?numofmessages=1.5".to_owned()),
        ("GET", "/que/messages?visibilitytimeout=".to_owned()),
        (
            "GET",
            "/que/messages?visibilitytimeout=99999999999999999999".to_owned(),
        ),
        ("POST", "/que/messages?messagettl=week".to_owned()),
        ("POST", "/que/messages?visibilitytimeout=1s".to_owned()),
        ("PUT", held.path("&visibilitytimeout=soon")),
    ] {
        let body = if method == "POST" {
            document("a")
        } else {
            String::new()
        };
        let answer = client.send(method, &path, body).await;
        assert_eq!(answer.outcome(), VALUE, "{method} {path}");
    }
    let missing = client.send("PUT", &held.path(""), "").await;
    assert_eq!(missing.outcome(), "400 MissingRequiredQueryParameter");
    assert_eq!(missing.one("QueryParameterName"), "visibilitytimeout");
}

/// A time to live is positive, or -1, and has 32 bits.
#[tokio::test]
async fn times_to_live_have_bounds() {
    let client = Client::new().await;
    let far = ["2147483648", "9223372036854775807", "-2147483649"];
    for value in ["0", "-2", "-2147483648"].into_iter().chain(far) {
        let answer = client.try_put("a", &format!("?messagettl={value}")).await;
        assert_eq!(answer.outcome(), VALUE, "{value}");
        assert_eq!(answer.one("QueryParameterName"), "messagettl");
        assert_eq!(answer.one("QueryParameterValue"), value);
    }
    for value in ["1", "604801", "2147483647", "-1"] {
        let answer = client.try_put("a", &format!("?messagettl={value}")).await;
        assert_eq!(answer.outcome(), "201", "{value}");
    }
}

/// A message has to be visible before it expires: at its put, and at each update.
#[tokio::test]
async fn a_message_cannot_be_hidden_until_it_expires() {
    let client = Client::new().await;
    for (ttl_s, hidden_s, outcome) in [(10, 9, "201"), (10, 10, VALUE), (10, 11, VALUE)] {
        let query = format!("?messagettl={ttl_s}&visibilitytimeout={hidden_s}");
        let answer = client.try_put("a", &query).await;
        assert_eq!(answer.outcome(), outcome, "{query}");
    }
    client.send("DELETE", "/que/messages", "").await;
    client.put("a", "?messagettl=100").await;
    client.advance_s(40);
    let held = client.take("").await;
    let late = client.try_update(&held, 61, String::new()).await;
    assert_eq!(late.outcome(), RANGE);
    assert_eq!(late.one("MaximumAllowed"), "60");
    client.update(&held, 60).await;
    // One that never expires can be hidden for as long as any.
    let held = client.put("b", "?messagettl=-1").await;
    client.update(&held, 604_800).await;
}

/// Recorded: `MaxLimit` tells the limit of the text, whatever the frame around it.
#[tokio::test]
async fn texts_have_64_kib() {
    let client = Client::new().await;
    let (full, over) = ("x".repeat(TEXT_MAX), "x".repeat(TEXT_MAX + 1));
    let held = client.put(&full, "").await;
    assert_eq!(client.visible().await, [full.as_str()]);
    let put = client.try_put(&over, "").await;
    let update = client.try_update(&held, 0, document(&over)).await;
    for refused in [put, update] {
        assert_eq!(refused.outcome(), LARGE);
        assert_eq!(refused.one("MaxLimit"), "65536");
    }
    assert_eq!(client.count().await, 1);
    // It is the text in UTF-8 that counts: not characters, and not how they are escaped.
    let escaped = "&amp;".repeat(TEXT_MAX);
    client.put(&escaped, "").await;
    let umlauts = client.try_put(&"ü".repeat(TEXT_MAX / 2 + 1), "").await;
    assert_eq!(umlauts.outcome(), LARGE);
}

/// A body beyond any document is refused unread.
#[tokio::test]
async fn bodies_have_a_bound_of_their_own() {
    let client = Client::new().await;
    let frame = format!(
        "<QueueMessage><!--{}--></QueueMessage>",
        "x".repeat(600_000)
    );
    let answer = client.send("POST", "/que/messages", frame).await;
    assert_eq!(answer.outcome(), LARGE);
    assert_ne!(answer.one("MaxLimit"), "");
}

/// Up to 32 messages come at once, one when nobody says.
#[tokio::test]
async fn thirty_two_messages_come_at_once() {
    let client = Client::new().await;
    for number in 0..40 {
        client.put(&number.to_string(), "").await;
    }
    assert_eq!(client.get("").await.all("MessageId").len(), 1);
    let some = client.get("?numofmessages=32").await;
    assert_eq!(some.all("MessageId").len(), 32);
    let ids: std::collections::BTreeSet<_> = some.all("MessageId").into_iter().collect();
    assert_eq!(ids.len(), 32);
    assert_eq!(
        client.get("?numofmessages=32").await.all("MessageId").len(),
        7
    );
    let none = client.get("?numofmessages=32").await;
    assert!(
        none.text.ends_with("<QueueMessagesList />"),
        "{}",
        none.text
    );
}

/// An unknown queue is a 404 for every operation on messages.
#[tokio::test]
async fn there_is_no_message_without_a_queue() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    for (method, path, body) in [
        ("POST", "/none/messages".to_owned(), document("a")),
        ("GET", "/none/messages".to_owned(), String::new()),
        (
            "GET",
            "/none/messages?peekonly=true".to_owned(),
            String::new(),
        ),
        ("DELETE", "/none/messages".to_owned(), String::new()),
        (
            "DELETE",
            held.path("").replace("/que/", "/none/"),
            String::new(),
        ),
        (
            "PUT",
            held.path("&visibilitytimeout=0").replace("/que/", "/none/"),
            String::new(),
        ),
    ] {
        let answer = client.send(method, &path, body).await;
        assert_eq!(answer.outcome(), "404 QueueNotFound", "{method} {path}");
    }
}
