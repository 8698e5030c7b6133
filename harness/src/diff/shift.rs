//! Moves a recording in time: every date in it changes by the same number of seconds.
//!
//! A server whose clock cannot be set runs now, whatever the time of the recording.

use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::Timestamp;

use crate::replay::dates;
use crate::replay::recording::Recording;
use crate::wire::Headers;
use crate::wire::url::Url;

/// Text in front of the time at which an entity changed.
const TIMESTAMP: &str = "\"Timestamp\":\"";
/// Dates farther away than this, ten years, stay unchanged.
const FAR_S: u64 = 10 * 365 * 24 * 3_600;

/// Moves a recording so that its first answer is at `start`.
#[must_use]
pub fn to(mut recording: Recording, start: Timestamp) -> Recording {
    let Some(first) = recording.interactions.first().map(|one| one.date) else {
        return recording;
    };
    let shift = Shift::between(first, start);
    for one in &mut recording.interactions {
        one.date = shift.time(one.date);
        shift.headers(&mut one.request.headers);
        shift.headers(&mut one.response.headers);
        one.request.url = shift.url(&one.request.url);
        // A batch contains requests with their own dates; other bodies belong to the client.
        let kind = one.request.headers.get("content-type").unwrap_or_default();
        if kind.starts_with("multipart/mixed")
            && let Ok(text) = std::str::from_utf8(&one.request.body)
        {
            one.request.body = Bytes::from(shift.text(text));
        }
        if let Ok(text) = std::str::from_utf8(&one.response.body) {
            let text = shift.document(&shift.text(text));
            one.response.body = Bytes::from(text);
        }
    }
    recording
}

/// An offset in seconds, forward or back.
#[derive(Clone, Copy)]
struct Shift {
    by: Duration,
    is_back: bool,
    /// Later expiry times need no change.
    far: Timestamp,
}

impl Shift {
    fn between(from: Timestamp, to: Timestamp) -> Shift {
        let is_back = from > to;
        let by = if is_back {
            from.since(to)
        } else {
            to.since(from)
        };
        Shift {
            by: Duration::from_secs(by.as_secs()),
            is_back,
            far: to.max(from).plus_s(FAR_S),
        }
    }

    fn time(self, time: Timestamp) -> Timestamp {
        if time >= self.far {
            time
        } else if self.is_back {
            time.minus(self.by)
        } else {
            time.plus_s(self.by.as_secs())
        }
    }

    /// Shifts the change times of entities in a document; ETags contain such times too, but are
    /// names and stay.
    fn document(self, text: &str) -> String {
        let mut pieces = text.split(TIMESTAMP);
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (time, rest) = piece.split_at(piece.find('"').unwrap_or(piece.len()));
            out += TIMESTAMP;
            out += &dates::in_text(time, |time| self.time(time));
            out += rest;
        }
        out
    }

    fn headers(self, headers: &mut Headers) {
        for (name, value) in headers.iter_mut() {
            *value = match name {
                "x-ms-copy-source" => self.url(value),
                _ => self.text(value),
            };
        }
    }

    /// Shifts a signature in a URL, so that its validity is unchanged.
    fn url(self, text: &str) -> String {
        let Some(mut url) = Url::parse(text).filter(|url| url.has_param("sig")) else {
            return text.to_owned();
        };
        dates::in_signature(&mut url, |time| self.time(time));
        url.to_string()
    }

    fn text(self, text: &str) -> String {
        dates::http_in_text(text, |time| self.time(time))
    }
}

#[cfg(test)]
mod tests {
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
            let shift = Shift::between(from, to);
            let text = format!(
                "<A>{}</A> at 10 GMT, Fri, 31 Dec 9999 23:59:59 GMT",
                from.rfc1123()
            );
            let expected = format!("<A>{moved}</A> at 10 GMT, Fri, 31 Dec 9999 23:59:59 GMT");
            assert_eq!(shift.text(&text), expected);
        }
    }

    #[test]
    fn change_times_move_and_etags_stay() {
        let from = Timestamp::from_unix_s(1_000_000_000);
        let shift = Shift::between(from, from.plus_s(3_600));
        let entity = |changed: &str| {
            format!(
                "{{\"odata.etag\":\"W/\\\"datetime'2001-09-09T01%3A46%3A40.0000001Z'\\\"\",\
                 \"Timestamp\":\"{changed}\",\"Age\":\"2001-09-09T01:46:40.0000001Z\"}}"
            )
        };
        let text = entity("2001-09-09T01:46:40.0000001Z");
        let expected = entity("2001-09-09T02:46:40.0000001Z");
        assert_eq!(shift.document(&text), expected);
    }

    #[test]
    fn validity_of_signatures_is_kept() {
        let from = Timestamp::from_unix_s(1_000_000_000);
        let shift = Shift::between(from, from.plus_s(3_600));
        let url = "https://account.blob.core.windows.net/c?se=2001-09-09T02%3A00%3A00Z&sig=R";
        let expected = "https://account.blob.core.windows.net/c?se=2001-09-09T03%3A00%3A00Z&sig=R";
        assert_eq!(shift.url(url), expected);
        let unsigned = "https://account.blob.core.windows.net/c?se=2001-09-09T02%3A00%3A00Z";
        assert_eq!(shift.url(unsigned), unsigned);
        let far = "https://account.blob.core.windows.net/c?se=2099-09-09T02%3A00%3A00Z&sig=R";
        assert_eq!(shift.url(far), far);
    }
}
