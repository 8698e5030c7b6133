//! Queries: filters, selections, pages.

use super::client::{Client, with_query};

async fn numbered(count: u32) -> Client {
    let client = Client::new().await;
    for n in 0..count {
        let body = serde_json::json!({
            "PartitionKey": format!("p{}", n % 3), "RowKey": format!("{n:04}"), "n": n,
        });
        let done = client.send("POST", "/tab", body.to_string()).await;
        assert_eq!(done.outcome(), "201");
    }
    client
}

async fn rows(client: &Client, filter: &str) -> Vec<String> {
    let path = with_query("/tab()", &[("$filter", filter)]);
    let answer = client.send("GET", &path, "").await;
    assert_eq!(answer.outcome(), "200", "{filter} {}", answer.text);
    answer.texts("RowKey")
}

/// "Querying tables and entities": keys, properties, and, or, not.
#[tokio::test]
async fn filters_choose() {
    let client = numbered(12).await;
    for (filter, expected) in [
        (
            "PartitionKey eq 'p1'",
            &["0001", "0004", "0007", "0010"][..],
        ),
        (
            "PartitionKey eq 'p1' and RowKey gt '0004'",
            &["0007", "0010"],
        ),
        ("PartitionKey eq 'p1' and RowKey eq '0004'", &["0004"]),
        ("RowKey eq '0005'", &["0005"]),
        ("n ge 10", &["0010", "0011"]),
        ("n eq 3 or n eq 4", &["0003", "0004"]),
        ("not (n lt 11)", &["0011"]),
        // A literal of another type than the property is none of its values.
        ("n eq 3L", &[]),
        ("missing eq 1", &[]),
        ("PartitionKey gt 'p1' and n lt 3", &["0002"]),
        ("PartitionKey eq 'p9'", &[]),
        ("PartitionKey eq 'a' and PartitionKey eq 'b'", &[]),
    ] {
        assert_eq!(rows(&client, filter).await, expected, "{filter}");
    }
}

/// T5 to T8: `$top` limits a page, tokens lead on, and a page holds 1,000 at most.
#[tokio::test]
async fn pages_follow_one_another() {
    let client = numbered(1_003).await;
    let first = client.send("GET", "/tab()", "").await;
    assert_eq!(first.texts("RowKey").len(), 1_000);
    let mut all = Vec::new();
    let mut path = "/tab()?$top=400".to_owned();
    loop {
        let page = client.send("GET", &path, "").await;
        all.extend(page.texts("RowKey"));
        let next = |name: &str| {
            page.header(&format!("x-ms-continuation-next{name}"))
                .to_owned()
        };
        let (partition, row) = (next("partitionkey"), next("rowkey"));
        if partition.is_empty() {
            break;
        }
        let token = [
            ("$top", "400"),
            ("NextPartitionKey", &partition),
            ("NextRowKey", &row),
        ];
        path = with_query("/tab()", &token);
    }
    assert_eq!(all.len(), 1_003);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_003);
}

/// Who asks for nothing is not led on to it.
#[tokio::test]
async fn a_page_of_nothing_is_the_last() {
    let client = numbered(2).await;
    for path in ["/tab()?$top=0", "/Tables?$top=0"] {
        let page = client.send("GET", path, "").await;
        assert_eq!(page.outcome(), "200", "{path}");
        assert_eq!(page.json()["value"].as_array().unwrap().len(), 0, "{path}");
        let names: Vec<_> = page.headers.keys().map(ToString::to_string).collect();
        let leads_on = names.iter().any(|name| name.contains("continuation"));
        assert!(!leads_on, "{path} {names:?}");
    }
    let missing = client.send("GET", "/none()?$top=0", "").await;
    assert_eq!(missing.outcome(), "404 TableNotFound");
}

/// OData: no option of a query is specified more than once.
#[tokio::test]
async fn an_option_is_given_once() {
    let client = numbered(2).await;
    for resource in ["/tab()", "/Tables"] {
        for query in [
            "$top=1&$top=2",
            "$top=1&$TOP=1",
            "$filter=true&$filter=false",
            "$select=n&$select=m",
            "$format=json&$format=atom",
        ] {
            let path = format!("{resource}?{query}");
            let refused = client.send("GET", &path, "").await;
            assert_eq!(refused.outcome(), "400 InvalidInput", "{path}");
        }
    }
}

/// Since there is JSON alone no data service version is asked for, and none is refused.
#[tokio::test]
async fn data_service_versions_do_not_matter_any_more() {
    let client = numbered(1).await;
    for version in ["1.0", "2.0;NetFx", "3.0", "9.0", "x", ""] {
        let headers = [
            ("accept", "application/json"),
            ("dataserviceversion", version),
            ("maxdataserviceversion", version),
        ];
        let page = client.send_with("GET", "/tab()", &headers, "").await;
        assert_eq!(page.outcome(), "200", "{version}");
    }
}

/// T8: a token is where the next page starts; what is written before it is not seen any more, what
/// is written behind it is, and what it named may be gone.
#[tokio::test]
async fn a_token_outlives_its_entity() {
    let client = Client::new().await;
    for row in ["a", "c", "e"] {
        client.insert("p", row, "v").await;
    }
    let page = client.send("GET", "/tab()?$top=1", "").await;
    let header = |name: &str| page.header(name).to_owned();
    let partition = header("x-ms-continuation-nextpartitionkey");
    let row = header("x-ms-continuation-nextrowkey");
    assert_eq!((partition.as_str(), row.as_str()), ("1!4!cA--", "1!4!Yw--"));
    let any = [("if-match", "*")];
    client
        .send_with("DELETE", &super::client::address("p", "c"), &any, "")
        .await;
    client.insert("p", "b", "before").await;
    client.insert("p", "d", "behind").await;
    let token = [
        ("NextPartitionKey", partition.as_str()),
        ("NextRowKey", row.as_str()),
    ];
    let rest = client.send("GET", &with_query("/tab()", &token), "").await;
    assert_eq!(rest.texts("RowKey"), ["d", "e"]);
    assert_eq!(rest.header("x-ms-continuation-nextpartitionkey"), "");
}

/// "$select": only the named properties, the system's among them only if named.
#[tokio::test]
async fn selections_leave_out() {
    let client = numbered(2).await;
    let page = client.send("GET", "/tab()?$select=n", "").await;
    let row = &page.json()["value"][0];
    assert_eq!(row["n"], 0);
    assert!(row.get("PartitionKey").is_none() && row.get("Timestamp").is_none());
    let one = client
        .send(
            "GET",
            "/tab(PartitionKey='p0',RowKey='0000')?$select=RowKey",
            "",
        )
        .await;
    assert_eq!(one.json()["RowKey"], "0000");
    assert!(one.json().get("n").is_none());
}

/// What is no query is refused; 5,000 nested parentheses are refused, not followed.
#[tokio::test]
async fn bad_queries_are_refused() {
    let client = numbered(1).await;
    let nested = format!("{}n eq 1{}", "(".repeat(5_000), ")".repeat(5_000));
    for (name, value) in [
        ("$filter", "aaa bbb ccc"),
        ("$filter", "n eq"),
        ("$filter", "n eq 'open"),
        ("$filter", nested.as_str()),
        ("$top", "-1"),
        ("$top", "1001"),
        ("$top", "many"),
        ("NextPartitionKey", "nonsense"),
        ("NextPartitionKey", "1!4!%%%%"),
    ] {
        let refused = client
            .send("GET", &with_query("/tab()", &[(name, value)]), "")
            .await;
        assert_eq!(refused.outcome(), "400 InvalidInput", "{name}={value:.40}");
    }
    for name in [
        "$orderby",
        "$skip",
        "$expand",
        "$count",
        "$inlinecount",
        "$skiptoken",
    ] {
        let refused = client
            .send("GET", &with_query("/tab()", &[(name, "n")]), "")
            .await;
        assert_eq!(refused.outcome(), "501 NotImplemented", "{name}");
    }
}
