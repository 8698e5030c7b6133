//! Sequences of calls on one version of a blob.

use std::sync::Arc;

use super::service::{Service, blob, cx, refuse, reply};
use crate::port::*;
use crate::{ErrorKind, TrackedBlob};

fn head(etag: &str) -> std::io::Result<http::Response<bytes::Bytes>> {
    let head = [
        ("ETag", etag),
        ("Last-Modified", "Sat, 21 Nov 2026 09:00:00 GMT"),
        ("Content-Length", "0"),
        ("x-ms-blob-type", "BlockBlob"),
    ];
    reply(200, &head, "")
}

fn session(service: &Service) -> TrackedBlob {
    TrackedBlob::new(Arc::new(service.storage()), blob(), cx())
}

/// G11, DG1, DG2: the tag comes from the answer, goes with the delete, and is gone afterwards.
#[tokio::test]
async fn read_then_delete() {
    let service = Service::with([head("\"1\""), reply(202, &[], ""), reply(202, &[], "")]);
    let mut session = session(&service);
    session.set_tracking(true);
    assert_eq!(session.etag(), None, "nothing was asked yet");
    session.properties().await.unwrap();
    assert_eq!(session.etag(), Some(&Tag("\"1\"".to_owned())));
    session.delete(DeleteSnapshots::Refuse).await.unwrap();
    assert_eq!(session.etag(), None);
    session.delete(DeleteSnapshots::Refuse).await.unwrap();
    let seen = service.seen();
    assert_eq!(seen[1].header("if-match"), Some("\"1\""));
    assert_eq!(seen[2].header("if-match"), None);
}

/// G13: tracking decides only about the next call; the tag is stored in any case.
#[tokio::test]
async fn tracking_is_about_the_next_call() {
    let tagged = |etag| reply(200, &[("ETag", etag)], "");
    let service = Service::with([
        head("\"1\""),
        tagged("\"2\""),
        tagged("\"3\""),
        refuse(412, "ConditionNotMet"),
        tagged("\"5\""),
    ]);
    let mut session = session(&service);
    assert!(!session.is_tracking(), "off at first");
    let none = Metadata::new();
    session.properties().await.unwrap();
    session.set_metadata(&none).await.unwrap();
    session.set_tracking(true);
    session.set_metadata(&none).await.unwrap();
    let error = session.set_metadata(&none).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ConditionNotMet);
    assert_eq!(
        session.etag(),
        Some(&Tag("\"3\"".to_owned())),
        "a refusal changes nothing"
    );
    session.set_tracking(false);
    session.set_metadata(&none).await.unwrap();
    let sent: Vec<_> = service
        .seen()
        .iter()
        .map(|seen| seen.header("if-match").map(str::to_owned))
        .collect();
    let tag = |text: &str| Some(text.to_owned());
    assert_eq!(sent, [None, None, tag("\"2\""), tag("\"3\""), None]);
}

/// G10: a read of another version fails at once.
#[tokio::test]
async fn a_read_notices_another_version() {
    let service = Service::with([head("\"1\""), head("\"2\""), head("\"2\"")]);
    let mut session = session(&service);
    session.set_tracking(true);
    session.properties().await.unwrap();
    assert_eq!(
        session.properties().await.unwrap_err().kind,
        ErrorKind::ConditionNotMet
    );
    session.set_tracking(false);
    session.properties().await.unwrap();
}

/// DG3: starting again ends.
#[tokio::test(start_paused = true)]
async fn restarts_are_bounded() {
    let round = || [head("\"1\""), refuse(412, "ConditionNotMet")];
    for (rounds_max, lost, expected) in [(3, 2, None), (3, 3, Some(ErrorKind::ConditionNotMet))] {
        let mut script: Vec<_> = (0..lost).flat_map(|_| round()).collect();
        script.extend([head("\"2\""), reply(202, &[], "")]);
        let service = Service::with(script);
        let storage: Arc<dyn Storage> = Arc::new(service.storage());
        let sequence = async |session: &mut TrackedBlob| {
            session.set_tracking(true);
            session.properties().await?;
            session.delete(DeleteSnapshots::Refuse).await
        };
        let dice = || 1.0;
        let done = TrackedBlob::with_restarts(storage, blob(), cx(), rounds_max, dice, sequence);
        // Workers run it in tasks of their own.
        let done = tokio::spawn(done).await.unwrap();
        assert_eq!(done.err().map(|error| error.kind), expected);
        let waits = service.waits();
        assert_eq!(waits[1].as_millis(), 50);
        assert_eq!(waits[3].as_millis(), 100);
    }
}

/// G8: muting changes the id and leaves the tag.
#[tokio::test]
async fn muting_keeps_the_tag() {
    let service = Service::with([head("\"1\""), reply(202, &[], "")]);
    let mut session = session(&service);
    session.set_tracking(true);
    session.set_muted(true);
    session.properties().await.unwrap();
    session.set_muted(false);
    session.delete(DeleteSnapshots::Refuse).await.unwrap();
    let seen = service.seen();
    assert_eq!(
        seen[0].header("x-ms-client-request-id"),
        Some(r#"{"muted":true}"#)
    );
    assert_eq!(seen[1].header("x-ms-client-request-id"), None);
    assert_eq!(seen[1].header("if-match"), Some("\"1\""));
}
