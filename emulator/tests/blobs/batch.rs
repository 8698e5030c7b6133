//! Batches through a client: each part on its own, and malformed batches refused as a whole.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::support::{ACCOUNT, Answer, Client};

const MULTIPART: (&str, &str) = ("content-type", "multipart/mixed; boundary=b_1");

async fn with_blobs(blobs: &[&str]) -> Client {
    let client = Client::new();
    for container in ["box", "other"] {
        client.create(container).await;
    }
    for path in blobs {
        client.put(path, "x").await;
    }
    client
}

/// Returns a request of a batch, signed with the account key and without a version, as SDKs send
/// it.
fn signed(client: &Client, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let target = format!("/{ACCOUNT}{path}");
    let date = client.now().rfc1123();
    let mut all = vec![("x-ms-date", date.as_str()), ("Content-Length", "0")];
    all.extend_from_slice(headers);
    let signature = client.signature(method, &target, &all);
    all.push(("Authorization", signature.as_str()));
    let lines: String = all.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\n{lines}\r\n")
}

fn batch(requests: &[String]) -> String {
    let head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary";
    let part = |(id, request): (usize, &String)| {
        format!("--b_1\r\n{head}\r\nContent-ID: {id}\r\n\r\n{request}\r\n")
    };
    let parts: String = requests.iter().enumerate().map(part).collect();
    format!("{parts}--b_1--\r\n")
}

async fn submit(client: &Client, path: &str, requests: &[String]) -> Answer {
    client
        .send("POST", path, &[MULTIPART], batch(requests))
        .await
}

/// Returns Content-ID, status line and error code of each part.
fn parts(answer: &Answer) -> Vec<(String, String, String)> {
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    let text = answer.text();
    let (_, boundary) = answer
        .header("content-type")
        .split_once("boundary=")
        .unwrap();
    assert!(boundary.starts_with("batchresponse_"), "{boundary}");
    let body = text.strip_suffix(&format!("--{boundary}--")).unwrap();
    let of = |part: &str, name: &str| {
        let line = part.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().to_owned()
    };
    body.split(&format!("--{boundary}\r\n"))
        .skip(1)
        .map(|part| {
            assert!(part.contains("x-ms-version: "), "{part}");
            (
                of(part, "Content-ID: "),
                of(part, "HTTP/1.1 "),
                of(part, "x-ms-error-code: "),
            )
        })
        .collect()
}

fn part(id: &str, status: &str, code: &str) -> (String, String, String) {
    (id.to_owned(), status.to_owned(), code.to_owned())
}

#[tokio::test]
async fn batch_parts_succeed_and_fail_independently() {
    let client = with_blobs(&["/box/a", "/other/b"]).await;
    let delete = |path: &str| signed(&client, "DELETE", path, &[]);
    let unsigned = format!("DELETE /{ACCOUNT}/box/a HTTP/1.1\r\n\r\n");
    let requests = [
        delete("/box/none"),
        unsigned,
        delete("/box/a"),
        delete("/other/b"),
    ];
    let answer = submit(&client, "/?comp=batch", &requests).await;
    let found = parts(&answer);
    assert_eq!(
        found[0],
        part(
            "0",
            "404 The specified blob does not exist.",
            "BlobNotFound"
        )
    );
    assert!(found[1].1.starts_with("401 "), "{found:?}");
    assert_eq!(found[2], part("2", "202 Accepted", ""));
    assert_eq!(found[3], part("3", "202 Accepted", ""));
    assert_eq!(client.head("/box/a").await.status, 404);
}
