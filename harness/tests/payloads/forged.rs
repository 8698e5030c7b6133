//! Forged envelopes: a client that may add messages, and even read the payload container, gains no
//! access to the payload of another message. Nothing of it is delivered, marked or deleted.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use smalt_listener::handler::Verdict;
use smalt_listener::payload::envelope::Claim;
use smalt_listener::payload::{Compression, Offload, PayloadStore, SendOptions};
use smalt_listener::rules::envelope::Envelope;
use smalt_listener::{ListenerConfig, Outcome as Ended};
use smalt_sleeve::port::{BlobId, BlobProperties, CallContext, MessageTtl, Metadata, PutBlob};

use super::support::*;

/// Puts a forged text into a queue.
async fn forge(world: &World, queue: &str, claim: &Claim, ttl: MessageTtl) -> Outcome {
    let (cx, text) = (CallContext::default(), STANDARD.encode(claim.text()));
    let put = world.storage.put_message(&cx, queue, &text, ttl, s(0));
    put.await?;
    Ok(())
}

async fn put(world: &World, name: &str, content: &[u8], metadata: Metadata) -> Outcome<BlobId> {
    let (cx, blob) = (CallContext::default(), BlobId::new(CONTAINER, name));
    let content = Bytes::copy_from_slice(content);
    let put = PutBlob {
        metadata,
        ..PutBlob::default()
    };
    world.storage.put_blob(&cx, &blob, content, &put).await?;
    Ok(blob)
}

async fn seen(world: &World, blob: &BlobId) -> Outcome<BlobProperties> {
    let cx = CallContext::default();
    Ok(world.storage.blob_properties(&cx, blob).await?.0)
}

/// Returns the envelope of the message in the queue.
fn standing(world: &World) -> Outcome<Claim> {
    let body = STANDARD.decode(&world.standing(QUEUE)[0])?;
    Ok(serde_json::from_slice(&body)?)
}

/// Blobs of an application that were never sent as payloads, with known or unknown content.
#[tokio::test(start_paused = true)]
async fn blobs_of_other_applications_are_not_payloads() -> Outcome {
    for (content, ttl) in [
        (&b"VICTIM"[..], MessageTtl::Never),
        (b"VICTIM", MessageTtl::After(s(60))),
        (b"unknown", MessageTtl::Never),
    ] {
        let world = World::open().await?;
        let due = Metadata::from([("TimeToLive".to_owned(), "2099-01-01T00:00:00Z".to_owned())]);
        let victim = put(&world, "victim1", b"VICTIM", due).await?;
        let before = seen(&world, &victim).await?;
        let claim = Claim::of(content, Compression::None, CONTAINER, "victim1");
        forge(&world, QUEUE, &claim, ttl).await?;
        let handler = Keep::saying(Verdict::Ok);
        let report = world.listen(&handler, s(30)).await?;
        assert!(handler.bodies().is_empty());
        assert_eq!(
            (report.count(Ended::Poisoned), report.count(Ended::Retried)),
            (1, 0)
        );
        assert_eq!(seen(&world, &victim).await?, before);
        let copy: Envelope = serde_json::from_str(&world.standing(POISON)[0])?;
        assert!(copy.error.contains("bound to another"), "{}", copy.error);
    }
    Ok(())
}

/// A forger who knows name, length and hash of a payload does not know the key in its message.
/// Whether the forged message is handled, rejected or received too often, the payload does not
/// change, and its own message is handled.
#[tokio::test(start_paused = true)]
async fn a_forged_envelope_has_no_power_over_a_payload() -> Outcome {
    for options in [never(), SendOptions::default()] {
        for key in [None, Some("00112233445566778899aabbccddeeff")] {
            for max_dequeue in [1, 5] {
                let world = World::open().await?;
                let sender = world.sender(Offload::into(CONTAINER))?;
                let wanted = body(100_000, 3);
                let blob = sender.send(&wanted, options).await?.payload.unwrap();
                let real = standing(&world)?;
                let mut forged = real.clone();
                forged.reference.key = key.map(str::to_owned);
                assert_ne!(forged, real);
                let before = seen(&world, &blob).await?;
                // Under the same queue's name only the key protects it.
                let store =
                    PayloadStore::new(Arc::clone(&world.storage), Offload::into(CONTAINER), QUEUE);
                let text = forged.text();
                store.before_discard(text.as_bytes()).await?;
                store.requeued(text.as_bytes(), MessageTtl::Never).await?;
                store.discard(text.as_bytes()).await?;
                if key.is_some() {
                    store.admit(text.as_bytes(), "forgeries").await?;
                }
                assert_eq!(seen(&world, &blob).await?, before, "by the tools");
                forge(&world, QUEUE, &forged, options.ttl).await?;
                let config = ListenerConfig {
                    max_dequeue,
                    ..world.config()
                };
                let handler = Keep::saying(Verdict::Ok);
                let report = world.listen_as(config, &handler, s(60)).await?;
                assert_eq!(handler.bodies(), [Bytes::from(wanted)]);
                let ended = (report.count(Ended::Done), report.count(Ended::Poisoned));
                assert_eq!(ended, (1, 1));
                assert!(
                    world.payloads().await?.is_empty(),
                    "its own message deletes it"
                );
            }
        }
    }
    Ok(())
}

/// An envelope from one queue is invalid in another one with the same container, until an operator
/// moves its message there.
#[tokio::test(start_paused = true)]
async fn an_envelope_of_another_queue_opens_nothing() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    let wanted = body(100_000, 5);
    let blob = sender.send(&wanted, never()).await?.payload.unwrap();
    let real = standing(&world)?;
    let before = seen(&world, &blob).await?;
    let mails = ListenerConfig {
        queue: "mails".to_owned(),
        create_queue: true,
        ..world.config()
    };
    let cx = CallContext::default();
    world.storage.create_queue(&cx, "mails").await?;
    forge(&world, "mails", &real, MessageTtl::Never).await?;
    let handler = Keep::saying(Verdict::Ok);
    let storage = Arc::clone(&world.storage);
    let listener =
        smalt_listener::QueueListener::new(mails.clone(), storage, Arc::new(handler.clone()), 3)?;
    let report = listener.run_until(tokio::time::sleep(s(10))).await?;
    assert_eq!(
        (report.count(Ended::Poisoned), handler.bodies().len()),
        (1, 0)
    );
    assert_eq!(seen(&world, &blob).await?, before);
    // As `poison requeue --to mails` does.
    let store = PayloadStore::new(Arc::clone(&world.storage), Offload::into(CONTAINER), QUEUE);
    store.admit(real.text().as_bytes(), "mails").await?;
    forge(&world, "mails", &real, MessageTtl::Never).await?;
    let report = listener.run_until(tokio::time::sleep(s(10))).await?;
    assert_eq!(report.count(Ended::Done), 1);
    assert_eq!(handler.bodies(), [Bytes::from(wanted)]);
    Ok(())
}

/// A payload of an earlier release has no key: its name and the hash of its content bind it. It is
/// handled and deleted; if the hash differs, it is left alone.
#[tokio::test(start_paused = true)]
async fn payloads_of_earlier_releases_are_handled() -> Outcome {
    let name = format!("{QUEUE}/00112233445566778899aabbccddeeff");
    for (content, verdict, done) in [
        (&b"an old payload"[..], Verdict::Ok, 1),
        (b"an old payload", Verdict::reject("no"), 0),
        (b"another content", Verdict::Ok, 0),
    ] {
        let world = World::open().await?;
        let due = Metadata::from([("TimeToLive".to_owned(), "2099-01-01T00:00:00Z".to_owned())]);
        let blob = put(&world, &name, b"an old payload", due).await?;
        let before = seen(&world, &blob).await?;
        let claim = Claim::of(content, Compression::None, CONTAINER, &name);
        forge(&world, QUEUE, &claim, MessageTtl::After(s(3600))).await?;
        let handler = Keep::saying(verdict);
        let report = world.listen(&handler, s(600)).await?;
        assert_eq!(report.count(Ended::Done), done);
        assert_eq!(report.count(Ended::Poisoned), 1 - done);
        match (done, content == b"an old payload") {
            (1, _) => assert!(world.payloads().await?.is_empty()),
            // Kept for its copy in the poison queue.
            (_, true) => assert_eq!(ttl(&seen(&world, &blob).await?), None),
            (_, false) => assert_eq!(seen(&world, &blob).await?, before),
        }
    }
    Ok(())
}

/// The content of a payload is a body, even if it looks like an envelope.
#[tokio::test(start_paused = true)]
async fn an_envelope_inside_of_a_payload_is_not_followed() -> Outcome {
    let world = World::open().await?;
    let sender = world.sender(Offload::into(CONTAINER))?;
    let inner = Claim::of(b"secret", Compression::Zstd, CONTAINER, "orders/secret").text();
    sender
        .send(inner.as_bytes(), SendOptions::default())
        .await?;
    let handler = Keep::saying(Verdict::Ok);
    world.listen(&handler, s(5)).await?;
    assert_eq!(handler.bodies(), [Bytes::from(inner)]);
    Ok(())
}
