//! Finds and shifts dates in requests and answers without changing their format.

use smalt_protocol::Timestamp;

use crate::wire::url::{self, Url};

/// Length of `Sat, 21 Nov 2026 11:00:00 GMT`.
const RFC1123_LENGTH: usize = 29;
/// Length of `2026-11-21T11%3A00%3A00.1234567Z`.
const ISO_LENGTH_MAX: usize = 32;
/// Digits after the decimal point that [`Timestamp::iso_ticks`] writes.
const FRACTION_DIGITS: usize = 7;
/// SAS parameters that are times: of the signature, and of its key.
const SIGNED_TIMES: [&str; 4] = ["st", "se", "skt", "ske"];
/// Elements that are times in stored access policies and in requests for a key.
const PERIODS: [&str; 2] = ["Start", "Expiry"];
/// Request headers that are HTTP dates; `x-ms-expiry-time` may also be a number.
const DATED_HEADERS: [&str; 4] = [
    "date",
    "x-ms-date",
    "x-ms-expiry-time",
    "x-ms-immutability-policy-until-date",
];

/// Whether a request header contains a time.
pub fn is_moment(header: &str) -> bool {
    DATED_HEADERS.contains(&header) || is_condition(header)
}

/// Whether a request header is a condition on a modification time.
pub fn is_condition(header: &str) -> bool {
    header.ends_with("modified-since")
}

/// Shifts every HTTP date and every ISO time (`2019-05-09T00:57:59.1234567Z`) in a text.
pub fn in_text(text: &str, moved: impl Fn(Timestamp) -> Timestamp) -> String {
    found(text, |rest| {
        http_date(rest, &moved).or_else(|| iso_time(rest, &moved))
    })
}

/// Shifts every HTTP date in a text. ISO times may be names, as those of snapshots are.
pub fn http_in_text(text: &str, moved: impl Fn(Timestamp) -> Timestamp) -> String {
    found(text, |rest| http_date(rest, &moved))
}

/// Replaces parts of a text. `at_start` returns the length of a match at the start of its argument,
/// and the replacement.
fn found(text: &str, at_start: impl Fn(&str) -> Option<(usize, String)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if let Some((length, new)) = at_start(rest)
            && !out.ends_with(|c: char| c.is_ascii_alphanumeric())
        {
            out.push_str(&new);
            at += length;
        } else {
            out.push(first);
            at += first.len_utf8();
        }
    }
    out
}

/// Finds an HTTP date at the start of a text. Returns its length and its shifted form.
fn http_date(text: &str, moved: impl Fn(Timestamp) -> Timestamp) -> Option<(usize, String)> {
    let date = text.get(..RFC1123_LENGTH)?;
    let time = date
        .ends_with(" GMT")
        .then(|| Timestamp::parse_rfc1123(date))??;
    Some((RFC1123_LENGTH, moved(time).rfc1123()))
}

/// Finds an ISO time at the start of a text, whose colons may be percent-encoded. Returns its
/// length and its shifted form.
fn iso_time(text: &str, moved: impl Fn(Timestamp) -> Timestamp) -> Option<(usize, String)> {
    let mut longest = text.bytes().take(ISO_LENGTH_MAX);
    let end = longest.position(|byte| byte == b'Z')? + 1;
    let written = text.get(..end)?;
    let colon = [":", "%3A", "%3a"]
        .into_iter()
        .find(|colon| written.contains(colon))?;
    let plain = written.replace(colon, ":");
    let has_form = plain.as_bytes().first()?.is_ascii_digit() && plain.contains('T');
    let time = has_form.then(|| Timestamp::parse_iso(&plain))??;
    Some((end, like(&plain, moved(time)).replace(':', colon)))
}

/// Formats a time with as many fractional digits as `plain`. It always has seconds, because a
/// shifted full minute need not be a full minute.
fn like(plain: &str, time: Timestamp) -> String {
    let digits = plain
        .split_once('.')
        .map_or(0, |(_, rest)| rest.len().saturating_sub(1));
    if digits == 0 {
        return time.iso_s();
    }
    let ticks = time.iso_ticks();
    let (whole, fraction) = ticks.split_once('.').unwrap_or((&ticks, "Z"));
    let fraction = &fraction[..digits.min(FRACTION_DIGITS)];
    format!("{whole}.{fraction}Z")
}

/// Shifts one time, which may be a date alone.
fn whole(text: &str, moved: impl Fn(Timestamp) -> Timestamp) -> Option<String> {
    let time = Timestamp::parse_iso(&url::decode(text))?;
    let new = moved(time);
    if new == time {
        return None;
    }
    match iso_time(text, &moved) {
        Some((length, new)) if length == text.len() => Some(new),
        _ => Some(new.iso_s()),
    }
}

/// Shifts the times of a SAS in a URL's query.
pub fn in_signature(url: &mut Url, moved: impl Fn(Timestamp) -> Timestamp) {
    if !url.has_param("sig") {
        return;
    }
    for (name, value) in url.query.iter_mut().flatten() {
        let is_time = SIGNED_TIMES.contains(&name.to_ascii_lowercase().as_str());
        let new = value
            .as_deref()
            .filter(|_| is_time)
            .and_then(|value| whole(value, &moved));
        if new.is_some() {
            *value = new;
        }
    }
}

/// Shifts the periods in a document of stored access policies or in a request for a key.
pub fn in_periods(document: &str, moved: impl Fn(Timestamp) -> Timestamp) -> String {
    let mut text = document.to_owned();
    for name in PERIODS {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, value)) = rest.split_once(&open) {
            let Some((value, after)) = value.split_once(&close) else {
                break;
            };
            let new = whole(value, &moved).unwrap_or_else(|| value.to_owned());
            out += &format!("{before}{open}{new}{close}");
            rest = after;
        }
        out.push_str(rest);
        text = out;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds one day and one hour.
    fn later(time: Timestamp) -> Timestamp {
        time.plus_s(90_000)
    }

    #[test]
    fn dates_in_texts_keep_their_format() {
        for (text, expected) in [
            (
                "Thu, 09 May 2019 00:57:59 GMT",
                "Fri, 10 May 2019 01:57:59 GMT",
            ),
            (
                "until Thu, 09 May 2019 00:57:59 GMT.",
                "until Fri, 10 May 2019 01:57:59 GMT.",
            ),
            ("2019-05-09T00:57:59Z", "2019-05-10T01:57:59Z"),
            ("2019-05-09T00:57Z", "2019-05-10T01:57:00Z"),
            (
                "2019-05-09T00:57:59.1234567Z",
                "2019-05-10T01:57:59.1234567Z",
            ),
            ("2019-05-09T00:57:59.000Z", "2019-05-10T01:57:59.000Z"),
            (
                "?se=2019-05-09T01%3A59%3A49Z&sp=r",
                "?se=2019-05-10T02%3A59%3A49Z&sp=r",
            ),
            (
                "[2019-05-09T00:57:59Z] and [2019-05-09T00:58:00Z]",
                "[2019-05-10T01:57:59Z] and [2019-05-10T01:58:00Z]",
            ),
            // Not times: a version, a date alone, a number, words, a later GMT.
            ("2019-02-02", "2019-02-02"),
            ("12019-05-09T00:57:59Z", "12019-05-09T00:57:59Z"),
            (
                "Wed, 39 May 2019 00:57:59 GMT",
                "Wed, 39 May 2019 00:57:59 GMT",
            ),
            ("at 10 GMT, Zürich", "at 10 GMT, Zürich"),
            ("", ""),
        ] {
            assert_eq!(in_text(text, later), expected, "{text}");
        }
    }

    #[test]
    fn signatures_move_and_other_queries_do_not() {
        let host = "https://account.blob.core.windows.net/c/b";
        for (query, expected) in [
            (
                "st=2019-05-08T23:57:59Z&se=2019-05-09T01%3A57%3A59Z&sv=2019-02-02&sig=R",
                "st=2019-05-10T00:57:59Z&se=2019-05-10T02%3A57%3A59Z&sv=2019-02-02&sig=R",
            ),
            ("se=2019-05-09&sig=R", "se=2019-05-10T01:00:00Z&sig=R"),
            (
                "skt=2019-05-09T00:00:00Z&ske=2019-05-09T01:00:00Z&sig=R",
                "skt=2019-05-10T01:00:00Z&ske=2019-05-10T02:00:00Z&sig=R",
            ),
            ("st=start&se=end&sig=R", "st=start&se=end&sig=R"),
            ("se=2019-05-09T01:57:59Z", "se=2019-05-09T01:57:59Z"),
            (
                "snapshot=2019-05-09T00:57:59.1234567Z&sig=R",
                "snapshot=2019-05-09T00:57:59.1234567Z&sig=R",
            ),
        ] {
            let mut url = Url::parse(&format!("{host}?{query}")).unwrap();
            in_signature(&mut url, later);
            assert_eq!(url.to_string(), format!("{host}?{expected}"));
        }
    }

    #[test]
    fn periods_of_documents_move() {
        let policy = |start: &str, expiry: &str| {
            format!(
                "<SignedIdentifier><Id>2019-05-09T00:00:00Z</Id><AccessPolicy>\
                 <Start>{start}</Start><Expiry>{expiry}</Expiry></AccessPolicy></SignedIdentifier>"
            )
        };
        let two = |a: [&str; 2], b: [&str; 2]| policy(a[0], a[1]) + &policy(b[0], b[1]);
        let written = two(
            ["2019-05-09", "2019-05-09T00:57:59.0000000Z"],
            ["", "2019-05-09T00:57:59Z"],
        );
        let expected = two(
            ["2019-05-10T01:00:00Z", "2019-05-10T01:57:59.0000000Z"],
            ["", "2019-05-10T01:57:59Z"],
        );
        assert_eq!(in_periods(&written, later), expected);
        for untouched in ["<Start>2019-05-09", "<Start />", "no document"] {
            assert_eq!(in_periods(untouched, later), untouched);
        }
    }

    #[test]
    fn moments_are_known_by_their_headers() {
        for name in [
            "x-ms-date",
            "if-modified-since",
            "x-ms-source-if-unmodified-since",
        ] {
            assert!(is_moment(name), "{name}");
        }
        for name in ["x-ms-version", "if-match", "x-ms-meta-date"] {
            assert!(!is_moment(name), "{name}");
        }
    }
}
