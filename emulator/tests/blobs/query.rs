//! Query Blob Contents, in process: requests, responses, headers and frames.

use crate::support::{Answer, Client};

const ROWS: &str = "id,name\n1,one\n2,two\n3,three\n";
const PLAIN: &[(&str, &str)] = &[("x-ms-blob-type", "BlockBlob")];

fn query(expression: &str, settings: &str) -> String {
    let expression = expression.replace('<', "&lt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<QueryRequest><QueryType>SQL</QueryType>\
         <Expression>{expression}</Expression>{settings}</QueryRequest>"
    )
}

const HEADED: &str = "<InputSerialization><Format><Type>delimited</Type>\
    <DelimitedTextConfiguration><HasHeaders>true</HasHeaders></DelimitedTextConfiguration>\
    </Format></InputSerialization>";

/// Returns the rows of a short response; they follow the frame's length, its kind, and their own
/// length.
fn rows(answer: &Answer) -> String {
    let marker = &answer.body[answer.body.len() - 16..];
    let head = answer.body.windows(16).position(|bytes| bytes == marker);
    let frame = &answer.body[head.unwrap_or_default() + 16..];
    assert_eq!((frame[0], frame[2]), (2, 0), "the first frame is of rows");
    let length = usize::from(frame[3] / 2);
    String::from_utf8_lossy(&frame[4..4 + length]).into_owned()
}

async fn with_rows() -> Client {
    let client = Client::new();
    let created = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(created.status, 201);
    let put = client.send("PUT", "/box/b", PLAIN, ROWS).await;
    assert_eq!(put.status, 201);
    client
}

#[tokio::test]
async fn query_returns_matching_rows() {
    let client = with_rows().await;
    let asked = query("SELECT name FROM BlobStorage WHERE id > 1", HEADED);
    let answer = client
        .send("POST", "/box/b?comp=query", &[], asked.clone())
        .await;
    assert_eq!(answer.outcome(), (200, ""));
    assert_eq!(rows(&answer), "two\nthree\n");
    let got = client.send("GET", "/box/b", &[], "").await;
    for name in [
        "etag",
        "last-modified",
        "x-ms-lease-state",
        "x-ms-creation-time",
    ] {
        assert_eq!(answer.header(name), got.header(name), "{name}");
    }
    assert_eq!(answer.header("content-type"), "avro/binary");
    for name in ["content-length", "content-md5", "x-ms-blob-content-md5"] {
        assert!(!answer.headers.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn query_reads_a_snapshot() {
    let client = with_rows().await;
    let taken = client.send("PUT", "/box/b?comp=snapshot", &[], "").await;
    let snapshot = taken.header("x-ms-snapshot").to_owned();
    client.send("PUT", "/box/b", PLAIN, "4,four\n").await;
    let asked = query("SELECT _2 FROM BlobStorage LIMIT 1", HEADED);
    let path = format!("/box/b?comp=query&snapshot={snapshot}");
    let answer = client.send("POST", &path, &[], asked.clone()).await;
    assert_eq!(answer.outcome(), (200, ""));
    assert_eq!(rows(&answer), "one\n");
    assert!(!answer.headers.contains_key("x-ms-lease-status"));
}

/// A name that is not in the header row is refused before the response begins.
#[tokio::test]
async fn invalid_query_is_refused() {
    const REFUSED: &str = "ErrorProcessingQueryExpression";
    let client = with_rows().await;
    for (asked, expected) in [
        (
            query("SELECT nothing FROM BlobStorage", HEADED),
            (400, REFUSED),
        ),
        (query("SELECT id FROM BlobStorage", ""), (400, REFUSED)),
        ("<QueryRequest/>".to_owned(), (400, "InvalidXmlDocument")),
    ] {
        let answer = client
            .send("POST", "/box/b?comp=query", &[], asked.clone())
            .await;
        assert_eq!(answer.outcome(), expected, "{asked}");
    }
    let page = [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-content-length", "512"),
    ];
    assert_eq!(client.send("PUT", "/box/p", &page, "").await.status, 201);
    let asked = query("SELECT * FROM BlobStorage", "");
    let answer = client
        .send("POST", "/box/p?comp=query", &[], asked.clone())
        .await;
    assert_eq!(answer.outcome(), (409, "InvalidBlobType"));
}

#[tokio::test]
async fn query_checks_conditions() {
    let client = with_rows().await;
    let asked = query("SELECT * FROM BlobStorage", "");
    let path = "/box/b?comp=query";
    let etag = client.send("HEAD", "/box/b", &[], "").await;
    let etag = etag.header("etag").to_owned();
    for (headers, status) in [
        ([("if-match", etag.as_str())], 200),
        ([("if-none-match", etag.as_str())], 304),
        ([("if-match", "\"0x1\"")], 412),
        ([("x-ms-if-tags", "a = 'b'")], 412),
    ] {
        let answer = client.send("POST", path, &headers, asked.clone()).await;
        assert_eq!(answer.status, status, "{headers:?}");
    }
}
