//! Pop receipts: when one is given out, how long it works, and what refuses it.

use super::client::{Client, Held, document};

const MISMATCH: &str = "400 PopReceiptMismatch";
const GONE: &str = "404 MessageNotFound";

/// "The pop receipt changes" with every get and every update; the id never does.
#[tokio::test]
async fn each_get_and_update_gives_a_new_receipt() {
    let client = Client::new().await;
    let mut held = vec![client.put("a", "").await];
    for _ in 0..3 {
        held.push(client.take("?visibilitytimeout=1").await);
        client.advance_s(1);
        let last = held[held.len() - 1].clone();
        held.push(client.update(&last, 0).await);
    }
    let (last, earlier) = held.split_last().unwrap();
    for (at, old) in earlier.iter().enumerate() {
        assert_eq!(old.id, last.id);
        let same = held.iter().filter(|other| other.receipt == old.receipt);
        assert_eq!(same.count(), 1, "receipt {at}");
        assert_eq!(client.delete(old).await, MISMATCH, "receipt {at}");
        let update = client.try_update(old, 0, String::new()).await;
        assert_eq!(update.outcome(), MISMATCH, "receipt {at}");
    }
    assert_eq!(client.delete(last).await, "204");
}

/// "The returned PopReceipt" of Put Message deletes and updates before anybody got the message.
#[tokio::test]
async fn the_receipt_of_a_put_works_until_the_first_get() {
    let client = Client::new().await;
    let (one, two) = (client.put("1", "").await, client.put("2", "").await);
    assert_eq!(client.delete(&one).await, "204");
    let two = client.update(&two, 0).await;
    let taken = client.take("").await;
    assert_eq!(taken.id, two.id);
    assert_eq!(client.delete(&two).await, MISMATCH);
    assert_eq!(client.delete(&taken).await, "204");
}

/// A receipt outlives the visibility timeout as long as nobody else takes the message.
#[tokio::test]
async fn a_lapsed_receipt_works_until_another_consumer_takes_the_message() {
    let client = Client::new().await;
    client.put("a", "").await;
    let first = client.take("?visibilitytimeout=10").await;
    client.advance_s(3600);
    assert_eq!(client.visible().await, ["a"]);
    let first = client.update(&first, 10).await;
    assert_eq!(client.visible().await, [""; 0]);
    client.advance_s(10);
    let second = client.take("?visibilitytimeout=10").await;
    for stale in [
        client.delete(&first).await,
        update_of(&client, &first).await,
    ] {
        assert_eq!(stale, MISMATCH);
    }
    assert_eq!(client.delete(&second).await, "204");
}

async fn update_of(client: &Client, held: &Held) -> String {
    client.try_update(held, 0, String::new()).await.outcome()
}

/// No receipt works on a message that is deleted, cleared, expired, or was never there.
#[tokio::test]
async fn what_is_gone_is_not_found() {
    let client = Client::new().await;
    let deleted = client.put("deleted", "").await;
    assert_eq!(client.delete(&deleted).await, "204");
    let cleared = client.put("cleared", "").await;
    assert_eq!(
        client.send("DELETE", "/que/messages", "").await.outcome(),
        "204"
    );
    let expired = client.put("expired", "?messagettl=1").await;
    client.advance_s(1);
    let there = client.put("there", "").await;
    let unknown = Held {
        id: "no-guid".to_owned(),
        ..there.clone()
    };
    for held in [&deleted, &cleared, &expired, &unknown] {
        assert_eq!(client.delete(held).await, GONE, "{held:?}");
        assert_eq!(update_of(&client, held).await, GONE, "{held:?}");
    }
    assert_eq!(client.delete(&there).await, "204");
}

/// Text that is no receipt is not looked up: "Invalid pop receipt format".
#[tokio::test]
async fn what_is_no_receipt_is_refused_as_a_parameter() {
    let client = Client::new().await;
    let held = client.put("a", "").await;
    for receipt in ["x", "AAAA", "AgAAAAMAAAA", "%25"] {
        let broken = Held {
            receipt: receipt.to_owned(),
            ..held.clone()
        };
        let answer = client.send("DELETE", &broken.path(""), "").await;
        assert_eq!(answer.outcome(), "400 InvalidQueryParameterValue");
        assert_eq!(answer.one("QueryParameterName"), "popreceipt");
        assert_eq!(answer.one("Reason"), "Invalid pop receipt format");
        assert_eq!(update_of(&client, &broken).await, answer.outcome());
    }
    let path = format!("/que/messages/{}", held.id);
    for (method, path) in [
        ("DELETE", path.clone()),
        ("PUT", format!("{path}?visibilitytimeout=1")),
    ] {
        let answer = client.send(method, &path, "").await;
        assert_eq!(answer.outcome(), "400 MissingRequiredQueryParameter");
        assert_eq!(answer.one("QueryParameterName"), "popreceipt");
    }
}

/// Of two consumers that hold one after the other, only the second can finish; the first learns it
/// from its update before it does any harm.
#[tokio::test]
async fn a_slow_consumer_learns_that_it_lost_the_message() {
    let client = Client::new().await;
    client.put("work", "").await;
    let slow = client.take("?visibilitytimeout=30").await;
    client.advance_s(31);
    let quick = client.take("?visibilitytimeout=30").await;
    let text = client.try_update(&slow, 30, document("slow")).await;
    assert_eq!(text.outcome(), MISMATCH);
    let quick = client.update(&quick, 0).await;
    assert_eq!(client.visible().await, ["work"]);
    assert_eq!(client.delete(&quick).await, "204");
    assert_eq!(client.delete(&slow).await, GONE);
}
