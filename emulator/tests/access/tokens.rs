//! Bearer tokens.

use smalt::{Config, OAuth};
use smalt_protocol::ApiVersion;

use super::world::{By, START_S, TENANT_ID, new_world, token, world_with};
use crate::support::{Client, config};

fn claims(audience: &str, issuer: &str, not_before: u64, expiry: u64) -> String {
    token(&format!(
        r#"{{"aud":"{audience}","iss":"{issuer}","nbf":{not_before},"exp":{expiry}}}"#
    ))
}

/// Row 17: the endpoint of managed identities issues tokens that the service accepts for a day.
#[tokio::test]
async fn managed_identity_gets_a_token() {
    const PATH: &str = "/identity/token?api-version=2019-08-01&resource=https://storage.azure.com/";
    let world = new_world().await;
    let ask = async |world: &Client, path: &str, header: &str| {
        let headers = [("host", "127.0.0.1:10003"), (header, "any")];
        world.control_as(None, ("GET", path), &headers, "").await
    };
    let answer = ask(&world, PATH, "x-identity-header").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    assert_eq!(told["expires_on"], (START_S + 86_400).to_string());
    let by = By::Token(told["access_token"].as_str().unwrap());
    assert_eq!(world.get_as(by, "/box/b").await.body, "hello");
    world.advance_s(86_400);
    assert_eq!(world.get_as(by, "/box/b").await.status, 401);
    for (path, header) in [
        (PATH, "x-other"),
        (
            "/identity/token?api-version=2019-08-01",
            "x-identity-header",
        ),
    ] {
        let refused = ask(&world, path, header).await;
        assert_eq!(refused.status, 400, "{path} {header}");
    }
    let verified = world_with(Config {
        oauth: OAuth::Verified,
        ..config()
    });
    let verified = verified.await;
    let told = ask(&verified, PATH, "x-identity-header").await.json();
    let token = told["access_token"].as_str().unwrap();
    assert_eq!(
        verified.get_as(By::Token(token), "/box/b").await.status,
        200
    );
    let off = world_with(config()).await;
    assert_eq!(ask(&off, PATH, "x-identity-header").await.status, 400);
}

/// A copy within the account uses the caller's permissions, whatever the credentials.
#[tokio::test]
async fn token_can_copy_within_its_account() {
    let world = new_world().await;
    let token = world.token();
    let source = world.url_over("https", "/box/b");
    let headers = [("x-ms-copy-source", source.as_str())];
    let copied = world
        .ask(By::Token(&token), "PUT", "/box/copy", &headers, "")
        .await;
    assert_eq!(copied.status, 202, "{copied:?}");
}

#[tokio::test]
async fn audience_issuer_and_lifetime_are_checked() {
    const AUDIENCE: &str = "https://storage.azure.com";
    let issuer = format!("https://sts.windows.net/{TENANT_ID}/");
    let world = new_world().await;
    let end = START_S + 10;
    for (token, detail) in [
        (
            claims("https://management.azure.com", &issuer, START_S, end),
            "Audience validation failed. Audience did not match.",
        ),
        (
            claims(AUDIENCE, "https://example.org/t/", START_S, end),
            "Issuer validation failed. Issuer did not match.",
        ),
        (
            claims(
                "https://management.azure.com",
                "https://example.org/t/",
                START_S,
                end,
            ),
            "Issuer validation failed. Issuer did not match.",
        ),
        (
            claims(AUDIENCE, &issuer, START_S + 1, end),
            "Lifetime validation failed.",
        ),
        (
            claims(AUDIENCE, &issuer, 0, START_S),
            "Lifetime validation failed. The token is expired.",
        ),
        ("nonsense".to_owned(), "The token is not a JSON Web Token."),
    ] {
        let refused = world.get_as(By::Token(&token), "/box/b").await;
        assert_eq!(refused.outcome(), "401 InvalidAuthenticationInfo");
        assert!(refused.text().contains(detail), "{}", refused.text());
        assert!(
            refused
                .text()
                .contains("information in the www-authenticate header")
        );
        let challenge = refused.header("www-authenticate");
        assert!(challenge.starts_with("Bearer authorization_uri=https://login."));
        assert!(challenge.ends_with("resource_id=https://storage.azure.com"));
        let first = world.under(ApiVersion::V2019_12_12);
        let refused = first.get_as(By::Token(&token), "/box/b").await;
        assert_eq!(refused.status, 401);
        // Versions before the challenges get the general error text.
        let older = world.under(ApiVersion::V2019_10_10);
        let refused = older.get_as(By::Token(&token), "/box/b").await;
        assert_eq!(refused.outcome(), "403 AuthenticationFailed");
        assert!(refused.text().contains(detail) && refused.header("www-authenticate").is_empty());
    }
    let good = claims(AUDIENCE, &issuer, START_S, end);
    assert_eq!(world.get_as(By::Token(&good), "/box/b").await.status, 200);
    world.advance_s(10);
    assert_eq!(world.get_as(By::Token(&good), "/box/b").await.status, 401);
}

#[tokio::test]
async fn token_needs_https_the_oauth_flag_and_a_version() {
    let world = new_world().await;
    let token = world.token();
    let value = format!("Bearer {token}");
    let version = world.version.to_string();
    let headers = [
        ("authorization", value.as_str()),
        ("x-ms-version", &version),
    ];
    let plain = world.send_over("http", "GET", "/box/b", &headers, "").await;
    assert_eq!(plain.outcome(), "403 AuthenticationFailed");
    assert!(plain.text().contains("Bearer is not allowed with HTTP"));
    let old = world.under(ApiVersion::V2017_07_29);
    let refused = old.get_as(By::Token(&token), "/box/b").await;
    assert_eq!(refused.outcome(), "403 AuthenticationFailed");
    assert!(refused.text().contains("not supported in this version"));
    let first = world.under(ApiVersion::V2017_11_09);
    assert_eq!(first.get_as(By::Token(&token), "/box/b").await.status, 200);
    // Recorded: a header with several words is not a token.
    let words = world.get_as(By::Token("two words"), "/box/b").await;
    assert_eq!(words.outcome(), "400 InvalidAuthenticationInfo");

    assert_eq!(config().oauth, OAuth::Off);
    let closed = world_with(config()).await;
    let refused = closed.get_as(By::Token(&token), "/box/b").await;
    assert_eq!(refused.outcome(), "401 InvalidAuthenticationInfo");
    assert!(
        refused.text().contains("without --oauth"),
        "{}",
        refused.text()
    );
}

/// Row 17: with `--oauth verified` a token needs the signature of a known key, which its key id and
/// algorithm name.
#[tokio::test]
async fn verified_tokens_need_a_known_signature() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    const PATH: &str = "/identity/token?resource=https://storage.azure.com";
    let verified = || Config {
        oauth: OAuth::Verified,
        ..config()
    };
    let world = world_with(verified()).await;
    let issued = async |world: &Client| {
        let headers = [("host", "localhost"), ("x-identity-header", "any")];
        let answer = world.control_as(None, ("GET", PATH), &headers, "").await;
        answer.json()["access_token"].as_str().unwrap().to_owned()
    };
    let good = issued(&world).await;
    assert_eq!(world.get_as(By::Token(&good), "/box/b").await.status, 200);
    let parts: Vec<&str> = good.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let decode = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let with_header = |from: &str, to: &str| {
        let changed = decode(header).replace(from, to);
        assert_ne!(changed, decode(header));
        URL_SAFE_NO_PAD.encode(changed)
    };
    let other_claims = URL_SAFE_NO_PAD.encode(decode(claims).replace("001", "002"));
    let other = world_with(verified()).await;
    for (case, token) in [
        ("unsigned", world.token()),
        ("no signature", format!("{header}.{claims}.")),
        (
            "alg none",
            format!("{}.{claims}.", with_header("ES256", "none")),
        ),
        (
            "other algorithm",
            format!("{}.{claims}.{signature}", with_header("ES256", "RS256")),
        ),
        (
            "other key id",
            format!("{}.{claims}.{signature}", with_header("kid", "kids")),
        ),
        (
            "other claims",
            format!("{header}.{other_claims}.{signature}"),
        ),
        ("other issuer", issued(&other).await),
    ] {
        let refused = world.get_as(By::Token(&token), "/box/b").await;
        let expected = "401 InvalidAuthenticationInfo";
        assert_eq!(refused.outcome(), expected, "{case}");
        assert!(
            refused.text().contains("Signature validation failed."),
            "{case}: {}",
            refused.text()
        );
        assert!(!refused.header("www-authenticate").is_empty(), "{case}");
    }
    world.advance_s(86_400);
    let expired = world.get_as(By::Token(&good), "/box/b").await;
    assert_eq!(expired.outcome(), "401 InvalidAuthenticationInfo");
    assert!(expired.text().contains("The token is expired."));
}
