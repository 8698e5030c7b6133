//! The search finds valid orders, and rejects histories without one.

use bytes::Bytes;
use smalt_model::vocabulary::{
    BlobId, BlobOperation, ContainerOperation, Content, Guard, Labels, Metadata, QueueOperation,
};

use super::*;
use crate::bursts::state::State;
use crate::wire::Answer;

/// Returns a state with a container without blobs, and an empty queue.
fn start() -> State {
    let mut state = State::default();
    let create = ContainerOperation::Create(Metadata::new());
    state
        .model
        .step(&Operation::Container("con0".to_owned(), create));
    let create = QueueOperation::Create(Metadata::new());
    state
        .model
        .step(&Operation::Queue("que0".to_owned(), create));
    state
}

fn order<S: Spec + Clone>(start: &S, calls: &[Call<S::Output>]) -> Result<Vec<usize>, Refuted> {
    let calls: Vec<_> = calls.iter().collect();
    linearize(start, &calls).map(|found| found.order)
}

fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> Answered {
    Answered::of(Answer {
        status,
        headers: headers.iter().copied().collect(),
        body: Bytes::new(),
    })
}

fn on_blob(operation: BlobOperation) -> Operation {
    let id = BlobId {
        container: "con0".to_owned(),
        blob: "b0".to_owned(),
    };
    Operation::Blob(id, operation)
}

/// Put Blob, with the same ETag each time.
fn put(called: u64, returned: Option<u64>) -> Call {
    let content = Content { seed: 0, length: 0 };
    let headers = [
        ("etag", "\"0x8DBE55A1E3F8000\""),
        ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
    ];
    Call {
        client: 0,
        operation: on_blob(BlobOperation::Put(
            content,
            Labels::default(),
            Guard::default(),
        )),
        called,
        returned: returned.map(|at| (at, answer(201, &headers))),
    }
}

/// Set Blob Tags, whose answer only shows whether the blob exists.
fn tags(called: u64, returned: u64, is_there: bool) -> Call {
    let answer = if is_there {
        answer(204, &[])
    } else {
        answer(404, &[("x-ms-error-code", "BlobNotFound")])
    };
    Call {
        client: 1,
        operation: on_blob(BlobOperation::SetTags(Metadata::new(), None)),
        called,
        returned: Some((returned, answer)),
    }
}

fn is_ordered(what: &str, calls: impl Into<Vec<Call>>) {
    let order = order(&start(), &calls.into());
    assert!(order.is_ok(), "{what}: {order:?}");
}

fn is_disordered(what: &str, calls: impl Into<Vec<Call>>) {
    assert!(order(&start(), &calls.into()).is_err(), "{what}");
}

#[test]
fn calls_that_do_not_overlap_keep_their_order() {
    is_ordered("seen after", [put(0, Some(1)), tags(2, 3, true)]);
    is_disordered("lost", [put(0, Some(1)), tags(2, 3, false)]);
    is_disordered("seen before it began", [tags(0, 1, true), put(2, Some(3))]);
    is_ordered("overlaps, seen", [put(0, Some(3)), tags(1, 2, true)]);
    is_ordered("overlaps, not seen", [put(0, Some(3)), tags(1, 2, false)]);
    is_ordered("no answer, seen", [put(0, None), tags(1, 2, true)]);
    is_ordered("no answer, never", [put(0, None), tags(1, 2, false)]);
    is_disordered(
        "seen, then not",
        [put(0, None), tags(1, 2, true), tags(3, 4, false)],
    );
    is_disordered("one tag twice", [put(0, Some(3)), put(1, Some(2))]);
}

/// Remembers the order of all puts.
#[derive(Clone)]
struct Order(Vec<u8>);

impl Spec for Order {
    type Output = Vec<u8>;

    fn step(&self, call: &Call<Vec<u8>>) -> Result<Self, String> {
        let mut after = self.clone();
        if let Operation::Blob(_, BlobOperation::Put(content, ..)) = &call.operation {
            after.0.push(content.seed);
        } else if call.returned.as_ref().map(|(_, seen)| seen) != Some(&self.0) {
            return Err(format!("{:?}", self.0));
        }
        Ok(after)
    }

    fn fingerprint(&self) -> u64 {
        self.0
            .iter()
            .fold(1, |sum, seed| sum * 16 + u64::from(*seed))
    }
}

/// Returns `count` puts without an answer, then a call that sees which of them took effect.
fn lost_puts(count: u8, seen: &[u8]) -> Vec<Call<Vec<u8>>> {
    let lost = (1..=count).map(|seed| Call {
        client: 0,
        operation: put_of(seed),
        called: u64::from(seed),
        returned: None,
    });
    let look = Call {
        client: 1,
        operation: on_blob(BlobOperation::SetTags(Metadata::new(), None)),
        called: u64::from(count) + 1,
        returned: Some((u64::from(count) + 2, seen.to_vec())),
    };
    lost.chain([look]).collect()
}

fn put_of(seed: u8) -> Operation {
    let content = Content { seed, length: 0 };
    on_blob(BlobOperation::Put(
        content,
        Labels::default(),
        Guard::default(),
    ))
}

/// Twelve lost calls have more orders than a search explores.
#[test]
fn few_of_many_lost_calls_explain_an_answer() {
    let found = order(&Order(Vec::new()), &lost_puts(12, &[9, 5]));
    assert_eq!(found.unwrap(), [8, 4, 12]);
    let refuted = order(&Order(Vec::new()), &lost_puts(5, &[3, 3])).unwrap_err();
    assert!(!refuted.is_open && refuted.states > 300, "{refuted:?}");
}
