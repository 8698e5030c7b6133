//! Tests headers and their parsed values by table.

use smalt_protocol::ApiVersion;

use super::*;
use crate::ops::blob::testing;
use crate::store::Staged;

fn call(version: ApiVersion, headers: &[(&'static str, &str)]) -> Call {
    Call {
        version,
        ..testing::call(&[], headers)
    }
}

fn latest(headers: &[(&'static str, &str)]) -> Call {
    call(ApiVersion::LATEST, headers)
}

const MD5: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";

#[test]
fn put_prefers_blob_headers_to_standard_ones() {
    let headers = content_of_put(&latest(&[
        ("content-type", "text/plain"),
        ("x-ms-blob-content-type", "text/html"),
        ("content-language", "de"),
        ("content-md5", MD5),
        ("x-ms-blob-content-encoding", ""),
        ("content-encoding", "gzip"),
    ]))
    .unwrap();
    assert_eq!(
        headers,
        ContentHeaders {
            content_type: Some("text/html".to_owned()),
            content_language: Some("de".to_owned()),
            ..ContentHeaders::default()
        }
    );
    let bare = content_of_put(&latest(&[])).unwrap();
    assert_eq!(bare.content_type.as_deref(), Some(CONTENT_TYPE_DEFAULT));
}

#[test]
fn one_of_six_headers_sets_all() {
    assert_eq!(
        content_of_set(&latest(&[("content-type", "a/b")])),
        Ok(None)
    );
    let set = content_of_set(&latest(&[("x-ms-blob-cache-control", "")])).unwrap();
    assert_eq!(set, Some(ContentHeaders::default()));
    let error = content_of_set(&latest(&[("x-ms-blob-content-md5", "abc")])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidMd5);
}

#[test]
fn hashes_are_compared_with_the_body() {
    let received = Received {
        staged: Staged::inline(bytes::Bytes::new()).unwrap(),
        length: 0,
        md5: Some(parse_md5(MD5).unwrap()),
        crc64: [0; 8],
    };
    let other = encode(&[7; 16]);
    for (headers, expected) in [
        (&[][..], None),
        (&[("content-md5", MD5)], None),
        (&[("x-ms-content-crc64", "AAAAAAAAAAA=")], None),
        (
            &[("content-md5", other.as_str())],
            Some(ErrorCode::Md5Mismatch),
        ),
        (&[("content-md5", "AAAA")], Some(ErrorCode::InvalidMd5)),
        (
            &[("content-md5", "not base64")],
            Some(ErrorCode::InvalidMd5),
        ),
        (
            &[("x-ms-content-crc64", "AQAAAAAAAAA=")],
            Some(ErrorCode::Crc64Mismatch),
        ),
        (
            &[("x-ms-content-crc64", "AQ==")],
            Some(ErrorCode::InvalidHeaderValue),
        ),
        (
            &[("content-md5", MD5), ("x-ms-content-crc64", "AAAAAAAAAAA=")],
            Some(ErrorCode::BothCrc64AndMd5HeaderPresent),
        ),
    ] {
        let checked = BodyHashes::of(&latest(headers)).and_then(|given| given.check(&received));
        assert_eq!(checked.err().map(|e| e.code()), expected, "{headers:?}");
    }
    let given = BodyHashes::of(&latest(&[("content-md5", other.as_str())])).unwrap();
    let error = given.check(&received).unwrap_err();
    let names = error.elements().iter().map(|(name, _)| *name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["UserSpecifiedMd5", "ServerCalculatedMd5"]
    );
}

#[test]
fn tags_tiers_and_lease_ids_are_parsed_or_rejected() {
    let read = |text| tags(&latest(&[("x-ms-tags", text)]));
    let pairs = vec![
        ("b".to_owned(), String::new()),
        ("tag1 name".to_owned(), "my tag".to_owned()),
    ];
    assert_eq!(read("tag1%20name=my+tag&b="), Ok(pairs));
    assert_eq!(
        read("a=%zz").unwrap_err().code(),
        ErrorCode::InvalidHeaderValue
    );
    assert_eq!(read("a=%3F").unwrap_err().code(), ErrorCode::InvalidTag);
    for (version, text, expected) in [
        (ApiVersion::LATEST, "cool", Some("Cool")),
        (ApiVersion::V2021_12_02, "Cold", Some("Cold")),
        (ApiVersion::V2020_10_02, "Cold", None),
        (ApiVersion::LATEST, "P10", None),
        (ApiVersion::LATEST, "Lukewarm", None),
    ] {
        let tier = block_blob_tier(&call(version, &[("x-ms-access-tier", text)]));
        assert_eq!(tier.ok().flatten().as_deref(), expected, "{text}");
    }
    let id = lease_id(&latest(&[(
        "x-ms-lease-id",
        "CA761232ED4211CEBACD00AA0057B223",
    )]));
    let uuid = Uuid::from_u128(0xca76_1232_ed42_11ce_bacd_00aa_0057_b223);
    assert_eq!(id, Ok(Some(uuid)));
    let error = lease_id(&latest(&[("x-ms-lease-id", "mine")])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidHeaderValue);
}
