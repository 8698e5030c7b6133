//! Acknowledged writes survive closing and reopening the store.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use smalt::{Clock, Config, Emulator};

use super::client::{Client, START, address};

fn open(dir: &std::path::Path, clock: &Clock) -> Client {
    let config = Config {
        strict_skew: true,
        ..Config::default()
    };
    let builder = Emulator::builder().config(config).clock(clock.clone());
    let emulator = builder.seed(1).durable(dir).open().unwrap();
    Client::of(emulator, clock.clone())
}

#[tokio::test]
async fn tables_and_entities_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual(START);
    let client = open(dir.path(), &clock);
    client.create("tab").await;
    let large = "x".repeat(30_000);
    let small = client
        .insert("p", "small", "v")
        .await
        .header("etag")
        .to_owned();
    client.insert("p", "large", &large).await;
    client.insert("p", "gone", "v").await;
    let any = [("if-match", "*")];
    client
        .send_with("DELETE", &address("p", "gone"), &any, "")
        .await;
    client.emulator.close().unwrap();

    let client = open(dir.path(), &clock);
    let page = client.send("GET", "/tab()", "").await;
    assert_eq!(page.texts("RowKey"), ["large", "small"]);
    assert_eq!(client.get("p", "large").await.json()["v"], large);
    assert_eq!(client.get("p", "small").await.header("etag"), small);
    // The clock stands still; ETags rise nevertheless.
    let path = address("p", "small");
    let held = [("if-match", small.as_str())];
    let next = client
        .send_with("MERGE", &path, &held, "{\"v\":\"w\"}")
        .await;
    assert_eq!(next.outcome(), "204");
    assert_ne!(next.header("etag"), small);
    client.emulator.close().unwrap();
}
