//! Entities: insert, read, replace, merge, delete; their ETags, keys and limits.

use serde_json::json;

use super::client::{Client, address, entity};

/// The address of an update determines the entity, whatever the body says. The first pair of keys
/// is recorded: `python/test_table_entity.
/// test_operations_on_entity_with_partition_key_having_single_quote`.
#[tokio::test]
async fn address_of_an_update_determines_the_entity() {
    let client = Client::new().await;
    for (key, said) in [("a''b", "a''''b"), ("p", "other"), ("p", "")] {
        for method in ["PUT", "PATCH", "MERGE"] {
            let body = entity(said, said, method);
            let done = client.send(method, &address(key, key), body).await;
            assert_eq!(done.outcome(), "204", "{method} {said}");
            let read = client.get(key, key).await.json();
            assert_eq!(
                (&read["PartitionKey"], &read["RowKey"]),
                (&json!(key), &json!(key))
            );
            assert_eq!(read["v"], method);
        }
        let other = client.get(said, said).await;
        assert_eq!(other.outcome(), "404 ResourceNotFound", "{said}");
    }
}

/// ETags rise with every write, also within one tick of the clock.
#[tokio::test]
async fn timestamps_of_an_entity_rise() {
    let client = Client::new().await;
    let mut last = client.insert("p", "r", "0").await.header("etag").to_owned();
    for n in 0..20 {
        let body = format!("{{\"v\":\"{n}\"}}");
        let next = client.send("MERGE", &address("p", "r"), body).await;
        let next = next.header("etag").to_owned();
        assert!(next.len() > last.len() || next > last, "{last} {next}");
        last = next;
    }
}

/// Keys may contain almost anything or be empty; each pair of keys is another entity.
#[tokio::test]
async fn keys_of_every_kind_name_their_entities() {
    let client = Client::new().await;
    let keys = [
        "",
        " ",
        "'",
        "''",
        "a'b",
        "a,b",
        "(x)",
        "=",
        "%",
        "%25",
        "+",
        "&",
        ":@",
        "=& ",
        "+,$",
        "\"",
        "ä",
        "日本",
        "😀",
        "\u{e000}",
        "\u{ffff}",
        "PartitionKey='x'",
        "~!*",
        "<>",
        "|",
        "$",
    ];
    for key in keys {
        assert_eq!(
            client.insert(key, key, key).await.outcome(),
            "201",
            "{key:?}"
        );
    }
    for key in keys {
        let read = client.get(key, key).await;
        assert_eq!(read.outcome(), "200", "{key:?} {}", address(key, key));
        assert_eq!(read.json()["v"], key);
    }
    let listed = client.send("GET", "/tab()", "").await.texts("RowKey");
    let mut sorted = keys.map(str::to_owned).to_vec();
    sorted.sort_by_key(|key| key.encode_utf16().collect::<Vec<_>>());
    assert_eq!(listed, sorted);
    for key in keys {
        let any = [("if-match", "*")];
        let gone = client
            .send_with("DELETE", &address(key, key), &any, "")
            .await;
        assert_eq!(gone.outcome(), "204", "{key:?}");
    }
}

/// An entity may have 1 MiB; it is returned whole, and the result of a merge is limited as well.
#[tokio::test]
async fn entity_may_have_one_mebibyte() {
    let client = Client::new().await;
    let text = "x".repeat(32 * 1024 - 8);
    let mut body = json!({ "PartitionKey": "p", "RowKey": "r" });
    for n in 0..15 {
        body[format!("p{n:02}")] = json!(text);
    }
    assert_eq!(
        client
            .send("POST", "/tab", body.to_string())
            .await
            .outcome(),
        "201"
    );
    let read = client.get("p", "r").await.json();
    assert_eq!(read["p14"], json!(text));
    let more = json!({ "q0": text, "q1": text, "q2": text }).to_string();
    let path = address("p", "r");
    assert_eq!(
        client.send("MERGE", &path, more.clone()).await.outcome(),
        "400 EntityTooLarge"
    );
    assert_eq!(client.send("PUT", &path, more).await.outcome(), "204");
    assert_eq!(client.get("p", "r").await.json()["q2"], json!(text));
}
