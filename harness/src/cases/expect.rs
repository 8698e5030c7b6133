//! One expectation of an answer, as written in a case, and its check.
//!
//! | form | holds when |
//! | --- | --- |
//! | `201` | the status is this |
//! | `409 BlobAlreadyExists` | status and error code are these |
//! | `has etag`, `no /Error/Detail` | the value exists, or does not |
//! | `content-length = 5` | the value is this |
//! | `etag ~ etag` | the value has this form ([`Form`]) |
//! | `/BlockList/CommittedBlocks/Block # 2` | there are this many; for a body, this many bytes |
//! | `closed` | the connection ends without an answer |
//! | `body * needle`, `body !* needle` | the value contains this, or does not |
//! | `/Blobs/Blob[*]/Name are a b c` | the values are these, in this order |
//! | `etag == {first}`, `!=`, `>` | equal to, different from, later than a kept value |
//!
//! A place is a header's name, the path of an element, `status`, `code`, `body`, or `parts`, the
//! statuses in an answer to a batch.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use smalt_protocol::Timestamp;

use super::place::Place;
use super::values::{Values, ValuesError};
use crate::wire::Answer;
use crate::wire::url::decode;

/// What an expectation is about; reports count each aspect separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aspect {
    /// The status code.
    Status,
    /// The error code.
    Code,
    /// Names and values of headers.
    Headers,
    /// The body.
    Body,
    /// Relations between values of this and earlier answers.
    Relations,
}

impl Aspect {
    /// All aspects, in the order of reports.
    pub const ALL: [Aspect; 5] = [
        Aspect::Status,
        Aspect::Code,
        Aspect::Headers,
        Aspect::Body,
        Aspect::Relations,
    ];

    /// Returns the name in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Aspect::Status => "status",
            Aspect::Code => "code",
            Aspect::Headers => "headers",
            Aspect::Body => "body",
            Aspect::Relations => "relations",
        }
    }
}

/// The form of a value that the service generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A quoted ETag.
    Etag,
    /// An HTTP date.
    Date,
    /// An ISO 8601 time with seven decimal places of a second.
    Time,
    /// A GUID.
    Guid,
    /// A natural number.
    Number,
    /// Base64.
    Base64,
}

impl Form {
    fn parse(text: &str) -> Option<Form> {
        Some(match text {
            "etag" => Form::Etag,
            "date" => Form::Date,
            "time" => Form::Time,
            "guid" => Form::Guid,
            "number" => Form::Number,
            "base64" => Form::Base64,
            _ => return None,
        })
    }

    fn holds(self, text: &str) -> bool {
        match self {
            Form::Etag => text.len() > 2 && text.starts_with('"') && text.ends_with('"'),
            Form::Date => Timestamp::parse_rfc1123(text).is_some(),
            Form::Time => text.len() == 28 && Timestamp::parse_iso(text).is_some(),
            Form::Guid => is_guid(text),
            Form::Number => text.parse::<u64>().is_ok(),
            Form::Base64 => !text.is_empty() && STANDARD.decode(text).is_ok(),
        }
    }
}

fn is_guid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Is(String),
    Has,
    Lacks,
    Form(Form),
    Count(usize),
    Contains(String),
    Excludes(String),
    Are(String),
    Same(String),
    Differs(String),
    Later(String),
}

/// One expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// The expectation as written.
    pub text: String,
    /// Part of the answer that it is about.
    pub aspect: Aspect,
    /// Location of the value in the answer.
    pub place: Place,
    test: Test,
}

/// Why a string is not an expectation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid expectation: {0}")]
pub struct ExpectError(pub String);

/// Form for a connection that ends without an answer.
const CLOSED: &str = "closed";
/// Status that stands for a missing answer.
const NO_ANSWER: &str = "0";
/// Signs between place and value, longer ones first.
const SIGNS: [&str; 9] = [
    " == ", " != ", " > ", " = ", " ~ ", " # ", " * ", " !* ", " are ",
];

impl Expect {
    /// Parses an expectation; a status with a code gives two.
    pub fn parse(text: &str) -> Result<Vec<Expect>, ExpectError> {
        let wrong = || ExpectError(text.to_owned());
        let one = |aspect, place, test| Expect {
            text: text.to_owned(),
            aspect,
            place,
            test,
        };
        if text == CLOSED {
            let test = Test::Is(NO_ANSWER.to_owned());
            return Ok(vec![one(Aspect::Status, Place::Status, test)]);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return status(text).ok_or_else(wrong);
        }
        for (word, test) in [("has ", Test::Has), ("no ", Test::Lacks)] {
            if let Some(place) = text.strip_prefix(word) {
                let place = Place::parse(place);
                return Ok(vec![one(aspect_of(&place), place, test)]);
            }
        }
        // The sign may end the line when the value is empty.
        let padded = format!("{text} ");
        let (text, (at, sign)) = [text, padded.as_str()]
            .into_iter()
            .find_map(|text| Some((text, sign(text)?)))
            .ok_or_else(wrong)?;
        let (place, value) = (Place::parse(&text[..at]), &text[at + sign.len()..]);
        let value = || value.to_owned();
        let test = match sign.trim() {
            "==" => Test::Same(value()),
            "!=" => Test::Differs(value()),
            ">" => Test::Later(value()),
            "=" => Test::Is(value()),
            "~" => Test::Form(Form::parse(&value()).ok_or_else(wrong)?),
            "!*" => Test::Excludes(value()),
            "are" => Test::Are(value()),
            "#" => Test::Count(value().parse().map_err(|_| wrong())?),
            _ => Test::Contains(value()),
        };
        let aspect = match test {
            Test::Same(_) | Test::Differs(_) | Test::Later(_) => Aspect::Relations,
            _ => aspect_of(&place),
        };
        Ok(vec![one(aspect, place, test)])
    }

    /// Whether this expectation is about the status.
    pub fn is_status(&self) -> bool {
        self.place == Place::Status
    }

    /// Returns the expected status, if this is about the status.
    pub fn status(&self) -> Option<u16> {
        match &self.test {
            Test::Is(status) if self.is_status() => status.parse().ok(),
            _ => None,
        }
    }

    /// Checks an answer; returns `None` when the expectation holds, otherwise the actual value.
    ///
    /// # Errors
    /// When the expectation uses a value that was never kept.
    pub fn judge(&self, answer: &Answer, values: &Values) -> Result<Option<String>, ValuesError> {
        let found = self.place.value(answer);
        let text = || found.clone().unwrap_or_else(|| "nothing".to_owned());
        let holds = match &self.test {
            Test::Is(value) => found.as_deref() == Some(&*values.text(value)?),
            Test::Has => found.is_some(),
            Test::Lacks => found.is_none(),
            Test::Form(form) => found.as_deref().is_some_and(|found| form.holds(found)),
            Test::Count(count) => {
                let got = self.place.count(answer);
                return Ok((got != *count).then(|| got.to_string()));
            }
            Test::Contains(part) => {
                let part = values.text(part)?;
                found.as_deref().is_some_and(|found| found.contains(&part))
            }
            Test::Excludes(part) => {
                let part = values.text(part)?;
                !found.as_deref().is_some_and(|found| found.contains(&part))
            }
            Test::Are(all) => {
                let found = self.place.values(answer).join(" ");
                return Ok((found != values.text(all)?).then_some(found));
            }
            Test::Same(value) => found.as_deref() == Some(&*values.text(value)?),
            Test::Differs(value) => {
                let other = values.text(value)?;
                found.as_deref().is_some_and(|found| found != other)
            }
            Test::Later(value) => {
                let earlier = values.text(value)?;
                found
                    .as_deref()
                    .is_some_and(|found| is_later(found, &earlier))
            }
        };
        Ok((!holds).then(text))
    }
}

/// Returns the first sign between place and value, with its position.
fn sign(text: &str) -> Option<(usize, &'static str)> {
    let signs = SIGNS.into_iter();
    let found = signs.filter_map(|sign| Some((text.find(sign)?, sign)));
    found.min_by_key(|(at, _)| *at)
}

fn aspect_of(place: &Place) -> Aspect {
    match place {
        Place::Status => Aspect::Status,
        Place::Code => Aspect::Code,
        Place::Header(_) => Aspect::Headers,
        Place::Element(_) | Place::Body | Place::Parts => Aspect::Body,
    }
}

/// Parses `201`, or `409 BlobAlreadyExists`.
fn status(text: &str) -> Option<Vec<Expect>> {
    let mut words = text.split(' ');
    let status = words.next()?;
    status.parse::<u16>().ok()?;
    let expect = |aspect, place, value: &str| Expect {
        text: value.to_owned(),
        aspect,
        place,
        test: Test::Is(value.to_owned()),
    };
    let mut found = vec![expect(Aspect::Status, Place::Status, status)];
    found.extend(
        words
            .next()
            .map(|code| expect(Aspect::Code, Place::Code, code)),
    );
    words.next().is_none().then_some(found)
}

/// Compares dates by time, numbers by value, and everything else as strings.
fn is_later(found: &str, earlier: &str) -> bool {
    // The ETag of an entity is its time.
    let bare = |text: &str| {
        decode(
            text.trim_start_matches("W/\"datetime'")
                .trim_end_matches("'\""),
        )
    };
    let date = |text: &str| Timestamp::parse_rfc1123(text).or_else(|| Timestamp::parse_iso(text));
    if let (Some(found), Some(earlier)) = (date(&bare(found)), date(&bare(earlier))) {
        return found > earlier;
    }
    match (found.parse::<u64>(), earlier.parse::<u64>()) {
        (Ok(found), Ok(earlier)) => found > earlier,
        _ => found > earlier,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn answer() -> Answer {
        Answer {
            status: 200,
            headers: [
                ("etag", "\"0x1\""),
                ("date", "Sat, 21 Nov 2026 11:00:00 GMT"),
                ("x-ms-lease-id", "6f8b0f6a-1c4e-4d50-9e4f-0a4f6cf7a111"),
                ("content-length", "14"),
            ]
            .into_iter()
            .collect(),
            body: Bytes::from_static(b"<A><B>x</B></A>"),
        }
    }

    fn judged(text: &str) -> Vec<Option<String>> {
        let mut values = Values::default();
        values.keep("old", "\"0x0\"");
        values.keep("then", "Sat, 21 Nov 2026 10:59:59 GMT");
        let expects = Expect::parse(text).unwrap();
        let judge = |expect: &Expect| expect.judge(&answer(), &values).unwrap();
        expects.iter().map(judge).collect()
    }

    /// Every form holds when it should, and reports the actual value when it does not.
    #[test]
    fn every_form_holds_or_reports_the_actual_value() {
        for text in [
            "200",
            "has etag",
            "no last-modified",
            "/A/B = x",
            "etag ~ etag",
            "date ~ date",
            "x-ms-lease-id ~ guid",
            "content-length ~ number",
            "/A/B # 1",
            "body # 15",
            "body * <B>",
            "body !* <C>",
            "/A[*]/B are x",
            "/A/C[*] are",
            "etag != {old}",
            "date > {then}",
            "/A/B == x",
        ] {
            assert_eq!(judged(text), [None], "{text}");
        }
        for (text, got) in [
            ("201", "200"),
            ("has last-modified", "nothing"),
            ("no /A/B", "x"),
            ("/A/B = y", "x"),
            ("/A/B ~ number", "x"),
            ("/A/B # 2", "1"),
            ("etag == {old}", "\"0x1\""),
            ("closed", "200"),
            ("body !* <B>", "<A><B>x</B></A>"),
            ("/A/B are x y", "x"),
            (
                "date > Sat, 21 Nov 2026 11:00:00 GMT",
                "Sat, 21 Nov 2026 11:00:00 GMT",
            ),
        ] {
            assert_eq!(judged(text), [Some(got.to_owned())], "{text}");
        }
        assert_eq!(
            judged("409 A"),
            [Some("200".to_owned()), Some("nothing".to_owned())]
        );
    }

    #[test]
    fn unknown_form_is_rejected() {
        for text in ["", "etag", "20x", "409 A B", "etag ~ shiny", "/A # x"] {
            assert!(Expect::parse(text).is_err(), "{text}");
        }
        let values = Values::default();
        let unknown = &Expect::parse("etag == {never}").unwrap()[0];
        assert!(unknown.judge(&answer(), &values).is_err());
    }
}
