//! Moves a recording in time: every date in it changes by the same number of seconds.
//!
//! A server whose clock cannot be set runs now, whatever the time of the recording.

use bytes::Bytes;
use smalt_protocol::Timestamp;

use crate::replay::dates;
use crate::replay::recording::Recording;
use crate::replay::timeline::Timeline;
use crate::wire::Headers;
use crate::wire::url::Url;

/// Text in front of the time at which an entity changed.
const TIMESTAMP: &str = "\"Timestamp\":\"";

/// Moves a recording so that its first answer is at `start`.
#[must_use]
pub fn to(mut recording: Recording, start: Timestamp) -> Recording {
    let Some(first) = recording.interactions.first().map(|one| one.date) else {
        return recording;
    };
    let timeline = &Timeline::new(first, start);
    for one in &mut recording.interactions {
        one.date = timeline.time(one.date);
        headers(&mut one.request.headers, timeline);
        headers(&mut one.response.headers, timeline);
        one.request.url = url(&one.request.url, timeline);
        // A batch contains requests with their own dates; other bodies belong to the client.
        let kind = one.request.headers.get("content-type").unwrap_or_default();
        if kind.starts_with("multipart/mixed")
            && let Ok(text) = std::str::from_utf8(&one.request.body)
        {
            one.request.body = Bytes::from(http_dates(text, timeline));
        }
        if let Ok(text) = std::str::from_utf8(&one.response.body) {
            let text = document(&http_dates(text, timeline), timeline);
            one.response.body = Bytes::from(text);
        }
    }
    recording
}

/// Shifts the change times of entities in a document; ETags contain such times too, but are names
/// and stay.
fn document(text: &str, timeline: &Timeline) -> String {
    let mut pieces = text.split(TIMESTAMP);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (time, rest) = piece.split_at(piece.find('"').unwrap_or(piece.len()));
        out += TIMESTAMP;
        out += &timeline.text(time);
        out += rest;
    }
    out
}

fn headers(headers: &mut Headers, timeline: &Timeline) {
    for (name, value) in headers.iter_mut() {
        *value = match name {
            "x-ms-copy-source" => url(value, timeline),
            _ => http_dates(value, timeline),
        };
    }
}

/// Shifts a signature in a URL, so that its validity is unchanged.
fn url(text: &str, timeline: &Timeline) -> String {
    let Some(mut url) = Url::parse(text).filter(|url| url.has_param("sig")) else {
        return text.to_owned();
    };
    dates::in_signature(&mut url, |time| timeline.time(time));
    url.to_string()
}

fn http_dates(text: &str, timeline: &Timeline) -> String {
    dates::http_in_text(text, |time| timeline.time(time))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_dates_move() {
        let from = Timestamp::from_unix_s(1_000_000_000);
        for (to, moved) in [
            (from.plus_s(86_400), "Mon, 10 Sep 2001 01:46:40 GMT"),
            (
                from.minus(Duration::from_secs(60)),
                "Sun, 09 Sep 2001 01:45:40 GMT",
            ),
        ] {
            let timeline = Timeline::new(from, to);
            let text = format!(
                "<A>{}</A> at 10 GMT, Fri, 31 Dec 9999 23:59:59 GMT",
                from.rfc1123()
            );
            let expected = format!("<A>{moved}</A> at 10 GMT, Fri, 31 Dec 9999 23:59:59 GMT");
            assert_eq!(http_dates(&text, &timeline), expected);
        }
    }

    #[test]
    fn change_times_move_and_etags_stay() {
        let from = Timestamp::from_unix_s(1_000_000_000);
        let timeline = Timeline::new(from, from.plus_s(3_600));
        let entity = |changed: &str| {
            format!(
                "{{\"odata.etag\":\"W/\\\"datetime'2001-09-09T01%3A46%3A40.0000001Z'\\\"\",\
                 \"Timestamp\":\"{changed}\",\"Age\":\"2001-09-09T01:46:40.0000001Z\"}}"
            )
        };
        let text = entity("2001-09-09T01:46:40.0000001Z");
        let expected = entity("2001-09-09T02:46:40.0000001Z");
        assert_eq!(document(&text, &timeline), expected);
    }

    #[test]
    fn validity_of_signatures_is_kept() {
        let from = Timestamp::from_unix_s(1_000_000_000);
        let timeline = Timeline::new(from, from.plus_s(3_600));
        let url = "https://account.blob.core.windows.net/c?se=2001-09-09T02%3A00%3A00Z&sig=R";
        let expected = "https://account.blob.core.windows.net/c?se=2001-09-09T03%3A00%3A00Z&sig=R";
        assert_eq!(super::url(url, &timeline), expected);
        let unsigned = "https://account.blob.core.windows.net/c?se=2001-09-09T02%3A00%3A00Z";
        assert_eq!(super::url(unsigned, &timeline), unsigned);
        let far = "https://account.blob.core.windows.net/c?se=2099-09-09T02%3A00%3A00Z&sig=R";
        assert_eq!(super::url(far, &timeline), far);
    }
}
