//! Payloads of messages that move to the poison queue.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt_listener::Outcome as Ended;
use smalt_listener::handler::Verdict;
use smalt_listener::payload::{Offload, PayloadStore, SendOptions};
use smalt_listener::rules::envelope::Envelope;
use smalt_sleeve::port::{BlobId, CallContext, Conditions, MessageTtl};

use super::support::*;
use super::{DAY, MIB};

/// Marks a payload as a listener does before it puts the copy.
async fn mark(world: &World, blob: &BlobId) -> Outcome {
    let (cx, any) = (CallContext::default(), Conditions::default());
    let (seen, _) = world.storage.blob_properties(&cx, blob).await?;
    let mut metadata = seen.metadata;
    metadata.remove("timetolive");
    metadata.insert("Poisoned".to_owned(), "2026".to_owned());
    let marked = world.storage.set_blob_metadata(&cx, blob, &metadata, &any);
    marked.await?;
    Ok(())
}

/// DL26: a listener marks a payload as kept and dies; another handles the message. Nobody knows
/// whether the copy was put, so the listener puts it: otherwise the payload would stay for good.
#[tokio::test(start_paused = true)]
async fn dl26_a_mark_without_its_copy_gets_one() -> Outcome {
    for ttl in [MessageTtl::Never, MessageTtl::After(s(DAY))] {
        let world = World::open().await?;
        let sender = world.sender(Offload::into(CONTAINER))?;
        let options = SendOptions {
            ttl,
            ..SendOptions::default()
        };
        let sent = sender.send(&body(MIB, 1), options).await?;
        let blob = sent.payload.unwrap();
        mark(&world, &blob).await?;
        let handler = Keep::saying(Verdict::Ok);
        let report = world.listen(&handler, s(5)).await?;
        assert_eq!(report.count(Ended::Done), 1);
        assert!(world.standing(QUEUE).is_empty());
        let copies = world.standing(POISON);
        let copy: Envelope = serde_json::from_str(&copies[0])?;
        assert_eq!(copies.len(), 1);
        let store = PayloadStore::new(Arc::clone(&world.storage), Offload::into(CONTAINER), QUEUE);
        assert!(store.discard(&STANDARD.decode(&copy.body)?).await?);
        assert!(is_gone(&world, &blob.name).await);
    }
    Ok(())
}

/// A poisoned message keeps its payload: the sweeper leaves it, and a year later the message is
/// requeued, handled, and its payload deleted.
#[tokio::test(start_paused = true)]
async fn ls6_a_poisoned_message_keeps_its_payload() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    sender.send(&body(MIB, 1), SendOptions::default()).await?;
    assert!(ttl(&world.payloads().await?[0].1).is_some());
    world
        .listen(&Keep::saying(Verdict::reject("no")), s(5))
        .await?;
    assert_eq!(ttl(&world.payloads().await?[0].1), None);
    tokio::time::sleep(s(365 * DAY)).await;
    world.sweep().await?;
    let copy: Envelope = serde_json::from_str(&world.standing(POISON)[0])?;
    let (cx, ttl) = (CallContext::default(), MessageTtl::Never);
    let store = PayloadStore::new(Arc::clone(&world.storage), Offload::into(CONTAINER), QUEUE);
    store.requeued(&STANDARD.decode(&copy.body)?, ttl).await?;
    world
        .storage
        .put_message(&cx, QUEUE, &copy.body, ttl, s(0))
        .await?;
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(40)).await?;
    assert_eq!(handler.bodies(), [Bytes::from(body(MIB, 1))]);
    assert!(world.payloads().await?.is_empty());
    Ok(())
}

/// While one consumer acknowledges, another has put a copy into the poison queue: the ack deletes
/// only the version that it read, so the copy keeps its payload.
#[tokio::test(start_paused = true)]
async fn ls6_an_ack_leaves_the_payload_to_a_poison_copy() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    let sent = sender.send(&body(MIB, 1), SendOptions::default()).await?;
    let blob = sent.payload.unwrap();
    let handler = Keep::saying(Verdict::Ok).taking(s(10));
    let other = async {
        tokio::time::sleep(s(5)).await;
        mark(&world, &blob).await.unwrap();
    };
    let (report, ()) = tokio::join!(world.listen(&handler, s(20)), other);
    assert_eq!(report?.count(Ended::Done), 1);
    assert!(!is_gone(&world, &blob.name).await);
    Ok(())
}
