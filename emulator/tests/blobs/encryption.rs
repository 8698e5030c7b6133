//! Keys that clients provide and scopes that they name, in process.

use crate::support::Client;

type Headers = [(&'static str, &'static str)];

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
/// 32 zero bytes.
const KEY: &Headers = &[
    BLOCK,
    (
        "x-ms-encryption-key",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ),
    ("x-ms-encryption-key-sha256", KEY_SHA256),
    ("x-ms-encryption-algorithm", "AES256"),
];
const KEY_SHA256: &str = "Zmh6rfhivXdsj8GLjp+OIAiXFIVu4jOzkCpZHQ1fKSU=";
const SCOPE: &Headers = &[BLOCK, ("x-ms-encryption-scope", "one")];
const PLAIN: &Headers = &[BLOCK];
const LIST: &str = "<BlockList><Latest>MQ==</Latest></BlockList>";

async fn with_container(headers: &Headers) -> Client {
    let client = Client::new();
    let created = client
        .send("PUT", "/box?restype=container", headers, "")
        .await;
    assert_eq!(created.status, 201);
    client
}

#[tokio::test]
async fn a_key_is_asked_for_again_by_reads_and_writes() {
    const USES: &str = "BlobUsesCustomerSpecifiedEncryption";
    let client = with_container(&[]).await;
    let put = client.send("PUT", "/box/b", KEY, "hello").await;
    assert_eq!(put.outcome(), (201, ""));
    assert_eq!(put.header("x-ms-encryption-key-sha256"), KEY_SHA256);
    for (method, path) in [
        ("GET", "/box/b"),
        ("HEAD", "/box/b"),
        ("GET", "/box/b?comp=metadata"),
        ("PUT", "/box/b?comp=metadata"),
        ("PUT", "/box/b?comp=snapshot"),
    ] {
        let without = client.send(method, path, PLAIN, "").await;
        assert_eq!(without.outcome(), (409, USES), "{method} {path}");
        let with = client.send(method, path, KEY, "").await;
        assert!(with.status < 300, "{method} {path}: {with:?}");
    }
    let got = client.send("GET", "/box/b", KEY, "").await;
    assert_eq!(got.header("x-ms-encryption-key-sha256"), KEY_SHA256);
    // Deleting needs none.
    let headers = [("x-ms-delete-snapshots", "include")];
    let deleted = client.send("DELETE", "/box/b", &headers, "").await;
    assert_eq!(deleted.status, 202);
}

#[tokio::test]
async fn a_block_list_is_encrypted_as_its_blocks_are() {
    const USES: &str = "BlobUsesCustomerSpecifiedEncryption";
    const DIFFERS: &str = "BlobCustomerSpecifiedEncryptionMismatch";
    let client = with_container(&[]).await;
    let block = client
        .send("PUT", "/box/b?comp=block&blockid=MQ==", SCOPE, "hello")
        .await;
    assert_eq!(block.header("x-ms-encryption-scope"), "one");
    for (headers, expected) in [
        (PLAIN, (409, USES)),
        (KEY, (409, DIFFERS)),
        (SCOPE, (201, "")),
    ] {
        let list = client
            .send("PUT", "/box/b?comp=blocklist", headers, LIST)
            .await;
        assert_eq!(list.outcome(), expected);
    }
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.header("x-ms-encryption-scope"), "one");
    let listed = client
        .send("GET", "/box?restype=container&comp=list", &[], "")
        .await;
    let body = std::str::from_utf8(&listed.body).unwrap();
    assert!(
        body.contains("<EncryptionScope>one</EncryptionScope>"),
        "{body}"
    );
}

#[tokio::test]
async fn a_container_may_insist_on_its_scope() {
    let client = with_container(&[
        ("x-ms-default-encryption-scope", "all"),
        ("x-ms-deny-encryption-scope-override", "true"),
    ])
    .await;
    let forbidden = (403, "RequestForbiddenByContainerEncryptionPolicy");
    for (headers, expected) in [(PLAIN, (201, "")), (SCOPE, forbidden), (KEY, forbidden)] {
        let put = client.send("PUT", "/box/b", headers, "hello").await;
        assert_eq!(put.outcome(), expected);
    }
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.header("x-ms-encryption-scope"), "all");
}

/// An account that names its scopes has no others.
#[tokio::test]
async fn unknown_scopes_are_refused() {
    let client = Client::of_account(smalt::AccountSettings {
        encryption_scopes: Some(["mine".to_owned()].into()),
        ..Default::default()
    });
    let refused = (409, "EncryptionScopeNotAvailable");
    let default = |scope| [("x-ms-default-encryption-scope", scope)];
    let path = "/box?restype=container";
    let made = client.send("PUT", path, &default("theirs"), "").await;
    assert_eq!(made.outcome(), refused);
    let made = client.send("PUT", path, &default("mine"), "").await;
    assert_eq!(made.status, 201);
    for (scope, expected) in [("theirs", refused), ("mine", (201, ""))] {
        let headers = [
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-encryption-scope", scope),
        ];
        let put = client.send("PUT", "/box/b", &headers, "text").await;
        assert_eq!(put.outcome(), expected, "{scope}");
        let headers = [("x-ms-encryption-scope", scope)];
        let snapshot = client
            .send("PUT", "/box/b?comp=snapshot", &headers, "")
            .await;
        assert_eq!(snapshot.outcome(), expected, "{scope}");
    }
}
