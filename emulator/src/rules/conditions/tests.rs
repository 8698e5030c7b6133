//! Tables of conditions and their outcomes.

use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

const BEFORE: &str = "Thu, 09 May 2019 00:57:58 GMT";
const AT: &str = "Thu, 09 May 2019 00:57:59 GMT";
const AFTER: &str = "Thu, 09 May 2019 00:58:00 GMT";
const THIS: &str = "\"0x8D6D4173A7F45B7\"";
const OTHER: &str = "0x111111111111111";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}

fn current(tags: &[(String, String)]) -> Current<'_> {
    Current {
        etag: ETag::parse(THIS).unwrap(),
        // Half a second later than the header.
        last_modified: Timestamp::parse_rfc1123(AT)
            .unwrap()
            .plus(std::time::Duration::from_millis(500)),
        tags,
    }
}

fn outcome(result: Result<(), StorageError>) -> (u16, Option<ErrorCode>) {
    match result {
        Ok(()) => (200, None),
        Err(error) => (error.status(), Some(error.code())),
    }
}

fn read_status(pairs: &[(&'static str, &str)], version: ApiVersion) -> u16 {
    let judged = Conditions::of_read(&headers(pairs), version)
        .and_then(|conditions| conditions.check_read(current(&[])));
    outcome(judged).0
}

fn write_status(pairs: &[(&'static str, &str)]) -> u16 {
    let judged = Conditions::of_write(&headers(pairs))
        .and_then(|conditions| conditions.check_write(current(&[])));
    outcome(judged).0
}

#[test]
fn one_condition_decides_by_kind_of_request() {
    for (name, value, read, write) in [
        ("if-match", THIS, 200, 200),
        ("if-match", "*", 200, 200),
        ("if-match", OTHER, 412, 412),
        ("if-match", "garbage", 412, 412),
        ("if-none-match", OTHER, 200, 200),
        ("if-none-match", "garbage", 200, 200),
        ("if-none-match", THIS, 304, 412),
        ("if-modified-since", BEFORE, 200, 200),
        ("if-modified-since", AT, 304, 412),
        ("if-modified-since", AFTER, 304, 412),
        ("if-unmodified-since", BEFORE, 412, 412),
        ("if-unmodified-since", AT, 200, 200),
        ("if-unmodified-since", AFTER, 200, 200),
    ] {
        let pair = [(name, value)];
        assert_eq!(
            read_status(&pair, ApiVersion::LATEST),
            read,
            "{name} {value}"
        );
        assert_eq!(write_status(&pair), write, "{name} {value}");
    }
    assert_eq!(read_status(&[], ApiVersion::LATEST), 200);
    assert_eq!(write_status(&[]), 200);
}

#[test]
fn reads_combine_conditions_since_2013() {
    let (m, n, s, u) = (
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
    );
    for (pairs, expected) in [
        // It is enough if one of the two conditions holds.
        (&[(n, THIS), (s, BEFORE)][..], 200),
        (&[(n, OTHER), (s, AFTER)], 200),
        (&[(n, THIS), (s, AFTER)], 304),
        // A failed `If-Match` or `If-Unmodified-Since` takes precedence over a 304.
        (&[(m, OTHER), (n, THIS)], 412),
        (&[(u, BEFORE), (n, THIS)], 412),
        (&[(m, THIS), (u, BEFORE)], 412),
        (&[(m, THIS), (n, THIS)], 304),
        (&[(m, "\"0x1\", 0x8D6D4173A7F45B7")], 200),
        (&[(n, "\"0x1\", 0x8D6D4173A7F45B7")], 304),
        (&[(n, "*")], 400),
    ] {
        assert_eq!(
            read_status(pairs, ApiVersion::LATEST),
            expected,
            "{pairs:?}"
        );
    }
    assert_eq!(read_status(&[(n, "*")], ApiVersion::V2015_12_11), 304);
    let pair = [(m, THIS), (n, THIS)];
    assert_eq!(read_status(&pair, ApiVersion::V2012_02_12), 400);
    assert_eq!(read_status(&pair, ApiVersion::V2013_08_15), 304);
}

#[test]
fn only_tag_conditions_need_tags() {
    for (name, value, asks) in [
        ("x-ms-if-tags", "\"a\" = 'b'", true),
        ("if-match", THIS, false),
    ] {
        let conditions = Conditions::of_write(&headers(&[(name, value)])).unwrap();
        assert_eq!(conditions.asks_for_tags(), asks, "{name}");
    }
}

#[test]
fn writes_accept_one_etag_with_or_without_its_date() {
    let (m, n, s, u) = (
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
    );
    for (pairs, expected) in [
        (&[(n, OTHER), (s, AFTER)][..], 200),
        (&[(m, THIS), (u, BEFORE)], 200),
        (&[(n, THIS), (s, BEFORE)], 412),
        (&[(m, THIS), (n, OTHER)], 400),
        (&[(s, BEFORE), (u, AFTER)], 400),
        (&[(m, THIS), (s, BEFORE)], 400),
        (&[(m, "0x1,0x2")], 400),
        (&[(s, "yesterday")], 400),
    ] {
        assert_eq!(write_status(pairs), expected, "{pairs:?}");
    }
}

#[test]
fn creations_check_star_and_absence() {
    use ErrorCode::{BlobAlreadyExists, ConditionNotMet, TargetConditionNotMet};
    let there = current(&[]);
    for (name, value, on_existing, on_missing) in [
        (
            "if-none-match",
            "*",
            (409, Some(BlobAlreadyExists)),
            (200, None),
        ),
        (
            "if-none-match",
            THIS,
            (412, Some(ConditionNotMet)),
            (200, None),
        ),
        ("if-match", "*", (200, None), (412, Some(ConditionNotMet))),
        ("if-match", THIS, (200, None), (412, Some(ConditionNotMet))),
        (
            "if-modified-since",
            AFTER,
            (412, Some(ConditionNotMet)),
            (200, None),
        ),
        (
            "x-ms-if-tags",
            "a = '1'",
            (412, Some(ConditionNotMet)),
            (412, Some(ConditionNotMet)),
        ),
    ] {
        let conditions = Conditions::of_write(&headers(&[(name, value)])).unwrap();
        assert_eq!(
            outcome(conditions.check_create(Some(there))),
            on_existing,
            "{name} {value}"
        );
        assert_eq!(
            outcome(conditions.check_create(None)),
            on_missing,
            "{name} {value}"
        );
    }
    let copy = Conditions::of_write(&headers(&[("if-match", OTHER)])).unwrap();
    let unmet = (412, Some(TargetConditionNotMet));
    assert_eq!(outcome(copy.check_copy_target(Some(there))), unmet);
    assert_eq!(outcome(copy.check_copy_target(None)), unmet);
    let once = Conditions::of_write(&headers(&[("if-none-match", "*")])).unwrap();
    let exists = (409, Some(BlobAlreadyExists));
    assert_eq!(outcome(once.check_copy_target(Some(there))), exists);
    assert_eq!(outcome(once.check_copy_target(None)), (200, None));
}

#[test]
fn sources_and_tags_have_their_own_headers_and_codes() {
    let tags = [("a".to_owned(), "1".to_owned())];
    let there = current(&tags);
    let source = headers(&[("x-ms-source-if-none-match", THIS), ("if-match", OTHER)]);
    let source = Conditions::of_source(&source).unwrap();
    let unmet = (412, Some(ErrorCode::SourceConditionNotMet));
    assert_eq!(outcome(source.check_source(there)), unmet);
    for (expression, expected) in [
        ("a = '1'", (200, None)),
        ("a = '2'", (412, Some(ErrorCode::ConditionNotMet))),
    ] {
        let given = headers(&[("x-ms-if-tags", expression), ("if-match", OTHER)]);
        let conditions = Conditions::of_tags(&given).unwrap();
        assert_eq!(outcome(conditions.check_read(there)), expected);
        let given = headers(&[("x-ms-source-if-tags", expression)]);
        let conditions = Conditions::of_source(&given).unwrap();
        assert_eq!(outcome(conditions.check_source(there)), expected);
    }
    let bad = Conditions::of_write(&headers(&[("x-ms-if-tags", "a =")])).unwrap_err();
    assert_eq!(bad.elements()[0].1, "x-ms-if-tags");
}

proptest! {
    /// `If-Match` and `If-None-Match` on a read: each of the four combinations has its status, and
    /// only a read with both satisfied gets 200.
    #[test]
    fn read_succeeds_unless_a_condition_fails(wants_this: bool, knows_this: bool) {
        let wanted = if wants_this { THIS } else { OTHER };
        let known = if knows_this { THIS } else { OTHER };
        let pairs = [("if-match", wanted), ("if-none-match", known)];
        let expected = match (wants_this, knows_this) {
            (false, _) => 412,
            (true, true) => 304,
            (true, false) => 200,
        };
        prop_assert_eq!(read_status(&pairs, ApiVersion::LATEST), expected);
    }
}
