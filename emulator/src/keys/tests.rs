//! Tests that keys sort in Azure's listing order and can be decoded.

use super::*;

#[test]
fn end_of_a_prefix_is_after_all_its_keys() {
    assert_eq!(after(vec![1, 2]), vec![1, 3]);
    assert_eq!(after(vec![1, 255]), vec![2]);
    assert!(blob(7, "\u{10FFFF}") < after(blob(7, "")));
}

#[test]
fn names_round_trip() {
    let tick = Timestamp::from_unix_s(5);
    assert_eq!(blob_name(&blob(7, "a/b")), "a/b");
    assert_eq!(
        snapshot_name(&snapshot(7, "a/b", tick)),
        ("a/b".to_owned(), tick)
    );
    assert_eq!(resource_name(&container("acct", "c"), "acct"), "c");
    for at in [tick, Timestamp::MAX] {
        let place = ("v".to_owned(), "a/b".to_owned(), at);
        assert_eq!(tag_place(&tag(7, "t", "v", "a/b", at)), place);
    }
}

#[test]
fn blobs_with_a_tag_sort_by_its_value() {
    let at = |key, value| tag(7, key, value, "blob", Timestamp::MAX);
    let places = [at("t", ""), at("t", "a"), at("t", "a b"), at("t", "ab")];
    assert!(places.is_sorted());
    let (from, to) = (tag_values(7, "t"), after(tag_values(7, "t")));
    assert!(places.iter().all(|place| (&from..&to).contains(&place)));
    assert!(!(from..to).contains(&at("t2", "a")));
}

#[test]
fn snapshot_range_of_a_blob_excludes_longer_names() {
    let (from, to) = (snapshots(7, "a"), after(snapshots(7, "a")));
    let tick = Timestamp::from_unix_s(5);
    assert!((from.clone()..to.clone()).contains(&snapshot(7, "a", tick)));
    assert!(!(from..to).contains(&snapshot(7, "a!", tick)));
}
