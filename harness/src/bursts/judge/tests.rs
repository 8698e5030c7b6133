//! Histories that no service may make, and the judge refuses each: made by hand, and real ones with
//! one answer changed.

use smalt_model::vocabulary::{
    BlobId, BlobOperation, Condition, ContainerOperation, Content, Guard, LeaseAction, LeaseId,
    Metadata, Tag,
};

use super::*;
use crate::bursts::burst::play;
use crate::bursts::plan::Plan;
use crate::bursts::program::{self, CONTAINER};
use crate::histories::server::Server;

mod entity;
mod queue;

/// Calls by client, from and to; to 0: the answer was lost.
type Told = (usize, (u64, u64), Operation, Output);

fn history(told: Vec<Told>) -> Vec<Call<Output>> {
    let call = |(client, (called, end), operation, output): Told| Call {
        client,
        operation,
        called,
        returned: (end > 0).then_some((end, output)),
    };
    told.into_iter().map(call).collect()
}

fn ok(status: u16) -> Output {
    Output {
        status,
        ..Output::default()
    }
}

fn tagged(status: u16, tag: u32) -> Output {
    Output {
        tag: Some(tag),
        ..ok(status)
    }
}

fn refused(status: u16, code: &str) -> Output {
    Output {
        code: Some(code.to_owned()),
        ..ok(status)
    }
}

fn blob(operation: BlobOperation) -> Operation {
    let id = BlobId {
        container: CONTAINER.to_owned(),
        blob: BLOBS[0].to_owned(),
    };
    Operation::Blob(id, operation)
}

fn put(seed: u8, if_match: Option<u32>) -> Operation {
    let guard = Guard {
        condition: if_match.map(|tag| Condition::IfMatch(Some(Tag(tag)))),
        lease: None,
    };
    let content = Content { seed, length: 1 };
    blob(BlobOperation::Put(content, Metadata::new(), guard))
}

fn get() -> Operation {
    blob(BlobOperation::Get {
        snapshot: None,
        range: None,
        guard: Guard::default(),
    })
}

fn got(tag: u32, seed: u8) -> Output {
    Output {
        metadata: Some(Metadata::new()),
        lease_state: Some("available".to_owned()),
        body: Some(vec![seed]),
        ..tagged(200, tag)
    }
}

fn acquire(id: u32) -> LeaseAction {
    LeaseAction::Acquire {
        proposed: Some(LeaseId(id)),
        duration_s: Some(60),
    }
}

fn granted(id: u32, tag: u32) -> Output {
    Output {
        lease: Some(id),
        ..tagged(201, tag)
    }
}

fn delete_blob() -> Operation {
    blob(BlobOperation::Delete {
        snapshot: None,
        snapshots: None,
        guard: Guard::default(),
    })
}

/// The first version of a blob.
fn first() -> Told {
    (0, (1, 2), put(1, None), tagged(201, 0))
}

fn check(kind: Kind, cases: Vec<(&str, Vec<Told>, bool)>) {
    for (what, told, expected) in cases {
        let judged = compact(kind, &history(told));
        assert_eq!(judged.is_ok(), expected, "{what}: {judged:?}");
    }
}

#[test]
fn wrong_reads_of_a_blob_are_refused() {
    check(
        Kind::Blob,
        vec![
            (
                "a read of what was written",
                vec![first(), (1, (3, 4), get(), got(0, 1))],
                true,
            ),
            (
                "a stale read",
                vec![
                    first(),
                    (1, (3, 4), put(2, None), tagged(201, 1)),
                    (2, (5, 6), get(), got(0, 1)),
                ],
                false,
            ),
            (
                "a read of what is not there yet",
                vec![
                    first(),
                    (2, (3, 4), get(), got(1, 2)),
                    (1, (5, 6), put(2, None), tagged(201, 1)),
                ],
                false,
            ),
            (
                "new content under an old tag",
                vec![
                    first(),
                    (1, (3, 6), put(2, None), tagged(201, 1)),
                    (2, (4, 5), get(), got(0, 2)),
                ],
                false,
            ),
        ],
    );
}

#[test]
fn wrong_conditions_and_tags_of_a_blob_are_refused() {
    check(
        Kind::Blob,
        vec![
            (
                "a lost update: one condition met twice",
                vec![
                    first(),
                    (1, (3, 6), put(2, Some(0)), tagged(201, 1)),
                    (2, (4, 5), put(3, Some(0)), tagged(201, 2)),
                ],
                false,
            ),
            (
                "one condition met once",
                vec![
                    first(),
                    (1, (3, 6), put(2, Some(0)), tagged(201, 1)),
                    (2, (4, 5), put(3, Some(0)), refused(412, "ConditionNotMet")),
                ],
                true,
            ),
            (
                "refused although nobody wrote",
                vec![
                    first(),
                    (2, (4, 5), put(3, Some(0)), refused(412, "ConditionNotMet")),
                ],
                false,
            ),
            (
                "an ETag twice",
                vec![first(), (1, (3, 4), put(2, None), tagged(201, 0))],
                false,
            ),
        ],
    );
}

#[test]
fn wrong_leases_of_a_blob_are_refused() {
    let lease = |id| blob(BlobOperation::Lease(acquire(id), None));
    check(
        Kind::Blob,
        vec![
            (
                "one lease for two",
                vec![
                    first(),
                    (1, (3, 6), lease(0), granted(0, 0)),
                    (2, (4, 5), lease(1), granted(1, 0)),
                ],
                false,
            ),
            (
                "a lease for the first",
                vec![
                    first(),
                    (1, (3, 6), lease(0), granted(0, 0)),
                    (2, (4, 5), lease(1), refused(409, "LeaseAlreadyPresent")),
                ],
                true,
            ),
            (
                "a write past a lease",
                vec![
                    first(),
                    (1, (3, 4), lease(0), granted(0, 0)),
                    (2, (5, 6), put(2, None), tagged(201, 1)),
                ],
                false,
            ),
        ],
    );
}

#[test]
fn wrong_ends_of_a_blob_are_refused() {
    check(
        Kind::Blob,
        vec![
            (
                "deleted, and there again",
                vec![
                    first(),
                    (1, (3, 4), delete_blob(), ok(202)),
                    (2, (5, 6), get(), got(0, 1)),
                ],
                false,
            ),
            (
                "lost, seen, gone",
                vec![
                    first(),
                    (1, (3, 0), put(2, None), Output::default()),
                    (2, (5, 6), get(), got(1, 2)),
                    (2, (7, 8), get(), got(0, 1)),
                ],
                false,
            ),
            (
                "lost, and seen late",
                vec![
                    first(),
                    (1, (3, 0), put(2, None), Output::default()),
                    (2, (5, 6), get(), got(0, 1)),
                    (2, (7, 8), get(), got(1, 2)),
                ],
                true,
            ),
        ],
    );
}

#[test]
fn wrong_histories_of_a_container_are_refused() {
    let on = |operation| Operation::Container(CONTAINER.to_owned(), operation);
    let create = || on(ContainerOperation::Create(Metadata::new()));
    let lease = |id| on(ContainerOperation::Lease(acquire(id), None));
    let delete = || on(ContainerOperation::Delete(Guard::default()));
    let first = || (0, (1, 2), create(), tagged(201, 0));
    check(
        Kind::Container,
        vec![
            (
                "made by two",
                vec![
                    (1, (1, 4), create(), tagged(201, 0)),
                    (2, (2, 3), create(), tagged(201, 1)),
                ],
                false,
            ),
            (
                "made by one",
                vec![
                    (1, (1, 4), create(), tagged(201, 0)),
                    (2, (2, 3), create(), refused(409, "ContainerAlreadyExists")),
                ],
                true,
            ),
            (
                "one lease for two",
                vec![
                    first(),
                    (1, (3, 6), lease(0), granted(0, 0)),
                    (2, (4, 5), lease(1), granted(1, 0)),
                ],
                false,
            ),
            (
                "deleted in spite of its lease",
                vec![
                    first(),
                    (1, (3, 4), lease(0), granted(0, 0)),
                    (2, (5, 6), delete(), ok(202)),
                ],
                false,
            ),
            (
                "deleted by two",
                vec![
                    first(),
                    (1, (3, 6), delete(), ok(202)),
                    (2, (4, 5), delete(), ok(202)),
                ],
                false,
            ),
        ],
    );
}

/// Of real bursts of each kind: an answer changed in one thing is hardly ever explained.
#[test]
fn real_histories_with_one_answer_changed_are_refused() {
    let access = Server::access();
    for kind in [Kind::Blob, Kind::Container, Kind::Queue, Kind::Entity] {
        let (mut changed, mut accepted) = (0, 0);
        for seed in 0..20 {
            let plan = Plan::of(seed, Some(kind), Some(3), Some(4));
            let history = play(&plan, &access).unwrap().outputs;
            let judged = compact(kind, &history);
            assert!(judged.is_ok(), "{seed}: {judged:?}");
            for place in 0..history.len() {
                let mut doctored = history.clone();
                let Some((_, seen)) = &mut doctored[place].returned else {
                    continue;
                };
                // A success that was a refusal, or a refusal that was a success.
                *seen = match seen.code.take() {
                    Some(_) => tagged(200, 999),
                    None => refused(412, "ConditionNotMet"),
                };
                changed += 1;
                accepted += usize::from(compact(kind, &doctored).is_ok());
            }
        }
        // A refusal of a write that nobody looked at afterwards can be right.
        assert!(accepted * 20 < changed, "{kind:?}: {accepted} of {changed}");
    }
}
