//! Queries with more entities than fit on a page.

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

/// T5 to T8: `$top` limits a page, tokens continue, and a page has at most 1,000 entities.
#[tokio::test]
async fn pages_continue_where_the_last_one_ended() {
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
