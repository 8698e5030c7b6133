//! Entity group transactions: all or nothing, one partition, each entity once.

use super::client::{ACCOUNT, Answer, Client, ENDPOINT, entity};

/// A request inside a transaction: method, path after the account, headers, body.
type Inner<'a> = (&'a str, &'a str, &'a str, String);

fn batch(requests: &[Inner<'_>]) -> String {
    let mut body = "--b_1\r\nContent-Type: multipart/mixed; boundary=c_1\r\n\r\n".to_owned();
    for (method, path, headers, content) in requests {
        body += "--c_1\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n";
        body += &format!("{method} {ENDPOINT}{path} HTTP/1.1\r\n");
        body += "Content-Type: application/json\r\nAccept: application/json\r\n";
        body += &format!("{headers}\r\n{content}\r\n");
    }
    body + "--c_1--\r\n--b_1--\r\n"
}

async fn send(client: &Client, body: String) -> Answer {
    let headers = [("content-type", "multipart/mixed; boundary=b_1")];
    client.send_with("POST", "/$batch", &headers, body).await
}

async fn run(client: &Client, requests: &[Inner<'_>]) -> Answer {
    let answer = send(client, batch(requests)).await;
    assert_eq!(answer.outcome(), "202", "{}", answer.text);
    answer
}

fn insert<'a>(partition: &str, row: &str) -> Inner<'a> {
    (
        "POST",
        "tab",
        "Prefer: return-no-content\r\n",
        entity(partition, row, "new"),
    )
}

/// Microsoft's SDK for Go sends such requests.
#[tokio::test]
async fn empty_versions_are_those_of_the_transaction() {
    let client = Client::new().await;
    let headers = "DataServiceVersion: \r\nx-ms-version: \r\n";
    let answer = run(
        &client,
        &[("POST", "tab", headers, entity("p", "a", "new"))],
    )
    .await;
    assert!(answer.text.contains("201 Created"), "{}", answer.text);
}

/// "Performing entity group transactions": every kind of change, in order, in one response.
#[tokio::test]
async fn changes_of_one_partition_are_atomic() {
    let client = Client::new().await;
    for row in ["a", "b", "c"] {
        client.insert("p", row, "old").await;
    }
    let any = "If-Match: *\r\n";
    let answer = run(
        &client,
        &[
            insert("p", "n"),
            ("POST", "tab", "", entity("p", "m", "shown")),
            (
                "PUT",
                "tab(PartitionKey='p',RowKey='a')",
                any,
                "{\"v\":\"2\"}".into(),
            ),
            (
                "MERGE",
                "tab(PartitionKey='p',RowKey='b')",
                any,
                "{\"w\":\"3\"}".into(),
            ),
            (
                "DELETE",
                "tab(PartitionKey='p',RowKey='c')",
                any,
                String::new(),
            ),
            (
                "PATCH",
                "tab(PartitionKey='p',RowKey='x')",
                "",
                "{\"v\":\"4\"}".into(),
            ),
        ],
    )
    .await;
    assert_eq!(
        answer.statuses(),
        ["204", "201", "204", "204", "204", "204"]
    );
    assert!(
        answer
            .header("content-type")
            .starts_with("multipart/mixed; boundary=batchresponse_")
    );
    let page = client.send("GET", "/tab()", "").await;
    assert_eq!(page.texts("RowKey"), ["a", "b", "m", "n", "x"]);
    // One commit has one time.
    let stamps = page.texts("Timestamp");
    assert!(stamps.iter().all(|stamp| *stamp == stamps[0]), "{stamps:?}");
}

/// A refusal undoes all changes and names its request by its index.
#[tokio::test]
async fn one_refusal_undoes_all_changes() {
    let client = Client::new().await;
    client.insert("p", "there", "v").await;
    for (requests, status, text) in [
        (
            vec![insert("p", "a"), insert("p", "there")],
            "409",
            "\"1:The specified entity already",
        ),
        (
            vec![insert("p", "a"), insert("p", "a")],
            "400",
            "\"InvalidDuplicateRow\"",
        ),
        (
            vec![insert("p", "a"), insert("q", "b")],
            "400",
            "\"CommandsInBatchActOnDifferentPartitions\"",
        ),
        (
            vec![
                insert("p", "a"),
                (
                    "DELETE",
                    "tab(PartitionKey='p',RowKey='none')",
                    "If-Match: *\r\n",
                    String::new(),
                ),
            ],
            "404",
            "\"1:The specified resource does not exist.",
        ),
        (
            vec![
                insert("p", "a"),
                ("POST", "none", "", entity("p", "b", "v")),
            ],
            "400",
            "\"InvalidInput\"",
        ),
        (
            vec![insert("p", "a"), ("POST", "tab", "", "{".into())],
            "400",
            "\"InvalidInput\"",
        ),
    ] {
        let answer = run(&client, &requests).await;
        assert_eq!(answer.statuses(), [status], "{}", answer.text);
        assert!(answer.text.contains(text), "{text} {}", answer.text);
        let rows = client.send("GET", "/tab()", "").await.texts("RowKey");
        assert_eq!(rows, ["there"]);
    }
}

/// With a single request the refusal has no index; a missing table is refused by the request.
#[tokio::test]
async fn missing_table_is_refused_by_the_request() {
    let client = Client::new().await;
    let answer = run(&client, &[("POST", "none", "", entity("p", "a", "v"))]).await;
    assert_eq!(answer.statuses(), ["404"]);
    assert!(
        answer
            .text
            .contains("\"value\":\"The table specified does not exist.")
    );
}

/// A batch may contain a single query instead.
#[tokio::test]
async fn batch_may_be_one_query() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    let body = format!(
        "--b_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         GET {ENDPOINT}tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\
         Accept: application/json;odata=nometadata\r\n\r\n\r\n--b_1--\r\n"
    );
    let answer = send(&client, body).await;
    assert_eq!(
        (answer.outcome().as_str(), answer.statuses()),
        ("202", vec!["200"])
    );
    assert!(answer.text.contains("\"v\":\"v\""), "{}", answer.text);
}

/// The secondary serves a query in a batch, but no change.
#[tokio::test]
async fn batch_can_read_but_not_write_the_secondary() {
    let client = Client::new().await;
    client.insert("p", "r", "v").await;
    let query = format!(
        "--b_1\r\nContent-Type: application/http\r\n\r\n\
         GET {ENDPOINT}tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\
         Accept: application/json\r\n\r\n\r\n--b_1--\r\n"
    );
    let headers = [("content-type", "multipart/mixed; boundary=b_1")];
    for (body, status) in [(query, "200"), (batch(&[insert("p", "new")]), "403")] {
        let path = "-secondary/$batch";
        let answer = client.send_with("POST", path, &headers, body).await;
        assert_eq!(answer.outcome(), "202");
        assert_eq!(answer.statuses(), [status], "{}", answer.text);
        let is_refused = answer.text.contains("InsufficientAccountPermissions");
        assert_eq!(is_refused, status == "403", "{}", answer.text);
    }
    let rows = client.send("GET", "/tab()", "").await.texts("RowKey");
    assert_eq!(rows, ["r"]);
}

/// A batch has at most 100 changes, and a malformed batch is refused as a whole.
#[tokio::test]
async fn malformed_batch_is_refused() {
    let client = Client::new().await;
    let many = |count: usize| -> Vec<Inner<'_>> {
        (0..count)
            .map(|n| insert("p", &format!("{n:03}")))
            .collect()
    };
    assert_eq!(run(&client, &many(100)).await.statuses().len(), 100);
    let answer = run(&client, &many(101)).await;
    assert_eq!(answer.statuses(), ["400"]);
    let message = "\"99:The batch request operation exceeds the maximum 100 changes";
    assert!(answer.text.contains(message), "{}", answer.text);
    let inside = "--b_1\r\nContent-Type: application/http\r\n\r\n";
    let address = format!("{ENDPOINT}tab");
    for body in [
        batch(&[]),
        String::new(),
        "nonsense".to_owned(),
        "--b_1--".to_owned(),
        format!("{inside}POST {address} HTTP/1.1\r\n\r\n{{}}\r\n--b_1--\r\n"),
        format!("{inside}POST {address}"),
    ] {
        let answer = send(&client, body.clone()).await;
        assert_eq!(answer.outcome(), "400 InvalidInput", "{body:.200}");
    }
    let headers = [("content-type", "application/json")];
    let answer = client.send_with("POST", "/$batch", &headers, "{}").await;
    assert_eq!(answer.outcome(), "400 InvalidInput");
    assert_eq!(
        client.send("GET", "/tab()", "").await.texts("RowKey").len(),
        100
    );
}

/// An inner request names a resource of the batch's account, whatever its host; it cannot reach
/// another account, or a path that is not a table or an entity.
#[tokio::test]
async fn inner_requests_stay_within_the_account() {
    let client = Client::new().await;
    let count = async || client.send("GET", "/tab()", "").await.texts("RowKey").len();
    let at = |address: &str, row: &str| batch(&[insert("p", row)]).replace(ENDPOINT, address);
    for (n, address) in [
        "http://127.0.0.1:10002/devstoreaccount1/",
        "http://azurite:10002/devstoreaccount1//",
        "https://devstoreaccount1.table.core.windows.net/",
        "https://another.table.core.windows.net/",
    ]
    .iter()
    .enumerate()
    {
        let answer = send(&client, at(address, &n.to_string())).await;
        assert_eq!(answer.statuses(), ["204"], "{address} {}", answer.text);
    }
    assert_eq!(count().await, 4);
    for address in [
        "http://127.0.0.1:10002/otheraccount/",
        "http://127.0.0.1:10002/devstoreaccount/",
        "http://127.0.0.1:10002/devstoreaccount1/tab/",
        "http://127.0.0.1:10002/x/devstoreaccount1/",
        "/otheraccount/",
        "/x/y/z/",
    ] {
        let answer = send(&client, at(address, "other")).await;
        assert_eq!(answer.outcome(), "202", "{address}");
        assert_eq!(answer.statuses(), ["400"], "{address}");
        assert!(answer.text.contains("\"InvalidInput\""), "{}", answer.text);
    }
    assert_eq!(count().await, 4);
}

/// Requests may name their resource by its path only, with and without the account.
#[tokio::test]
async fn addresses_may_be_relative() {
    let client = Client::new().await;
    for (row, address) in [("a", "/tab".to_owned()), ("b", format!("/{ACCOUNT}/tab"))] {
        let body = batch(&[insert("p", row)]).replace(&format!("{ENDPOINT}tab"), &address);
        let answer = send(&client, body).await;
        assert_eq!(answer.statuses(), ["204"], "{address}");
    }
}
