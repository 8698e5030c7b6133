//! Behaviour that other programs rely on: regressions found by running their tests.

use crate::support::Client;

const PUT: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const MD5_HELLO: &str = "XUFAKrxLKna5cZ2REBfFkg==";
const MD5_OTHER: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";

async fn with_blob() -> Client {
    let client = Client::new();
    let made = client
        .send("PUT", "/tests?restype=container", &[], "")
        .await;
    assert_eq!(made.status, 201);
    let put = client.send("PUT", "/tests/b", &[PUT], "hello").await;
    assert_eq!(put.status, 201);
    client
}

/// The hash to store is verified; `Content-MD5` beside it is ignored.
#[tokio::test]
async fn hash_to_store_overrides_the_hash_of_the_request() {
    let client = with_blob().await;
    for (request, stored, expected) in [
        (MD5_OTHER, MD5_HELLO, 201),
        (MD5_HELLO, MD5_OTHER, 400),
        (MD5_HELLO, "AQIDBA==", 400),
    ] {
        let hashes = [
            PUT,
            ("content-md5", request),
            ("x-ms-blob-content-md5", stored),
        ];
        let put = client.send("PUT", "/tests/b", &hashes, "hello").await;
        assert_eq!(put.status, expected, "{request} {stored}");
    }
}

/// Set Blob Properties stores a hash unverified, so its length is free.
#[tokio::test]
async fn any_base64_can_be_set_as_the_hash_of_a_blob() {
    let client = with_blob().await;
    for (md5, expected) in [("AQIDBA==", 200), ("no hash", 400)] {
        let headers = [("x-ms-blob-content-md5", md5)];
        let set = client.send("PUT", "/tests/b?comp=properties", &headers, "");
        assert_eq!(set.await.status, expected, "{md5}");
    }
    let head = client.send("HEAD", "/tests/b", &[], "").await;
    assert_eq!(head.header("content-md5"), "AQIDBA==");
}

/// `*` among ETags matches any; on a write to an existing blob `If-None-Match: *` has no effect.
#[tokio::test]
async fn star_etags_in_lists_and_on_deletes() {
    let client = with_blob().await;
    let get = client.send("GET", "/tests/b", &[("if-match", "*,abc")], "");
    assert_eq!(get.await.status, 200);
    let get = client.send("GET", "/tests/b", &[("if-match", "abc,def")], "");
    assert_eq!(get.await.status, 412);
    let delete = client.send("DELETE", "/tests/b", &[("if-none-match", "*")], "");
    assert_eq!(delete.await.status, 202);
}

/// A backslash in a name is a slash, in requests and in listings.
#[tokio::test]
async fn backslash_in_a_blob_name_is_a_slash() {
    let client = with_blob().await;
    let put = client.send("PUT", "/tests/d%5Ce", &[PUT], "hello").await;
    assert_eq!(put.status, 201);
    let head = client.send("HEAD", "/tests/d/e", &[], "").await;
    assert_eq!(head.status, 200);
    let list = client.send("GET", "/tests?restype=container&comp=list", &[], "");
    let list = String::from_utf8(list.await.body.to_vec()).unwrap();
    assert!(list.contains("<Name>d/e</Name>"), "{list}");
}
