//! Copies that a rule keeps pending: what they show, what they refuse, how they end. The test moves
//! the clock, so nothing waits.

use smalt::faults::{Fault, Hold, Rule};
use smalt_protocol::ApiVersion;

use crate::support::{Answer, Client};

const PUT: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// Creates a container with a source of 100 bytes, and a rule that keeps every copy of it pending.
async fn with_rule(hold: Hold) -> Client {
    let client = Client::new();
    let made = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(made.status, 201);
    let headers = [PUT, ("x-ms-meta-team", "billing")];
    let put = client
        .send("PUT", "/box/source", &headers, vec![b'x'; 100])
        .await;
    assert_eq!(put.status, 201);
    client.emulator().faults().add(Rule {
        operation: "Blob_StartCopyFromURL".to_owned(),
        resource: String::new(),
        nth: 1,
        times: u64::MAX,
        fault: Fault::PendingCopy(hold),
    });
    client
}

fn for_s(duration_s: u64) -> Hold {
    Hold {
        duration_s: Some(duration_s),
        ..Hold::default()
    }
}

async fn copy(client: &Client, from: &str, to: &str) -> Answer {
    let source = client.url(from);
    let headers = [("x-ms-copy-source", source.as_str())];
    client.send("PUT", to, &headers, "").await
}

async fn head(client: &Client) -> Answer {
    client.send("HEAD", "/box/b", &[], "").await
}

/// Returns length, copy status and progress.
fn shown(answer: &Answer) -> [&str; 3] {
    ["content-length", "x-ms-copy-status", "x-ms-copy-progress"].map(|name| answer.header(name))
}

#[tokio::test]
async fn pending_copy_progresses_with_the_clock_and_completes() {
    let client = with_rule(for_s(10)).await;
    let begun = copy(&client, "/box/source", "/box/b").await;
    assert_eq!(
        (begun.status, begun.header("x-ms-copy-status")),
        (202, "pending")
    );
    let at_first = head(&client).await;
    assert_eq!(shown(&at_first), ["0", "pending", "0/100"]);
    assert_eq!(at_first.header("etag"), begun.header("etag"));
    assert_eq!(at_first.header("x-ms-meta-team"), "billing");
    assert!(!at_first.has("x-ms-copy-completion-time") && !at_first.has("content-md5"));
    assert_eq!(client.send("GET", "/box/b", &[], "").await.body, "");

    client.advance_s(7);
    assert_eq!(shown(&head(&client).await), ["0", "pending", "70/100"]);
    let path = "/box?restype=container&comp=list&include=copy";
    let listed = client.send("GET", path, &[], "").await;
    let listed = String::from_utf8(listed.body.to_vec()).unwrap();
    for part in [
        "<CopyStatus>pending</CopyStatus>",
        "<CopyProgress>70/100</CopyProgress>",
        "<Content-Length>0</Content-Length>",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }

    client.advance_s(3);
    let done = head(&client).await;
    assert_eq!(shown(&done), ["100", "success", "100/100"]);
    assert_ne!(done.header("etag"), begun.header("etag"));
    assert_eq!(
        done.header("x-ms-copy-completion-time"),
        done.header("last-modified")
    );
    assert!(done.has("content-md5"));
    let listed = client.send("GET", path, &[], "").await;
    assert!(String::from_utf8_lossy(&listed.body).contains("<CopyStatus>success"));
    let got = client
        .send("GET", "/box/b", &[("if-match", done.header("etag"))], "")
        .await;
    assert_eq!((got.status, got.body.len()), (200, 100));
    // It is a normal blob: written to, copied, deleted; and shared data stays.
    let put = client
        .send("PUT", "/box/b?comp=metadata", &[("x-ms-meta-n", "1")], "")
        .await;
    assert_eq!(put.status, 200);
    assert_ne!(put.header("etag"), done.header("etag"));
    assert_eq!(
        client.send("DELETE", "/box/source", &[], "").await.status,
        202
    );
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body.len(), 100);
    assert_eq!(client.send("DELETE", "/box/b", &[], "").await.status, 202);
}

#[tokio::test]
async fn destination_of_a_pending_copy_refuses_other_writes() {
    let client = with_rule(for_s(10)).await;
    let begun = copy(&client, "/box/source", "/box/b").await;
    let list = "<BlockList></BlockList>";
    let tags = "<Tags><TagSet></TagSet></Tags>";
    let lease = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
    ];
    for (method, path, headers, body) in [
        ("PUT", "/box/b", &[PUT][..], "new"),
        ("PUT", "/box/b?comp=blocklist", &[], list),
        ("PUT", "/box/b?comp=block&blockid=YQ%3D%3D", &[], "x"),
        ("PUT", "/box/b?comp=metadata", &[], ""),
        ("PUT", "/box/b?comp=properties", &[], ""),
        ("PUT", "/box/b?comp=snapshot", &[], ""),
        ("PUT", "/box/b?comp=lease", &lease, ""),
        ("PUT", "/box/b?comp=tags", &[], tags),
        (
            "PUT",
            "/box/b?comp=tier",
            &[("x-ms-access-tier", "Cool")],
            "",
        ),
        ("DELETE", "/box/b", &[], ""),
    ] {
        let answer = client.send(method, path, headers, body).await;
        assert_eq!(
            answer.outcome(),
            (409, "PendingCopyOperation"),
            "{method} {path}"
        );
    }
    let again = copy(&client, "/box/source", "/box/b").await;
    assert_eq!(again.outcome(), (409, "PendingCopyOperation"));

    let abort = |id: &str| {
        let path = format!("/box/b?comp=copy&copyid={id}");
        let client = &client;
        async move {
            client
                .send("PUT", &path, &[("x-ms-copy-action", "abort")], "")
                .await
        }
    };
    let other = abort("4ffa938b-b8bc-4c1a-89f5-3fa04737bcbc").await;
    assert_eq!(other.outcome(), (409, "CopyIdMismatch"));
    let id = begun.header("x-ms-copy-id");
    assert_eq!(abort(id).await.status, 204);
    let aborted = head(&client).await;
    assert_eq!(shown(&aborted), ["0", "aborted", "0/100"]);
    assert!(aborted.has("x-ms-copy-completion-time"));
    assert_eq!(aborted.header("x-ms-meta-team"), "billing");
    assert_eq!(abort(id).await.outcome(), (409, "NoPendingCopyOperation"));
    client.advance_s(99);
    assert_eq!(shown(&head(&client).await), ["0", "aborted", "0/100"]);
    assert_eq!(
        client.send("PUT", "/box/b", &[PUT], "new").await.status,
        201
    );
}

#[tokio::test]
async fn endless_pending_copy_fails_after_two_weeks() {
    let client = with_rule(Hold::default()).await;
    copy(&client, "/box/source", "/box/b").await;
    client.advance_s(14 * 86_400 - 1);
    assert_eq!(shown(&head(&client).await), ["0", "pending", "0/100"]);
    client.advance_s(1);
    let failed = head(&client).await;
    assert_eq!(shown(&failed), ["0", "failed", "0/100"]);
    let why = failed.header("x-ms-copy-status-description");
    assert!(why.starts_with("500 OperationCancelled"), "{why}");
    // A failed destination can be copied to again, or deleted.
    assert_eq!(copy(&client, "/box/source", "/box/b").await.status, 202);
}

#[tokio::test]
async fn copy_fails_as_its_rule_says() {
    let hold = Hold {
        bytes_per_s: Some(10),
        failure: Some("404 BlobNotFound \"Copy failed when reading the source.\"".to_owned()),
        ..Hold::default()
    };
    let client = with_rule(hold).await;
    copy(&client, "/box/source", "/box/b").await;
    client.advance_s(10);
    let failed = head(&client).await;
    assert_eq!(shown(&failed), ["0", "failed", "0/100"]);
    let why = failed.header("x-ms-copy-status-description");
    assert!(why.starts_with("404 BlobNotFound"), "{why}");
}

#[tokio::test]
async fn changing_the_source_fails_its_pending_copies() {
    for (method, path, headers, body) in [
        ("PUT", "/box/source", &[PUT][..], "new"),
        ("PUT", "/box/source?comp=metadata", &[], ""),
        ("DELETE", "/box/source", &[], ""),
    ] {
        let client = with_rule(for_s(10)).await;
        copy(&client, "/box/source", "/box/b").await;
        copy(&client, "/box/source", "/box/c").await;
        // Setting tags does not change the blob.
        let tags = "<Tags><TagSet></TagSet></Tags>";
        let tagged = client.send("PUT", "/box/source?comp=tags", &[], tags).await;
        assert_eq!(tagged.status, 204);
        client.advance_s(5);
        assert_eq!(shown(&head(&client).await), ["0", "pending", "50/100"]);
        let changed = client.send(method, path, headers, body).await;
        assert!(changed.status < 300, "{method} {path}");
        let failed = head(&client).await;
        assert_eq!(&shown(&failed)[..2], ["0", "failed"], "{method} {path}");
        let why = failed.header("x-ms-copy-status-description");
        assert!(why.contains("when reading the source"), "{why}");
        client.advance_s(99);
        assert_eq!(shown(&head(&client).await), shown(&failed));
        let other = client.send("HEAD", "/box/c", &[], "").await;
        assert_eq!(other.header("x-ms-copy-status"), "failed");
    }
}

#[tokio::test]
async fn copy_fails_with_its_own_source_only() {
    let client = with_rule(for_s(10)).await;
    client.send("PUT", "/box/other", &[PUT], "other").await;
    let begun = copy(&client, "/box/source", "/box/b").await;
    let id = begun.header("x-ms-copy-id");
    let path = format!("/box/b?comp=copy&copyid={id}");
    let abort = [("x-ms-copy-action", "abort")];
    assert_eq!(client.send("PUT", &path, &abort, "").await.status, 204);
    copy(&client, "/box/other", "/box/b").await;
    client.send("PUT", "/box/source", &[PUT], "new").await;
    assert_eq!(shown(&head(&client).await), ["0", "pending", "0/5"]);
    client
        .send("PUT", "/box/other?comp=metadata", &[], "")
        .await;
    assert_eq!(shown(&head(&client).await), ["0", "failed", "0/5"]);
}

#[tokio::test]
async fn changing_the_source_later_does_not_affect_the_copy() {
    let client = with_rule(for_s(10)).await;
    copy(&client, "/box/source", "/box/b").await;
    client.advance_s(10);
    client.send("PUT", "/box/source", &[PUT], "new").await;
    assert_eq!(shown(&head(&client).await), ["100", "success", "100/100"]);
}

#[tokio::test]
async fn copies_onto_themselves_and_of_empty_blobs_complete_at_once() {
    let client = with_rule(Hold {
        bytes_per_s: Some(1),
        ..Hold::default()
    })
    .await;
    let own = copy(&client, "/box/source", "/box/source").await;
    assert_eq!(own.header("x-ms-copy-status"), "success");
    client.send("PUT", "/box/empty", &[PUT], "").await;
    let empty = copy(&client, "/box/empty", "/box/b").await;
    assert_eq!(empty.header("x-ms-copy-status"), "success");
}

#[tokio::test]
async fn container_with_pending_copies_is_removed_completely() {
    let client = with_rule(for_s(10)).await;
    copy(&client, "/box/source", "/box/b").await;
    copy(&client, "/box/source", "/box/c").await;
    client.advance_s(10);
    let deleted = client
        .send("DELETE", "/box?restype=container", &[], "")
        .await;
    assert_eq!(deleted.status, 202);
    while client.emulator().maintain(100).unwrap().more {}
    let made = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(made.status, 201);
    assert_eq!(head(&client).await.status, 404);
}

#[tokio::test]
async fn pages_are_zeros_until_they_are_copied() {
    let client = with_rule(for_s(10)).await;
    let page = [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-content-length", "1024"),
    ];
    let made = client.send("PUT", "/box/pages", &page, "").await;
    assert_eq!(made.status, 201);
    let write = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
    let written = client
        .send("PUT", "/box/pages?comp=page", &write, vec![b'x'; 512])
        .await;
    assert_eq!(written.status, 201);
    let begun = copy(&client, "/box/pages", "/box/b").await;
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body, vec![0; 1024]);
    client.advance_s(5);
    assert_eq!(shown(&head(&client).await), ["1024", "pending", "512/1024"]);
    let refused = client
        .send("PUT", "/box/b?comp=page", &write, vec![b'y'; 512])
        .await;
    assert_eq!(refused.outcome(), (409, "PendingCopyOperation"));
    client.advance_s(5);
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body, [[b'x'; 512], [0; 512]].concat());
}

#[tokio::test]
async fn append_is_refused_while_the_blob_is_copied() {
    let client = with_rule(for_s(10)).await;
    let kind = [("x-ms-blob-type", "AppendBlob")];
    client.send("PUT", "/box/log", &kind, "").await;
    let path = "/box/log?comp=appendblock";
    assert_eq!(client.send("PUT", path, &[], "one").await.status, 201);
    copy(&client, "/box/log", "/box/b").await;
    let path = "/box/b?comp=appendblock";
    let refused = client.send("PUT", path, &[], "two").await;
    assert_eq!(refused.outcome(), (409, "PendingCopyOperation"));
    client.advance_s(10);
    assert_eq!(client.send("PUT", path, &[], "two").await.status, 201);
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body, "onetwo");
}

#[tokio::test]
async fn copies_before_2012_complete_at_once() {
    let client = with_rule(for_s(10)).await.under(ApiVersion::V2011_08_18);
    assert_eq!(copy(&client, "/box/source", "/box/b").await.status, 201);
    assert_eq!(head(&client).await.header("content-length"), "100");
}
