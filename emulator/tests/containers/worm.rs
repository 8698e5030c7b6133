//! Row 8: immutability policies and legal holds of whole containers, set through the control
//! endpoint.

use serde_json::{Value, json};

use crate::support::{BLOCK, Client};

const CONTROL: &str = "/accounts/devstoreaccount1/containers/box";
const DAY_S: u64 = 24 * 60 * 60;
const APPEND: [(&str, &str); 1] = [("x-ms-blob-type", "AppendBlob")];

async fn world() -> Client {
    let client = Client::new();
    client.create("box").await;
    client.put("/box/a", "").await;
    assert_eq!(send(&client, "PUT", "/log", &APPEND).await, "201");
    client
}

/// Sends a request into the container and returns its outcome.
async fn send(client: &Client, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let path = format!("/box{path}");
    let text = if path.ends_with("appendblock") {
        "text"
    } else {
        ""
    };
    client.send(method, &path, headers, text).await.outcome()
}

async fn control(client: &Client, method: &str, path: &str, body: &Value) -> u16 {
    let path = format!("{CONTROL}{path}");
    client.control(method, &path, body.to_string()).await.status
}

async fn retain(client: &Client, policy: Value) {
    assert_eq!(
        control(client, "PUT", "/immutability-policy", &policy).await,
        200
    );
}

#[tokio::test]
async fn retained_blobs_cannot_change_and_can_be_deleted_afterwards() {
    let client = world().await;
    retain(&client, json!({ "days": 2 })).await;
    const DUE: &str = "409 BlobImmutableDueToPolicy";
    let delete = ("DELETE", "/a", &[][..]);
    for (method, path, headers) in [
        delete,
        ("PUT", "/a", &[BLOCK][..]),
        ("PUT", "/a?comp=metadata", &[("x-ms-meta-a", "b")]),
        (
            "PUT",
            "/a?comp=properties",
            &[("x-ms-blob-content-type", "text/html")],
        ),
        ("PUT", "/a?comp=snapshot", &[]),
        ("PUT", "/log?comp=appendblock", &[]),
    ] {
        assert_eq!(
            send(&client, method, path, headers).await,
            DUE,
            "{method} {path}"
        );
    }
    assert_eq!(send(&client, "PUT", "/new", &[BLOCK]).await, "201");
    let tier = [("x-ms-access-tier", "Cool")];
    assert_eq!(send(&client, "PUT", "/a?comp=tier", &tier).await, "200");
    client.advance_s(2 * DAY_S);
    assert_eq!(send(&client, "PUT", "/a", &[BLOCK]).await, DUE);
    assert_eq!(send(&client, "DELETE", "/a", &[]).await, "202");
    assert_eq!(send(&client, "PUT", "/a", &[BLOCK]).await, "201");
}

#[tokio::test]
async fn unlocked_policy_protects_the_container_until_it_is_deleted_or_the_container_empty() {
    for is_emptied in [false, true] {
        let client = world().await;
        retain(&client, json!({ "days": 1 })).await;
        client.advance_s(2 * DAY_S);
        let deleted = send(&client, "DELETE", "?restype=container", &[]).await;
        assert_eq!(deleted, "409 BlobImmutableDueToPolicy");
        if is_emptied {
            for blob in ["/a", "/log"] {
                assert_eq!(send(&client, "DELETE", blob, &[]).await, "202");
            }
        } else {
            let ended = control(&client, "DELETE", "/immutability-policy", &json!({})).await;
            assert_eq!(ended, 200);
        }
        let deleted = send(&client, "DELETE", "?restype=container", &[]).await;
        assert_eq!(deleted, "202");
    }
}

#[tokio::test]
async fn policy_may_allow_appends_to_append_blobs() {
    let client = world().await;
    retain(
        &client,
        json!({ "days": 2, "allow_protected_append_writes": true }),
    )
    .await;
    assert_eq!(
        send(&client, "PUT", "/log?comp=appendblock", &[]).await,
        "201"
    );
    assert_eq!(
        send(&client, "DELETE", "/log", &[]).await,
        "409 BlobImmutableDueToPolicy"
    );
    let tags = json!({ "tags": ["case1"] });
    assert_eq!(control(&client, "PUT", "/legal-hold", &tags).await, 200);
    let held = "409 BlobImmutableDueToLegalHold";
    assert_eq!(
        send(&client, "PUT", "/log?comp=appendblock", &[]).await,
        held
    );
}

/// A retained file of the Data Lake interface grows, and nothing else of it changes.
#[tokio::test]
async fn policy_and_hold_may_allow_appends_to_all_blobs() {
    let client = Client::hierarchical();
    client.create("box").await;
    let made = send(&client, "PUT", "/file?resource=file", &[]).await;
    assert_eq!(made, "201");
    let append = async |position, text| {
        let path = format!("/box/file?action=append&flush=true&position={position}");
        client.send("PATCH", &path, &[], text).await.status
    };
    let all = "allow_protected_append_writes_all";
    for (allows, status) in [(false, 409), (true, 202)] {
        retain(&client, json!({ "days": 2, all: allows })).await;
        assert_eq!(append(0, "abc").await, status);
    }
    let due = "409 BlobImmutableDueToPolicy";
    assert_eq!(send(&client, "PUT", "/file", &[BLOCK]).await, due);
    for (allows, status) in [(false, 409), (true, 202)] {
        let hold = json!({ "tags": ["case1"], all: allows });
        assert_eq!(control(&client, "PUT", "/legal-hold", &hold).await, 200);
        assert_eq!(append(3, "def").await, status);
    }
    let held = "409 BlobImmutableDueToLegalHold";
    assert_eq!(send(&client, "PUT", "/file", &[BLOCK]).await, held);
    let read = client.send("GET", "/box/file", &[], "").await;
    assert_eq!(read.body, "abcdef");
}

/// A directory of a container with a policy or a hold must be empty to be deleted or moved, and no
/// file moves before its retention ends.
#[tokio::test]
async fn retained_paths_are_neither_moved_nor_deleted_with_their_directory() {
    let client = Client::hierarchical();
    client.create("box").await;
    client.put("/box/old/young", "").await;
    retain(&client, json!({ "days": 2 })).await;
    client.advance_s(3 * DAY_S);
    client.put("/box/old/a", "").await;
    const DUE: &str = "409 BlobImmutableDueToPolicy";
    let moved = |from| [("x-ms-rename-source", from)];
    for (method, path, headers) in [
        ("DELETE", "/old?recursive=true", &[][..]),
        ("DELETE", "/old/a?recursive=false", &[]),
        ("PUT", "/new", &moved("/box/old")),
        ("PUT", "/new", &moved("/box/old/a")),
        ("PUT", "/old/a?mode=legacy", &moved("/box/old/young")),
    ] {
        assert_eq!(
            send(&client, method, path, headers).await,
            DUE,
            "{method} {path}"
        );
    }
    assert_eq!(send(&client, "GET", "/old/a", &[]).await, "200");
    client.advance_s(3 * DAY_S);
    for path in ["/old/a", "/old/young", "/old"] {
        let path = format!("{path}?recursive=false");
        assert_eq!(send(&client, "DELETE", &path, &[]).await, "200", "{path}");
    }
}

#[tokio::test]
async fn legal_hold_ends_with_its_last_tag() {
    let client = world().await;
    let held = "409 BlobImmutableDueToLegalHold";
    for tag in ["case1", "case2"] {
        assert_eq!(
            control(&client, "PUT", "/legal-hold", &json!({ "tags": [tag] })).await,
            200
        );
    }
    for tag in ["case1", "case2"] {
        assert_eq!(send(&client, "DELETE", "/a", &[]).await, held);
        let deleted = send(&client, "DELETE", "?restype=container", &[]).await;
        assert_eq!(deleted, "409 ContainerHasLegalHold");
        assert_eq!(
            control(&client, "DELETE", "/legal-hold", &json!({ "tags": [tag] })).await,
            200
        );
    }
    assert_eq!(send(&client, "DELETE", "/a", &[]).await, "202");
}

#[tokio::test]
async fn locked_policy_stays_and_protects_the_container() {
    let client = world().await;
    retain(&client, json!({ "days": 1 })).await;
    assert_eq!(
        control(&client, "POST", "/immutability-policy/lock", &json!({})).await,
        200
    );
    for (method, path, body, status) in [
        ("PUT", "/immutability-policy", json!({ "days": 1 }), 409),
        ("DELETE", "/immutability-policy", json!({}), 409),
        (
            "POST",
            "/immutability-policy/extend",
            json!({ "days": 1 }),
            400,
        ),
        (
            "POST",
            "/immutability-policy/extend",
            json!({ "days": 3 }),
            200,
        ),
        ("PUT", "/immutability-policy", json!({ "weeks": 1 }), 400),
        ("PUT", "/legal-hold", json!({ "tags": ["a-b"] }), 400),
        ("GET", "/nonsense", json!({}), 405),
    ] {
        assert_eq!(
            control(&client, method, path, &body).await,
            status,
            "{method} {path}"
        );
    }
    let shown = client.control("GET", CONTROL, "").await.json();
    let policy = json!({
        "days": 3, "allow_protected_append_writes": false, "locked": true, "extensions": 1,
        "allow_protected_append_writes_all": false,
    });
    assert_eq!(
        shown,
        json!({
            "immutability_policy": policy, "legal_hold": [],
            "legal_hold_allow_protected_append_writes_all": false,
        })
    );
    let head = client.head("/box?restype=container").await;
    assert_eq!(head.header("x-ms-has-immutability-policy"), "true");
    assert_eq!(head.header("x-ms-has-legal-hold"), "false");
    client.advance_s(4 * DAY_S);
    for blob in ["/a", "/log"] {
        let deleted = send(&client, "DELETE", "?restype=container", &[]).await;
        assert_eq!(deleted, "409 ContainerImmutabilityPolicyLocked");
        assert_eq!(send(&client, "DELETE", blob, &[]).await, "202");
    }
    let deleted = send(&client, "DELETE", "?restype=container", &[]).await;
    assert_eq!(deleted, "202");
    let none = "/accounts/devstoreaccount1/containers/none";
    assert_eq!(client.control("GET", none, "").await.status, 404);
}
