//! The endpoints of the control endpoint at which Microsoft's clients get tokens.

use smalt::{Config, OAuth};

use super::world::{By, world_with};
use crate::support::{Answer, Client, config};

const CLIENT: &str = "5a0f5a43-7f0a-4b39-94ef-0b9d1f1bd0a7";
const TENANT: &str = "/dd0d0df1-06c3-436c-8034-4b9a153097ce";
const SCOPE: &str = "scope=https%3A%2F%2Fstorage.azure.com%2F.default";

async fn world() -> Client {
    world_with(Config {
        oauth: OAuth::Verified,
        ..config()
    })
    .await
}

/// Sends a request to the control endpoint; a request with a body is a POST.
async fn ask(
    world: &Client,
    token: Option<&str>,
    path: &str,
    (header, value): (&str, &str),
    form: &str,
) -> Answer {
    let method = if form.is_empty() { "GET" } else { "POST" };
    let headers = [("host", "localhost:10003"), (header, value)];
    let form = form.to_owned();
    let to = (method, path);
    world.control_as(token, to, &headers, form).await
}

#[tokio::test]
async fn every_way_to_sign_in_gives_a_token() {
    let world = world().await;
    let v2 = format!("{TENANT}/oauth2/v2.0/token");
    let v1 = format!("{TENANT}/oauth2/token");
    let app = format!("client_id={CLIENT}&grant_type=client_credentials");
    let virtual_machine = "/metadata/identity/oauth2/token?resource=https://storage.azure.com";
    for (path, header, form) in [
        (&*v2, ("x-a", "b"), format!("{app}&client_secret=s&{SCOPE}")),
        (
            &*v2,
            ("x-a", "b"),
            format!("{app}&client_assertion=j&{SCOPE}"),
        ),
        (
            &*v1,
            ("x-a", "b"),
            format!("{app}&client_secret=s&resource=https%3A%2F%2Fstorage.azure.com"),
        ),
        (virtual_machine, ("metadata", "true"), String::new()),
        (
            "/identity/token?resource=https://storage.azure.com",
            ("x-identity-header", "any"),
            String::new(),
        ),
    ] {
        let answer = ask(&world, None, path, header, &form).await;
        assert_eq!(answer.status, 200, "{path} {form}: {answer:?}");
        let told = answer.json();
        let by = By::Token(told["access_token"].as_str().unwrap());
        assert_eq!(world.get_as(by, "/box/b").await.body, "hello", "{path}");
    }
}

#[tokio::test]
async fn refusals_have_the_form_of_oauth() {
    let world = world().await;
    let v2 = format!("{TENANT}/oauth2/v2.0/token");
    let app = format!("client_id={CLIENT}&grant_type=client_credentials");
    let full = format!("{app}&client_secret=s&{SCOPE}");
    let none = ("x-a", "b");
    for (path, header, form, expected) in [
        (&*v2, none, app.clone(), (401, "invalid_client")),
        (
            &*v2,
            none,
            format!("{app}&client_secret=s"),
            (400, "invalid_request"),
        ),
        (
            &*v2,
            none,
            format!("client_secret=s&{SCOPE}"),
            (400, "unsupported_grant_type"),
        ),
        (
            &*v2,
            none,
            full.replace(CLIENT, "name"),
            (400, "invalid_request"),
        ),
        (&*v2, none, String::new(), (405, "invalid_request")),
        (
            "/common/oauth2/v2.0/token",
            none,
            full,
            (400, "invalid_request"),
        ),
        (
            "/metadata/identity/oauth2/token?resource=r",
            none,
            String::new(),
            (400, "invalid_request"),
        ),
        (
            "/identity/token?resource=r&client_id=name",
            ("x-identity-header", "any"),
            String::new(),
            (400, "invalid_request"),
        ),
    ] {
        let answer = ask(&world, None, path, header, &form).await;
        let told = answer.json();
        assert_eq!(
            (answer.status, told["error"].as_str().unwrap()),
            expected,
            "{path} {form}"
        );
        assert!(told["error_description"].is_string(), "{told}");
    }
}

/// Beyond loopback the token of the control endpoint is the secret of every identity.
#[tokio::test]
async fn control_token_is_the_secret() {
    let world = world().await;
    let secret = Some("s3cret");
    let v2 = format!("{TENANT}/oauth2/v2.0/token");
    let app = format!("client_id={CLIENT}&grant_type=client_credentials&{SCOPE}");
    let machine = "/metadata/identity/oauth2/token?resource=r";
    for (path, header, form, expected) in [
        (
            &*v2,
            ("x-a", "b"),
            format!("{app}&client_secret=s3cret"),
            200,
        ),
        (
            &*v2,
            ("x-a", "b"),
            format!("{app}&client_secret=other"),
            401,
        ),
        (
            &*v2,
            ("x-a", "b"),
            format!("{app}&client_assertion=s3cret"),
            401,
        ),
        (
            "/identity/token?resource=r",
            ("x-identity-header", "s3cret"),
            String::new(),
            200,
        ),
        (
            "/identity/token?resource=r",
            ("x-identity-header", "any"),
            String::new(),
            401,
        ),
        (machine, ("metadata", "true"), String::new(), 401),
        (
            "/clock",
            ("x-identity-header", "s3cret"),
            String::new(),
            401,
        ),
    ] {
        let answer = ask(&world, secret, path, header, &form).await;
        assert_eq!(answer.status, expected, "{path} {form}: {answer:?}");
    }
}

#[tokio::test]
async fn configuration_names_the_keys_of_its_tokens() {
    let world = world().await;
    let path = format!("{TENANT}/v2.0/.well-known/openid-configuration");
    let answer = ask(&world, Some("s3cret"), &path, ("x-a", "b"), "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    let address = told["jwks_uri"].as_str().unwrap();
    let keys = address.strip_prefix("https://localhost:10003").unwrap();
    let told = ask(&world, None, keys, ("x-a", "b"), "").await.json();
    assert_eq!(told["keys"][0]["alg"], "ES256");
}
