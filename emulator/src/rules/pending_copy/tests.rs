//! Pending copies at several times.

use proptest::prelude::*;

use super::*;
use crate::ops::blob::copied;

const START: Timestamp = Timestamp::from_unix_s(1_700_000_000);

fn hold(duration_s: Option<u64>, bytes_per_s: Option<u64>, failure: Option<&str>) -> Hold {
    Hold {
        duration_s,
        bytes_per_s,
        failure: failure.map(str::to_owned),
    }
}

/// A blob of 100 bytes whose copy began at `START`.
fn begun(kind: BlobKind, hold: &Hold) -> BlobRecord {
    let mut blob = BlobRecord::new(kind, ETag::from_tick(START), START);
    blob.length = 100;
    blob.headers.content_md5 = Some("hash".to_owned());
    blob.content = BlobContent::Blocks { id: 7, count: 1 };
    let copy = copied::finished("id".to_owned(), "source".to_owned(), 100, START);
    blob.copy = Some(copy);
    let plan = plan(hold, 100, START).unwrap();
    begin(&mut blob, plan);
    blob
}

fn at(blob: &BlobRecord, seconds: u64) -> BlobRecord {
    let mut blob = blob.clone();
    settle(&mut blob, START.plus_s(seconds));
    blob
}

fn shown(blob: &BlobRecord) -> (u64, CopyStatus, (u64, u64)) {
    let copy = blob.copy.as_ref().unwrap();
    (blob.length, copy.status, copy.progress)
}

#[test]
fn copy_progresses_with_the_clock_and_ends() {
    let blob = begun(BlobKind::Block, &hold(Some(10), None, None));
    for (seconds, expected) in [
        (0, (0, CopyStatus::Pending, (0, 100))),
        (5, (0, CopyStatus::Pending, (50, 100))),
        (9, (0, CopyStatus::Pending, (90, 100))),
        (10, (100, CopyStatus::Success, (100, 100))),
        (99, (100, CopyStatus::Success, (100, 100))),
    ] {
        assert_eq!(shown(&at(&blob, seconds)), expected, "{seconds}");
    }
    let done = at(&blob, 99);
    assert_eq!(done.content, BlobContent::Blocks { id: 7, count: 1 });
    assert_eq!(done.headers.content_md5.as_deref(), Some("hash"));
    assert_eq!(done.last_modified, START.plus_s(10));
    assert!(done.etag != blob.etag && blob.headers.content_md5.is_none());
    // Settling again, at any time, changes nothing.
    assert_eq!(at(&done, 0), done);
    assert_eq!(at(&at(&blob, 10), 99), done);
}

/// "Get Blob Properties", `x-ms-copy-completion-time`: when the last copy into the blob ended;
/// absent while one is pending.
#[test]
fn a_copy_is_pending_until_it_is_completed() {
    let blob = begun(BlobKind::Block, &hold(Some(10), None, None));
    let mut never = blob.clone();
    never.copy = None;
    for (blob, expected) in [
        (never, (false, None)),
        (at(&blob, 0), (true, None)),
        (at(&blob, 9), (true, None)),
        (at(&blob, 10), (false, Some(START.plus_s(10)))),
    ] {
        let completed = blob.copy.as_ref().and_then(|copy| copy.completed);
        assert_eq!((is_pending(&blob), completed), expected);
    }
}

#[test]
fn a_copy_fails_as_planned_or_after_two_weeks() {
    let two_weeks = 14 * DAY_S;
    for (hold, seconds, description) in [
        (hold(Some(10), None, Some("404 Gone")), 10, "404 Gone"),
        (hold(None, None, None), two_weeks, CANCELLED),
        (hold(None, None, Some("404 Gone")), two_weeks, CANCELLED),
        (hold(None, Some(0), None), 100, ""),
        (hold(Some(u64::MAX), None, None), two_weeks, CANCELLED),
    ] {
        let blob = begun(BlobKind::Page, &hold);
        let before = at(&blob, seconds - 1);
        assert_eq!(before.copy.as_ref().unwrap().status, CopyStatus::Pending);
        let after = at(&blob, seconds);
        let copy = after.copy.as_ref().unwrap();
        assert_eq!(copy.description.as_deref().unwrap_or_default(), description);
        assert_eq!(copy.completed, Some(START.plus_s(seconds)));
        if !description.is_empty() {
            assert_eq!(shown(&before), (100, CopyStatus::Pending, (0, 100)));
            assert_eq!(shown(&after), (0, CopyStatus::Failed, (0, 100)));
            assert_eq!(after.content, BlobContent::Empty);
        }
    }
}

#[test]
fn copy_without_duration_is_not_pending() {
    assert_eq!(plan(&hold(Some(0), None, None), 100, START), None);
    assert_eq!(plan(&hold(None, Some(1), None), 0, START), None);
    assert_eq!(plan(&hold(None, Some(u64::MAX), None), 100, START), None);
    // The `ETag` of the end is the tick before it; after a single tick that would be the initial
    // `ETag`.
    for (ticks, is_pending) in [(1, false), (2, true)] {
        let a_byte_a_tick = hold(None, Some(TICKS_PER_SECOND), None);
        let planned = plan(&a_byte_a_tick, ticks, START).map(|planned| planned.ends);
        assert_eq!(planned, is_pending.then(|| START.plus_ticks(ticks)));
    }
}

#[test]
fn stopped_copy_returns_its_content() {
    let mut blob = begun(BlobKind::Block, &hold(Some(10), None, None));
    let now = START.plus_s(3);
    let kept = stop(
        &mut blob,
        CopyStatus::Aborted,
        None,
        (ETag::from_tick(now), now),
    );
    assert_eq!(kept, BlobContent::Blocks { id: 7, count: 1 });
    assert_eq!(at(&blob, 99), blob);
    assert_eq!((blob.length, blob.last_modified), (0, now));
}

proptest! {
    #[test]
    fn progress_never_goes_back(
        rate in 1..1_000_u64,
        mut times in proptest::collection::vec(0..200_u64, 2..9),
    ) {
        let blob = begun(BlobKind::Block, &hold(None, Some(rate), None));
        times.sort_unstable();
        let done: Vec<u64> = times.iter().map(|s| shown(&at(&blob, *s)).2.0).collect();
        prop_assert!(done.is_sorted() && done.iter().all(|done| *done <= 100));
    }
}
