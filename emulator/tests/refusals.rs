//! What production answered to requests that cannot be served: a row for each operation and code.
//!
//! The rows follow a table of what production was seen to answer, operation by operation; each is
//! the request that a client would have to send for that answer.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use std::collections::BTreeMap;

use smalt::AccountSettings;
use smalt_protocol::ApiVersion;
use support::{Answer, Client};

const LEASE: &str = "6d0c1d3b-5d3f-4f0e-9c8e-2b1f0a9d7c55";
const FUTURE: &str = "Fri, 01 Dec 2023 00:00:00 GMT";
const QUERY: &str = "<QueryRequest><QueryType>SQL</QueryType>\
    <Expression>select * from BlobStorage</Expression></QueryRequest>";
const TAGS: &str = "<Tags><TagSet/></Tags>";

/// Headers by the name that a row gives them.
const HEADERS: &[(&str, &str)] = &[
    ("block", "x-ms-blob-type: BlockBlob"),
    ("append", "x-ms-blob-type: AppendBlob"),
    ("page", "x-ms-blob-type: PageBlob"),
    ("sized", "x-ms-blob-content-length: 512"),
    ("aes", "x-ms-encryption-algorithm: AES256"),
    (
        "key",
        "x-ms-encryption-key: MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=",
    ),
    (
        "hash",
        "x-ms-encryption-key-sha256: 3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=",
    ),
    (
        "key2",
        "x-ms-encryption-key: MTIzNDU2NzAxMjM0NTY3MDEyMzQ1NjcwMTIzNDU2Nzg=",
    ),
    (
        "hash2",
        "x-ms-encryption-key-sha256: Xjr6/lcala0yJK9tKq/YzxAsPnbbl73OfOwivFq9tO0=",
    ),
    ("key?", "x-ms-encryption-key: jumble"),
    ("hash?", "x-ms-encryption-key-sha256: jumblehash"),
    ("scope?", "x-ms-encryption-scope: other"),
    ("new", "if-none-match: *"),
    ("match?", "if-match: \"0x1\""),
    ("tags?", "x-ms-if-tags: a='c'"),
    ("id?", "x-ms-lease-id: invalid"),
    ("id", "x-ms-lease-id: 6d0c1d3b-5d3f-4f0e-9c8e-2b1f0a9d7c55"),
    ("id2", "x-ms-lease-id: 0f4b9e0e-3a5c-4e5c-8c3a-6b1f4b1f9a10"),
    (
        "proposed",
        "x-ms-proposed-lease-id: 0f4b9e0e-3a5c-4e5c-8c3a-6b1f4b1f9a10",
    ),
    ("proposed?", "x-ms-proposed-lease-id: invalid"),
    ("acquire", "x-ms-lease-action: acquire"),
    ("break", "x-ms-lease-action: break"),
    ("change", "x-ms-lease-action: change"),
    ("renew", "x-ms-lease-action: renew"),
    ("infinite", "x-ms-lease-duration: -1"),
    ("range", "x-ms-range: bytes=0-511"),
    ("from", "x-ms-source-range: bytes=0-511"),
    ("md5", "x-ms-range-get-content-md5: true"),
    ("crc", "x-ms-range-get-content-crc64: true"),
    ("md5!", "content-md5: AAAAAAAAAAAAAAAAAAAAAA=="),
    ("md5?", "content-md5: bm9uc2Vuc2U="),
    ("crc!", "x-ms-content-crc64: AAAAAAAAAAA="),
    (
        "source-md5!",
        "x-ms-source-content-md5: AAAAAAAAAAAAAAAAAAAAAA==",
    ),
    ("source-match?", "x-ms-source-if-match: \"0x1\""),
    ("sync", "x-ms-requires-sync: true"),
    ("bearer?", "x-ms-copy-source-authorization: Bearer x.y.z"),
    ("at9", "x-ms-blob-condition-appendpos: 9"),
    ("most1", "x-ms-blob-condition-maxsize: 1"),
    ("update", "x-ms-page-write: update"),
    ("clear", "x-ms-page-write: clear"),
    ("below0", "x-ms-if-sequence-number-lt: 0"),
    ("below-1", "x-ms-if-sequence-number-lt: -1"),
    ("abort", "x-ms-copy-action: abort"),
    ("cool", "x-ms-access-tier: Cool"),
    ("tier?", "x-ms-access-tier: dummy"),
    ("never", "x-ms-expiry-option: NeverExpire"),
    ("hold", "x-ms-legal-hold: true"),
    ("unlocked", "x-ms-immutability-policy-mode: Unlocked"),
    ("mode?", "x-ms-immutability-policy-mode: invalid"),
    (
        "until",
        "x-ms-immutability-policy-until-date: Thu, 14 Dec 2023 00:00:00 GMT",
    ),
];

/// Rows: method, path, names of headers, body, and the status and code they are answered with.
#[rustfmt::skip]
const READS: &[&str] = &[
    "GET /box/none | | | 404 BlobNotFound",
    "GET /box/block | unchanged | | 304 ConditionNotMet",
    "GET /box/block | range since | | 304 ConditionNotMet",
    "GET /box/block | range md5 crc | | 400 BothCrc64AndMd5RangeHeaderPresent",
    "GET /box/keyed | aes key? hash? | | 400 InvalidHeaderValue",
    "GET /box/keyed | aes key hash2 | | 400 InvalidHeaderValue",
    "GET /box/keyed | aes key2 hash2 | | 409 BlobCustomerSpecifiedEncryptionMismatch",
    "HEAD /box/leased | id2 | | 412 LeaseIdMismatchWithBlobOperation",
    "GET /box/block?comp=tags | id? | | 400 InvalidHeaderValue",
    "GET /box/block?comp=tags | tags? | | 412 ConditionNotMet",
    "GET /box/leased?comp=tags | id2 | | 412 LeaseIdMismatchWithBlobOperation",
    "GET /box/block?comp=tags | id2 | | 412 LeaseNotPresentWithBlobOperation",
    "GET /box/page?comp=pagelist | since | | 304 ConditionNotMet",
    "POST /box/block?comp=query | id? | query | 400 InvalidHeaderValue",
    "POST /box/block?comp=query | unchanged | query | 304 ConditionNotMet",
    "POST /box/none?comp=query | | query | 404 BlobNotFound",
    "POST /box/leased?comp=query | id2 | query | 412 LeaseIdMismatchWithBlobOperation",
    "GET /held?restype=container | id2 | | 412 LeaseIdMismatchWithContainerOperation",
    "GET /held?restype=container&comp=acl | id2 | | 412 LeaseIdMismatchWithContainerOperation",
    "GET /box?restype=container&comp=acl | id2 | | 412 LeaseNotPresentWithContainerOperation",
    "GET /none?restype=container&comp=metadata | | | 404 ContainerNotFound",
    "GET /?restype=service&comp=stats | | | 400 InvalidQueryParameterValue",
    "GET /?comp=blobs&where=invalid | | | 400 InvalidQueryParameterValue",
];

/// As [`READS`].
#[rustfmt::skip]
const WRITES: &[&str] = &[
    "PUT /box/append | append new | | 409 BlobAlreadyExists",
    "PUT /box/append | append match? | | 412 ConditionNotMet",
    "PUT /box/page | page sized match? | | 412 ConditionNotMet",
    "PUT /box/block | block md5! | text | 400 Md5Mismatch",
    "PUT /box/block?comp=blocklist | new | <BlockList/> | 409 BlobAlreadyExists",
    "PUT /box/block?comp=block&blockid=MQ | | x | 400 InvalidQueryParameterValue",
    "PUT /box/block?comp=block&blockid=MQ== | md5? | x | 400 InvalidMd5",
    "PUT /box/block?comp=block | | x | 400 MissingRequiredQueryParameter",
    "PUT /box/append?comp=block&blockid=MQ== | | x | 409 InvalidBlobType",
    "PUT /box/append?comp=appendblock | at9 | x | 412 AppendPositionConditionNotMet",
    "PUT /box/append?comp=seal | match? | | 412 ConditionNotMet",
    "PUT /box/none?comp=seal | | | 404 BlobNotFound",
    "PUT /box/page?comp=page | update range crc! | pages | 400 Crc64Mismatch",
    "PUT /box/page?comp=page | clear range below-1 | | 400 InvalidInput",
    "PUT /box/page?comp=page | clear range below0 | | 412 SequenceNumberConditionNotMet",
    "PUT /box/keyedpage?comp=page | clear range | | 409 BlobUsesCustomerSpecifiedEncryption",
    "PUT /box/leased?comp=tags | id2 | tags | 412 LeaseIdMismatchWithBlobOperation",
    "PUT /box/leased?comp=tags | | tags | 412 LeaseIdMissing",
    "PUT /box/block?comp=tags | id2 | tags | 412 LeaseNotPresentWithBlobOperation",
    "PUT /box/none?comp=tags | | tags | 404 BlobNotFound",
    "PUT /none/page?comp=properties | | | 404 ContainerNotFound",
    "PUT /box/block?comp=metadata | aes key hash | | 409 BlobDoesNotUseCustomerSpecifiedEncryption",
    "PUT /box/block?comp=snapshot | id? | | 400 InvalidHeaderValue",
    "PUT /box/none?comp=snapshot | | | 404 BlobNotFound",
    "PUT /box/keyed?comp=snapshot | aes key? hash? | | 400 InvalidHeaderValue",
    "PUT /box/keyed?comp=snapshot | aes key2 hash2 | | 409 BlobCustomerSpecifiedEncryptionMismatch",
    "PUT /box/block?comp=snapshot | scope? | | 409 EncryptionScopeNotAvailable",
    "PUT /box/none?comp=tier | cool | | 404 BlobNotFound",
    "PUT /box/block?comp=tier | tier? | | 400 InvalidHeaderValue",
    "PUT /box/leased?comp=tier | cool | | 412 LeaseIdMissing",
    "PUT /box/none?comp=undelete | | | 404 BlobNotFound",
    "PUT /box/block?comp=expiry | never | | 400 HierarchicalNamespaceNotEnabled",
    "PUT /box/block?comp=immutabilityPolicies | until mode? | | 400 InvalidHeaderValue",
    "PUT /box/none?comp=immutabilityPolicies | until unlocked | | 404 BlobNotFound",
    "DELETE /box/none?comp=immutabilityPolicies | | | 404 BlobNotFound",
    "PUT /box/none?comp=legalhold | hold | | 404 BlobNotFound",
    "PUT /box/block?comp=lease | break | | 409 LeaseNotPresentWithLeaseOperation",
    "PUT /box/leased?comp=lease | change id proposed? | | 400 InvalidHeaderValue",
    "PUT /box/leased?comp=lease | change id proposed tags? | | 412 ConditionNotMet",
    "PUT /box/leased?comp=lease | renew id? | | 400 InvalidHeaderValue",
    "PUT /none?restype=container&comp=lease | acquire infinite | | 404 ContainerNotFound",
    "PUT /box?restype=container&comp=lease | acquire infinite since | | 412 ConditionNotMet",
    "PUT /none?restype=container&comp=metadata | | | 404 ContainerNotFound",
    "PUT /held?restype=container&comp=metadata | id2 | | 412 LeaseIdMismatchWithContainerOperation",
    "PUT /box?restype=container&comp=metadata | id2 | | 412 LeaseNotPresentWithContainerOperation",
    "PUT /box?restype=container&comp=acl | id2 | | 412 LeaseNotPresentWithContainerOperation",
    "DELETE /box?restype=container | id2 | | 412 LeaseNotPresentWithContainerOperation",
    "PUT /?restype=container | | | 400 InvalidQueryParameterValue",
];

/// As [`READS`].
#[rustfmt::skip]
const COPIES: &[&str] = &[
    "PUT /box/to | block source source-md5! | | 400 Md5Mismatch",
    "PUT /box/to | block unsigned | | 401 CannotVerifyCopySource",
    "PUT /box/to | block unsigned bearer? | | 401 CannotVerifyCopySource",
    "PUT /box/to | sync unsigned | | 401 CannotVerifyCopySource",
    "PUT /box/to | sync unsigned bearer? | | 401 CannotVerifyCopySource",
    "PUT /box/append?comp=appendblock | unsigned | | 401 CannotVerifyCopySource",
    "PUT /box/append?comp=appendblock | unsigned bearer? | | 401 CannotVerifyCopySource",
    "PUT /box/append?comp=appendblock | source source-unchanged | | 304 CannotVerifyCopySource",
    "PUT /box/append?comp=appendblock | source source-match? | | 412 CannotVerifyCopySource",
    "PUT /box/append?comp=appendblock | source source-md5! | | 400 Md5Mismatch",
    "PUT /box/append?comp=appendblock | source at9 | | 412 AppendPositionConditionNotMet",
    "PUT /box/append?comp=appendblock | source most1 | | 412 MaxBlobSizeConditionNotMet",
    "PUT /box/block?comp=block&blockid=MQ== | unsigned | | 401 CannotVerifyCopySource",
    "PUT /box/page?comp=page | update range from unsigned | | 401 CannotVerifyCopySource",
    "PUT /box/to | missing | | 404 BlobNotFound",
    "PUT /box/block | source tags? | | 412 ConditionNotMet",
    "PUT /box/block | source unchanged | | 412 TargetConditionNotMet",
    "PUT /box/block?comp=copy&copyid=none | abort | | 400 InvalidQueryParameterValue",
];

/// Blobs of every kind, one leased and two encrypted by a key, and a leased container.
async fn world() -> (Client, BTreeMap<&'static str, String>) {
    let client = Client::of_account(AccountSettings {
        version_immutability: true,
        encryption_scopes: Some(["scope".to_owned()].into()),
        ..AccountSettings::default()
    });
    let mut names: BTreeMap<_, _> = HEADERS
        .iter()
        .map(|(name, text)| (*name, (*text).to_owned()))
        .collect();
    for row in [
        "PUT /box?restype=container | | | 201",
        "PUT /held?restype=container | | | 201",
        "PUT /box/block | block | text | 201",
        "PUT /box/leased | block | text | 201",
        "PUT /box/keyed | block aes key hash | text | 201",
        "PUT /box/append | append | | 201",
        "PUT /box/page | page sized | | 201",
        "PUT /box/keyedpage | page sized aes key hash | | 201",
    ] {
        hold(&client, &names, row).await;
    }
    for path in [
        "/box/leased?comp=lease",
        "/held?restype=container&comp=lease",
    ] {
        let headers = [
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", "-1"),
            ("x-ms-proposed-lease-id", LEASE),
        ];
        assert_eq!(client.send("PUT", path, &headers, "").await.status, 201);
    }
    let block = client.send("HEAD", "/box/block", &[], "").await;
    let etag = block.header("etag");
    let source = client.signed_url("box", "block", "r");
    names.extend([
        ("unchanged", format!("if-none-match: {etag}")),
        ("since", format!("if-modified-since: {FUTURE}")),
        (
            "source-unchanged",
            format!("x-ms-source-if-none-match: {etag}"),
        ),
        ("source", format!("x-ms-copy-source: {source}")),
        (
            "unsigned",
            format!("x-ms-copy-source: {}", client.url("/box/block")),
        ),
        (
            "missing",
            format!("x-ms-copy-source: {}", client.url("/box/none")),
        ),
    ]);
    (client, names)
}

/// Sends the request of a row and holds the answer to it.
async fn hold(client: &Client, names: &BTreeMap<&str, String>, row: &str) -> Answer {
    let mut cells = row.split('|').map(str::trim);
    let mut cell = || cells.next().unwrap();
    let (request, headers, body, expected) = (cell(), cell(), cell(), cell());
    let (method, path) = request.split_once(' ').unwrap();
    let headers: Vec<_> = headers
        .split_whitespace()
        .map(|name| names[name].split_once(": ").unwrap())
        .collect();
    let pages = "p".repeat(512);
    let body = match body {
        "query" => QUERY,
        "tags" => TAGS,
        "pages" => &pages,
        text => text,
    };
    let answer = client
        .under(ApiVersion::V2021_12_02)
        .send(method, path, &headers, body.to_owned())
        .await;
    let (status, code) = answer.outcome();
    assert_eq!(format!("{status} {code}").trim(), expected, "{row}");
    answer
}

#[tokio::test]
async fn reads_are_refused_as_recorded() {
    let (client, names) = world().await;
    for row in READS {
        hold(&client, &names, row).await;
    }
}

#[tokio::test]
async fn writes_are_refused_as_recorded() {
    let (client, names) = world().await;
    for row in WRITES {
        hold(&client, &names, row).await;
    }
}

#[tokio::test]
async fn copies_are_refused_as_recorded() {
    let (client, names) = world().await;
    for row in COPIES {
        hold(&client, &names, row).await;
    }
}

/// Recorded: a source in another account that nobody may read.
#[tokio::test]
async fn a_private_source_is_not_there_until_it_is_refused() {
    let client = Client::new();
    client.send("PUT", "/box?restype=container", &[], "").await;
    let put = [("x-ms-blob-type", "BlockBlob")];
    client.send("PUT", "/box/b", &put, "text").await;
    let other = client.of_other_account();
    other.send("PUT", "/box?restype=container", &[], "").await;
    let source = client.url("/box/b");
    for (version, status) in [
        (ApiVersion::V2018_11_09, 404),
        (ApiVersion::V2019_12_12, 404),
        (ApiVersion::V2020_10_02, 401),
    ] {
        let copy = [("x-ms-copy-source", source.as_str())];
        let answer = other.under(version).send("PUT", "/box/b", &copy, "").await;
        assert_eq!(answer.outcome(), (status, "CannotVerifyCopySource"));
    }
}

/// Recorded: what asks for no operation at all has its reason empty, and where not even `comp` is
/// there, the version is not looked at; a refused version comes with a reason.
#[tokio::test]
async fn a_refused_parameter_says_what_it_knows() {
    let client = Client::of_account(AccountSettings {
        versioning: true,
        ..AccountSettings::default()
    });
    let names = BTreeMap::from([("block", "x-ms-blob-type: BlockBlob".to_owned())]);
    hold(&client, &names, "PUT /box?restype=container | | | 201").await;
    let put = hold(&client, &names, "PUT /box/b | block | text | 201").await;
    hold(&client, &names, "PUT /box/b | block | more | 201").await;
    let now = client.send("HEAD", "/box/b", &[], "").await;
    let (then, now) = (put.header("x-ms-version-id"), now.header("x-ms-version-id"));
    let include = [("x-ms-delete-snapshots", "include")];
    let path = format!("/box/b?versionid={then}");
    let told = client.send("DELETE", &path, &include, "").await;
    let root = client
        .send("DELETE", &format!("/box/b?versionid={now}"), &[], "")
        .await;
    assert_eq!(root.outcome(), (403, "OperationNotAllowedOnRootBlob"));
    let stats = client
        .send("GET", "/?restype=service&comp=stats", &[], "")
        .await;
    let nothing = client.send("PUT", "/?restype=container", &[], "").await;
    let where_ = client.send("GET", "/?comp=blobs&where=x", &[], "").await;
    for (answer, name, has_reason, has_version) in [
        (told, "versionid", true, true),
        (stats, "comp", false, true),
        (nothing, "comp", false, false),
        (where_, "where", true, true),
    ] {
        assert_eq!(answer.outcome(), (400, "InvalidQueryParameterValue"));
        let text = std::str::from_utf8(&answer.body).unwrap();
        let parameter = format!("<QueryParameterName>{name}</QueryParameterName>");
        assert!(text.contains(&parameter), "{text}");
        assert!(text.contains("<Reason"), "{text}");
        assert_eq!(text.contains("<Reason>"), has_reason, "{text}");
        assert_eq!(answer.has("x-ms-version"), has_version, "{name}");
    }
}
