//! Queues with settings of the emulator, and many messages at once.

use smalt::Config;

use super::client::with_queue;
use crate::support::config;

/// With the setting, the name stays taken while the queue is being deleted.
#[tokio::test]
async fn name_is_taken_while_its_queue_is_being_deleted() {
    let client = with_queue(Config {
        being_deleted_s: 30,
        ..config()
    })
    .await;
    client.send("DELETE", "/que", &[], "").await;
    client.advance_s(29);
    let refused = client.try_("PUT", "/que", &[]).await;
    assert_eq!(refused, "409 QueueBeingDeleted");
    client.advance_s(1);
    assert_eq!(client.try_("PUT", "/que", &[]).await, "201");
}

/// Up to 32 messages are returned at once, one by default.
#[tokio::test]
async fn thirty_two_messages_are_returned_at_once() {
    let client = with_queue(config()).await;
    for number in 0..40 {
        client.put_message(&number.to_string(), "").await;
    }
    assert_eq!(client.get_messages("").await.elements("MessageId").len(), 1);
    let some = client.get_messages("?numofmessages=32").await;
    assert_eq!(some.elements("MessageId").len(), 32);
    let ids: std::collections::BTreeSet<_> = some.elements("MessageId").into_iter().collect();
    assert_eq!(ids.len(), 32);
    assert_eq!(
        client
            .get_messages("?numofmessages=32")
            .await
            .elements("MessageId")
            .len(),
        7
    );
    let none = client.get_messages("?numofmessages=32").await;
    assert!(
        none.text().ends_with("<QueueMessagesList />"),
        "{}",
        none.text()
    );
}
