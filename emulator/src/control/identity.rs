//! Tokens, in the ways in which Microsoft's clients ask for them.
//!
//! | path | methods | |
//! | --- | --- | --- |
//! | `/identity/token` | GET | managed identity of Azure App Service |
//! | `/metadata/identity/oauth2/token` | GET | that of a virtual machine |
//! | `/{tenant}/oauth2/v2.0/token`, `/{tenant}/oauth2/token` | POST | application |
//! | `/{tenant}/v2.0/.well-known/openid-configuration` | GET | where these are |
//! | `/{tenant}/discovery/v2.0/keys` | GET | the key that verifies the tokens |
//!
//! These clients cannot send the token of `--controlToken`. Where there is one, it is the secret of
//! every application and the value of `IDENTITY_HEADER`, and a virtual machine, which has no
//! secret, gets no token.
//!
//! Sources: "How to use managed identities for App Service and Azure Functions", "How to use
//! managed identities on an Azure VM to acquire an access token", "OAuth 2.0 client credentials
//! flow".

use http::header::{CACHE_CONTROL, HOST};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};
use smalt_protocol::{Timestamp, uri};
use uuid::Uuid;

use super::content::{json, read_small};
use super::guard::same;
use crate::auth::issuer::{IDENTITY, Issuer, NoEntropy, Statement};
use crate::body::Body;
use crate::config::OAuth;
use crate::core::Core;

/// Lifetime of a token of a managed identity.
const MANAGED_S: u64 = 24 * 60 * 60;
/// Lifetime of a token of an application.
const APPLICATION_S: u64 = 60 * 60;
/// Ends a scope, which is a resource with this.
const DEFAULT_SCOPE: &str = "/.default";
const APP_SERVICE: &str = "/identity/token";
const VIRTUAL_MACHINE: &str = "/metadata/identity/oauth2/token";

/// A refusal in the form of OAuth 2.0: status, `error`, `error_description`.
struct Denied(StatusCode, &'static str, String);

type Parameters = [(String, String)];

/// A path of this module, below a tenant.
enum Below {
    Token,
    Configuration,
    Keys,
}

impl Denied {
    fn invalid(text: &str) -> Self {
        Denied(StatusCode::BAD_REQUEST, "invalid_request", text.to_owned())
    }

    fn unauthorised(text: &str) -> Self {
        Denied(StatusCode::UNAUTHORIZED, "invalid_client", text.to_owned())
    }
}

impl From<NoEntropy> for Denied {
    fn from(error: NoEntropy) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Denied(status, "server_error", error.to_string())
    }
}

/// Returns whether a path belongs to this module, so that the token of the control endpoint is not
/// required in `Authorization`.
pub(super) fn is_path(path: &str) -> bool {
    path == APP_SERVICE || path == VIRTUAL_MACHINE || below_tenant(path).is_some()
}

/// Serves a path of this module. `secret` is the token of the control endpoint.
pub(super) async fn serve(
    core: &Core,
    secret: Option<&str>,
    head: &Parts,
    body: Body,
) -> Response<Body> {
    let mut response = match answer(core, secret, head, body).await {
        Ok(told) => json(&told),
        Err(Denied(status, error, text)) => {
            let mut response = json(&json!({ "error": error, "error_description": text }));
            *response.status_mut() = status;
            response
        }
    };
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, no_store);
    response
}

async fn answer(
    core: &Core,
    secret: Option<&str>,
    head: &Parts,
    body: Body,
) -> Result<Value, Denied> {
    if core.config.oauth == OAuth::Off {
        let advice = "smalt accepts no tokens: start it with --oauth verified";
        return Err(Denied::invalid(advice));
    }
    let path = head.uri.path();
    let (expected, tenant) = match below_tenant(path) {
        Some((tenant, Below::Token)) => (&Method::POST, Some((tenant, Below::Token))),
        other => (&Method::GET, other),
    };
    if head.method != *expected {
        let text = format!("use {expected}");
        return Err(Denied(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request",
            text,
        ));
    }
    let Some((tenant, below)) = tenant else {
        let query = pairs(head.uri.query().unwrap_or_default())?;
        check_caller(path, secret, head)?;
        return managed(core, &query);
    };
    match below {
        Below::Keys => Ok(core.issuer.published()?),
        Below::Configuration => Ok(configuration(head, tenant)),
        Below::Token => {
            let tenant = Uuid::parse_str(tenant).map_err(|_| {
                Denied::invalid("the tenant of the path is not a GUID; smalt takes every GUID")
            })?;
            let form = read_small(body).await;
            let form = form.map_err(|refusal| Denied::invalid(&refusal.1))?;
            let form = std::str::from_utf8(&form).map_err(|_| Denied::invalid("not UTF-8"))?;
            application(core, secret, tenant, &pairs(form)?)
        }
    }
}

/// Splits `/{tenant}/...` if this module serves the rest.
fn below_tenant(path: &str) -> Option<(&str, Below)> {
    let (tenant, rest) = path.strip_prefix('/')?.split_once('/')?;
    let below = match rest {
        "oauth2/v2.0/token" | "oauth2/token" => Below::Token,
        ".well-known/openid-configuration" | "v2.0/.well-known/openid-configuration" => {
            Below::Configuration
        }
        "discovery/keys" | "discovery/v2.0/keys" => Below::Keys,
        _ => return None,
    };
    Some((tenant, below))
}

/// Checks the header by which a managed identity shows that nobody made it follow a link.
fn check_caller(path: &str, secret: Option<&str>, head: &Parts) -> Result<(), Denied> {
    let header = |name: &str| head.headers.get(name).map(HeaderValue::as_bytes);
    if path == VIRTUAL_MACHINE {
        let is_asked = header("metadata").is_some_and(|it| it.eq_ignore_ascii_case(b"true"));
        return match secret {
            _ if !is_asked => Err(Denied::invalid("send the header Metadata: true")),
            Some(_) => Err(Denied::unauthorised(
                "a virtual machine has no secret: with --controlToken use /identity/token",
            )),
            None => Ok(()),
        };
    }
    match (header("x-identity-header"), secret) {
        (None, _) => Err(Denied::invalid("send the header X-IDENTITY-HEADER")),
        (Some(given), Some(secret)) if !same(given, secret.as_bytes()) => Err(
            Denied::unauthorised("IDENTITY_HEADER is not the token of --controlToken"),
        ),
        _ => Ok(()),
    }
}

/// Returns a token of the identity that the query names.
fn managed(core: &Core, query: &Parameters) -> Result<Value, Denied> {
    let Some(resource) = uri::lookup(query, "resource").filter(|it| !it.is_empty()) else {
        let advice = "name a resource: ?resource=https://storage.azure.com";
        return Err(Denied::invalid(advice));
    };
    let named = ["client_id", "principal_id", "object_id"]
        .iter()
        .find_map(|name| uri::lookup(query, name));
    let principal = named.map_or(Ok(IDENTITY), |id| guid("the identity's id", id))?;
    let (token, begins_s) = sign(core, resource, IDENTITY, principal, MANAGED_S)?;
    Ok(json!({
        "access_token": token,
        "expires_in": MANAGED_S.to_string(),
        "expires_on": (begins_s + MANAGED_S).to_string(),
        "not_before": begins_s.to_string(),
        "resource": resource,
        "token_type": "Bearer",
        "client_id": principal.to_string(),
    }))
}

/// Returns a token of an application, whose object id is its client id.
fn application(
    core: &Core,
    secret: Option<&str>,
    tenant: Uuid,
    form: &Parameters,
) -> Result<Value, Denied> {
    let get = |name| uri::lookup(form, name).filter(|it| !it.is_empty());
    if get("grant_type") != Some("client_credentials") {
        let status = StatusCode::BAD_REQUEST;
        let text = "use grant_type=client_credentials; smalt has no users who sign in";
        return Err(Denied(status, "unsupported_grant_type", text.to_owned()));
    }
    let id = get("client_id").ok_or_else(|| Denied::invalid("client_id is missing"))?;
    let principal = guid("client_id", id)?;
    let given = get("client_secret");
    let is_known = match secret {
        Some(secret) => given.is_some_and(|given| same(given.as_bytes(), secret.as_bytes())),
        None => given.or(get("client_assertion")).is_some(),
    };
    if !is_known {
        return Err(Denied::unauthorised(match secret {
            Some(_) => "client_secret is not the token of --controlToken",
            None => "send client_secret or client_assertion, with any value",
        }));
    }
    let scopes = get("scope").unwrap_or_default().split(' ');
    let of_scope = scopes.filter_map(|scope| scope.strip_suffix(DEFAULT_SCOPE));
    let resource = of_scope
        .chain(get("resource"))
        .next()
        .ok_or_else(|| Denied::invalid("name a scope: scope=https://storage.azure.com/.default"))?;
    let (token, _) = sign(core, resource, tenant, principal, APPLICATION_S)?;
    Ok(json!({
        "access_token": token,
        "expires_in": APPLICATION_S,
        "ext_expires_in": APPLICATION_S,
        "token_type": "Bearer",
    }))
}

/// Signs a token that is valid from now on. Returns the second of its begin as well.
fn sign(
    core: &Core,
    audience: &str,
    tenant: Uuid,
    principal: Uuid,
    lifetime_s: u64,
) -> Result<(String, u64), Denied> {
    let begins_s = core.store.now().since(Timestamp::UNIX_EPOCH).as_secs();
    let token = core.issuer.sign(&Statement {
        audience,
        tenant,
        principal,
        begins_s,
        ends_s: begins_s + lifetime_s,
    })?;
    Ok((token, begins_s))
}

/// Returns the document from which clients learn the addresses of this module. They ask over HTTPS
/// only.
fn configuration(head: &Parts, tenant: &str) -> Value {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or("localhost");
    let base = format!("https://{host}/{tenant}");
    let issued = Uuid::parse_str(tenant).map_or_else(|_| format!("{base}/v2.0"), Issuer::name);
    json!({
        "issuer": issued,
        "authorization_endpoint": format!("{base}/oauth2/v2.0/authorize"),
        "token_endpoint": format!("{base}/oauth2/v2.0/token"),
        "jwks_uri": format!("{base}/discovery/v2.0/keys"),
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        "response_types_supported": ["token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

fn pairs(text: &str) -> Result<Vec<(String, String)>, Denied> {
    uri::parse_query(text).map_err(|error| Denied::invalid(error.message()))
}

fn guid(what: &str, text: &str) -> Result<Uuid, Denied> {
    Uuid::parse_str(text).map_err(|_| Denied::invalid(&format!("{what} is not a GUID")))
}
