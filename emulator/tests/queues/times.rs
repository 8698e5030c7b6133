//! Visibility, expiry and delivery: what a message's times do to it.

use proptest::prelude::*;
use smalt::{Config, Timestamp};

use super::client::{Client, Held, START, document};

const NONE: [&str; 0] = [];

/// "The message is visible again" at the end of its timeout, to the second.
#[tokio::test]
async fn a_message_that_is_taken_is_hidden_for_its_timeout() {
    for (query, timeout_s) in [
        ("", 30),
        ("?visibilitytimeout=1", 1),
        ("?visibilitytimeout=7200", 7200),
        ("?visibilitytimeout=604799", 604_799),
    ] {
        let client = Client::new().await;
        client.put("a", "?messagettl=-1").await;
        let got = client.get(query).await;
        assert_eq!(got.time("TimeNextVisible"), START.plus_s(timeout_s));
        client.advance_s(timeout_s - 1);
        assert_eq!(client.visible().await, NONE, "{query}");
        client.advance_s(1);
        assert_eq!(client.visible().await, ["a"], "{query}");
    }
}

/// A delayed message comes in at its visible time; the count has it from the start.
#[tokio::test]
async fn a_message_can_be_put_for_later() {
    let client = Client::new().await;
    let answer = client.try_put("late", "?visibilitytimeout=60").await;
    assert_eq!(answer.time("TimeNextVisible"), START.plus_s(60));
    assert_eq!(answer.time("InsertionTime"), START);
    client.put("now", "").await;
    assert_eq!(client.visible().await, ["now"]);
    assert_eq!(client.count().await, 2);
    client.advance_s(60);
    assert_eq!(client.visible().await, ["now", "late"]);
}

/// The source document's default and most, a week; since 2017-07-29 any time, and -1 for never.
#[tokio::test]
async fn a_message_lives_for_its_time_to_live() {
    const WEEK_S: u64 = 7 * 24 * 3600;
    for (query, ttl_s) in [
        ("?messagettl=1", 1),
        ("", WEEK_S),
        ("?messagettl=604800", WEEK_S),
        ("?messagettl=2147483647", 2_147_483_647),
    ] {
        let client = Client::new().await;
        let answer = client.try_put("a", query).await;
        assert_eq!(answer.time("ExpirationTime"), START.plus_s(ttl_s));
        client.advance_s(ttl_s - 1);
        assert_eq!((client.count().await, client.visible().await.len()), (1, 1));
        client.advance_s(1);
        assert_eq!((client.count().await, client.visible().await.len()), (0, 0));
    }
    let client = Client::new().await;
    let answer = client.try_put("a", "?messagettl=-1").await;
    assert_eq!(
        answer.one("ExpirationTime"),
        "Fri, 31 Dec 9999 23:59:59 GMT"
    );
    client.clock.set(Timestamp::from_unix_s(250_000_000_000));
    assert_eq!(client.visible().await, ["a"]);
}

/// Time is only the clock: the messages of a week ago are gone in the moment that it is set.
#[tokio::test]
async fn expired_messages_are_neither_given_out_nor_counted_nor_in_the_way() {
    let client = Client::new().await;
    for number in 0..2_500 {
        client.put(&number.to_string(), "?messagettl=604800").await;
    }
    client.put("stays", "?messagettl=-1").await;
    client.advance_s(604_800);
    assert_eq!(client.count().await, 1);
    assert_eq!(client.visible().await, ["stays"]);
    let got = client.get("?numofmessages=32").await;
    assert_eq!(got.all("MessageText"), ["stays"]);
    assert_eq!(client.count().await, 1);
}

/// A hidden message expires all the same, and its holder cannot keep it.
#[tokio::test]
async fn a_message_expires_while_it_is_hidden() {
    let client = Client::new().await;
    client.put("a", "?messagettl=10").await;
    // "May exceed" what is left of its life: it is then not seen again.
    let held = client.take("?visibilitytimeout=3600").await;
    client.advance_s(10);
    assert_eq!(client.delete(&held).await, "404 MessageNotFound");
    client.advance_s(3600);
    assert_eq!((client.count().await, client.visible().await.len()), (0, 0));
}

/// Update Message changes receipt, visibility and text; id, insertion, expiry and count stay.
#[tokio::test]
async fn an_update_leaves_the_rest_as_it_was() {
    let client = Client::new().await;
    client.put("old", "?messagettl=1000").await;
    let first = client.get("?visibilitytimeout=5").await;
    let held = Held::of(&first);
    client.advance_s(2);
    let answer = client.try_update(&held, 0, document("new")).await;
    assert_eq!(answer.outcome(), "204");
    let next_visible = Timestamp::parse_rfc1123(answer.header("x-ms-time-next-visible"));
    assert_eq!(next_visible, Some(START.plus_s(2)));
    let again = client.get("").await;
    assert_eq!(again.one("MessageText"), "new");
    assert_eq!(again.one("DequeueCount"), "2");
    for kept in ["MessageId", "InsertionTime", "ExpirationTime"] {
        assert_eq!(again.one(kept), first.one(kept), "{kept}");
    }
}

/// Without a body only the timeout changes.
#[tokio::test]
async fn an_update_without_a_body_keeps_the_text() {
    let client = Client::new().await;
    let held = client.put("kept", "").await;
    let held = client.update(&held, 20).await;
    client.advance_s(19);
    assert_eq!(client.visible().await, NONE);
    client.update(&held, 0).await;
    assert_eq!(client.visible().await, ["kept"]);
    let empty = client.take("").await;
    assert_eq!(client.try_update(&empty, 0, document("")).await.status, 204);
    assert_eq!(client.visible().await, [""]);
}

/// Peeking neither hides nor counts, and shows no receipt.
#[tokio::test]
async fn peeking_changes_nothing() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    for _ in 0..3 {
        let seen = client.get("?peekonly=true").await;
        assert_eq!(seen.one("DequeueCount"), "0");
        assert_eq!(seen.one("MessageId"), held.id);
        assert_eq!(seen.one("PopReceipt"), "");
        assert_eq!(seen.one("TimeNextVisible"), "");
    }
    assert_eq!(client.delete(&held).await, "204");
}

/// The count is of all that is stored, hidden ones too, and falls with every way to go.
#[tokio::test]
async fn the_count_follows_every_change() {
    let client = Client::new().await;
    for query in ["", "?visibilitytimeout=60", "?messagettl=5", ""] {
        client.put("a", query).await;
    }
    assert_eq!(client.count().await, 4);
    let held = Held::of(&client.get("").await);
    assert_eq!(client.count().await, 4);
    assert_eq!(client.delete(&held).await, "204");
    assert_eq!(client.count().await, 3);
    client.advance_s(5);
    assert_eq!(client.count().await, 2);
    client.send("DELETE", "/que/messages", "").await;
    assert_eq!(client.count().await, 0);
}

/// The walk of the source document: what a consumer took and did not delete comes back.
#[tokio::test]
async fn a_message_of_a_consumer_that_died_is_done_by_another() {
    let client = Client::new().await;
    for text in ["1", "2"] {
        client.put(text, "").await;
    }
    let of_first = client.get("").await;
    assert_eq!(of_first.one("MessageText"), "1");
    let of_second = client.get("").await;
    assert_eq!(of_second.one("MessageText"), "2");
    assert_eq!(client.delete(&Held::of(&of_second)).await, "204");
    assert_eq!(client.visible().await, NONE);
    client.advance_s(30);
    let again = client.get("").await;
    assert_eq!(
        (again.one("MessageText"), again.one("DequeueCount")),
        ("1".into(), "2".into())
    );
    assert_eq!(client.delete(&Held::of(&again)).await, "204");
    assert_eq!(client.count().await, 0);
}

/// Messages come by the time that they became visible, whoever put them first.
#[tokio::test]
async fn delivery_is_by_visible_time() {
    let client = Client::new().await;
    for (text, delay_s) in [("c", 30), ("a", 10), ("b", 20)] {
        client
            .put(text, &format!("?visibilitytimeout={delay_s}"))
            .await;
    }
    client.advance_s(30);
    assert_eq!(client.visible().await, ["a", "b", "c"]);
    client.get("?visibilitytimeout=1").await;
    client.advance_s(1);
    assert_eq!(client.visible().await, ["b", "c", "a"]);
}

/// With ties shuffled every message is still given out once, in another order for another seed of
/// ids, and still by visible time.
#[tokio::test]
async fn ties_can_be_shuffled() {
    let client = Client::with(Config {
        shuffle_messages: true,
        ..Config::default()
    })
    .await;
    let put: Vec<String> = (0..32).map(|number| number.to_string()).collect();
    for text in &put {
        client.put(text, "").await;
    }
    client.put("late", "?visibilitytimeout=1").await;
    let first = client.visible().await;
    assert_ne!(first, put, "32 messages in order by chance");
    let mut sorted = first.clone();
    sorted.sort_by_key(|text| text.parse::<u32>().unwrap());
    assert_eq!(sorted, put);
    client.advance_s(1);
    assert_eq!(
        client.get("?numofmessages=32").await.all("MessageText"),
        first
    );
    assert_eq!(client.visible().await, ["late"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the delays and times to live, at any time exactly those are visible that began and
    /// have not expired, each once.
    #[test]
    fn who_is_visible_is_a_matter_of_times(
        messages in proptest::collection::vec((0_u64..50, 1_u64..50), 1..30),
        steps in proptest::collection::vec(1_u64..20, 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let client = Client::new().await;
            for (at, (delay_s, rest_s)) in messages.iter().enumerate() {
                let ttl_s = delay_s + rest_s;
                let query = format!("?visibilitytimeout={delay_s}&messagettl={ttl_s}");
                client.put(&at.to_string(), &query).await;
            }
            let mut now_s = 0;
            for step in steps {
                now_s += step;
                client.advance_s(step);
                let mut seen = client.visible().await;
                seen.sort();
                let is_visible = |(delay_s, rest_s): &(u64, u64)| {
                    *delay_s <= now_s && now_s < delay_s + rest_s
                };
                let expected = messages.iter().enumerate().filter(|(_, m)| is_visible(m));
                let mut expected: Vec<_> = expected.map(|(at, _)| at.to_string()).collect();
                expected.sort();
                assert_eq!(seen, expected);
                let alive = messages.iter().filter(|(d, r)| now_s < d + r).count();
                assert_eq!(client.count().await, alive as u64);
            }
        });
    }
}
