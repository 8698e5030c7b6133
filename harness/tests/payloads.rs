//! Large payloads against the service in process: LS6, under faults, with a real sweeper.

#[path = "payloads/forged.rs"]
mod forged;
#[path = "payloads/hierarchical.rs"]
mod hierarchical;
#[path = "payloads/quarantine.rs"]
mod quarantine;
#[path = "payloads/support.rs"]
mod support;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt_listener::Outcome as Ended;
use smalt_listener::handler::Verdict;
use smalt_listener::payload::envelope::Claim;
use smalt_listener::payload::{Compression, Offload, PayloadStore, SendError, SendOptions};
use smalt_listener::rules::envelope::Envelope;
use smalt_sleeve::port::{BlobId, CallContext, Conditions, DeleteSnapshots, MessageTtl, PutBlob};
use support::*;

const MIB: usize = 1 << 20;
const DAY: u64 = 86_400;

/// A mebibyte is delivered, however it is compressed, and nothing of it is left.
#[tokio::test(start_paused = true)]
async fn a_mebibyte_is_delivered() -> Outcome {
    for (number, enc) in [Compression::Zstd, Compression::Gzip, Compression::None]
        .into_iter()
        .enumerate()
    {
        let world = World::open().await?;
        let offload = Offload {
            compression: enc,
            ..Offload::into(CONTAINER)
        };
        let body = body(MIB, number as u64);
        let sent = world
            .sender(offload)?
            .send(&body, SendOptions::default())
            .await?;
        let payloads = world.payloads().await?;
        assert_eq!(payloads[0].0, sent.payload.unwrap().name);
        // Seven days of the message, the margin of a day, and only the rounding beyond that.
        let due = smalt_protocol::Timestamp::parse_iso(ttl(&payloads[0].1).unwrap()).unwrap();
        let beyond = due.since(world.account.now());
        assert!(
            beyond >= s(8 * DAY) && beyond <= s(8 * DAY + 2),
            "{beyond:?}"
        );
        let handler = Keep::saying(Verdict::Ok);
        let report = world.listen(&handler, s(5)).await?;
        assert_eq!(handler.bodies(), [Bytes::from(body)]);
        assert_eq!(report.count(Ended::Done), 1);
        assert!(world.payloads().await?.is_empty() && world.standing(QUEUE).is_empty());
        world.assert_ls6();
    }
    Ok(())
}

/// Short bodies stay in their messages. A short body that looks like an envelope is offloaded and
/// arrives unchanged.
#[tokio::test(start_paused = true)]
async fn large_bodies_and_lookalike_envelopes_are_offloaded() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    let lookalike = Claim::of(b"x", Compression::None, "secrets", "key").text();
    let limit = 45 * 1024;
    let bodies = [
        vec![],
        body(limit, 1),
        body(limit + 1, 2),
        lookalike.into_bytes(),
    ];
    for (body, apart) in bodies.iter().zip([false, false, true, true]) {
        let sent = sender.send(body, SendOptions::default()).await?;
        assert_eq!(sent.payload.is_some(), apart, "{} bytes", body.len());
    }
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(5)).await?;
    let mut arrived: Vec<Vec<u8>> = handler.bodies().iter().map(|b| b.to_vec()).collect();
    let mut sent = bodies.to_vec();
    arrived.sort();
    sent.sort();
    assert_eq!(arrived, sent);
    assert!(world.payloads().await?.is_empty());
    Ok(())
}

/// LS6: whatever answer is lost, rejected or late, no message exists without its payload, every
/// sent message arrives, and leftovers expire.
#[tokio::test(start_paused = true)]
async fn ls6_a_fault_at_each_step_leaves_at_most_a_leftover() -> Outcome {
    let steps = [
        "Messages_Peek",
        "BlockBlob_Upload",
        "Messages_Enqueue",
        "Messages_Dequeue",
        "Blob_Download",
        "MessageId_Delete",
        "Blob_Delete",
    ];
    for step in steps {
        for (kind, times) in [
            ("lost", 1),
            ("lost", 20),
            ("reset", 1),
            ("busy", 20),
            ("500", 9),
        ] {
            let world = World::open().await?;
            let plan = world.account.fault(step).times(times);
            match kind {
                "lost" => plan.answer_lost(),
                "reset" => plan.connection_reset(),
                "busy" => plan.server_busy(None),
                _ => plan.internal_error(),
            }
            let sender = world.sender(Offload::into(CONTAINER))?;
            let wanted = body(100_000, 9);
            // The caller repeats the send until it succeeds.
            let mut tries = 0;
            while sender.send(&wanted, SendOptions::default()).await.is_err() {
                tries += 1;
                assert!(tries < 30, "{step} {kind}");
            }
            let handler = Keep::saying(Verdict::Ok);
            world.listen(&handler, s(3600)).await?;
            let arrived = handler.bodies();
            assert!(
                !arrived.is_empty(),
                "{step} {kind} {times}: no message arrived"
            );
            assert!(arrived.iter().all(|body| *body == wanted), "{step} {kind}");
            assert!(world.standing(QUEUE).is_empty(), "{step} {kind} {times}");
            assert!(world.standing(POISON).is_empty(), "{step} {kind} {times}");
            world.account.emulator().faults().clear();
            tokio::time::sleep(s(8 * DAY)).await;
            world.sweep().await?;
            assert!(world.payloads().await?.is_empty(), "{step} {kind} {times}");
            world.assert_ls6();
        }
    }
    Ok(())
}

/// DL26: the blob of a message that may not have been put is a leftover. A sweeper deletes it when
/// it is due, and not before.
#[tokio::test(start_paused = true)]
async fn dl26_a_leftover_is_collected_by_the_sweeper() -> Outcome {
    let world = World::open().await?;
    world.account.fault("Messages_Enqueue").connection_reset();
    let sender = world.sender(Offload::into(CONTAINER))?;
    let sent = sender.send(&body(MIB, 1), SendOptions::default()).await;
    assert!(matches!(sent, Err(SendError::Unknown(_))), "{sent:?}");
    assert_eq!(world.payloads().await?.len(), 1);
    tokio::time::sleep(s(8 * DAY - 600)).await;
    world.sweep().await?;
    assert_eq!(world.payloads().await?.len(), 1, "not yet due");
    tokio::time::sleep(s(1200)).await;
    world.sweep().await?;
    assert!(world.payloads().await?.is_empty());
    Ok(())
}

/// A message in the last hour of its life has its payload, whatever the sweeper did meanwhile, and
/// however outdated the sender's clock offset was.
#[tokio::test(start_paused = true)]
async fn ls6_the_sweeper_never_takes_a_payload_that_is_needed() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    sender
        .send(b"learns the time", SendOptions::default())
        .await?;
    sender.send(&body(MIB, 1), SendOptions::default()).await?;
    // The service's clock moves forward, so the time that the sender learned is three days old.
    world.account.advance(s(3 * DAY));
    sender.send(&body(MIB, 2), SendOptions::default()).await?;
    world.account.advance(s(7 * DAY - 3600));
    world.sweep().await?;
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(10)).await?;
    // The messages of the first day have expired.
    assert_eq!(handler.bodies(), [Bytes::from(body(MIB, 2))]);
    world.sweep().await?;
    assert!(world.payloads().await?.is_empty());
    Ok(())
}

/// Of two senders that draw the same names the second detects it and draws others. No payload is
/// overwritten.
#[tokio::test(start_paused = true)]
async fn a_repeated_payload_name_is_detected() -> Outcome {
    let world = World::open().await?;
    let wanted = [body(MIB, 1), body(MIB, 2)];
    for body in &wanted {
        let sender = world.sender(Offload::into(CONTAINER))?;
        sender.send(body, SendOptions::default()).await?;
    }
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(5)).await?;
    let arrived = handler.bodies();
    assert_eq!(arrived.len(), 2);
    assert!(
        wanted
            .iter()
            .all(|body| arrived.contains(&Bytes::from(body.clone())))
    );
    Ok(())
}

/// A message that the service rejects leaves no blob.
#[tokio::test(start_paused = true)]
async fn a_rejected_message_leaves_no_payload() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    let wrong = SendOptions {
        delay: s(8 * DAY),
        ..SendOptions::default()
    };
    let sent = sender.send(&body(MIB, 1), wrong).await;
    assert!(matches!(sent, Err(SendError::Message(_))), "{sent:?}");
    assert!(world.payloads().await?.is_empty());
    let beyond = sender.send(&body(65 * MIB, 1), never()).await;
    assert!(matches!(beyond, Err(SendError::TooLong { .. })));
    Ok(())
}

/// A missing or different payload is requested three more times; then its message goes to the
/// poison queue with the reason.
#[tokio::test(start_paused = true)]
async fn a_missing_or_damaged_payload_poisons_its_message() -> Outcome {
    let cx = CallContext::default();
    for (reason, replacement) in [
        ("the payload is missing", None),
        ("cannot be unpacked", Some(body(500, 3))),
        ("another SHA-256", Some(zstd_of(&body(MIB, 4)))),
        ("bytes long", Some(zstd_of(&vec![0; 3 * MIB]))),
        ("bytes exceed", Some(body(2 * MIB, 3))),
    ] {
        let world = World::open().await?;
        let sender = world.sender(Offload::into(CONTAINER))?;
        let sent = sender.send(&body(MIB, 1), SendOptions::default()).await?;
        let blob = sent.payload.unwrap();
        match replacement {
            None => {
                let (all, refuse) = (Conditions::default(), DeleteSnapshots::Refuse);
                world.storage.delete_blob(&cx, &blob, &all, refuse).await?;
            }
            Some(bytes) => {
                let (seen, _) = world.storage.blob_properties(&cx, &blob).await?;
                let put = PutBlob {
                    metadata: seen.metadata,
                    ..PutBlob::default()
                };
                world
                    .storage
                    .put_blob(&cx, &blob, bytes.into(), &put)
                    .await?;
            }
        }
        let handler = Keep::saying(Verdict::Ok);
        let report = world.listen(&handler, s(600)).await?;
        assert!(handler.bodies().is_empty(), "{reason}");
        assert_eq!(report.count(Ended::Retried), 3, "{reason}");
        assert_eq!(report.count(Ended::Poisoned), 1, "{reason}");
        let copy: Envelope = serde_json::from_str(&world.standing(POISON)[0])?;
        assert!(copy.error.contains(reason), "{reason}: {}", copy.error);
    }
    Ok(())
}

fn zstd_of(payload: &[u8]) -> Vec<u8> {
    smalt_listener::payload::codec::pack(payload, Compression::Zstd).unwrap()
}

/// LS6: a reference into another container is never followed.
#[tokio::test(start_paused = true)]
async fn ls6_a_foreign_reference_is_not_followed() -> Outcome {
    let world = World::open().await?;
    let cx = CallContext::default();
    let secret = BlobId::new("ops", "secret");
    let put = PutBlob::default();
    world
        .storage
        .put_blob(&cx, &secret, "salary".into(), &put)
        .await?;
    for (number, container) in ["ops", "payloads/../ops", "Payloads", "$root"]
        .iter()
        .enumerate()
    {
        let claim = Claim::of(b"salary", Compression::None, container, "secret");
        let text = STANDARD.encode(claim.text());
        let ttl = MessageTtl::Never;
        world
            .storage
            .put_message(&cx, QUEUE, &text, ttl, s(0))
            .await?;
        let handler = Keep::saying(Verdict::Ok);
        let report = world.listen(&handler, s(5)).await?;
        assert_eq!(report.count(Ended::Poisoned), 1, "{container}");
        assert!(handler.bodies().is_empty());
        assert_eq!(world.standing(POISON).len(), number + 1);
    }
    let read = world.account.history().into_iter().filter(|exchange| {
        exchange.operation == Some("Blob_Download")
            && exchange.request.uri().path().contains("secret")
    });
    assert_eq!(read.count(), 0);
    let copy: Envelope = serde_json::from_str(&world.standing(POISON)[0])?;
    assert!(copy.error.contains("another container"), "{}", copy.error);
    Ok(())
}

/// In a queue that is not configured for payloads an envelope is an ordinary body.
#[tokio::test(start_paused = true)]
async fn a_queue_without_payloads_ignores_envelopes() -> Outcome {
    let world = World::open().await?;
    world
        .sender(Offload::into(CONTAINER))?
        .send(&body(MIB, 1), never())
        .await?;
    let handler = Keep::saying(Verdict::Ok);
    let mut config = world.config();
    config.offload = None;
    world.listen_as(config, &handler, s(5)).await?;
    assert!(handler.bodies()[0].starts_with(br#"{"v":1,"enc":"zstd","ref":{"c":"payloads""#));
    assert_eq!(world.payloads().await?.len(), 1);
    Ok(())
}

/// A message without expiry has a payload without expiry: only the ack deletes it, no sweeper does.
#[tokio::test(start_paused = true)]
async fn a_message_without_expiry_has_a_payload_without_expiry() -> Outcome {
    let world = World::open().await?;
    world
        .sender(Offload::into(CONTAINER))?
        .send(&body(MIB, 1), never())
        .await?;
    assert_eq!(ttl(&world.payloads().await?[0].1), None);
    tokio::time::sleep(s(1000 * DAY)).await;
    world.sweep().await?;
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(5)).await?;
    assert_eq!(handler.bodies().len(), 1);
    assert!(world.payloads().await?.is_empty());
    Ok(())
}

/// The check itself detects a message that is put before its payload, and a payload that is deleted
/// too early.
#[tokio::test(start_paused = true)]
async fn the_check_of_ls6_catches_both_orders() -> Outcome {
    let world = World::open().await?;
    let cx = CallContext::default();
    let claim = Claim::of(b"x", Compression::None, CONTAINER, "orders/late");
    let text = STANDARD.encode(claim.text());
    let put = world
        .storage
        .put_message(&cx, QUEUE, &text, MessageTtl::Never, s(0));
    put.await?;
    assert_eq!(violations(&world.account.history()).len(), 1);
    let sender = world.sender(Offload::into(CONTAINER))?;
    let sent = sender.send(&body(MIB, 1), never()).await?;
    assert_eq!(violations(&world.account.history()).len(), 1);
    let (all, refuse) = (Conditions::default(), DeleteSnapshots::Refuse);
    let blob = sent.payload.unwrap();
    world.storage.delete_blob(&cx, &blob, &all, refuse).await?;
    assert_eq!(violations(&world.account.history()).len(), 2);
    Ok(())
}

/// A purge deletes the payload with the message. A purge that dies between the two leaves the
/// payload to the sweeper, although the copy never expires.
#[tokio::test(start_paused = true)]
async fn a_purge_takes_the_payload() -> Outcome {
    for dies in [false, true] {
        let world = World::open().await?;
        let poisoned = world.poisoned(&body(100_000, 3)).await?;
        let copied = STANDARD.decode(&poisoned)?;
        let store = PayloadStore::new(Arc::clone(&world.storage), Offload::into(CONTAINER), QUEUE);
        assert!(ttl(&world.payloads().await?[0].1).is_none());
        assert!(store.before_discard(&copied).await?);
        assert!(ttl(&world.payloads().await?[0].1).is_some());
        if !dies {
            assert!(store.discard(&copied).await?);
            assert!(world.payloads().await?.is_empty());
        }
        tokio::time::sleep(s(2 * DAY)).await;
        world.sweep().await?;
        assert!(world.payloads().await?.is_empty());
        assert!(!store.before_discard(b"a plain body").await?);
    }
    Ok(())
}

/// A requeued message keeps its payload, which then lives as long as the message.
#[tokio::test(start_paused = true)]
async fn a_requeue_carries_the_payload() -> Outcome {
    for life in [MessageTtl::Never, MessageTtl::After(s(DAY))] {
        let world = World::open().await?;
        let wanted = body(100_000, 4);
        let poisoned = world.poisoned(&wanted).await?;
        let copied = STANDARD.decode(&poisoned)?;
        let (storage, cx) = (Arc::clone(&world.storage), CallContext::default());
        let put = storage.put_message(&cx, QUEUE, &poisoned, life, s(0));
        put.await?;
        // As in the tool, the copy in the poison queue is deleted once its message is back.
        let taken = storage.get_messages(&cx, POISON, 1, s(30)).await?;
        let copy = &taken.messages[0];
        let delete = storage.delete_message(&cx, POISON, &copy.id, &copy.pop_receipt);
        delete.await?;
        let store = PayloadStore::new(storage, Offload::into(CONTAINER), QUEUE);
        assert!(store.requeued(&copied, life).await?);
        let due = ttl(&world.payloads().await?[0].1).map(str::to_owned);
        assert_eq!(due.is_some(), life != MessageTtl::Never, "{due:?}");
        if let Some(due) = due {
            // The message's day plus the margin's day.
            let due = smalt_protocol::Timestamp::parse_iso(&due).unwrap();
            assert!(due.since(world.account.now()) >= s(2 * DAY - 2));
        }
        world.sweep().await?;
        let handler = Keep::saying(Verdict::Ok);
        world.listen(&handler, s(5)).await?;
        assert_eq!(handler.bodies(), [Bytes::from(wanted)]);
        assert!(world.payloads().await?.is_empty());
        world.assert_ls6();
    }
    Ok(())
}
