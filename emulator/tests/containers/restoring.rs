//! Soft-deleted containers: listed, restored, and finally removed.

use smalt::{AccountSettings, Config};

use crate::support::{Client, config};

const C: &str = "/events?restype=container";
const DAY_S: u64 = 86_400;

fn keeping(being_deleted_s: u64) -> Client {
    let client = Client::with(Config {
        being_deleted_s,
        ..config()
    });
    let settings = AccountSettings {
        container_retention_days: Some(7),
        ..AccountSettings::default()
    };
    client.change_settings(settings);
    client
}

/// Returns names, versions and remaining days of the deleted containers.
async fn deleted(client: &Client) -> Vec<(String, String, String)> {
    let listed = client.get("/?comp=list&include=deleted").await;
    let of = |part: &str, name: &str| {
        let text = part.split(&format!("<{name}>")).nth(1);
        text.map_or("", |text| text.split('<').next().unwrap_or_default())
            .to_owned()
    };
    let parts = listed.text().split("<Container>").skip(1);
    parts
        .filter(|part| part.contains("<Deleted>true</Deleted>"))
        .map(|part| {
            let days = of(part, "RemainingRetentionDays");
            (of(part, "Name"), of(part, "Version"), days)
        })
        .collect()
}

/// Returns the lease state of the only container, deleted or not.
async fn lease_state(client: &Client) -> String {
    let listed = client.get("/?comp=list&include=deleted").await;
    listed.elements("LeaseState").concat()
}

async fn restore(client: &Client, to: &str, name: &str, version: &str) -> String {
    let headers = [
        ("x-ms-deleted-container-name", name),
        ("x-ms-deleted-container-version", version),
    ];
    let target = format!("/{to}?restype=container&comp=undelete");
    client.try_("PUT", &target, &headers).await
}

#[tokio::test]
async fn restored_container_has_its_content() {
    let client = keeping(0);
    client.create("events").await;
    client.put("/events/blob", "").await;
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    assert_eq!(client.try_("GET", C, &[]).await, "404 ContainerNotFound");
    assert_eq!(client.maintain(), 0);
    let found = deleted(&client).await;
    let [(name, version, days)] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((name.as_str(), days.as_str()), ("events", "7"));
    let other = "01D934E8B074DD9C";
    assert_eq!(
        restore(&client, "events", "events", other).await,
        "404 ContainerNotFound"
    );
    client.create("taken").await;
    let taken = restore(&client, "taken", "events", version).await;
    assert_eq!(taken, "409 ContainerAlreadyExists");
    assert_eq!(restore(&client, "events", "events", version).await, "201");
    assert_eq!(client.try_("HEAD", "/events/blob", &[]).await, "200");
    assert!(deleted(&client).await.is_empty());
    let again = restore(&client, "more", "events", version).await;
    assert_eq!(again, "404 ContainerNotFound");
    client.advance_s(8 * DAY_S);
    assert_eq!(client.maintain(), 0);
    assert_eq!(client.try_("HEAD", "/events/blob", &[]).await, "200");
}

#[tokio::test]
async fn each_deleted_container_of_a_name_is_kept() {
    let client = keeping(0);
    for _ in 0..3 {
        client.create("events").await;
        client.put("/events/blob", "").await;
        assert_eq!(client.try_("DELETE", C, &[]).await, "202");
        client.advance_s(60);
    }
    client.create("events").await;
    client.create("other").await;
    let found = deleted(&client).await;
    let versions: Vec<&str> = found
        .iter()
        .map(|(_, version, _)| version.as_str())
        .collect();
    assert_eq!(versions.len(), 3);
    assert!(versions.is_sorted(), "{versions:?}");
    // Pages of one entry show each container once.
    let mut seen = Vec::new();
    let mut marker = String::new();
    loop {
        let target = format!("/?comp=list&include=deleted&maxresults=1&marker={marker}");
        let page = client.get(&target).await;
        seen.push(page.elements("Name").concat());
        marker = page.elements("NextMarker").concat();
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["events", "events", "events", "events", "other"]);
    assert_eq!(
        restore(&client, "first", "events", versions[0]).await,
        "201"
    );
    assert_eq!(client.try_("HEAD", "/first/blob", &[]).await, "200");
}

#[tokio::test]
async fn everything_is_removed_after_the_retention() {
    let client = keeping(30);
    client.create("events").await;
    client.put("/events/blob", "").await;
    assert_eq!(client.try_("DELETE", C, &[]).await, "202");
    let version = deleted(&client).await.remove(0).1;
    assert_eq!(lease_state(&client).await, "leased");
    assert_eq!(
        client.try_("PUT", C, &[]).await,
        "409 ContainerBeingDeleted"
    );
    let early = restore(&client, "events", "events", &version).await;
    assert_eq!(early, "409 ContainerBeingDeleted");
    client.advance_s(30);
    assert_eq!(lease_state(&client).await, "expired");
    // The name is free, the contents stay.
    assert_eq!(client.maintain(), 1);
    client.create("events").await;
    client.advance_s(7 * DAY_S);
    assert!(deleted(&client).await.is_empty());
    let late = restore(&client, "late", "events", &version).await;
    assert_eq!(late, "404 ContainerNotFound");
    // The container, its blob, and the marker of remaining records.
    assert!(client.maintain() >= 1);
    client.emulator().maintain(100).unwrap();
    assert_eq!(client.maintain(), 0);
    assert_eq!(client.try_("GET", C, &[]).await, "200");
}

#[tokio::test]
async fn invalid_restore_is_refused() {
    let client = keeping(0);
    for (to, name, version, expected) in [
        ("events", "", "", "400 MissingRequiredHeader"),
        ("events", "events", "", "400 MissingRequiredHeader"),
        ("", "", "", "400 MissingRequiredHeader"),
        ("events", "events", "1", "400 InvalidHeaderValue"),
        (
            "events",
            "events",
            "01D934E8B074DD9C",
            "404 ContainerNotFound",
        ),
    ] {
        let outcome = restore(&client, to, name, version).await;
        assert_eq!(outcome, expected, "{to:?} {name:?} {version:?}");
    }
}
