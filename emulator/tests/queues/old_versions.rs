//! What earlier versions of the service did: the profile of 2009, and what came when.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest as _, Md5};
use smalt_protocol::ApiVersion;

use super::client::{ACCOUNT, Client, Held, START, document};

const OLD: [ApiVersion; 3] = [
    ApiVersion::V2008_10_27,
    ApiVersion::V2009_04_14,
    ApiVersion::V2009_07_17,
];
const RANGE: &str = "400 OutOfRangeQueryParameterValue";

/// The first form of Put Message: bare bytes by PUT, given out in Base64.
#[tokio::test]
async fn bare_bytes_come_back_in_base64() {
    for version in OLD {
        let client = Client::new().await.under(version);
        let bytes = b"\x00\x01 any bytes \xff".as_slice();
        let md5 = BASE64.encode(Md5::digest(bytes));
        let headers = [("content-md5", md5.as_str())];
        let path = "/que/messages?messagettl=3600";
        let put = client.send_with("PUT", path, &headers, bytes).await;
        assert_eq!((put.status, put.text.as_str()), (201, ""), "{version}");
        let got = client.get("?numofmessages=2&visibilitytimeout=60").await;
        assert_eq!(got.one("MessageText"), BASE64.encode(bytes));
        assert_eq!(got.time("ExpirationTime"), START.plus_s(3600));
        assert_eq!(got.time("TimeNextVisible"), START.plus_s(60));
        assert_eq!(client.delete(&Held::of(&got)).await, "204");
    }
}

/// Its MD5 guards it on the way.
#[tokio::test]
async fn bare_bytes_are_checked_against_their_md5() {
    let client = Client::new().await.under(ApiVersion::V2009_04_14);
    let other = BASE64.encode(Md5::digest(b"other"));
    for (md5, text) in [(other.as_str(), "Md5Mismatch"), ("no md5", "InvalidMd5")] {
        let headers = [("content-md5", md5)];
        let answer = client
            .send_with("PUT", "/que/messages", &headers, "bytes")
            .await;
        // These versions do not name the code in a header.
        assert_eq!((answer.status, answer.one("Code").as_str()), (400, text));
    }
    assert_eq!(client.under(ApiVersion::LATEST).count().await, 0);
}

/// Later versions know no such form.
#[tokio::test]
async fn the_bare_form_is_gone_since_2009_09_19() {
    let client = Client::new().await;
    for version in [ApiVersion::V2009_09_19, ApiVersion::LATEST] {
        let answer = client
            .under(version)
            .send("PUT", "/que/messages", "bytes")
            .await;
        assert_eq!(answer.status, 405, "{version}");
    }
}

/// 8 KiB, two hours and seven days before 2011-08-18; 64 KiB and seven days since.
#[tokio::test]
async fn limits_grew_in_2011() {
    let small = ApiVersion::V2009_09_19;
    for version in OLD.into_iter().chain([small]) {
        let client = Client::new().await.under(version);
        let code = |answer: super::client::Answer| (answer.status, answer.one("Code"));
        let put = client.try_put(&"x".repeat(8_192), "").await;
        assert_eq!(put.status, 201, "{version}");
        let put = client.try_put(&"x".repeat(8_193), "").await;
        assert_eq!(
            (put.status, put.one("MaxLimit").as_str()),
            (413, "8192"),
            "{version}"
        );
        for query in ["?visibilitytimeout=7200", "?visibilitytimeout=1"] {
            assert_eq!(client.get(query).await.status, 200, "{version} {query}");
        }
        for query in ["?visibilitytimeout=7201", "?visibilitytimeout=0"] {
            let refused = client.get(query).await;
            assert_eq!(refused.one("MaximumAllowed"), "7200");
            assert_eq!(
                code(refused),
                (400, "OutOfRangeQueryParameterValue".to_owned())
            );
        }
        assert_eq!(client.try_put("a", "?messagettl=604800").await.status, 201);
        for query in ["?messagettl=604801", "?messagettl=-1", "?messagettl=0"] {
            let refused = client.try_put("a", query).await;
            assert_eq!(refused.one("MaximumAllowed"), "604800", "{version} {query}");
            assert_eq!(refused.status, 400);
        }
    }
    let client = Client::new().await.under(ApiVersion::V2011_08_18);
    assert_eq!(client.try_put(&"x".repeat(65_536), "").await.status, 201);
    assert_eq!(client.get("?visibilitytimeout=604800").await.status, 200);
}

/// The bare form has the limit of its bytes, not of their Base64.
#[tokio::test]
async fn bare_bytes_have_8_kib() {
    let client = Client::new().await.under(ApiVersion::V2009_07_17);
    let put = client.send("PUT", "/que/messages", vec![0; 8_192]).await;
    assert_eq!(put.status, 201);
    let put = client.send("PUT", "/que/messages", vec![0; 8_193]).await;
    assert_eq!((put.status, put.one("MaxLimit").as_str()), (413, "8192"));
}

/// A message can be put for later, and updated, since 2011-08-18.
#[tokio::test]
async fn updates_and_delays_came_in_2011() {
    let client = Client::new().await;
    let old = client.under(ApiVersion::V2009_09_19);
    let delayed = old.try_put("a", "?visibilitytimeout=1").await;
    assert_eq!(
        (delayed.status, delayed.one("Code").as_str()),
        (400, "UnsupportedQueryParameter")
    );
    let held = client.put("a", "").await;
    let update = old.try_update(&held, 1, String::new()).await;
    assert_eq!(
        (update.status, update.one("Code").as_str()),
        (405, "UnsupportedHttpVerb")
    );
    let new = client.under(ApiVersion::V2011_08_18);
    assert_eq!(new.try_update(&held, 1, String::new()).await.status, 204);
    assert_eq!(new.try_put("a", "?visibilitytimeout=1").await.status, 201);
}

/// `DequeueCount` is shown "only if the queue was created" under 2009-09-19 or later, and to those
/// who know it.
#[tokio::test]
async fn counts_are_of_queues_since_2009_09_19() {
    let client = Client::new().await;
    let old = client.under(ApiVersion::V2009_07_17);
    assert_eq!(old.send("PUT", "/old", "").await.status, 201);
    let first = client.under(ApiVersion::V2009_09_19);
    assert_eq!(first.send("PUT", "/first", "").await.status, 201);
    for (queue, asked_under, shown) in [
        ("old", ApiVersion::LATEST, 0),
        ("old", ApiVersion::V2009_07_17, 0),
        ("first", ApiVersion::LATEST, 1),
        ("que", ApiVersion::V2009_07_17, 0),
        ("que", ApiVersion::V2009_09_19, 1),
        ("que", ApiVersion::LATEST, 1),
    ] {
        let client = client.under(asked_under);
        let path = format!("/{queue}/messages");
        assert_eq!(client.send("POST", &path, document("a")).await.status, 201);
        let peeked = client
            .send("GET", &format!("{path}?peekonly=true"), "")
            .await;
        let got = client.send("GET", &path, "").await;
        for answer in [peeked, got] {
            assert_eq!(answer.all("MessageId").len(), 1);
            assert_eq!(
                answer.all("DequeueCount").len(),
                shown,
                "{queue} {asked_under}"
            );
        }
    }
}

/// Since when an answer has what: the version, the message of a put, the code in a header.
#[tokio::test]
async fn answers_grew_with_the_versions() {
    let client = Client::new().await;
    for (version, names_version, puts_back, names_code) in [
        (ApiVersion::V2009_07_17, false, false, false),
        (ApiVersion::V2009_09_19, true, false, false),
        (ApiVersion::V2015_12_11, true, false, false),
        (ApiVersion::V2016_05_31, true, true, false),
        (ApiVersion::V2017_07_29, true, true, true),
    ] {
        let client = client.under(version);
        let put = client.try_put("a", "").await;
        assert_eq!(put.status, 201);
        assert_eq!(
            put.all("PopReceipt").len(),
            usize::from(puts_back),
            "{version}"
        );
        let expected = if names_version {
            version.to_string()
        } else {
            String::new()
        };
        assert_eq!(put.header("x-ms-version"), expected);
        let refused = client.get("?numofmessages=0").await;
        let code = if names_code { &RANGE[4..] } else { "" };
        assert_eq!(refused.header("x-ms-error-code"), code, "{version}");
        assert_eq!(refused.one("Code"), RANGE[4..]);
    }
}

/// Policies of queues came with their signatures, in 2012-02-12.
#[tokio::test]
async fn policies_came_in_2012() {
    let client = Client::new().await;
    for version in OLD.into_iter().chain([ApiVersion::V2011_08_18]) {
        for method in ["GET", "PUT"] {
            let answer = client
                .under(version)
                .send(method, "/que?comp=acl", "")
                .await;
            let named = (answer.one("Code"), answer.one("QueryParameterValue"));
            assert_eq!(answer.status, 400, "{method} {version}");
            assert_eq!(
                named,
                ("InvalidQueryParameterValue".to_owned(), "acl".to_owned())
            );
        }
    }
    let first = client.under(ApiVersion::V2012_02_12);
    for (method, status) in [("PUT", 204), ("GET", 200)] {
        assert_eq!(first.send(method, "/que?comp=acl", "").await.status, status);
    }
}

/// Any positive time to live, and none at all, since 2017-07-29.
#[tokio::test]
async fn endless_messages_came_in_2017() {
    let client = Client::new().await;
    for (version, status) in [
        (ApiVersion::V2017_04_17, 400),
        (ApiVersion::V2017_07_29, 201),
    ] {
        for query in ["?messagettl=-1", "?messagettl=604801"] {
            let answer = client.under(version).try_put("a", query).await;
            assert_eq!(answer.status, status, "{version} {query}");
        }
    }
}

/// Listings gave addresses before 2013-08-15, and metadata since 2009-09-19.
#[tokio::test]
async fn listings_changed_twice() {
    let client = Client::new().await;
    for (version, has_addresses, includes) in [
        (ApiVersion::V2009_07_17, true, false),
        (ApiVersion::V2012_02_12, true, true),
        (ApiVersion::V2013_08_15, false, true),
    ] {
        let client = client.under(version);
        let list = client.send("GET", "/?comp=list", "").await;
        assert_eq!(list.all("Name"), ["que"], "{version}");
        assert_eq!(
            list.all("Url").len(),
            usize::from(has_addresses),
            "{}",
            list.text
        );
        assert_eq!(list.text.contains("AccountName="), has_addresses);
        assert_eq!(list.text.contains("ServiceEndpoint="), !has_addresses);
        let list = client.send("GET", "/?comp=list&include=metadata", "").await;
        assert_eq!(list.status, if includes { 200 } else { 400 }, "{version}");
    }
}

/// The signature of the first versions is what is called Lite today.
#[tokio::test]
async fn the_first_signature_was_the_short_one() {
    use smalt_protocol::Service;
    use smalt_protocol::signing::shared_key::{Scheme, SigningInput, string_to_sign};
    let input = SigningInput {
        service: Service::Queue,
        scheme: Scheme::SharedKey,
        version: ApiVersion::V2009_07_17,
        method: "PUT",
        account: ACCOUNT,
        path: "/myqueue/messages",
        query: &[("messagettl".to_owned(), "3600".to_owned())],
        headers: &[
            ("Content-Length", "3900"),
            ("x-ms-date", "Mon, 27 Oct 2008 17:00:25 GMT"),
        ],
    };
    let lines = ["PUT", "", "", "", "x-ms-date:Mon, 27 Oct 2008 17:00:25 GMT"];
    let expected = format!("{}\n/{ACCOUNT}/myqueue/messages", lines.join("\n"));
    assert_eq!(string_to_sign(&input), expected);
}
