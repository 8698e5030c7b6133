//! Queues with settings of the emulator, and many messages at once.

use smalt::Config;

use super::client::Client;

/// With the setting, the name stays taken while the queue is being deleted.
#[tokio::test]
async fn name_is_taken_while_its_queue_is_being_deleted() {
    let client = Client::with(Config {
        being_deleted_s: 30,
        ..Config::default()
    })
    .await;
    client.send("DELETE", "/que", "").await;
    client.advance_s(29);
    assert_eq!(
        client.send("PUT", "/que", "").await.outcome(),
        "409 QueueBeingDeleted"
    );
    client.advance_s(1);
    assert_eq!(client.send("PUT", "/que", "").await.outcome(), "201");
}

/// Up to 32 messages are returned at once, one by default.
#[tokio::test]
async fn thirty_two_messages_are_returned_at_once() {
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
