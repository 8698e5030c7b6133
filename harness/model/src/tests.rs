//! Tests of the model against tables of the documents, and of its own guarantees.

use smalt_protocol::ErrorCode;

use crate::vocabulary::{
    BlobId, BlobOperation, Condition, ContainerOperation, Content, Guard, Labels, LeaseAction,
    LeaseId, Metadata, Operation, QueueOperation,
};
use crate::{Expected, Fact, Model};

const A: LeaseId = LeaseId(0);
const B: LeaseId = LeaseId(1);

fn id() -> BlobId {
    BlobId {
        container: "c".to_owned(),
        blob: "b".to_owned(),
    }
}

fn on_blob(model: &mut Model, operation: BlobOperation) -> Expected {
    model.step(&Operation::Blob(id(), operation))
}

fn put(guard: Guard) -> BlobOperation {
    let content = Content { seed: 7, length: 3 };
    BlobOperation::Put(content, Labels::default(), guard)
}

fn lease(action: LeaseAction) -> BlobOperation {
    BlobOperation::Lease(action, None)
}

/// Returns a container with a blob whose lease A is in the named state.
fn model(state: &str) -> Model {
    let mut model = Model::new(1_000);
    let create = ContainerOperation::Create(Metadata::new());
    model.step(&Operation::Container("c".to_owned(), create));
    on_blob(&mut model, put(Guard::default()));
    if state == "available" {
        return model;
    }
    let proposed = Some(A);
    let duration_s = Some(15);
    on_blob(
        &mut model,
        lease(LeaseAction::Acquire {
            proposed,
            duration_s,
        }),
    );
    match state {
        "breaking" => {
            let period_s = Some(10);
            on_blob(&mut model, lease(LeaseAction::Break { period_s }));
        }
        "broken" => {
            let period_s = Some(0);
            on_blob(&mut model, lease(LeaseAction::Break { period_s }));
        }
        "expired" => {
            model.step(&Operation::Advance { seconds: 15 });
        }
        _ => {}
    }
    model
}

/// "Lease Blob", outcomes of use attempts: write with A, with B, without an id.
#[test]
fn writes_follow_the_table_of_use_attempts() {
    use ErrorCode::{
        LeaseIdMismatchWithBlobOperation as Mismatch, LeaseIdMissing as Missing, LeaseLost as Lost,
        LeaseNotPresentWithBlobOperation as Absent,
    };
    for (state, expected) in [
        ("available", [Some(Absent), Some(Absent), None]),
        ("leased", [None, Some(Mismatch), Some(Missing)]),
        ("breaking", [None, Some(Mismatch), Some(Missing)]),
        ("broken", [Some(Lost), Some(Mismatch), None]),
        ("expired", [Some(Lost), Some(Mismatch), None]),
    ] {
        for (given, code) in [Some(A), Some(B), None].into_iter().zip(expected) {
            let guard = Guard {
                lease: given,
                condition: None,
            };
            let answer = on_blob(&mut model(state), put(guard));
            assert_eq!(answer.code, code, "{state} {given:?}");
        }
    }
}

/// "Lease Blob", outcomes of lease operations.
#[test]
fn lease_operations_follow_the_table() {
    use ErrorCode::{
        LeaseAlreadyPresent as Present, LeaseIdMismatchWithLeaseOperation as Mismatch,
        LeaseIsBreakingAndCannotBeAcquired as NotAcquired,
        LeaseIsBreakingAndCannotBeChanged as NotChanged,
        LeaseIsBrokenAndCannotBeRenewed as NotRenewed, LeaseNotPresentWithLeaseOperation as Absent,
    };
    let states = ["available", "leased", "breaking", "broken", "expired"];
    let acquire = |proposed| LeaseAction::Acquire {
        proposed,
        duration_s: None,
    };
    let (ok, no) = (None, Some);
    for (action, expected) in [
        (acquire(None), [ok, no(Present), no(Present), ok, ok]),
        (acquire(Some(A)), [ok, ok, no(NotAcquired), ok, ok]),
        (acquire(Some(B)), [ok, no(Present), no(Present), ok, ok]),
        (
            LeaseAction::Renew(A),
            [no(Mismatch), ok, no(NotRenewed), no(NotRenewed), ok],
        ),
        (LeaseAction::Renew(B), [no(Mismatch); 5]),
        (
            LeaseAction::Change(A, B),
            [no(Absent), ok, no(NotChanged), no(Absent), no(Absent)],
        ),
        (LeaseAction::Release(A), [no(Mismatch), ok, ok, ok, ok]),
        (LeaseAction::Release(B), [no(Mismatch); 5]),
        (
            LeaseAction::Break { period_s: None },
            [no(Absent), ok, ok, ok, ok],
        ),
    ] {
        for (state, code) in states.into_iter().zip(expected) {
            let answer = on_blob(&mut model(state), lease(action));
            assert_eq!(answer.code, code, "{state} {action:?}");
        }
    }
}

/// A write after the expiry makes a renewal fail.
#[test]
fn a_write_prevents_the_renewal_of_an_expired_lease() {
    let mut model = model("expired");
    on_blob(&mut model, put(Guard::default()));
    let answer = on_blob(&mut model, lease(LeaseAction::Renew(A)));
    let expected = Some(ErrorCode::LeaseIdMismatchWithLeaseOperation);
    assert_eq!(answer.code, expected);
}

/// Unmet conditions are 304 or 412 for reads, and 409 for creations.
#[test]
fn unmet_conditions_have_a_status_by_kind_of_request() {
    let tag = model("available").hint_of_blob(&id()).tag;
    let read = |condition| BlobOperation::Head {
        snapshot: None,
        guard: Guard {
            lease: None,
            condition: Some(condition),
        },
    };
    let write = |condition| {
        put(Guard {
            lease: None,
            condition: Some(condition),
        })
    };
    for (operation, status) in [
        (read(Condition::IfMatch(tag)), 200),
        (read(Condition::IfNoneMatch(tag)), 304),
        (read(Condition::IfModifiedSince(1_000)), 304),
        (read(Condition::IfUnmodifiedSince(999)), 412),
        (read(Condition::IfNoneMatch(None)), 400),
        (write(Condition::IfNoneMatch(tag)), 412),
        (write(Condition::IfNoneMatch(None)), 409),
        (write(Condition::IfMatch(tag)), 201),
    ] {
        let answer = on_blob(&mut model("available"), operation.clone());
        assert_eq!(answer.status, status, "{operation:?}");
    }
}

/// A message is hidden for its visibility timeout, then returned again with another receipt.
#[test]
fn a_hidden_message_becomes_visible_again() {
    let mut model = Model::new(1_000);
    let mut on_queue = |operation| model.step(&Operation::Queue("q".to_owned(), operation));
    on_queue(QueueOperation::Create(Metadata::new()));
    on_queue(QueueOperation::Put {
        text: "hello".to_owned(),
        ttl_s: None,
        visibility_timeout_s: 0,
    });
    let receive = || QueueOperation::Receive {
        most: 32,
        visibility_timeout_s: 30,
    };
    let count = |answer: &Expected| match answer.facts.as_slice() {
        [Fact::Messages(shown)] => shown.first().and_then(|message| message.dequeue_count),
        facts => unreachable!("messages, not {facts:?}"),
    };
    assert_eq!(count(&on_queue(receive())), Some(1));
    assert_eq!(count(&on_queue(receive())), None);
    model.step(&Operation::Advance { seconds: 30 });
    let again = model.step(&Operation::Queue("q".to_owned(), receive()));
    assert_eq!(count(&again), Some(2));
}

/// Recorded: messages of one answer share one receipt, so the receipt of one works for the other.
#[test]
fn messages_of_one_answer_share_a_receipt() {
    let mut model = Model::new(1_000);
    let mut on_queue = |operation| model.step(&Operation::Queue("q".to_owned(), operation));
    on_queue(QueueOperation::Create(Metadata::new()));
    for text in ["one", "other"] {
        on_queue(QueueOperation::Put {
            text: text.to_owned(),
            ttl_s: None,
            visibility_timeout_s: 0,
        });
    }
    let got = on_queue(QueueOperation::Receive {
        most: 2,
        visibility_timeout_s: 30,
    });
    let [Fact::Messages(shown)] = got.facts.as_slice() else {
        unreachable!("messages, not {got:?}")
    };
    let (id, receipt) = (shown[0].id, shown[1].receipt.unwrap());
    let update = || QueueOperation::Update {
        id,
        receipt,
        visibility_timeout_s: 0,
        text: None,
    };
    assert_eq!(on_queue(update()).status, 204);
    // After its update a message has a receipt of its own.
    assert_eq!(on_queue(update()).code, Some(ErrorCode::PopReceiptMismatch));
}
