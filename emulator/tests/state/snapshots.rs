//! Named snapshots and forks.

use std::time::Duration;

use smalt::{Clock, Emulator, Service, SnapshotError, Timestamp};

use super::world::{fill, seen};
use crate::support::Client;

/// Restores everything that a client sees: content, ETags, leases, settings, a moved clock.
#[tokio::test]
async fn snapshot_restores_everything() {
    let dir = tempfile::tempdir().unwrap();
    let on_disk = Client::of(|builder| builder.durable(dir.path()));
    for client in [Client::new(), on_disk] {
        let emulator = client.emulator();
        fill(emulator).await;
        let before = seen(emulator).await;
        emulator.save("full").unwrap();
        let now = emulator.now();

        client.advance_s(3_600);
        let gone = client.try_("DELETE", "/ccc?restype=container", &[]).await;
        assert_eq!(gone, "202");
        client.change_settings(smalt::AccountSettings::default());
        assert_ne!(seen(emulator).await, before);

        emulator.load("full").unwrap();
        assert_eq!((emulator.now(), emulator.clock().now()), (now, now));
        assert_eq!(seen(emulator).await, before);
        assert_eq!(emulator.audit().unwrap().differences, Vec::<String>::new());
        let listed = emulator.snapshots();
        assert_eq!((listed.len(), listed[0].name.as_str()), (1, "full"));
        emulator.delete_snapshot("full").unwrap();
        let gone = emulator.load("full");
        assert!(matches!(gone, Err(SnapshotError::NotFound(_))));
    }
}

#[tokio::test]
async fn fork_starts_with_the_same_state_and_is_independent() {
    let client = Client::new();
    let emulator = client.emulator();
    fill(emulator).await;
    let before = seen(emulator).await;
    let fork = emulator.fork().unwrap();
    assert_eq!(seen(&fork).await, before);
    fork.clock().advance(Duration::from_secs(60));
    let queues = Client::to(&fork).at(Service::Queue);
    assert_eq!(queues.try_("DELETE", "/qqq", &[]).await, "204");
    assert_eq!(seen(emulator).await, before);
    assert_ne!(seen(&fork).await, before);
}

/// Two forks with the same seed for their ids answer alike.
#[tokio::test]
async fn forks_give_the_same_answers_to_the_same_requests() {
    let client = Client::new();
    fill(client.emulator()).await;
    let one = client.emulator().fork().unwrap();
    let other = client.emulator().fork().unwrap();
    for fork in [&one, &other] {
        Client::to(fork).put("/ccc/new", "x").await;
    }
    assert_eq!(seen(&one).await, seen(&other).await);
}

/// A clock that was moved after the snapshot follows the system's time again, as when it was saved.
#[tokio::test]
async fn clock_follows_system_time_again_after_a_load() {
    let emulator = Emulator::builder().clock(Clock::system()).open().unwrap();
    emulator.save("s").unwrap();
    emulator.clock().set(Timestamp::from_unix_s(4_000_000_000));
    emulator.clock().freeze();
    emulator.load("s").unwrap();
    assert!(emulator.clock().reading().is_wall);
}
