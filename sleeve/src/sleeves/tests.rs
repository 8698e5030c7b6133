//! Tests of providers: one client per account, place and context, for one request.

use bytes::Bytes;

use super::*;
use crate::{Account, FnTransport, Settings};

fn accounts() -> Accounts {
    let open = |name: &str| {
        let nobody = FnTransport::new(|_| async { Ok(http::Response::new(Bytes::new())) });
        let endpoint = format!("http://127.0.0.1:10000/{name}");
        let key = crate::Credential::key("c21hbHQ=").unwrap();
        let account = Account::new(name, Some(&endpoint), None, key).unwrap();
        AzureStorage::open(account, Arc::new(nobody), Settings::default()).unwrap()
    };
    ["one", "two"].map(open).into_iter().collect()
}

fn context(text: &str, muted: bool) -> StorageContext {
    let call = CallContext::safe(text).with_muted(muted).unwrap();
    call.into()
}

/// G5, DG4: the same blob of two accounts, and the same blob in two contexts, have two clients; a
/// second request has its own.
#[tokio::test]
async fn clients_are_kept_by_account_place_and_context() {
    let (accounts, blob) = (accounts(), BlobId::new("cont", "b"));
    let first = accounts.serve(async |providers| {
        let client = |account: &str, context: &StorageContext| {
            let sleeve = providers.blob(account, &blob, context).unwrap();
            assert_eq!(sleeve.service().account(), account);
            assert_eq!(sleeve.context(), context, "also the ETag of the context");
            sleeve.client
        };
        let same = client("one", &context("a", false));
        let tag = Some(Tag("\"1\"".to_owned()));
        let tagged = client("one", &context("a", false).with_etag(tag));
        assert!(
            Arc::ptr_eq(&same, &tagged),
            "an ETag is not part of the key"
        );
        for other in [
            client("two", &context("a", false)),
            client("one", &context("b", false)),
            client("one", &context("a", true)),
        ] {
            assert!(!Arc::ptr_eq(&same, &other));
        }
        same
    });
    let first = first.await;
    assert_eq!(
        Arc::strong_count(&first),
        1,
        "the cache ends with the request"
    );
    let container = accounts.serve(async |providers| {
        let get = || providers.container("one", "cont", &context("a", false));
        let (one, two) = (get().unwrap(), get().unwrap());
        Arc::ptr_eq(&one.client, &two.client)
    });
    assert!(container.await);
}

/// G1: only configured accounts are served.
#[tokio::test]
async fn unknown_accounts_are_rejected() {
    let accounts = accounts();
    let kind = accounts.serve(async |providers| {
        let found = providers.container("three", "cont", &StorageContext::default());
        found.unwrap_err().kind
    });
    assert_eq!(kind.await, ErrorKind::Invalid);
}

/// G15: a request is served on any thread.
#[tokio::test]
async fn requests_are_served_by_tasks() {
    let accounts = Arc::new(accounts());
    let task = tokio::spawn(async move {
        let serve = accounts.serve(async |providers| {
            let sleeve = providers.container("one", "cont", &StorageContext::default())?;
            sleeve.properties().await.map(drop)
        });
        serve.await
    });
    assert!(task.await.unwrap().is_err(), "the service answers nothing");
}
