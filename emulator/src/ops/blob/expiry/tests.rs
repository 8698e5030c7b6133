//! Tests options and times by table.

use super::super::testing::call;
use super::*;

const DATE: &str = "Sat, 21 Nov 2026 10:30:00 GMT";

#[test]
fn options_are_parsed_with_their_times() {
    let at = Timestamp::parse_rfc1123(DATE).unwrap();
    let day = Duration::from_secs(86_400);
    let bad = Err(ErrorCode::InvalidHeaderValue);
    for (option, time, expected) in [
        ("NeverExpire", None, Ok(Expiry::Never)),
        ("neverexpire", Some("1"), bad),
        ("RelativeToNow", Some("86400000"), Ok(Expiry::AfterNow(day))),
        (
            "RelativeToCreation",
            Some("86400000"),
            Ok(Expiry::AfterCreation(day)),
        ),
        ("RelativeToNow", None, Err(ErrorCode::MissingRequiredHeader)),
        ("RelativeToNow", Some("-1"), bad),
        ("RelativeToNow", Some(DATE), bad),
        ("Absolute", Some(DATE), Ok(Expiry::At(at))),
        ("Absolute", Some("86400000"), bad),
        ("Absolute", None, Err(ErrorCode::MissingRequiredHeader)),
        ("Whenever", Some(DATE), bad),
    ] {
        let mut headers = vec![(OPTION, option)];
        headers.extend(time.map(|time| (TIME, time)));
        let read = Expiry::of(&call(&[], &headers)).map_err(|error| error.code());
        assert_eq!(read, expected, "{option} {time:?}");
    }
    let missing = Expiry::of(&call(&[], &[])).unwrap_err();
    assert_eq!(missing.code(), ErrorCode::MissingRequiredHeader);
}

#[test]
fn times_are_counted_from_creation_or_now() {
    let (created, now) = (Timestamp::from_unix_s(100), Timestamp::from_unix_s(500));
    let minute = Duration::from_secs(60);
    for (expiry, expected) in [
        (Expiry::Never, None),
        (Expiry::AfterCreation(minute), Some(160)),
        (Expiry::AfterNow(minute), Some(560)),
        (Expiry::At(Timestamp::from_unix_s(900)), Some(900)),
    ] {
        let expected = expected.map(Timestamp::from_unix_s);
        assert_eq!(expiry.of_blob(created, now), expected, "{expiry:?}");
    }
    let never = Expiry::AfterNow(Duration::from_millis(u64::MAX));
    assert_eq!(never.of_blob(created, now), Some(Timestamp::MAX));
}
