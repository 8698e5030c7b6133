//! Entities: inserted, read, replaced, merged, deleted; their tags, keys and limits.

use serde_json::{Value, json};

use super::client::{Client, ENDPOINT, address, entity};

/// "Insert Entity": 201 with the entity, its tag and its address.
#[tokio::test]
async fn an_insert_shows_what_is_stored() {
    let client = Client::new().await;
    let body = json!({
        "PartitionKey": "p", "RowKey": "r",
        "text": "t", "flag": true, "small": 7, "half": 0.5,
        "large@odata.type": "Edm.Int64", "large": "9007199254740993",
        "bytes@odata.type": "Edm.Binary", "bytes": "AQID",
        "when@odata.type": "Edm.DateTime", "when": "2020-01-02T03:04:05.5Z",
        "id@odata.type": "Edm.Guid", "id": "c9da6455-213d-42c9-9a79-3e9149a57833",
        "nothing": null,
    });
    let inserted = client.send("POST", "/tab", body.to_string()).await;
    assert_eq!(inserted.outcome(), "201");
    let etag = inserted.header("etag").to_owned();
    assert!(
        etag.starts_with("W/\"datetime'2023-11-14T22%3A13%3A2"),
        "{etag}"
    );
    let location = format!("{ENDPOINT}tab(PartitionKey='p',RowKey='r')");
    assert_eq!(inserted.header("location"), location);
    let read = client.get("p", "r").await;
    assert_eq!(
        (read.outcome().as_str(), read.header("etag")),
        ("200", etag.as_str())
    );
    let shown = read.json();
    assert_eq!(shown, inserted.json());
    for (name, value) in body.as_object().unwrap() {
        if value != &Value::Null {
            assert_eq!(shown[name], *value, "{name}");
        }
    }
    assert!(shown.get("nothing").is_none());
    assert_eq!(shown["odata.etag"], etag);
}

/// "Setting the Prefer header": nothing is returned, and that is said.
#[tokio::test]
async fn an_insert_can_be_quiet() {
    let client = Client::new().await;
    let prefer = [("prefer", "return-no-content")];
    let body = entity("p", "r", "v");
    let quiet = client.send_with("POST", "/tab", &prefer, body).await;
    assert_eq!((quiet.status, quiet.text.as_str()), (204, ""));
    assert_eq!(quiet.header("preference-applied"), "return-no-content");
    assert!(!quiet.header("etag").is_empty() && !quiet.header("dataserviceid").is_empty());
}

/// The address of an update says which entity it is, whatever the body says. The first pair of keys
/// is recorded: `python/test_table_entity.
/// test_operations_on_entity_with_partition_key_having_single_quote`.
#[tokio::test]
async fn the_address_of_an_update_counts() {
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

/// T1, T2: an update under a tag is refused when somebody else wrote since.
#[tokio::test]
async fn a_tag_guards_an_update() {
    let client = Client::new().await;
    let first = client.insert("p", "r", "1").await.header("etag").to_owned();
    let path = address("p", "r");
    for method in ["PUT", "MERGE", "PATCH"] {
        let before = client.get("p", "r").await.header("etag").to_owned();
        let good = [("if-match", before.as_str())];
        let written = client
            .send_with(method, &path, &good, "{\"v\":\"2\"}")
            .await;
        assert_eq!(
            (written.status, written.text.as_str()),
            (204, ""),
            "{method}"
        );
        assert_ne!(written.header("etag"), before);
        let late = [("if-match", first.as_str())];
        let refused = client
            .send_with(method, &path, &late, "{\"v\":\"3\"}")
            .await;
        assert_eq!(
            refused.outcome(),
            "412 UpdateConditionNotSatisfied",
            "{method}"
        );
    }
    let late = [("if-match", first.as_str())];
    let refused = client.send_with("DELETE", &path, &late, "").await;
    assert_eq!(refused.outcome(), "412 UpdateConditionNotSatisfied");
    // T3, DT5: `*` meets any version, but none that is not there.
    let any = [("if-match", "*")];
    assert_eq!(
        client.send_with("DELETE", &path, &any, "").await.outcome(),
        "204"
    );
    for method in ["PUT", "MERGE", "DELETE"] {
        let gone = client.send_with(method, &path, &any, "{}").await;
        assert_eq!(gone.outcome(), "404 ResourceNotFound", "{method}");
    }
}

/// Tags rise with every write, also within one tick of the clock.
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

/// "Merge Entity" keeps what it does not name, also where it names it null; "Update Entity" does
/// not.
#[tokio::test]
async fn a_merge_keeps_and_a_replacement_drops() {
    let client = Client::new().await;
    let path = address("p", "r");
    client
        .send(
            "POST",
            "/tab",
            "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1,\"b\":2}",
        )
        .await;
    client
        .send("MERGE", &path, "{\"b\":3,\"c\":4,\"a\":null}")
        .await;
    let merged = client.get("p", "r").await.json();
    assert_eq!(
        (&merged["a"], &merged["b"], &merged["c"]),
        (&json!(1), &json!(3), &json!(4))
    );
    client.send("PUT", &path, "{\"d\":5}").await;
    let replaced = client.get("p", "r").await.json();
    assert_eq!((replaced.get("a"), &replaced["d"]), (None, &json!(5)));
}

/// "Insert Or Replace Entity", "Insert Or Merge Entity": without `If-Match` both insert.
#[tokio::test]
async fn an_update_without_a_tag_inserts() {
    let client = Client::new().await;
    for (method, row) in [("PUT", "a"), ("MERGE", "b"), ("PATCH", "c")] {
        let done = client
            .send(method, &address("p", row), "{\"v\":\"x\"}")
            .await;
        assert_eq!(done.outcome(), "204", "{method}");
        assert_eq!(client.get("p", row).await.json()["v"], "x");
    }
    let again = client.insert("p", "a", "y").await;
    assert_eq!(again.outcome(), "409 EntityAlreadyExists");
}

/// Keys may hold almost everything, also nothing; each names an entity of its own.
#[tokio::test]
async fn keys_of_every_kind_find_their_entities() {
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

/// An entity may have 1 MiB; it comes back whole, and what it becomes by a merge counts as well.
#[tokio::test]
async fn an_entity_may_be_large() {
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

/// Verbs that a proxy lets no request pass with come as POST.
#[tokio::test]
async fn a_post_may_stand_for_another_method() {
    let client = Client::new().await;
    client.insert("p", "r", "1").await;
    let path = address("p", "r");
    let merge = [("x-http-method", "MERGE"), ("if-match", "*")];
    let merged = client.send_with("POST", &path, &merge, "{\"w\":2}").await;
    assert_eq!(merged.outcome(), "204");
    let entity = client.get("p", "r").await.json();
    assert_eq!((&entity["v"], &entity["w"]), (&json!("1"), &json!(2)));
    let delete = [("x-http-method", "DELETE"), ("if-match", "*")];
    assert_eq!(
        client.send_with("POST", &path, &delete, "").await.outcome(),
        "204"
    );
    for (method, header, expected) in [
        ("PUT", "MERGE", "400 XMethodNotUsingPost"),
        ("POST", "GET", "400 XMethodIncorrectValue"),
        ("POST", "nonsense", "400 XMethodIncorrectValue"),
    ] {
        let refused = client
            .send_with(method, &path, &[("x-http-method", header)], "{}")
            .await;
        assert_eq!(refused.outcome(), expected);
    }
}

/// "Payload format": how much an answer says about itself.
#[tokio::test]
async fn metadata_comes_at_three_levels() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    for (level, has_metadata, has_type) in [
        ("nometadata", false, false),
        ("minimalmetadata", true, false),
        ("fullmetadata", true, true),
    ] {
        let accept = format!("application/json;odata={level}");
        let headers = [("accept", accept.as_str())];
        let read = client
            .send_with("GET", &address("p", "r"), &headers, "")
            .await;
        assert!(read.header("content-type").starts_with(&accept));
        let json = read.json();
        assert_eq!(
            json.get("odata.metadata").is_some(),
            has_metadata,
            "{level}"
        );
        assert_eq!(json.get("odata.type").is_some(), has_type, "{level}");
        assert_eq!(json["v"], "v");
    }
}
