//! Runs operations on a store of their own, for states that no request can produce.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use smalt_protocol::{ApiVersion, Service, StorageError, Timestamp};
use uuid::Uuid;

use crate::auth::Identity;
use crate::call::Call;
use crate::clock::Clock;
use crate::header_case::HeaderCase;
use crate::lane::Lane;
use crate::operation::Write;
use crate::ops::container::create::CreateContainer;
use crate::rules::acl::Need;
use crate::store::{Store, StoreConfig};
use crate::target::{Resource, Target};

/// Returns the account owner's call for `a/box/b`.
pub(crate) fn call(query: &[(&str, &str)], headers: &[(&'static str, &str)]) -> Call {
    let header = |(name, value): &(&'static str, &str)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        (HeaderName::from_static(name), value)
    };
    Call {
        method: Method::PUT,
        sent_method: Method::PUT,
        target: Target {
            account: "a".to_owned(),
            secondary: false,
            service: Service::Blob,
            data_lake: false,
            resource: Resource::Blob("box".to_owned(), "b".to_owned()),
            raw_path: "/a/box/b".to_owned(),
        },
        query: query
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        uri: Default::default(),
        headers: headers.iter().map(header).collect::<HeaderMap>(),
        header_case: HeaderCase::default(),
        version: ApiVersion::LATEST,
        version_given: true,
        version_known: true,
        arrival: Timestamp::UNIX_EPOCH,
        request_id: Uuid::nil(),
        fresh_id: Uuid::nil(),
        body_length: Some(0),
        peer: None,
        secure: false,
        origin: String::new(),
        settings: Default::default(),
        being_deleted_s: 0,
        shuffle_messages: false,
        lane: Lane::here(),
        operation: "",
        raises: None,
        need: Need::Role,
        identity: Identity::Owner,
    }
}

pub(super) async fn store() -> Store {
    let clock = Clock::manual(Timestamp::from_unix_s(1_700_000_000));
    let store = Store::open(StoreConfig::memory(clock)).unwrap();
    let create = CreateContainer::parse(&call(&[], &[])).unwrap();
    run(&store, create).await.unwrap();
    store
}

pub(super) async fn run<O: Write>(store: &Store, operation: O) -> Result<O::Output, StorageError> {
    let commit = store.commit(move |tx, stamp| {
        let checked = operation.check(tx, stamp)?;
        operation.apply(checked, tx, stamp)
    });
    commit.await
}
