//! The records of a deleted container, and how long its name stays taken.

use smalt::Config;

use crate::support::{Client, config};

const C: &str = "/events?restype=container";

#[tokio::test]
async fn maintenance_removes_the_content_of_a_deleted_container() {
    let client = Client::new();
    client.create("events").await;
    client.put("/events/blob", "").await;
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    client.create("events").await;
    // Removes the old container's blob and the marker.
    assert_eq!(client.maintain(), 2);
    assert_eq!(client.maintain(), 0);
}

#[tokio::test]
async fn name_being_deleted_is_taken_for_creation_only() {
    let client = Client::with(Config {
        being_deleted_s: 30,
        ..config()
    });
    client.create("events").await;
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    let refused = client.send("PUT", C, &[], "").await;
    assert_eq!(refused.outcome(), "409 ContainerBeingDeleted");
    assert!(
        refused
            .text()
            .contains("is being deleted. Try operation later.")
    );
    assert_eq!(client.try_("GET", C, &[]).await, "404 ContainerNotFound");
    let listed = client.get("/?comp=list").await;
    assert!(listed.elements("Name").is_empty());
    client.advance_s(29);
    assert_eq!(client.maintain(), 0);
    assert_eq!(
        client.try_("PUT", C, &[]).await,
        "409 ContainerBeingDeleted"
    );
    client.advance_s(1);
    assert_eq!(client.try_("PUT", C, &[]).await, "201");
    // The new container uses the name, and maintenance does not remove it.
    assert_eq!(client.maintain(), 1);
    assert_eq!(client.try_("GET", C, &[]).await, "200");
}
