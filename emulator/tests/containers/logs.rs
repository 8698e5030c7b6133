//! Row 9: the logs of requests in `$logs`.

use crate::support::{BLOCK, Client};

/// Asks for lines of the Blob service about reads and writes, kept for two days.
async fn enable(client: &Client, version: &str) {
    let text = format!(
        "<StorageServiceProperties><Logging><Version>{version}</Version><Read>true</Read>\
         <Write>true</Write><Delete>false</Delete><RetentionPolicy><Enabled>true</Enabled>\
         <Days>2</Days></RetentionPolicy></Logging></StorageServiceProperties>"
    );
    let target = "/?restype=service&comp=properties";
    assert_eq!(client.send("PUT", target, &[], text).await.status, 202);
}

/// Returns the names of all blobs in `$logs`.
async fn logs(client: &Client) -> Vec<String> {
    let list = client.get("/$logs?restype=container&comp=list").await;
    assert_eq!(list.status, 200);
    let names = list.elements("Name").into_iter();
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn requests_are_logged_as_their_service_says() {
    let client = Client::new();
    client.create("things").await;
    enable(&client, "1.0").await;
    let agent = ("user-agent", "a;\"b\"");
    let put = client
        .send("PUT", "/things/b", &[BLOCK, agent], "text")
        .await;
    assert_eq!(put.status, 201, "{put:?}");
    client.get("/things/b").await;
    client.get("/things/none?x=1&sig=secret").await;
    client.send("DELETE", "/things/b", &[], "").await;
    assert_eq!(client.get("/$logs?restype=container").await.status, 200);

    client.emulator().write_logs().await.unwrap();
    let names = logs(&client).await;
    assert_eq!(names.len(), 1);
    let (directory, file) = names[0].rsplit_once('/').unwrap();
    assert!(directory.starts_with("blob/20") && directory.ends_with("00"));
    assert_eq!(file, "000000.log");

    let log = client.get(&format!("/$logs/{}", names[0])).await;
    assert_eq!(log.headers["x-ms-meta-logtype"], "read,write");
    assert_eq!(log.headers["x-ms-meta-logversion"], "1.0");
    let text = log.text();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    let operations: Vec<_> = lines.iter().map(|line| line[2]).collect();
    // The properties are set before the answer is logged; a delete is not asked for.
    assert_eq!(
        operations,
        [
            "SetBlobServiceProperties",
            "PutBlob",
            "GetBlob",
            "GetBlob",
            "GetContainerProperties"
        ]
    );
    let put = &lines[1];
    assert_eq!(put[3..5], ["Success", "201"]);
    assert_eq!(
        put[7..11],
        [
            "authenticated",
            "devstoreaccount1",
            "devstoreaccount1",
            "blob"
        ]
    );
    assert!(put[12].ends_with("/devstoreaccount1/things/b\""));
    assert_eq!(put[18], "4");
    let put = text.lines().nth(1).unwrap();
    assert!(put.contains(";\"a;&quot;b&quot;\";"));
    assert_eq!(lines[3][3..5], ["ClientOtherError", "404"]);
    assert!(text.contains("?x=1&amp;sig=XXXXX\"") && !text.contains("secret"));
}

/// Logging makes `$logs` at once, also for another service, and nobody deletes it. Its blobs can be
/// deleted.
#[tokio::test]
async fn the_container_of_the_logs_stays() {
    let client = Client::new();
    assert_eq!(client.get("/$logs?restype=container").await.status, 404);
    enable(&client, "1.0").await;
    client.get("/?comp=list").await;
    client.emulator().write_logs().await.unwrap();
    let container = "/$logs?restype=container";
    let answer = client.send("DELETE", container, &[], "").await;
    assert_eq!(answer.status, 403);
    assert!(
        answer
            .text()
            .contains("<Code>InsufficientAccountPermissions</Code>")
    );
    let blob = format!("/$logs/{}", logs(&client).await[0]);
    assert_eq!(client.send("DELETE", &blob, &[], "").await.status, 202);
    assert!(logs(&client).await.is_empty());
}

#[tokio::test]
async fn logs_expire_and_their_names_grow() {
    let client = Client::new();
    enable(&client, "2.0").await;
    client.emulator().write_logs().await.unwrap();
    client.get("/?comp=list").await;
    client.emulator().write_logs().await.unwrap();
    client.emulator().write_logs().await.unwrap();
    let names = logs(&client).await;
    assert!(names[0].ends_with("000000.log") && names[1].ends_with("000001.log"));
    let log = client.get(&format!("/$logs/{}", names[1])).await;
    let text = log.text();
    assert!(text.starts_with("2.0;") && text.contains(";ListContainers;Success;200;"));
    // Eight fields more than in 1.0.
    assert_eq!(text.trim_end().split(';').count(), 38);
    let shown = client.get("/?restype=service&comp=properties").await;
    assert!(shown.text().contains("<Logging><Version>2.0</Version>"));
    let list = client.get("/?comp=list").await;
    assert!(!list.text().contains("$logs"));

    client.advance_s(2 * 86_400 + 1);
    assert_eq!(logs(&client).await.len(), 0);
}
