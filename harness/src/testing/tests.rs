//! Tests each assertion on correct code and on incorrect code.

use std::time::Duration;

use azure_core::Bytes;
use azure_storage_blob::models::{
    BlobClientAcquireLeaseOptions, BlobClientAcquireLeaseResultHeaders as _,
    BlobClientBreakLeaseOptions,
};
use azure_storage_queue::QueueClient;
use azure_storage_queue::models::{QueueClientSendMessageOptions, QueueMessage};
use smalt::Clock;
use smalt_sleeve::port::{CallContext, Storage as _};
use smalt_sleeve::{Account, AzureStorage, HyperTransport, HyperTransportSettings, Settings};

use super::{Ended, TestAccount};

async fn put(queue: &QueueClient, text: &str, ttl_s: Option<i32>) {
    let message_text = Some(text.to_owned());
    let message = QueueMessage { message_text }.try_into().unwrap();
    let options = QueueClientSendMessageOptions {
        message_time_to_live: ttl_s,
        ..Default::default()
    };
    queue.send_message(message, Some(options)).await.unwrap();
}

/// Receives the next message, deletes it if asked to, and returns its text.
async fn take(queue: &QueueClient, delete: bool) -> String {
    let taken = queue.receive_messages(None).await.unwrap();
    let message = taken.into_model().unwrap().items.unwrap().remove(0);
    if delete {
        let (id, receipt) = (message.message_id.unwrap(), message.pop_receipt.unwrap());
        queue.delete_message(&id, &receipt, None).await.unwrap();
    }
    message.message_text.unwrap()
}

/// Returns the message of a failed assertion.
fn told(assertion: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(assertion));
    let panic = panic.expect_err("the assertion should fail");
    *panic.downcast::<String>().expect("a string")
}

#[tokio::test(start_paused = true)]
async fn done_present_or_kept_message_is_not_lost() {
    let account = TestAccount::open().unwrap();
    let (queue, work) = (account.queue("orders").await.unwrap(), account.work());
    let poison = account.queue("orders-poison").await.unwrap();
    for text in ["done", "hidden", "visible", "poisoned"] {
        put(&queue, text, None).await;
    }
    work.begin("done").done();
    assert_eq!(take(&queue, true).await, "done");
    assert_eq!(take(&queue, false).await, "hidden");
    put(&poison, "it was poisoned", None).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    let texts = [take(&queue, false).await, take(&queue, false).await];
    assert!(texts.contains(&"visible".to_owned()), "{texts:?}");
    account.assert_no_message_lost("orders", &work);
    let messages = account.messages("orders");
    assert_eq!(messages.all().len(), 4);
    assert_eq!(messages.standing_now().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn lost_message_is_reported_with_its_history() {
    let account = TestAccount::open().unwrap();
    let (queue, work) = (account.queue("orders").await.unwrap(), account.work());
    put(&queue, "deleted", None).await;
    put(&queue, "hasty", None).await;
    put(&queue, "short", Some(5)).await;
    assert_eq!(take(&queue, true).await, "deleted");
    let running = work.begin("hasty");
    assert_eq!(take(&queue, true).await, "hasty");
    tokio::time::sleep(Duration::from_secs(10)).await;
    running.done();
    put(&queue, "swept", None).await;
    queue.clear(None).await.unwrap();
    let story = told(|| account.assert_no_message_lost("orders", &work));
    assert!(
        story.starts_with("4 of 4 messages of the queue orders were lost"),
        "{story}"
    );
    assert!(story.contains("\"deleted\" ("), "{story}");
    assert!(
        story.contains("before it was done at 2026-11-21T10:00:10"),
        "{story}"
    );
    assert!(story.contains("expired at 2026-11-21T10:00:05"), "{story}");
    assert!(
        story.contains("was deleted by Clear Messages or Delete Queue"),
        "{story}"
    );
    let messages = account.messages("orders");
    assert!(matches!(messages.all()[2].ended, Some(Ended::Expired(_))));
}

#[tokio::test(start_paused = true)]
async fn delete_with_a_lost_answer_counts() {
    let account = TestAccount::open().unwrap();
    let (queue, work) = (account.queue("orders").await.unwrap(), account.work());
    put(&queue, "gone", None).await;
    account.fault("MessageId_Delete").times(100).answer_lost();
    let taken = queue.receive_messages(None).await.unwrap();
    let message = taken.into_model().unwrap().items.unwrap().remove(0);
    let (id, receipt) = (message.message_id.unwrap(), message.pop_receipt.unwrap());
    let lost = queue.delete_message(&id, &receipt, None).await;
    assert!(lost.is_err(), "the answer arrived");
    let story = told(|| account.assert_no_message_lost("orders", &work));
    assert!(story.contains("never done"), "{story}");
    let last = account.history().pop().unwrap();
    assert!(!last.delivered);
}

#[tokio::test(start_paused = true)]
async fn overlapping_attempts_are_reported() {
    let account = TestAccount::open().unwrap();
    let work = account.work();
    let first = work.begin("a");
    work.begin("b").done();
    work.assert_one_at_a_time();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = work.begin("a");
    assert!(told(|| work.assert_one_at_a_time()).starts_with("two attempts at \"a\" overlap"));
    first.done();
    drop(second);
    let done: Vec<bool> = work.runs().iter().map(|run| run.done).collect();
    assert_eq!(done, [true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn unfired_fault_is_reported() {
    let account = TestAccount::open().unwrap();
    account.fault("Queue_Create").on("orders").internal_error();
    account
        .fault("Queue_Create")
        .on("others")
        .connection_reset();
    let _ = account.queue("orders").await;
    let story = told(|| account.assert_faults_fired());
    assert!(
        story.contains("  0 of 1 times in 0 matching calls"),
        "{story}"
    );
}

#[tokio::test(start_paused = true)]
async fn work_beyond_the_lease_is_reported() {
    let account = TestAccount::open().unwrap();
    let lock = account.container("locks").await.unwrap().blob_client("one");
    lock.upload(Bytes::new().into(), None).await.unwrap();
    let acquire = async |id: &str| {
        let options = BlobClientAcquireLeaseOptions {
            proposed_lease_id: Some(id.to_owned()),
            ..Default::default()
        };
        let lease = lock.acquire_lease(15, Some(options)).await.unwrap();
        lease.lease_id().unwrap().unwrap()
    };
    let (first, second) = (
        "AAAAAAAA-0000-4000-8000-000000000001",
        "aaaaaaaa-0000-4000-8000-000000000002",
    );
    // The holder may continue while it renews, in any letter case of its lease id.
    let section = account.leased_section("locks/one");
    let id = acquire(first).await;
    let inside = section.enter(first);
    tokio::time::sleep(Duration::from_secs(10)).await;
    lock.renew_lease(id.clone(), None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(14)).await;
    section.assert_never_held_twice();
    // The operator breaks the lease early.
    let options = BlobClientBreakLeaseOptions {
        break_period: Some(0),
        ..Default::default()
    };
    lock.break_lease(Some(options)).await.unwrap();
    section.assert_never_held_twice();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let story = told(|| section.assert_never_held_twice());
    assert!(
        story.contains("from 2026-11-21T10:00:00.0000000Z to 2026-11-21T10:00:24"),
        "{story}"
    );
    // Then another holder acquires it.
    let other = section.enter(&acquire(second).await);
    let story = told(|| section.assert_never_held_twice());
    assert!(
        story.starts_with("two holders worked under the lease of locks/one at once"),
        "{story}"
    );
    drop((inside, other));
}

#[tokio::test(start_paused = true)]
async fn changed_and_released_leases_are_followed() {
    let account = TestAccount::open().unwrap();
    let lock = account.container("locks").await.unwrap().blob_client("one");
    lock.upload(Bytes::new().into(), None).await.unwrap();
    let section = account.leased_section("locks/one");
    let lease = lock.acquire_lease(-1, None).await.unwrap();
    let id = lease.lease_id().unwrap().unwrap();
    let next = "aaaaaaaa-0000-4000-8000-000000000002";
    lock.change_lease(id.clone(), next.to_owned(), None)
        .await
        .unwrap();
    drop(section.enter(next));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inside = section.enter(next);
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    section.assert_never_held_twice();
    lock.release_lease(next.to_owned(), None).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    told(|| section.assert_never_held_twice());
    drop(inside);
}

/// Clients in other programs use real sockets and real time.
#[tokio::test]
async fn other_programs_connect_by_sockets() {
    let account = TestAccount::on_clock(Clock::system(), 1).unwrap();
    let served = account.serve().await.unwrap();
    let sockets = HyperTransport::new(HyperTransportSettings::default()).unwrap();
    let other = Account::from_connection_string(&served.connection_string()).unwrap();
    let storage =
        AzureStorage::open(other, std::sync::Arc::new(sockets), Settings::default()).unwrap();
    let created = storage
        .create_container(&CallContext::default(), "events")
        .await;
    created.unwrap();
    let seen = account.history();
    assert_eq!(seen[0].operation, Some("Container_Create"));
    assert_eq!(seen[0].response.status(), 201);
    account.advance(Duration::from_secs(3_600));
    assert!(account.now().since(seen[0].at) >= Duration::from_secs(3_600));
}
