//! Retries, expiry, dead letters, and what survives a restart. The tests move the clock.

use serde_json::json;
use smalt::faults::{Fault, Rule};

use super::world::{short, with_boxes};
use crate::support::Client;

async fn world() -> Client {
    with_boxes(Client::new()).await
}

fn fail(world: &Client, times: u64, fault: Fault) {
    add(world, "Messages_Enqueue", "", times, fault);
}

fn add(world: &Client, operation: &str, resource: &str, times: u64, fault: Fault) {
    world.emulator().faults().add(Rule {
        operation: operation.to_owned(),
        resource: resource.to_owned(),
        nth: 1,
        times,
        fault,
    });
}

fn refuse() -> Fault {
    Fault::Refuse {
        status: 500,
        retry_after_s: None,
    }
}

#[tokio::test]
async fn attempts_follow_the_schedule_and_keep_the_order_of_a_blob() {
    let world = world().await;
    world.subscribe("all", json!({})).await;
    fail(&world, 3, refuse());
    world.put_blob("a").await;
    world.send("DELETE", "/box/a", &[], "").await;
    let mut waits = Vec::new();
    while let Some(wait_s) = world.deliver().await {
        assert_eq!(world.events("all").await.len(), 0);
        waits.push(wait_s);
        world.advance_s(wait_s);
    }
    assert_eq!(waits, [10, 30, 60]);
    let events = world.short_events("all").await;
    assert_eq!(
        events,
        ["BlobCreated PutBlob a", "BlobDeleted DeleteBlob a"]
    );
}

#[tokio::test]
async fn another_blob_does_not_wait_for_a_failed_delivery() {
    let world = world().await;
    world.subscribe("all", json!({})).await;
    fail(&world, 1, refuse());
    world.put_blob("a").await;
    world.put_blob("b").await;
    assert_eq!(world.deliver().await, Some(10));
    assert_eq!(world.events("all").await.len(), 1);
}

#[tokio::test]
async fn lost_answer_delivers_the_event_again() {
    let world = world().await;
    world.subscribe("all", json!({})).await;
    fail(&world, 1, Fault::AnswerLost);
    world.put_blob("a").await;
    world.deliver_all().await;
    let events = world.events("all").await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], events[1]);
}

#[tokio::test]
async fn missing_queue_is_tried_again_until_it_exists() {
    let world = world().await;
    world.subscribe_without_queue("late", json!({})).await;
    world.put_blob("a").await;
    assert_eq!(world.deliver().await, Some(300));
    world.queue("PUT", "/late").await;
    assert_eq!(world.deliver().await, Some(300));
    world.advance_s(300);
    assert_eq!(world.deliver().await, None);
    assert_eq!(world.events("late").await.len(), 1);
}

#[tokio::test]
async fn event_is_given_up_and_becomes_a_dead_letter() {
    let dead = json!({ "account": "devstoreaccount1", "container": "dead" });
    for (settings, reason, attempts) in [
        (
            json!({ "max_delivery_attempts": 2 }),
            "MaxDeliveryAttemptsExceeded",
            2,
        ),
        (json!({ "event_ttl_minutes": 1 }), "TimeToLiveExceeded", 3),
    ] {
        let world = world().await;
        let mut settings = settings;
        settings["dead_letter"] = dead.clone();
        world.subscribe("all", settings).await;
        fail(&world, u64::MAX, refuse());
        world.put_blob("a").await;
        world.deliver_all().await;
        let letters = world.dead_letters().await;
        assert_eq!(letters.len(), 1, "{reason}");
        assert_eq!(short(&letters[0]), "BlobCreated PutBlob a");
        assert_eq!(letters[0]["deadLetterReason"], reason);
        assert_eq!(letters[0]["deliveryAttempts"], attempts, "{reason}");
        assert_eq!(letters[0]["lastDeliveryOutcome"], "InternalServerError");
        assert_eq!(world.events("all").await.len(), 0);
    }
}

#[tokio::test]
async fn event_is_dropped_without_a_place_for_dead_letters() {
    let world = world().await;
    world
        .subscribe("all", json!({ "max_delivery_attempts": 1 }))
        .await;
    fail(&world, 1, refuse());
    world.put_blob("a").await;
    assert_eq!(world.deliver().await, None);
    world.deliver_all().await;
    assert_eq!(world.events("all").await.len(), 0);
}

#[tokio::test]
async fn events_and_subscriptions_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || with_boxes(Client::of(|builder| builder.durable(dir.path())));
    let world = open().await;
    world.subscribe("all", json!({})).await;
    world.put_blob("a").await;
    world.emulator().close().unwrap();
    let world = open().await;
    world.deliver().await;
    assert_eq!(world.events("all").await.len(), 1);
    world.emulator().close().unwrap();
    let world = open().await;
    world.deliver().await;
    assert_eq!(world.events("all").await.len(), 0);
}

#[tokio::test]
async fn deleted_subscription_forgets_its_events() {
    let world = world().await;
    let emulator = world.emulator();
    world.subscribe("all", json!({})).await;
    world.put_blob("a").await;
    assert!(emulator.unsubscribe("all").await.unwrap());
    assert!(!emulator.unsubscribe("all").await.unwrap());
    world.put_blob("b").await;
    emulator.maintain(1_000).unwrap();
    world.subscribe("all", json!({})).await;
    world.put_blob("c").await;
    world.deliver().await;
    let events = world.short_events("all").await;
    assert_eq!(events, ["BlobCreated PutBlob c"]);
    assert_eq!(emulator.audit().unwrap().differences, Vec::<String>::new());
}

/// Writes without a subscription look for none; those after a snapshot was loaded find its own.
#[tokio::test]
async fn subscription_of_a_loaded_snapshot_gets_events_again() {
    let world = world().await;
    let emulator = world.emulator();
    world.put_blob("a").await;
    world.subscribe("all", json!({})).await;
    emulator.save("subscribed").unwrap();
    assert!(emulator.unsubscribe("all").await.unwrap());
    world.put_blob("b").await;
    world.put_blob("c").await;
    emulator.load("subscribed").unwrap();
    world.put_blob("d").await;
    world.deliver().await;
    emulator.load("subscribed").unwrap();
    world.put_blob("e").await;
    world.deliver().await;
    let events = world.short_events("all").await;
    assert_eq!(events, ["BlobCreated PutBlob e"]);
}

#[tokio::test]
async fn faults_drop_double_delay_and_reorder_deliveries() {
    let (created, deleted) = ("BlobCreated PutBlob a", "BlobDeleted DeleteBlob a");
    let delay = |overtaken| Fault::EventDelay {
        delay_s: 60,
        overtaken,
    };
    for (fault, at_once, in_the_end) in [
        (Fault::EventDrop, vec![deleted], vec![]),
        (
            Fault::EventDuplicate,
            vec![created, created, deleted],
            vec![],
        ),
        (delay(false), vec![], vec![created, deleted]),
        (delay(true), vec![deleted], vec![created]),
    ] {
        let world = world().await;
        world.subscribe("all", json!({})).await;
        add(
            &world,
            "Events_Deliver",
            "/devstoreaccount1/box/a",
            1,
            fault.clone(),
        );
        world.put_blob("a").await;
        world.send("DELETE", "/box/a", &[], "").await;
        world.deliver().await;
        let found = world.short_events("all").await;
        assert_eq!(found, at_once, "{fault:?}");
        world.deliver_all().await;
        let found = world.short_events("all").await;
        assert_eq!(found, in_the_end, "{fault:?}");
        assert_eq!(world.emulator().faults().account()[0].fired, 1);
    }
}
