//! Events of changes that take their time: they come when the change completes, and only then.

use serde_json::json;
use smalt::faults::{Fault, Hold, Rule};

use super::world::{short, with_boxes};
use crate::support::Client;

const TIER: &str = "x-ms-access-tier";

/// Creates a world in which the copy from `a` to `b` is pending for a minute.
async fn copying(failure: Option<&str>) -> Client {
    copying_in(Client::new(), failure).await
}

async fn copying_in(client: Client, failure: Option<&str>) -> Client {
    let world = with_boxes(client).await;
    world.put_blob("a").await;
    world.subscribe("all", json!({})).await;
    world.emulator().faults().add(Rule {
        operation: "Blob_StartCopyFromURL".to_owned(),
        resource: String::new(),
        nth: 1,
        times: 1,
        fault: Fault::PendingCopy(Hold {
            duration_s: Some(60),
            failure: failure.map(str::to_owned),
            ..Hold::default()
        }),
    });
    let source = world.url("/box/a");
    let copied = [("x-ms-copy-source", source.as_str())];
    assert_eq!(world.send("PUT", "/box/b", &copied, "").await.status, 202);
    world
}

/// Changes the tier of `a`.
async fn set_tier(world: &Client, tier: &str) {
    let headers = [(TIER, tier)];
    world.send("PUT", "/box/a?comp=tier", &headers, "").await;
}

async fn shown(world: &Client) -> Vec<String> {
    world.deliver().await;
    world.short_events("all").await
}

#[tokio::test]
async fn pending_copy_raises_its_event_when_it_completes() {
    let world = copying(None).await;
    assert_eq!(world.deliver().await, Some(60));
    world.advance_s(60);
    world.deliver().await;
    let events = world.events("all").await;
    assert_eq!(events.len(), 1);
    assert_eq!(short(&events[0]), "BlobCreated CopyBlob b");
    assert_eq!(events[0]["data"]["contentLength"], 4);
    assert_eq!(events[0]["eventTime"], "2023-11-14T22:14:20.0000000Z");
    let head = world.head("/box/b").await;
    assert_eq!(
        events[0]["data"]["eTag"],
        head.header("etag").trim_matches('"')
    );
}

#[tokio::test]
async fn completed_copy_raises_its_event_although_the_blob_was_deleted_since() {
    let world = copying(None).await;
    world.advance_s(61);
    world.send("DELETE", "/box/b", &[], "").await;
    let expected = ["BlobCreated CopyBlob b", "BlobDeleted DeleteBlob b"];
    assert_eq!(shown(&world).await, expected);
}

#[tokio::test]
async fn copy_that_fails_or_is_aborted_raises_no_event() {
    let world = copying(Some("500 InternalError \"x\"")).await;
    world.advance_s(60);
    assert_eq!(shown(&world).await, [""; 0]);
    let world = copying(None).await;
    let head = world.head("/box/b").await;
    let path = format!("/box/b?comp=copy&copyid={}", head.header("x-ms-copy-id"));
    let abort = [("x-ms-copy-action", "abort")];
    assert_eq!(world.send("PUT", &path, &abort, "").await.status, 204);
    world.advance_s(60);
    assert_eq!(shown(&world).await, [""; 0]);
}

/// An event that waits beside a file moves with it, and takes the place of another one.
#[tokio::test]
async fn event_of_a_renamed_file_comes_when_its_change_completes() {
    let world = copying_in(Client::hierarchical(), None).await;
    world.advance_s(61);
    let (of_a, of_b) = (
        [("x-ms-rename-source", "/box/a")],
        [("x-ms-rename-source", "/box/b")],
    );
    assert_eq!(world.send("PUT", "/box/c", &of_b, "").await.status, 201);
    let mut events = shown(&world).await;
    events.sort();
    let expected = ["BlobCreated CopyBlob b", "BlobRenamed RenameFile c"];
    assert_eq!(events, expected);

    for tier in ["Archive", "Cool"] {
        set_tier(&world, tier).await;
    }
    shown(&world).await;
    assert_eq!(world.send("PUT", "/box/d", &of_a, "").await.status, 201);
    assert_eq!(shown(&world).await, ["BlobRenamed RenameFile d"]);
    world.advance_s(15 * 3600);
    assert_eq!(shown(&world).await, ["BlobTierChanged SetBlobTier a"]);

    // A file without such an event replaces one that has it.
    let world = copying_in(Client::hierarchical(), None).await;
    for tier in ["Archive", "Cool"] {
        set_tier(&world, tier).await;
    }
    world.advance_s(61);
    assert_eq!(world.send("PUT", "/box/a", &of_b, "").await.status, 201);
    shown(&world).await;
    world.advance_s(15 * 3600);
    assert_eq!(shown(&world).await, [""; 0]);
}

#[tokio::test]
async fn rehydration_raises_one_event_at_its_start_and_one_at_its_end() {
    let world = with_boxes(Client::new()).await;
    world.put_blob("a").await;
    set_tier(&world, "Archive").await;
    world.subscribe("all", json!({})).await;
    set_tier(&world, "Cool").await;
    assert_eq!(
        shown(&world).await,
        ["AsyncOperationInitiated SetBlobTier a"]
    );
    assert_eq!(world.deliver().await, Some(15 * 3600));
    world.advance_s(15 * 3600);
    world.deliver().await;
    let events = world.events("all").await;
    assert_eq!(events.len(), 1);
    assert_eq!(short(&events[0]), "BlobTierChanged SetBlobTier a");
    assert_eq!(events[0]["data"]["accessTier"], "Cool");
    assert_eq!(events[0]["data"]["previousTier"], "Archive");
}

#[tokio::test]
async fn copy_of_an_archived_blob_raises_one_event_at_its_start_and_one_at_its_end() {
    let world = with_boxes(Client::new()).await;
    world.put_blob("a").await;
    set_tier(&world, "Archive").await;
    world.subscribe("all", json!({})).await;
    let source = world.url("/box/a");
    let copied = [("x-ms-copy-source", source.as_str()), (TIER, "Hot")];
    assert_eq!(world.send("PUT", "/box/b", &copied, "").await.status, 202);
    assert_eq!(shown(&world).await, ["AsyncOperationInitiated CopyBlob b"]);
    world.advance_s(15 * 3600);
    assert_eq!(shown(&world).await, ["BlobCreated CopyBlob b"]);
}

#[tokio::test]
async fn rehydration_of_a_deleted_blob_raises_no_second_event() {
    let world = with_boxes(Client::new()).await;
    world.put_blob("a").await;
    set_tier(&world, "Archive").await;
    world.subscribe("all", json!({})).await;
    set_tier(&world, "Hot").await;
    world.send("DELETE", "/box/a", &[], "").await;
    world.advance_s(15 * 3600);
    let expected = [
        "AsyncOperationInitiated SetBlobTier a",
        "BlobDeleted DeleteBlob a",
    ];
    assert_eq!(shown(&world).await, expected);
}
