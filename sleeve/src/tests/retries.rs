//! Tests of retries: when a call is repeated, how long it waits, and how the last response is
//! interpreted.

use std::time::Duration;

use bytes::Bytes;

use super::service::{Service, blob, cut, cx, refuse, refused, reply};
use crate::port::*;
use crate::{ErrorKind, within};

const PUT_ANSWER: &str = "<QueueMessagesList><QueueMessage><MessageId>m-1</MessageId>\
    <InsertionTime>Sat, 21 Nov 2026 10:00:00 GMT</InsertionTime>\
    <ExpirationTime>Sat, 21 Nov 2026 11:00:00 GMT</ExpirationTime><PopReceipt>r</PopReceipt>\
    <TimeNextVisible>Sat, 21 Nov 2026 10:00:00 GMT</TimeNextVisible>\
    </QueueMessage></QueueMessagesList>";

async fn put_message(service: &Service) -> PortResult<Receipt> {
    let storage = service.storage();
    storage
        .put_message(&cx(), "jobs", "x", MessageTtl::Never, Duration::ZERO)
        .await
}

async fn put_blob(service: &Service, conditions: Conditions) -> PortResult<Written> {
    let put = PutBlob {
        conditions,
        ..PutBlob::default()
    };
    service
        .storage()
        .put_blob(&cx(), &blob(), Bytes::from_static(b"x"), &put)
        .await
}

async fn delete_blob(service: &Service) -> PortResult<()> {
    let conditions = Conditions::matching(&Tag("\"0x1\"".to_owned()));
    service
        .storage()
        .delete_blob(&cx(), &blob(), &conditions, DeleteSnapshots::Refuse)
        .await
}

/// Five attempts; each delay is within its own bounds and reproducible with the seed.
#[tokio::test(start_paused = true)]
async fn delays_are_jittered_and_reproducible() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let service = Service::with((0..6).map(|_| refuse(503, "ServerBusy")));
        let error = service
            .storage()
            .create_queue(&cx(), "jobs")
            .await
            .unwrap_err();
        assert_eq!((error.kind, error.status), (ErrorKind::Busy, Some(503)));
        assert!(error.is_transient());
        runs.push(service.waits());
    }
    assert_eq!(runs[0].len(), 4, "exactly five attempts");
    for (wait, most_ms) in runs[0].iter().zip([800, 1600, 3200, 6400]) {
        // Tokio's timer has a resolution of one millisecond.
        assert!(*wait <= Duration::from_millis(most_ms + 1), "{wait:?}");
    }
    assert!(runs[0].iter().any(|wait| *wait > Duration::ZERO));
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_used_exactly() {
    let after = |text| {
        let head = [("x-ms-error-code", "ServerBusy"), ("Retry-After", text)];
        reply(503, &head, "")
    };
    let service = Service::with([
        after("7"),
        after("Sat, 21 Nov 2026 10:00:17 GMT"),
        reply(201, &[], ""),
    ]);
    service.storage().create_queue(&cx(), "jobs").await.unwrap();
    // The date was received at 10:00:00 and at 10:00:07.
    assert_eq!(service.waits(), [7, 10].map(Duration::from_secs));
    let service = Service::with([after("3600"), reply(201, &[], "")]);
    let error = service
        .storage()
        .create_queue(&cx(), "jobs")
        .await
        .unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
    assert_eq!(service.seen().len(), 1, "the worker waits the hour");
}

/// A call ends with the service's answer where its caller does not wait as long as that asks.
#[tokio::test(start_paused = true)]
async fn retry_after_beyond_the_callers_patience_ends_the_call() {
    let busy = [("x-ms-error-code", "ServerBusy"), ("Retry-After", "7")];
    let service = Service::with([reply(503, &busy, ""), reply(503, &busy, "")]);
    let (storage, cx) = (service.storage(), cx());
    let call = storage.create_queue(&cx, "jobs");
    let error = within(Duration::from_secs(10), call).await.unwrap();
    let asked = error.unwrap_err().retry_after;
    assert_eq!(asked, Some(Duration::from_secs(7)));
    assert_eq!(service.waits(), [Duration::from_secs(7)]);
}

/// Each attempt is stamped and signed anew with its own time, and sends the body again.
#[tokio::test(start_paused = true)]
async fn each_attempt_is_signed_anew() {
    let busy = [("x-ms-error-code", "ServerBusy"), ("Retry-After", "60")];
    let service = Service::with([reply(503, &busy, ""), reply(201, &[("ETag", "\"1\"")], "")]);
    put_blob(&service, Conditions::default()).await.unwrap();
    let seen = service.seen();
    assert_eq!(
        seen[0].header("x-ms-date"),
        Some("Sat, 21 Nov 2026 10:00:00 GMT")
    );
    assert_eq!(
        seen[1].header("x-ms-date"),
        Some("Sat, 21 Nov 2026 10:01:00 GMT")
    );
    assert_ne!(
        seen[0].header("authorization"),
        seen[1].header("authorization")
    );
    assert_eq!(seen[0].text(), seen[1].text());
}

/// A message is put again only if it surely was not put before.
#[tokio::test(start_paused = true)]
async fn put_message_is_never_repeated_blindly() {
    let table = [
        ("refused", refused(), true),
        ("ServerBusy", refuse(503, "ServerBusy"), true),
        ("429", reply(429, &[], ""), true),
        ("cut", cut(), false),
        ("500", refuse(500, "InternalError"), false),
        ("timed out", refuse(500, "OperationTimedOut"), false),
        ("503 of some proxy", reply(503, &[], ""), false),
        ("504", reply(504, &[], ""), false),
    ];
    for (name, first, repeated) in table {
        let service = Service::with([first, reply(201, &[], PUT_ANSWER)]);
        let put = put_message(&service).await;
        if repeated {
            assert!(put.is_ok(), "{name}");
            assert_eq!(service.seen().len(), 2, "{name}");
        } else {
            assert_eq!(put.unwrap_err().kind, ErrorKind::OutcomeUnknown, "{name}");
            assert_eq!(service.seen().len(), 1, "{name}");
        }
    }
}

/// A put with an unreadable success response has an unknown outcome; it has not failed.
#[tokio::test]
async fn an_unreadable_receipt_is_an_unknown_outcome() {
    for body in ["", "<broken", "<QueueMessagesList/>"] {
        let service = Service::with([reply(201, &[], body)]);
        let error = put_message(&service).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::OutcomeUnknown, "{body}");
        assert_eq!(service.seen().len(), 1);
    }
}

/// D4: 404 to a delete is success if an earlier response was lost, and an error otherwise.
#[tokio::test(start_paused = true)]
async fn retried_delete_may_find_nothing() {
    let gone = || refuse(404, "BlobNotFound");
    let table = [
        (vec![cut(), gone()], None),
        (vec![refuse(500, "InternalError"), gone()], None),
        (vec![gone()], Some(ErrorKind::NotFound)),
        (vec![refused(), gone()], Some(ErrorKind::NotFound)),
        (
            vec![refuse(503, "ServerBusy"), gone()],
            Some(ErrorKind::NotFound),
        ),
        // Another client created a new blob, which stays.
        (
            vec![cut(), refuse(412, "ConditionNotMet")],
            Some(ErrorKind::ConditionNotMet),
        ),
    ];
    for (script, expected) in table {
        let service = Service::with(script);
        assert_eq!(
            delete_blob(&service).await.err().map(|error| error.kind),
            expected
        );
    }
    let service = Service::with([cut(), refuse(404, "MessageNotFound")]);
    service
        .storage()
        .delete_message(&cx(), "jobs", "m-1", "r")
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn other_removals_may_find_nothing_as_well() {
    let code = "LeaseIdMismatchWithLeaseOperation";
    let service = Service::with([cut(), refuse(409, code), refuse(409, code)]);
    let storage = service.storage();
    storage.release_lease(&cx(), &blob(), "l1").await.unwrap();
    let lost = storage
        .release_lease(&cx(), &blob(), "l1")
        .await
        .unwrap_err();
    assert_eq!(lost.kind, ErrorKind::LeaseLost);
    let code = "NoPendingCopyOperation";
    let service = Service::with([cut(), refuse(409, code), refuse(409, code)]);
    let storage = service.storage();
    storage.abort_copy(&cx(), &blob(), "c1").await.unwrap();
    let none = storage.abort_copy(&cx(), &blob(), "c1").await.unwrap_err();
    assert_eq!(none.kind, ErrorKind::Refused);
}

/// A refusal after an unanswered attempt may be caused by that attempt.
#[tokio::test(start_paused = true)]
async fn conditional_writes_consider_earlier_attempts() {
    let matching = || Conditions::matching(&Tag("\"0x1\"".to_owned()));
    let not_met = || refuse(412, "ConditionNotMet");
    let exists = || refuse(409, "BlobAlreadyExists");
    let table = [
        (vec![not_met()], matching(), ErrorKind::ConditionNotMet),
        (
            vec![refused(), not_met()],
            matching(),
            ErrorKind::ConditionNotMet,
        ),
        (
            vec![refuse(503, "ServerBusy"), not_met()],
            matching(),
            ErrorKind::ConditionNotMet,
        ),
        (
            vec![cut(), not_met()],
            matching(),
            ErrorKind::OutcomeUnknown,
        ),
        (
            vec![refuse(500, "InternalError"), not_met()],
            matching(),
            ErrorKind::OutcomeUnknown,
        ),
        (
            vec![exists()],
            Conditions::absent(),
            ErrorKind::AlreadyExists,
        ),
        (
            vec![cut(), exists()],
            Conditions::absent(),
            ErrorKind::OutcomeUnknown,
        ),
        (
            vec![cut(), refuse(412, "LeaseIdMissing")],
            matching(),
            ErrorKind::Leased,
        ),
    ];
    for (script, conditions, expected) in table {
        let service = Service::with(script);
        let error = put_blob(&service, conditions).await.unwrap_err();
        assert_eq!(error.kind, expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn copies_and_receipts_consider_earlier_attempts() {
    let copy = |synchronous| StartCopy {
        source_url: "https://h/c/b".to_owned(),
        source_if_match: None,
        metadata: None,
        conditions: Conditions::absent(),
        synchronous,
        tags: None,
        tier: None,
    };
    let table = [
        (
            "PendingCopyOperation",
            409,
            ErrorKind::OutcomeUnknown,
            ErrorKind::CopyPending,
        ),
        (
            "TargetConditionNotMet",
            412,
            ErrorKind::OutcomeUnknown,
            ErrorKind::ConditionNotMet,
        ),
        // The source is never changed by our own call, so the condition truly failed.
        (
            "SourceConditionNotMet",
            412,
            ErrorKind::ConditionNotMet,
            ErrorKind::ConditionNotMet,
        ),
    ];
    for (code, status, after_cut, alone) in table {
        let service = Service::with([cut(), refuse(status, code), refuse(status, code)]);
        let storage = service.storage();
        let error = storage
            .start_copy(&cx(), &blob(), &copy(false))
            .await
            .unwrap_err();
        assert_eq!(error.kind, after_cut, "{code}");
        let error = storage
            .start_copy(&cx(), &blob(), &copy(true))
            .await
            .unwrap_err();
        assert_eq!(error.kind, alone, "{code}");
    }
    let service = Service::with([cut(), refuse(400, "PopReceiptMismatch")]);
    let updated = service.storage();
    let updated = updated
        .update_message(&cx(), "jobs", "m-1", "r", Duration::ZERO, None)
        .await;
    assert_eq!(updated.unwrap_err().kind, ErrorKind::OutcomeUnknown);
}

/// An unanswered attempt leaves the outcome unknown, whatever rejected the later ones.
#[tokio::test(start_paused = true)]
async fn unanswered_write_stays_unknown() {
    let busy = || refuse(503, "ServerBusy");
    let table = [
        (
            vec![cut(), busy(), busy(), busy(), busy()],
            ErrorKind::OutcomeUnknown,
        ),
        (
            vec![busy(), cut(), refused(), refused(), refused()],
            ErrorKind::OutcomeUnknown,
        ),
        (
            vec![cut(), cut(), cut(), cut(), cut()],
            ErrorKind::OutcomeUnknown,
        ),
        (
            vec![refused(), refused(), refused(), refused(), refused()],
            ErrorKind::Unreachable,
        ),
        (
            vec![busy(), busy(), busy(), busy(), busy()],
            ErrorKind::Busy,
        ),
    ];
    for (script, expected) in table {
        let service = Service::with(script);
        let error = put_blob(&service, Conditions::default()).await.unwrap_err();
        assert_eq!(error.kind, expected);
        assert_eq!(service.seen().len(), 5);
    }
    // A read changes nothing, so it is simply busy.
    let service = Service::with([cut(), busy(), busy(), busy(), busy()]);
    let error = service
        .storage()
        .queue_properties(&cx(), "jobs")
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Busy);
}

/// A container that exists after a lost response is reported as existing, whoever created it.
#[tokio::test(start_paused = true)]
async fn reads_and_leases_are_simply_retried() {
    let service = Service::with([cut(), refuse(409, "ContainerAlreadyExists")]);
    assert!(
        !service
            .storage()
            .create_container(&cx(), "cont")
            .await
            .unwrap()
    );
    let service = Service::with([cut(), reply(201, &[("x-ms-lease-id", "l1")], "")]);
    service
        .storage()
        .acquire_lease(&cx(), &blob(), "l1", 15)
        .await
        .unwrap();
}

/// A success status that the operation never returns says nothing about what happened.
#[tokio::test]
async fn unexpected_success_status_is_an_unknown_outcome() {
    let service = Service::with([reply(200, &[], PUT_ANSWER), reply(204, &[], "")]);
    assert_eq!(
        put_message(&service).await.unwrap_err().kind,
        ErrorKind::OutcomeUnknown
    );
    let read = service.storage().queue_properties(&cx(), "jobs").await;
    assert_eq!(read.unwrap_err().kind, ErrorKind::Refused);
    assert_eq!(service.seen().len(), 2);
}
