//! Large block blobs, and what signatures permit for them.

use bytes::Bytes;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::ServiceSas;
use smalt_protocol::{ApiVersion, Service};

use crate::support::{Answer, Client};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

async fn with_container() -> Client {
    let client = Client::new();
    let created = client.send("PUT", "/box?restype=container", &[], "").await;
    assert_eq!(created.status, 201);
    client
}

async fn put(client: &Client, body: impl Into<Bytes>) -> Answer {
    let answer = client.send("PUT", "/box/b", &[BLOCK], body).await;
    assert_eq!(answer.status, 201);
    answer
}

/// A body beyond 16 KiB is in an extent, beyond 64 KiB in several frames of it.
#[tokio::test]
async fn large_bodies_are_read_back_whole_and_in_ranges() {
    let client = with_container().await;
    let body: Bytes = (0..1_000_000_u32).map(|at| (at % 253) as u8).collect();
    put(&client, body.clone()).await;
    let got = client.send("GET", "/box/b", &[], "").await;
    assert_eq!(got.body, body);
    for (range, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=65530-65600", 65_530..65_601),
        ("bytes=999990-", 999_990..1_000_000),
        ("bytes=500000-2000000", 500_000..1_000_000),
    ] {
        let got = client
            .send("GET", "/box/b", &[("x-ms-range", range)], "")
            .await;
        assert_eq!(got.status, 206);
        let shown = format!("bytes {}-{}/1000000", expected.start, expected.end - 1);
        assert_eq!(got.header("content-range"), shown);
        assert_eq!(got.body, body.slice(expected), "{range}");
        assert!(got.has("x-ms-blob-content-md5") && !got.has("content-md5"));
    }
}

/// A signature that may create but not write creates a blob once, and sets response headers.
#[tokio::test]
async fn sas_creates_once_and_sets_response_headers() {
    let client = with_container().await;
    let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).unwrap();
    let target = |permissions, more: &[(&str, &str)]| {
        let sas = ServiceSas {
            version: ApiVersion::V2020_10_02,
            target: SasTarget {
                service: Service::Blob,
                account: EMULATOR_ACCOUNT_NAME,
                name: "box",
                blob: Some("b"),
                snapshot: "",
            },
            permissions,
            start: None,
            expiry: Some(client.now().plus_s(3_600)),
            policy_id: "",
            ip: "",
            protocol: "",
            more,
        };
        format!(
            "/{EMULATOR_ACCOUNT_NAME}/box/b?{}",
            sas.sign(key.as_bytes())
        )
    };
    let headers = [
        BLOCK,
        ("x-ms-version", "2020-10-02"),
        ("content-length", "5"),
    ];
    let create = target("c", &[]);
    let first = client
        .send_as_is("PUT", &create, &headers, "hello".into())
        .await;
    assert_eq!(first.status, 201);
    let second = client
        .send_as_is("PUT", &create, &headers, "again".into())
        .await;
    assert_eq!(second.outcome(), (403, "UnauthorizedBlobOverwrite"));
    let read = target("r", &[("rscc", "no-store")]);
    let got = client.send_as_is("GET", &read, &[], Bytes::new()).await;
    assert_eq!(
        (got.header("cache-control"), &got.body[..]),
        ("no-store", &b"hello"[..])
    );
}

#[tokio::test]
async fn condition_on_source_tags_needs_the_tag_permission() {
    let client = with_container().await;
    let tagged = [BLOCK, ("x-ms-tags", "t=1")];
    let made = client.send("PUT", "/box/a", &tagged, "x").await;
    assert_eq!(made.status, 201);
    for (permissions, condition, expected) in [
        ("rt", "t = '1'", 201),
        ("rt", "t = '2'", 412),
        ("r", "t = '1'", 403),
    ] {
        let source = client.signed_url("box", "a", permissions);
        let headers = [
            BLOCK,
            ("x-ms-copy-source", &*source),
            ("x-ms-source-if-tags", condition),
        ];
        let put = client.send("PUT", "/box/b", &headers, "").await;
        assert_eq!(put.status, expected, "{permissions} {condition}");
    }
}
