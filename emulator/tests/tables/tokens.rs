//! Bearer tokens of Microsoft Entra ID: which operations they permit.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use smalt::{Config, OAuth};
use smalt_protocol::ApiVersion;

use super::client::with_table;
use crate::support::{Answer, Client, START, config, request};

/// The first version in which a token may read and write access policies.
const POLICIES: &str = "2025-05-05";
/// A version before [`POLICIES`].
const OLDER: &str = "2025-01-05";
const ACL: &str = "/tab?comp=acl";

/// Returns a token for this audience that is valid for an hour. Its signature is not checked.
fn token(audience: &str) -> String {
    let claims = serde_json::json!({
        "aud": audience,
        "iss": "https://sts.windows.net/6f5c7fd5-0a1c-4a0b-8a53-2f1f7d4a0001/",
        "nbf": START.unix_s(),
        "exp": START.unix_s() + 3_600,
    });
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let head = encode("{\"typ\":\"JWT\",\"alg\":\"RS256\"}");
    format!("{head}.{}.c2ln", encode(&claims.to_string()))
}

async fn client() -> Client {
    with_table(Config {
        oauth: OAuth::Basic,
        ..config()
    })
    .await
}

/// Sends a request with a token over this scheme.
async fn ask(
    client: &Client,
    (scheme, version, token): (&str, &str, &str),
    (method, path): (&str, &str),
    content: &'static str,
) -> Answer {
    let (bearer, length) = (format!("Bearer {token}"), content.len().to_string());
    let headers = [
        ("authorization", bearer.as_str()),
        ("x-ms-version", version),
        ("content-length", &length),
    ];
    let url = client.url_over(scheme, path);
    client.call(request(method, &url, &headers, content)).await
}

/// Access policies need the key before the version that permits them with a token.
#[tokio::test]
async fn token_permits_access_policies_in_newer_versions_only() {
    let client = client().await;
    let token = token("https://storage.azure.com");
    let policies = "<SignedIdentifiers></SignedIdentifiers>";
    for (version, expected) in [
        (POLICIES, ["200", "204"]),
        (OLDER, ["403 AuthorizationFailure"; 2]),
        ("2019-02-02", ["403 AuthorizationFailure"; 2]),
    ] {
        for (request, expected) in [("GET", ACL), ("PUT", ACL)].into_iter().zip(expected) {
            let content = if request.0 == "PUT" { policies } else { "" };
            let by = ("https", version, token.as_str());
            let answer = ask(&client, by, request, content).await;
            assert_eq!(answer.outcome(), expected, "{version} {request:?}");
        }
    }
}

/// The audience of a token is Azure Storage or this account's table service; tokens need HTTPS.
#[tokio::test]
async fn token_audience_must_include_tables() {
    let client = client().await;
    let refused = "401 InvalidAuthenticationInfo";
    let list = ("GET", "/Tables");
    for (audience, expected) in [
        ("https://storage.azure.com/", "200"),
        ("https://devstoreaccount1.table.core.windows.net", "200"),
        ("https://devstoreaccount1.table.core.windows.net/", "200"),
        ("https://devstoreaccount1.queue.core.windows.net", refused),
        ("https://other.table.core.windows.net", refused),
        ("https://management.azure.com", refused),
    ] {
        let token = token(audience);
        let by = ("https", POLICIES, token.as_str());
        let answer = ask(&client, by, list, "").await;
        assert_eq!(answer.outcome(), expected, "{audience}");
        let is_challenged = !answer.header("www-authenticate").is_empty();
        assert_eq!(is_challenged, expected == refused, "{audience}");
    }
    let good = token("https://storage.azure.com");
    for (by, expected) in [
        (
            ("http", POLICIES, good.as_str()),
            "403 AuthenticationFailed",
        ),
        (("https", "2017-07-29", &good), "403 AuthenticationFailed"),
        (("https", POLICIES, "a.b"), refused),
        (
            ("https", POLICIES, "two words"),
            "400 InvalidAuthenticationInfo",
        ),
    ] {
        let answer = ask(&client, by, list, "").await;
        assert_eq!(answer.outcome(), expected, "{by:?}");
    }
    client.advance_s(3_600);
    let late = ("https", POLICIES, good.as_str());
    let answer = ask(&client, late, list, "").await;
    assert_eq!(answer.outcome(), refused);
    let off = with_table(config()).await;
    assert_eq!(ask(&off, late, list, "").await.outcome(), refused);
    assert_eq!(ApiVersion::V2025_05_05.to_string(), POLICIES);
}
