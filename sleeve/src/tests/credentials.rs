//! Tests of signatures and SAS, and that no secret is ever shown.

use std::time::Duration;

use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::service::Service as ServiceName;
use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::shared_key::{
    Authorization, Scheme, SigningInput, parse_authorization, verify_request,
};
use smalt_protocol::uri::parse_query;
use smalt_protocol::{ApiVersion, signing};

use super::service::{KEY, Seen, Service, blob, cut, cx, refuse, reply};
use crate::port::*;
use crate::{Account, Credential, ErrorKind};

/// Checks a signature as a service does, from the request that arrived.
fn check_signature(seen: &Seen, account: &str, key: &str) {
    let headers: Vec<(&str, &str)> = (seen.request.headers().iter())
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    let query = parse_query(seen.request.uri().query().unwrap_or_default()).unwrap();
    let header = seen.header("authorization").unwrap();
    let Authorization::Key {
        scheme,
        account: named,
        signature,
    } = parse_authorization(header).unwrap()
    else {
        panic!("signed with a key")
    };
    assert_eq!((scheme, named.as_str()), (Scheme::SharedKey, account));
    let input = SigningInput {
        service: ServiceName::Blob,
        scheme,
        version: ApiVersion::parse(seen.header("x-ms-version").unwrap()).unwrap(),
        method: seen.request.method().as_str(),
        account,
        path: seen.request.uri().path(),
        query: &query,
        headers: &headers,
    };
    let key = AccountKey::parse(key).unwrap();
    assert!(
        verify_request(&input, key.as_bytes(), &signature),
        "{}",
        seen.text()
    );
}

/// The string to sign, written by hand for one request of each kind.
#[tokio::test]
async fn signature_matches_the_documented_string_to_sign() {
    let service = Service::with([reply(201, &[("ETag", "\"1\"")], "")]);
    let put = PutBlob {
        metadata: Metadata::from([("Zeta".to_owned(), "z".to_owned())]),
        conditions: Conditions::absent(),
        ..PutBlob::default()
    };
    let storage = service.storage();
    storage
        .put_blob(&cx(), &BlobId::new("cont", "a b"), "hello".into(), &put)
        .await
        .unwrap();
    let text = "PUT\n\n\n5\n\napplication/octet-stream\n\n\n\n*\n\n\nx-ms-blob-type:BlockBlob\n\
        x-ms-date:Sat, 21 Nov 2026 10:00:00 GMT\nx-ms-meta-zeta:z\nx-ms-version:2026-04-06\n\
        /acct/acct/cont/a%20b";
    let key = AccountKey::parse(KEY).unwrap();
    let signature = signing::sign(key.as_bytes(), text);
    let expected = format!("SharedKey acct:{signature}");
    assert_eq!(
        service.seen()[0].header("authorization"),
        Some(expected.as_str())
    );
}

#[tokio::test]
async fn every_kind_of_request_is_signed_correctly() {
    let empty = "<EnumerationResults><Blobs/></EnumerationResults>";
    let service = Service::with([
        reply(200, &[], empty),
        reply(202, &[], ""),
        reply(201, &[], ""),
    ]);
    let storage = service.storage();
    let list = ListBlobs {
        prefix: "a b+c/ü".to_owned(),
        marker: Some("x+/=".to_owned()),
        page_size: 7,
        ..ListBlobs::default()
    };
    storage.list_blobs(&cx(), "cont", &list).await.unwrap();
    let odd = BlobId::new("cont", "ä/ö %#?&+ü");
    storage
        .delete_blob(&cx(), &odd, &Conditions::default(), DeleteSnapshots::Refuse)
        .await
        .unwrap();
    storage
        .put_message(&cx(), "jobs", "x", MessageTtl::Never, Duration::ZERO)
        .await
        .unwrap_err();
    let seen = service.seen();
    assert_eq!(seen.len(), 3);
    for seen in &seen {
        check_signature(seen, "acct", KEY);
    }
}

/// Host style and the emulators' own account name the resource differently.
#[tokio::test]
async fn signatures_of_other_endpoints() {
    let cloud = format!("AccountName=acct;AccountKey={KEY}");
    let ipv6 = format!("AccountName=acct;AccountKey={KEY};QueueEndpoint=http://[::1]:9/acct");
    let table = [
        (
            cloud.as_str(),
            "acct",
            KEY,
            "https://acct.queue.core.windows.net/jobs",
        ),
        (
            "UseDevelopmentStorage=true",
            EMULATOR_ACCOUNT_NAME,
            EMULATOR_ACCOUNT_KEY,
            "http://127.0.0.1:10001/devstoreaccount1/jobs",
        ),
        (ipv6.as_str(), "acct", KEY, "http://[::1]:9/acct/jobs"),
    ];
    for (text, account, key, url) in table {
        let service = Service::with([reply(201, &[], "")]);
        let storage = service.open(Account::from_connection_string(text).unwrap());
        storage.create_queue(&cx(), "jobs").await.unwrap();
        let seen = service.seen();
        assert_eq!(seen[0].request.uri().to_string(), url);
        check_signature(&seen[0], account, key);
    }
}

/// A SAS is sent exactly once with every attempt, and nothing else authorizes.
#[tokio::test(start_paused = true)]
async fn sas_appears_in_the_url_once() {
    let sas = "?sv=2021-12-02&ss=bq&srt=sco&sp=rwdlacup&se=2030-01-01T00%3A00%3A00Z&sig=a%2Bb%3D";
    let service = Service::with([cut(), reply(201, &[], "")]);
    let storage = service.storage_by(Credential::sas(sas).unwrap());
    storage.create_container(&cx(), "cont").await.unwrap();
    let url = format!(
        "http://127.0.0.1:10000/acct/cont?restype=container&{}",
        &sas[1..]
    );
    for seen in service.seen() {
        assert_eq!(seen.request.uri().to_string(), url);
        assert_eq!(seen.header("authorization"), None);
        assert!(seen.header("x-ms-date").is_some());
    }
    let readable = storage
        .readable_url(&blob(), Duration::from_secs(1))
        .unwrap();
    assert_eq!(
        readable,
        format!("http://127.0.0.1:10000/acct/cont/b.txt{sas}")
    );
    assert!(!storage.blob_url(&blob()).contains('?'));
}

/// No error and no `Debug` shows a key or a signature.
#[tokio::test(start_paused = true)]
async fn secrets_are_never_shown() {
    let secret = "c2VjcmV0LXNlY3JldA";
    let sas = format!("sv=2021-12-02&sp=r&sig={secret}");
    let message = format!("<Error><Message>Signature sig={secret} did not match</Message></Error>");
    for credential in [Credential::key(secret), Credential::sas(&sas)] {
        let credential = credential.or_else(|_| Credential::key(&format!("{secret}==")));
        let service = Service::with([
            reply(
                403,
                &[("x-ms-error-code", "AuthenticationFailed")],
                &message,
            ),
            cut(),
            cut(),
            cut(),
            cut(),
            cut(),
            refuse(404, "BlobNotFound"),
        ]);
        let storage = service.storage_by(credential.unwrap());
        let mut shown = format!("{storage:?}");
        for kind in [
            ErrorKind::Denied,
            ErrorKind::OutcomeUnknown,
            ErrorKind::NotFound,
        ] {
            let error = storage.blob_properties(&cx(), &blob()).await.unwrap_err();
            assert_eq!(error.kind, kind);
            shown.push_str(&format!("{error} {error:?}"));
        }
        assert!(!shown.contains(secret), "{shown}");
    }
}
