//! The account finds every error that a run can have.

use proptest::prelude::*;

use super::*;
use crate::fleet::sweep::blobs::tests::blobs;

const ENDPOINT: &str = "http://127.0.0.1:10000/devstoreaccount1";
const COUNT: u64 = 1_000;

/// Returns the copy of a blob as the sweeper makes it.
fn copy(blobs: &Blobs, number: Number) -> Copy {
    let mut metadata = blobs.metadata(number);
    let ttl = metadata.remove("TimeToLive").unwrap();
    let dead = metadata.remove("DeadBlobContainer").unwrap();
    let own = blobs.place(number);
    let uri = format!("{ENDPOINT}/{}/{}", own.container, own.name);
    for (name, value) in [
        (provenance::SOURCE_URI, uri.replace(' ', "%20")),
        (provenance::SOURCE_ETAG, format!("0x{number}")),
        (provenance::SOURCE_LAST_MODIFIED, "then".to_owned()),
        (provenance::DELETED_DUE, "then".to_owned()),
        (provenance::SWEEP_ID, "0/fleet-000/7".to_owned()),
        (provenance::ORIGINAL_TTL, ttl),
        (provenance::ORIGINAL_DBC, dead),
    ] {
        metadata.insert(name.to_owned(), value);
    }
    Copy {
        content: blobs.content(number).into(),
        metadata,
    }
}

/// Returns a correct run: two workers with even shares.
fn clean(blobs: &Blobs) -> Evidence {
    let tag = |n: Number| Some(Tag(format!("\"0x{n}\"")));
    let due = (0..COUNT).filter(|n| blobs.fate(*n).is_due());
    let removed = due.count() as u64;
    let worker = |name: &str, removed| Worker {
        name: name.to_owned(),
        exit: Some(0),
        pages: 50,
        handled: COUNT / 2,
        removed,
        calls: 300,
        ..Worker::default()
    };
    let to_move = (0..COUNT).filter(|n| blobs.fate(*n) == Fate::Moved);
    Evidence {
        before: (0..COUNT).map(tag).collect(),
        after: (0..COUNT)
            .map(|n| tag(n).filter(|_| !blobs.fate(n).is_due()))
            .collect(),
        dead: to_move.map(|n| (n, copy(blobs, n))).collect(),
        workers: vec![worker("a", removed - 20), worker("b", 20)],
        endpoint: ENDPOINT.to_owned(),
        ..Evidence::default()
    }
}

fn wrongs(evidence: &Evidence) -> Vec<(Wrong, u64)> {
    let account = Account::of(&blobs(COUNT), evidence);
    let counted = account.wrong.iter();
    counted
        .map(|(wrong, (times, _))| (*wrong, *times))
        .collect()
}

fn first(fate: Fate) -> usize {
    let blobs = blobs(COUNT);
    let found = (0..COUNT).find(|n| blobs.fate(*n) == fate).unwrap();
    usize::try_from(found).unwrap()
}

#[test]
fn a_run_in_order_is_clean() {
    let blobs = blobs(COUNT);
    let account = Account::of(&blobs, &clean(&blobs));
    assert!(account.is_clean(), "{account}");
    assert!(account.due > 50 && account.to_move > 10);
    assert!(account.to_string().ends_with("where it should be"));
}

/// SS1, SS2: a blob that is not due stays unchanged. A deleted blob that exists again is not gone.
#[test]
fn wrong_blobs_are_found() {
    let blobs = blobs(COUNT);
    let tag = || Some(Tag("\"another\"".to_owned()));
    for (fate, after, wrong) in [
        (Fate::Untagged, None, Wrong::UnexpiredGone),
        (Fate::Later, None, Wrong::UnexpiredGone),
        (Fate::Untagged, tag(), Wrong::UnexpiredChanged),
        (Fate::Later, tag(), Wrong::UnexpiredChanged),
        (Fate::Deleted, tag(), Wrong::ExpiredLeft),
        (Fate::Moved, tag(), Wrong::ExpiredLeft),
    ] {
        let mut evidence = clean(&blobs);
        evidence.after[first(fate)] = after;
        let found = wrongs(&evidence);
        assert!(found.contains(&(wrong, 1)), "{fate:?}: {found:?}");
    }
}

/// SS3, SS4: a blob that must move is at its place or, equal, at the other one.
#[test]
fn wrong_copies_are_found() {
    let blobs = blobs(COUNT);
    let moved = first(Fate::Moved) as u64;
    type Doctor = fn(&mut Copy);
    let cases: [(Doctor, Wrong); 6] = [
        (|c| c.content = Bytes::from("other"), Wrong::CopyUnequal),
        (|c| _ = c.metadata.remove("Note"), Wrong::CopyMetadata),
        (
            |c| _ = c.metadata.insert("More".to_owned(), "x".to_owned()),
            Wrong::CopyMetadata,
        ),
        (
            |c| _ = c.metadata.insert("TimeToLive".to_owned(), "P1D".to_owned()),
            Wrong::CopyMetadata,
        ),
        (|c| _ = c.metadata.remove("SweepId"), Wrong::CopyMetadata),
        (
            |c| _ = c.metadata.insert("SourceETag".to_owned(), "0x".to_owned()),
            Wrong::CopyMetadata,
        ),
    ];
    for (doctor, wrong) in cases {
        let mut evidence = clean(&blobs);
        doctor(evidence.dead.get_mut(&moved).unwrap());
        assert_eq!(wrongs(&evidence), [(wrong, 1)]);
    }
    let mut evidence = clean(&blobs);
    evidence.dead.remove(&moved);
    assert_eq!(wrongs(&evidence), [(Wrong::CopyMissing, 1)]);
    let mut evidence = clean(&blobs);
    let of_other = evidence.dead[&moved].clone();
    evidence.dead.insert(first(Fate::Later) as u64, of_other);
    assert_eq!(wrongs(&evidence), [(Wrong::CopyUnexpected, 1)]);
}

#[test]
fn metadata_names_are_case_insensitive() {
    let blobs = blobs(COUNT);
    let mut evidence = clean(&blobs);
    for copy in evidence.dead.values_mut() {
        copy.metadata = lower_case(&copy.metadata).into_iter().collect();
    }
    assert!(wrongs(&evidence).is_empty());
}

#[test]
fn errors_of_workers_are_found() {
    let blobs = blobs(COUNT);
    type Doctor = fn(&mut Evidence);
    let cases: [(Doctor, (Wrong, u64)); 9] = [
        (|e| e.workers[0].removed += 3, (Wrong::Miscounted, 3)),
        (|e| e.workers[1].removed -= 1, (Wrong::Miscounted, 1)),
        (|e| e.workers[1].gone = 4, (Wrong::DoneTwice, 4)),
        (|e| e.workers[0].handled += 300, (Wrong::Uneven, 2)),
        (|e| e.workers[0].exit = Some(1), (Wrong::WorkerFailed, 1)),
        (|e| e.workers[0].exit = None, (Wrong::WorkerFailed, 1)),
        (|e| e.workers[0].peak_bytes = 60 << 20, (Wrong::Memory, 1)),
        (|e| e.foreign.push("c/x".to_owned()), (Wrong::Foreign, 1)),
        (|e| e.stuck = 1, (Wrong::Stuck, 1)),
    ];
    for (doctor, expected) in cases {
        let mut evidence = clean(&blobs);
        doctor(&mut evidence);
        assert_eq!(wrongs(&evidence), [expected]);
    }
}

/// A worker that was killed reports nothing; that does not excuse an error about a blob.
#[test]
fn kills_excuse_only_the_counts() {
    let blobs = blobs(COUNT);
    let mut evidence = clean(&blobs);
    evidence.killed = 3;
    evidence.workers[0].removed = 0;
    evidence.workers[0].handled = 10;
    evidence.workers[0].exit = Some(1);
    assert!(wrongs(&evidence).is_empty());
    evidence.workers[0].exit = Some(4);
    assert_eq!(wrongs(&evidence), [(Wrong::WorkerFailed, 1)]);
    evidence.workers[0].exit = Some(0);
    evidence.after[first(Fate::Later)] = None;
    assert_eq!(wrongs(&evidence), [(Wrong::UnexpiredGone, 1)]);
}

#[test]
fn few_pages_need_not_be_even() {
    let mut evidence = clean(&blobs(COUNT));
    evidence.workers[0].handled += 300;
    evidence.workers[0].pages = 5;
    assert_eq!(wrongs(&evidence), [(Wrong::Uneven, 2)]);
    evidence.workers[1].pages = 5;
    assert!(wrongs(&evidence).is_empty());
}

proptest! {
    /// It misses exactly what is taken away.
    #[test]
    fn as_many_are_missed_as_were_taken_away(
        taken in proptest::collection::btree_set(0_u64..COUNT, 0..50),
    ) {
        let blobs = blobs(COUNT);
        let mut evidence = clean(&blobs);
        evidence.killed = 1;
        for number in &taken {
            evidence.after[usize::try_from(*number).unwrap()] = None;
            evidence.dead.remove(number);
        }
        let of = |is: fn(Fate) -> bool| taken.iter().filter(|n| is(blobs.fate(**n))).count();
        let expected = [
            (Wrong::UnexpiredGone, of(|fate| !fate.is_due()) as u64),
            (Wrong::CopyMissing, of(|fate| fate == Fate::Moved) as u64),
        ];
        let expected: Vec<_> = expected.into_iter().filter(|(_, times)| *times > 0).collect();
        prop_assert_eq!(wrongs(&evidence), expected);
    }
}
