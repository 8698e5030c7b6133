//! Acknowledged writes survive closing and reopening the store.

use std::path::Path;

use smalt::{Clock, Service};

use super::client::address;
use crate::support::{Client, START};

fn open(dir: &Path, clock: &Clock) -> Client {
    Client::of(|builder| builder.durable(dir).clock(clock.clone())).at(Service::Table)
}

#[tokio::test]
async fn tables_and_entities_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(START);
    let client = open(dir.path(), &clock);
    client.create_table("tab").await;
    let large = "x".repeat(30_000);
    let small = client.insert_entity("p", "small", "v").await;
    let small = small.header("etag");
    client.insert_entity("p", "large", &large).await;
    client.insert_entity("p", "gone", "v").await;
    let any = [("if-match", "*")];
    client.send("DELETE", &address("p", "gone"), &any, "").await;
    client.emulator().close().unwrap();

    let client = open(dir.path(), &clock);
    let page = client.get("/tab()").await;
    assert_eq!(page.column("RowKey"), ["large", "small"]);
    let path = address("p", "large");
    assert_eq!(client.get(&path).await.json()["v"], large);
    let path = address("p", "small");
    assert_eq!(client.get(&path).await.header("etag"), small);
    // The clock stands still; ETags rise nevertheless.
    let held = [("if-match", small)];
    let next = client.send("MERGE", &path, &held, "{\"v\":\"w\"}").await;
    assert_eq!(next.outcome(), "204");
    assert_ne!(next.header("etag"), small);
    client.emulator().close().unwrap();
}
