//! A partitioned queue against the service in process: it is resized while senders send and
//! listeners listen, and every sent message is handled.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use smalt_harness::testing::TestAccount;
use smalt_listener::config::Encoding;
use smalt_listener::handler::{Verdict, function};
use smalt_listener::metrics::Metrics;
use smalt_listener::partition::{
    PartitionError, PartitionSender, PartitionSettings, PartitionedListener, Partitions,
};
use smalt_listener::payload::SendOptions;
use smalt_listener::{ListenerConfig, Observer};
use smalt_sleeve::port::{BlobId, CallContext, MessageTtl, PutBlob, Storage};

use crate::{Outcome, s, storage};

fn orders(storage: &Arc<dyn Storage>) -> Outcome<Arc<Partitions>> {
    let settings = PartitionSettings {
        max_age: s(10),
        ..PartitionSettings::new("orders", 4, "ops")
    };
    Ok(Arc::new(Partitions::new(Arc::clone(storage), settings)?))
}

type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// Returns a listener that records text and queue of each message it handles.
fn listener(partitions: &Arc<Partitions>, seen: &Seen) -> Outcome<PartitionedListener> {
    let seen = Arc::clone(seen);
    let handler = function(move |message, _ctx| {
        let text = String::from_utf8_lossy(&message.body).into_owned();
        seen.lock().unwrap().push((text, message.queue.clone()));
        async { Verdict::Ok }
    });
    let config = ListenerConfig::new("orders");
    Ok(PartitionedListener::new(
        Arc::clone(partitions),
        config,
        Arc::new(handler),
        1,
    )?)
}

fn texts(seen: &Seen) -> BTreeSet<String> {
    seen.lock()
        .unwrap()
        .iter()
        .map(|(text, _)| text.clone())
        .collect()
}

/// Each request for the map is reported with its operation, since it is billed.
#[tokio::test(start_paused = true)]
async fn requests_for_the_map_are_reported() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let metrics = Arc::new(Metrics::new("orders"));
    let shown = Arc::clone(&metrics) as Arc<dyn Observer>;
    let settings = PartitionSettings::new("orders", 2, "ops");
    let partitions = Partitions::new(storage, settings)?.observed_by(shown);
    let seen = || metrics.counts().requests.into_iter().collect::<Vec<_>>();
    partitions.map().await?;
    let made = [
        ("Create Container", 1),
        ("Create Queue", 2),
        ("Get Blob", 2),
        ("Get Queue Metadata", 1),
        ("Put Blob", 1),
    ];
    assert_eq!(seen(), made, "it did not exist: looked up, created, read");
    partitions.resize(3).await?;
    let resized = [
        ("Create Container", 1),
        ("Create Queue", 5),
        ("Get Blob", 3),
        ("Get Queue Metadata", 1),
        ("Put Blob", 2),
    ];
    assert_eq!(seen(), resized);
    Ok(())
}

/// Equal keys map to the same queue, all queues are used, and the previous unpartitioned queue is
/// drained too.
#[tokio::test(start_paused = true)]
async fn keys_map_to_their_queues() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let cx = CallContext::default();
    storage.create_queue(&cx, "orders").await?;
    let put = storage.put_message(&cx, "orders", "of before", MessageTtl::Never, s(0));
    put.await?;
    let partitions = orders(&storage)?;
    let sender = PartitionSender::new(Arc::clone(&partitions), Encoding::Text, None, 1)?;
    for number in 0..200 {
        let (key, body) = (
            format!("customer-{}", number % 50),
            format!("order {number}"),
        );
        sender
            .send(key.as_bytes(), body.as_bytes(), SendOptions::default())
            .await?;
    }
    let seen = Seen::default();
    let reports = listener(&partitions, &seen)?
        .run_until(tokio::time::sleep(s(60)))
        .await?;
    assert_eq!(texts(&seen).len(), 201);
    assert_eq!(
        reports
            .iter()
            .map(|(_, report)| report.received)
            .sum::<u64>(),
        201
    );
    let mut queues = vec![BTreeSet::new(); 50];
    for (text, queue) in seen.lock().unwrap().iter() {
        if let Some(number) = text.strip_prefix("order ") {
            queues[number.parse::<usize>()? % 50].insert(queue.clone());
        }
    }
    assert!(queues.iter().all(|queues| queues.len() == 1), "{queues:?}");
    assert_eq!(queues.iter().flatten().collect::<BTreeSet<_>>().len(), 4);
    assert!(
        partitions.map().await?.draining.is_empty(),
        "the plain queue is drained"
    );
    Ok(())
}

/// Sends two messages a second; returns the sent messages.
async fn send_for_150_s(partitions: &Arc<Partitions>, seed: u64) -> BTreeSet<String> {
    let mut sent = BTreeSet::new();
    let sender = PartitionSender::new(Arc::clone(partitions), Encoding::Text, None, seed);
    let sender = sender.unwrap();
    for number in 0..300 {
        let (key, body) = (format!("customer-{number}"), format!("order {number}"));
        let put = sender.send(key.as_bytes(), body.as_bytes(), SendOptions::default());
        if put.await.is_ok() {
            sent.insert(body);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    sent
}

/// Resizes from 4 to 7 to 2 partitions while messages are sent and answers are lost. All of them
/// arrive, and the final map contains only the queues that it needs.
#[tokio::test(start_paused = true)]
async fn a_resize_loses_no_message() -> Outcome {
    for seed in 0..4 {
        let account = TestAccount::seeded(seed)?;
        let storage = storage(&account, 1)?;
        let partitions = orders(&storage)?;
        partitions.map().await?;
        for operation in [
            "BlockBlob_Upload",
            "Messages_Enqueue",
            "Queue_Create",
            "Blob_Download",
        ] {
            account
                .fault(operation)
                .nth(2 + seed)
                .times(2)
                .answer_lost();
        }
        let late = s(6 + seed);
        account
            .fault("Messages_Enqueue")
            .nth(40)
            .times(30)
            .late(late);
        let seen = Seen::default();
        let listening = listener(&partitions, &seen)?;
        let sending = send_for_150_s(&partitions, seed);
        let resizing = async {
            for size in [7, 2] {
                tokio::time::sleep(s(31 + seed)).await;
                partitions.resize(size).await.unwrap();
            }
        };
        let all = async {
            let (sent, ()) = tokio::join!(sending, resizing);
            tokio::time::sleep(s(300)).await;
            sent
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (reports, sent) = tokio::join!(
            listening.run_until(async {
                let _ = stopped.await;
            }),
            async {
                let sent = all.await;
                let _ = stop.send(());
                sent
            }
        );
        reports?;
        assert!(sent.len() >= 290, "{}", sent.len());
        let lost: Vec<_> = sent.difference(&texts(&seen)).cloned().collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?}");
        let map = partitions.map().await?;
        assert_eq!((map.partitions, map.draining.len()), (2, 0), "seed {seed}");
        assert_eq!(map.read(), ["orders-00", "orders-01"]);
    }
    Ok(())
}

/// A queue continues to drain while senders may not know the new map, and while it has messages.
#[tokio::test(start_paused = true)]
async fn no_queue_is_retired_too_early() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let partitions = orders(&storage)?;
    partitions.map().await?;
    partitions.resize(2).await?;
    assert!(
        partitions.retire().await?.is_empty(),
        "senders may not know the new map yet"
    );
    let cx = CallContext::default();
    let put = storage.put_message(&cx, "orders-03", "late", MessageTtl::Never, s(0));
    put.await?;
    tokio::time::sleep(s(26)).await;
    assert_eq!(partitions.retire().await?, ["orders-02"]);
    tokio::time::sleep(s(60)).await;
    assert!(
        partitions.retire().await?.is_empty(),
        "it contains a message"
    );
    let got = storage.get_messages(&cx, "orders-03", 1, s(100)).await?;
    assert!(
        partitions.retire().await?.is_empty(),
        "its message is being handled"
    );
    let message = &got.messages[0];
    let (id, receipt) = (&message.id, &message.pop_receipt);
    storage
        .delete_message(&cx, "orders-03", id, receipt)
        .await?;
    assert_eq!(partitions.retire().await?, ["orders-03"]);
    Ok(())
}

/// Of two concurrent resizes one comes first and the other builds on it. A resize whose answer is
/// lost finds its own map.
#[tokio::test(start_paused = true)]
async fn concurrent_resizes_build_on_each_other() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let partitions = orders(&storage)?;
    partitions.map().await?;
    let (one, other) = tokio::join!(partitions.resize(6), partitions.resize(3));
    one?;
    other?;
    let map = partitions.map().await?;
    assert!(map.partitions == 6 || map.partitions == 3);
    assert_eq!(map.version, 3);
    account.fault("BlockBlob_Upload").answer_lost();
    assert_eq!(partitions.resize(9).await?.version, 4);
    account.assert_faults_fired();
    for wrong in [0, 101] {
        assert!(partitions.resize(wrong).await.is_err());
    }
    assert_eq!(partitions.map().await?.version, 4);
    Ok(())
}

/// A put that is delayed during a whole resize arrives in a queue that nobody reads any more. Its
/// sender detects this and repeats the put in a current queue.
#[tokio::test(start_paused = true)]
async fn a_late_put_is_repeated_in_a_current_queue() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let partitions = orders(&storage)?;
    let sender = PartitionSender::new(Arc::clone(&partitions), Encoding::Text, None, 1)?;
    sender
        .send(b"first", b"first", SendOptions::default())
        .await?;
    account.fault("Messages_Enqueue").times(20).late(s(60));
    let sends = (0..20).map(|number| {
        let (sender, body) = (&sender, format!("order {number}"));
        async move {
            sender
                .send(body.as_bytes(), body.as_bytes(), SendOptions::default())
                .await
        }
    });
    let resizing = async {
        partitions.resize(1).await?;
        tokio::time::sleep(s(26)).await;
        partitions.retire().await
    };
    let (sent, retired) = tokio::join!(futures_util::future::join_all(sends), resizing);
    assert!(sent.iter().all(Result::is_ok));
    assert!(retired?.len() >= 2);
    account.assert_faults_fired();
    let seen = Seen::default();
    listener(&partitions, &seen)?
        .run_until(tokio::time::sleep(s(60)))
        .await?;
    assert_eq!(texts(&seen).len(), 21);
    Ok(())
}

/// A queue that becomes current again during the check is not retired.
#[tokio::test(start_paused = true)]
async fn a_queue_that_becomes_current_again_is_not_retired() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let partitions = orders(&storage)?;
    partitions.map().await?;
    partitions.resize(2).await?;
    tokio::time::sleep(s(60)).await;
    account.fault("Queue_GetProperties").late(s(5));
    let growing = async {
        tokio::time::sleep(s(1)).await;
        partitions.resize(4).await
    };
    let (retired, grown) = tokio::join!(partitions.retire(), growing);
    account.assert_faults_fired();
    assert!(retired?.is_empty());
    assert_eq!(partitions.map().await?, grown?);
    Ok(())
}

/// A map may be damaged on its way to a listener that starts: the listener requests it again. A map
/// that is stored damaged ends the listener, and the error says so.
#[tokio::test(start_paused = true)]
async fn an_invalid_map_is_requested_again() -> Outcome {
    let account = TestAccount::open()?;
    let storage = storage(&account, 1)?;
    let partitions = orders(&storage)?;
    let good = partitions.map().await?;
    let write = async |content: String| {
        let blob = BlobId::new("ops", "orders.partitions.json");
        let put = PutBlob::default();
        let cx = CallContext::default();
        storage.put_blob(&cx, &blob, content.into(), &put).await
    };
    write("{\"version\": ".to_owned()).await?;
    let seen = Seen::default();
    let listener = listener(&partitions, &seen)?;
    let mending = async {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        write(good.document()).await
    };
    let (ran, mended) = tokio::join!(listener.run_until(tokio::time::sleep(s(60))), mending);
    mended?;
    assert_eq!(ran?.len(), 4);
    write("{\"version\": ".to_owned()).await?;
    let ended = listener.run_until(std::future::pending::<()>()).await;
    assert!(
        matches!(ended, Err(PartitionError::Map(_))),
        "{:?}",
        ended.err()
    );
    Ok(())
}
