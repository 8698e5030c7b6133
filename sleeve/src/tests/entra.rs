//! Tests of Entra ID tokens: fetched through the transport and sent as bearer tokens, with separate
//! failures.

use std::sync::Arc;

use super::service::{Service, blob, cut, cx, reply};
use crate::port::*;
use crate::{Account, AccountError, Credential, ErrorKind};

const TENANT: &str = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";
const TOKEN: &str = r#"{"token_type":"Bearer","expires_in":3600,"access_token":"tok"}"#;

fn credential(service: &Service) -> Credential {
    let transport = Arc::new(service.transport());
    Credential::client_secret(TENANT, "client", "hidden".to_owned(), transport).unwrap()
}

#[tokio::test]
async fn tokens_are_fetched_once_and_sent_as_bearer() {
    let service = Service::with([
        reply(200, &[("Content-Type", "application/json")], TOKEN),
        reply(202, &[], ""),
        reply(202, &[], ""),
    ]);
    let storage = service.open(Account::of_azure("acct", credential(&service)).unwrap());
    for _ in 0..2 {
        let (none, kept) = (Conditions::default(), DeleteSnapshots::Refuse);
        storage
            .delete_blob(&cx(), &blob(), &none, kept)
            .await
            .unwrap();
    }
    let seen = service.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(
        seen[0].request.uri().host(),
        Some("login.microsoftonline.com")
    );
    for seen in &seen[1..] {
        assert_eq!(seen.header("authorization"), Some("Bearer tok"));
        assert_eq!(
            seen.header("x-ms-date"),
            Some("Sat, 21 Nov 2026 10:00:00 GMT")
        );
    }
    let error = storage
        .readable_url(&blob(), std::time::Duration::from_secs(1))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(!format!("{storage:?}").contains("hidden"));
}

/// An unreachable token server does not make the outcome of a put unknown: the put was never sent.
#[tokio::test(start_paused = true)]
async fn a_missing_token_is_not_an_unknown_outcome() {
    let service = Service::with(std::iter::repeat_with(cut).take(100));
    let storage = service.open(Account::of_azure("acct", credential(&service)).unwrap());
    let never = MessageTtl::Never;
    let put = storage
        .put_message(&cx(), "jobs", "x", never, std::time::Duration::ZERO)
        .await;
    assert_eq!(put.unwrap_err().kind, ErrorKind::Unreachable);
    let refusal = r#"{"error":"invalid_client","error_description":"no"}"#;
    let service = Service::with([reply(401, &[], refusal)]);
    let storage = service.open(Account::of_azure("acct", credential(&service)).unwrap());
    let denied = storage.create_queue(&cx(), "jobs").await.unwrap_err();
    assert_eq!(denied.kind, ErrorKind::Denied);
}

fn key_until(expiry: &str) -> String {
    format!(
        "<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid>\
         <SignedStart>2026-11-21T09:45:00Z</SignedStart><SignedExpiry>{expiry}</SignedExpiry>\
         <SignedService>b</SignedService><SignedVersion>2026-04-06</SignedVersion>\
         <Value>aGlkZGVu</Value></UserDelegationKey>"
    )
}

/// The URL of a copy's source is signed with a user delegation key, which is fetched once, and
/// again when it no longer lasts long enough.
#[tokio::test(start_paused = true)]
async fn token_signs_with_a_delegation_key() {
    let xml = [("Content-Type", "application/xml")];
    let service = Service::with([
        reply(200, &[("Content-Type", "application/json")], TOKEN),
        reply(200, &xml, &key_until("2026-11-21T12:00:00Z")),
    ]);
    let storage = service.open(Account::of_azure("acct", credential(&service)).unwrap());
    let hour = std::time::Duration::from_secs(3_600);
    assert!(storage.lacks_signing_key(hour));
    storage.fetch_signing_key(&cx(), hour).await.unwrap();
    assert!(!storage.lacks_signing_key(hour));
    let asked = &service.seen()[1];
    assert_eq!(asked.header("authorization"), Some("Bearer tok"));
    let asked = asked.text();
    for part in [
        "POST https://acct.blob.core.windows.net/?comp=userdelegationkey&restype=service",
        "<Start>2026-11-21T09:45:00Z</Start><Expiry>2026-11-21T12:00:00Z</Expiry>",
    ] {
        assert!(asked.contains(part), "{asked}");
    }
    let url = storage.readable_url(&blob(), hour).unwrap();
    let (plain, sas) = url.split_once('?').unwrap();
    assert_eq!(plain, storage.blob_url(&blob()));
    for part in [
        "sr=b&sp=r&se=2026-11-21T11%3A00%3A00Z&spr=https&skoid=o&sktid=t",
        "ske=2026-11-21T12%3A00%3A00Z",
        "&sig=",
    ] {
        assert!(sas.contains(part), "{sas}");
    }
    assert!(!format!("{storage:?}").contains("aGlkZGVu"));
    tokio::time::sleep(hour).await;
    assert!(!storage.lacks_signing_key(hour));
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(storage.lacks_signing_key(hour));
    let late = storage.readable_url(&blob(), hour).unwrap_err();
    assert_eq!(late.kind, ErrorKind::Invalid);
}

/// The error names the missing role if the identity may not fetch a key.
#[tokio::test]
async fn denied_key_names_the_role() {
    let code = [("x-ms-error-code", "AuthorizationPermissionMismatch")];
    let service = Service::with([
        reply(200, &[("Content-Type", "application/json")], TOKEN),
        reply(403, &code, ""),
        reply(200, &[], "<Other/>"),
    ]);
    let storage = service.open(Account::of_azure("acct", credential(&service)).unwrap());
    let hour = std::time::Duration::from_secs(3_600);
    let refused = storage.fetch_signing_key(&cx(), hour).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Denied);
    assert!(
        refused.to_string().contains("Storage Blob Delegator"),
        "{refused}"
    );
    let broken = storage.fetch_signing_key(&cx(), hour).await.unwrap_err();
    assert_eq!(broken.kind, ErrorKind::Refused);
    assert!(storage.lacks_signing_key(hour));
}

/// The SDK sends no token over plain HTTP.
#[tokio::test]
async fn tokens_need_https() {
    let service = Service::with([]);
    let endpoint = Some("http://127.0.0.1:10000/acct");
    let account = Account::new("acct", endpoint, None, credential(&service)).unwrap();
    let transport = Arc::new(service.transport());
    let opened = crate::AzureStorage::open(account, transport, crate::Settings::default());
    assert!(matches!(opened.unwrap_err(), AccountError::Client(_)));
}

/// The identity named by the environment opens the account; an incomplete service principal is an
/// error.
#[tokio::test]
async fn environment_selects_a_principal() {
    let service = Service::with([
        reply(200, &[("Content-Type", "application/json")], TOKEN),
        reply(202, &[], ""),
    ]);
    let of = |names: &'static [(&str, &str)]| {
        let value = move |name: &str| {
            let found = names.iter().find(|(given, _)| *given == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Credential::of_environment(&value, Arc::new(service.transport()))
    };
    let principal = of(&[
        ("AZURE_TENANT_ID", TENANT),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_CLIENT_SECRET", "hidden"),
    ]);
    let account = Account::of_azure("acct", Credential::Anonymous).unwrap();
    let storage = service.open(account.with_credential(principal.unwrap()));
    let (none, kept) = (Conditions::default(), DeleteSnapshots::Refuse);
    let deleted = storage.delete_blob(&cx(), &blob(), &none, kept).await;
    deleted.unwrap();
    let seen = service.seen();
    let body = String::from_utf8_lossy(seen[0].request.body()).into_owned();
    assert!(body.contains("client_secret=hidden"), "{body}");
    assert_eq!(seen[1].header("authorization"), Some("Bearer tok"));
    for half in [
        &[("AZURE_CLIENT_SECRET", "hidden"), ("AZURE_CLIENT_ID", "c")],
        &[
            ("AZURE_FEDERATED_TOKEN_FILE", "/t"),
            ("AZURE_CLIENT_ID", "c"),
        ],
    ] {
        let error = of(half).unwrap_err().to_string();
        assert!(error.contains("AZURE_TENANT_ID is not set"), "{error}");
        assert!(!error.contains("hidden"));
    }
}
