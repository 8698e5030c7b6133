//! Each rule of names, properties and conditions has its own refusal.

use serde_json::json;

use super::client::{Client, address};

/// "Understanding the Table Service Data Model": names of tables.
#[tokio::test]
async fn names_of_tables() {
    let client = Client::new().await;
    let long = "a".repeat(64);
    for (name, expected) in [
        ("ab", "400 OutOfRangeInput"),
        (long.as_str(), "400 OutOfRangeInput"),
        ("1abc", "400 InvalidResourceName"),
        ("a-b-c", "400 InvalidResourceName"),
        ("啊齄丂狛狜", "400 InvalidResourceName"),
        ("tables", "400 InvalidResourceName"),
    ] {
        assert_eq!(client.create(name).await.outcome(), expected, "{name}");
    }
    for body in [
        "{}",
        "{\"TableName\":1}",
        "[]",
        "nonsense",
        "{\"TableName\":\"abc\"",
    ] {
        let refused = client.send("POST", "/Tables", body).await;
        assert_eq!(refused.status, 400, "{body}");
    }
}

/// The same page: keys, properties, values.
#[tokio::test]
async fn what_an_entity_may_not_be() {
    let client = Client::new().await;
    let with = |name: &str, value: serde_json::Value| {
        let mut body = json!({ "PartitionKey": "p", "RowKey": "r" });
        body[name] = value;
        body.to_string()
    };
    let mut many = json!({ "PartitionKey": "p", "RowKey": "r" });
    for n in 0..253 {
        many[format!("p{n}")] = json!(n);
    }
    let typed = |edm: &str, value: serde_json::Value| {
        json!({ "PartitionKey": "p", "RowKey": "r", "a@odata.type": edm, "a": value }).to_string()
    };
    for (body, expected) in [
        ("{\"RowKey\":\"r\"}".to_owned(), "400 PropertiesNeedValue"),
        (
            "{\"PartitionKey\":\"p\"}".to_owned(),
            "400 PropertiesNeedValue",
        ),
        ("{}".to_owned(), "400 PropertiesNeedValue"),
        (many.to_string(), "400 TooManyProperties"),
        (with(&"n".repeat(256), json!(1)), "400 PropertyNameTooLong"),
        (with("a-b", json!(1)), "400 PropertyNameInvalid"),
        (
            with("a", json!("x".repeat(32 * 1024 + 1))),
            "400 PropertyValueTooLarge",
        ),
        (with("PartitionKey", json!("a/b")), "400 OutOfRangeInput"),
        (with("RowKey", json!("a\u{1}")), "400 OutOfRangeInput"),
        (
            with("RowKey", json!("k".repeat(513))),
            "400 KeyValueTooLarge",
        ),
        (with("a", json!([1])), "400 InvalidInput"),
        (with("a", json!({ "b": 1 })), "400 InvalidInput"),
        (typed("Edm.Int64", json!("many")), "400 InvalidInput"),
        (typed("Edm.Guid", json!("none")), "400 InvalidInput"),
        (typed("Edm.DateTime", json!("never")), "400 InvalidInput"),
        (typed("Edm.Binary", json!("*")), "400 InvalidInput"),
        (typed("Edm.Nothing", json!("x")), "400 InvalidInput"),
        ("{\"PartitionKey\":\"p\"".to_owned(), "400 InvalidInput"),
        ("".to_owned(), "400 InvalidInput"),
    ] {
        let refused = client.send("POST", "/tab", body.clone()).await;
        assert_eq!(refused.outcome(), expected, "{body:.120}");
        assert_eq!(refused.header("x-content-type-options"), "nosniff");
        assert_eq!(refused.header("x-ms-error-code"), "");
    }
    assert_eq!(
        client.send("GET", "/tab()", "").await.texts("RowKey").len(),
        0
    );
}

/// "Update Entity", "Delete Entity", "Insert Entity": headers with conditions.
#[tokio::test]
async fn conditions_that_are_none() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    let entity = address("p", "r");
    for (method, path, headers, expected) in [
        (
            "PUT",
            entity.as_str(),
            &[("if-match", "GolangRocks")][..],
            "400 InvalidInput",
        ),
        (
            "MERGE",
            &entity,
            &[("if-match", "\"0x1\"")],
            "400 InvalidInput",
        ),
        (
            "MERGE",
            &entity,
            &[("if-match", "W/\"wrong\"")],
            "412 ConditionNotMet",
        ),
        (
            "PUT",
            &entity,
            &[("if-none-match", "*")],
            "400 InvalidInput",
        ),
        (
            "DELETE",
            &entity,
            &[("if-none-match", "*")],
            "400 InvalidInput",
        ),
        (
            "PUT",
            &entity,
            &[("if-match", "*"), ("if-none-match", "*")],
            "400 InvalidInput",
        ),
        ("POST", "/tab", &[("if-match", "*")], "400 InvalidInput"),
        ("DELETE", &entity, &[], "400 MissingRequiredHeader"),
    ] {
        let refused = client
            .send_with(method, path, headers, "{\"v\":\"w\"}")
            .await;
        assert_eq!(refused.outcome(), expected, "{method} {headers:?}");
    }
    assert_eq!(client.get("p", "r").await.json()["v"], "v");
}

/// Paths that no resource has, and methods that none knows.
#[tokio::test]
async fn addresses_that_are_none() {
    let client = Client::new().await;
    for (method, path, expected) in [
        ("GET", "/tab(PartitionKey='a')", "400 InvalidInput"),
        (
            "GET",
            "/tab(PartitionKey='a',RowKey='b'",
            "400 InvalidInput",
        ),
        ("GET", "/tab('a','b')", "400 InvalidInput"),
        ("GET", "/Tables(tab)", "400 InvalidInput"),
        ("GET", "/a%FFb()", "400 InvalidUri"),
        ("GET", "/a/b", "400 InvalidUri"),
        ("GET", "/no-name()", "400 InvalidResourceName"),
        ("GET", "/none()", "404 TableNotFound"),
        ("PUT", "/tab", "405 UnsupportedHttpVerb"),
        ("DELETE", "/Tables", "405 UnsupportedHttpVerb"),
        ("PUT", "/$batch", "405 UnsupportedHttpVerb"),
    ] {
        let refused = client.send(method, path, "").await;
        assert_eq!(refused.outcome(), expected, "{method} {path}");
    }
}
