//! Compares one recorded value with one live value under the rule of its place.

use std::collections::BTreeSet;

use smalt_protocol::Timestamp;

use super::bindings::{Bindings, Kind};
use super::hosts::Hosts;
use super::rules::{DATE_TOLERANCE_S, How};
use super::timeline::Timeline;

/// How two values differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unequal {
    /// They differ; contains the expected live value.
    Value(String),
    /// Each is valid by itself, but the live one is not the partner of the recorded one.
    Relation(String),
}

/// The context in which two values are compared.
pub struct Context<'a> {
    /// Accounts of the recording, and their addresses.
    pub hosts: &'a Hosts,
    /// The pairs of values so far.
    pub bindings: &'a mut Bindings,
    /// Account of the request, at the target.
    pub account: &'a str,
    /// How dates are shifted, where the target's clock cannot be set.
    pub timeline: Option<&'a Timeline>,
}

impl Context<'_> {
    /// Compares two values; shifts the dates in the recorded one where necessary.
    ///
    /// # Errors
    /// When they differ in a way that the rule does not allow.
    pub fn check(&mut self, how: Option<How>, recorded: &str, live: &str) -> Result<(), Unequal> {
        let mut found = self.check_unmoved(how, recorded, live);
        let Some(timeline) = self.timeline else {
            return found;
        };
        if matches!(found, Err(Unequal::Value(_))) {
            // An answer repeats values whose dates were shifted in the request.
            for moved in timeline.texts(recorded) {
                found = self.check_unmoved(how, &moved, live);
                if found.is_ok() {
                    break;
                }
            }
        }
        found
    }

    fn check_unmoved(
        &mut self,
        how: Option<How>,
        recorded: &str,
        live: &str,
    ) -> Result<(), Unequal> {
        let alike = |equal: bool| {
            if equal {
                Ok(())
            } else {
                Err(Unequal::Value(recorded.to_owned()))
            }
        };
        match how {
            None => alike(recorded == live),
            Some(How::Ignore | How::Length) => Ok(()),
            Some(How::Exists) => alike(recorded.is_empty() == live.is_empty()),
            Some(How::Bound(kind)) => self.bound(kind, recorded, live),
            Some(How::Date) => {
                self.bindings.bind_date(recorded, live);
                alike(dates_agree(recorded, live))
            }
            Some(How::Seconds) => alike(seconds_agree(recorded, live)),
            Some(How::Url) => {
                let expected = self.mapped(recorded);
                if without_signature(&expected) == without_signature(live) {
                    Ok(())
                } else {
                    Err(Unequal::Value(expected))
                }
            }
            Some(How::Message) => alike(message(recorded) == message(live)),
            Some(How::MediaType) => alike(media_type(recorded) == media_type(live)),
            Some(How::NameSet) => alike(name_set(recorded) == name_set(live)),
            Some(How::Challenge) => alike(challenge(recorded) == challenge(live)),
            Some(How::EntityType) => alike(entity_type(recorded) == entity_type(live)),
        }
    }

    fn mapped(&self, recorded: &str) -> String {
        let text = self.hosts.rewrite_text(recorded, self.account);
        // A marker may be as short as a name: it is only recognised as a whole.
        let marker = Some(Kind::Marker);
        self.bindings.substitute(&text, marker).unwrap_or(text)
    }

    fn bound(&mut self, kind: Kind, recorded: &str, live: &str) -> Result<(), Unequal> {
        if recorded.is_empty() && live.is_empty() {
            return Ok(());
        }
        if shape(kind, recorded) != shape(kind, live) {
            return Err(Unequal::Value(recorded.to_owned()));
        }
        let pairing = self
            .bindings
            .bind(kind, core(kind, recorded), core(kind, live));
        pairing.map_err(|broken| Unequal::Relation(broken.to_string()))
    }
}

/// Removes the quotes of an ETag, which may be missing on one side.
pub fn core(kind: Kind, text: &str) -> &str {
    match kind {
        Kind::ETag => text.strip_prefix("W/").unwrap_or(text).trim_matches('"'),
        _ => text,
    }
}

/// Returns the form of a value of this kind, independent of the value itself.
fn shape(kind: Kind, text: &str) -> String {
    let only = |keep: fn(char) -> bool| text.chars().filter(|c| keep(*c)).collect::<String>();
    match kind {
        Kind::ETag => {
            let start: String = core(kind, text)
                .chars()
                .take_while(|c| !c.is_ascii_digit())
                .collect();
            format!("{}{}{start}", text.starts_with("W/"), text.contains('"'))
        }
        Kind::LeaseId | Kind::CopyId | Kind::MessageId => {
            format!("{} {}", text.len(), only(|c| c == '-'))
        }
        Kind::Snapshot | Kind::VersionId => {
            format!("{} {}", text.len(), only(|c| "-T:.Z".contains(c)))
        }
        Kind::PopReceipt | Kind::Marker | Kind::DeletedVersion | Kind::DelegationKey => {
            text.is_empty().to_string()
        }
    }
}

fn dates_agree(recorded: &str, live: &str) -> bool {
    let near = |a: Timestamp, b: Timestamp| {
        let apart = if a > b { a.since(b) } else { b.since(a) };
        apart.as_secs() <= DATE_TOLERANCE_S
    };
    let pair = |read: fn(&str) -> Option<Timestamp>| Some((read(recorded)?, read(live)?));
    match pair(Timestamp::parse_rfc1123).or_else(|| pair(Timestamp::parse_iso)) {
        Some((recorded, live)) => near(recorded, live),
        None => recorded == live,
    }
}

fn seconds_agree(recorded: &str, live: &str) -> bool {
    match (recorded.parse::<u64>(), live.parse::<u64>()) {
        (Ok(recorded), Ok(live)) => recorded.abs_diff(live) <= DATE_TOLERANCE_S,
        _ => recorded == live,
    }
}

/// Returns the lines of an error's text; those that change with every request are reduced to their
/// names.
pub(crate) fn message(text: &str) -> Vec<&str> {
    let stamped = ["RequestId:", "Time:"];
    let name = |line: &str| stamped.into_iter().find(|name| line.starts_with(name));
    text.lines()
        .map(|line| name(line).unwrap_or(line))
        .collect()
}

/// Returns a media type without white space, and without the random part of a boundary.
pub(crate) fn media_type(text: &str) -> String {
    const BOUNDARY: &str = "boundary=batchresponse_";
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match text.split_once(BOUNDARY) {
        Some((head, id)) => format!("{head}{BOUNDARY}{}", shape(Kind::CopyId, id)),
        None => text,
    }
}

/// Returns a URL without the value of `sig`: recorded signatures are redacted, live ones made anew.
fn without_signature(text: &str) -> String {
    let Some((head, rest)) = text.split_once("sig=") else {
        return text.to_owned();
    };
    let tail = rest.find('&').map_or("", |at| &rest[at..]);
    format!("{head}sig={tail}")
}

/// Returns the table in `account.Table`, if there is an account before it.
fn entity_type(text: &str) -> Option<&str> {
    let (account, table) = text.split_once('.')?;
    (!account.is_empty()).then_some(table)
}

fn name_set(text: &str) -> BTreeSet<String> {
    let transport = ["transfer-encoding", "content-length", "connection"];
    let names = text.split(',').map(|name| name.trim().to_ascii_lowercase());
    names
        .filter(|name| !transport.contains(&name.as_str()))
        .collect()
}

/// Splits `Bearer authorization_uri=https://host/<tenant>/oauth2/authorize resource_id=...`; the
/// first URL is reduced to its name.
fn challenge(text: &str) -> Vec<&str> {
    let parts = text
        .split_ascii_whitespace()
        .map(|part| part.trim_end_matches(','));
    parts
        .map(|part| match part.split_once('=') {
            Some((name, _)) if name == "authorization_uri" => name,
            _ => part,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::hosts::Addressing;
    use super::super::recording;
    use super::*;

    fn check_moved(
        how: Option<How>,
        timeline: Option<&Timeline>,
        recorded: &str,
        live: &str,
    ) -> Result<(), Unequal> {
        let empty = r#"{"service":"blob","sdk":"x","interactions":0}"#;
        let recording = recording::parse("f", empty).unwrap();
        let hosts = Hosts::of(&recording, Addressing::Host);
        let mut bindings = Bindings::default();
        let mut context = Context {
            hosts: &hosts,
            bindings: &mut bindings,
            account: "account",
            timeline,
        };
        context.check(how, recorded, live)
    }

    /// With a target's clock that is a day and an hour ahead, exactly the dates that are ahead by
    /// as much agree.
    #[test]
    fn dates_agree_at_the_targets_time() {
        let start = Timestamp::parse_iso("2019-05-09T00:57:00Z").unwrap();
        let timeline = Timeline::new(start, start.plus_s(90_000));
        let date = "Thu, 09 May 2019 00:57:10 GMT";
        let day_later = "Fri, 10 May 2019 01:57:10 GMT";
        let two_s_later = "Fri, 10 May 2019 01:57:12 GMT";
        let three_s_later = "Fri, 10 May 2019 01:57:13 GMT";
        let two_days_later = "Sat, 11 May 2019 00:57:10 GMT";
        let (period, period_later) = (
            "2019-05-08T00:00:00.0000000Z",
            "2019-05-09T01:00:00.0000000Z",
        );
        let text = |time: &str| format!("before [{time}].\nRequestId:1\nTime:2");
        let (before, before_later) = (text(period), text(period_later));
        for (how, recorded, live, equal) in [
            (Some(Date), date, day_later, true),
            (Some(Date), date, two_s_later, true),
            (Some(Date), date, three_s_later, false),
            (Some(Date), date, two_days_later, false),
            (None, date, day_later, true),
            (None, date, two_s_later, false),
            (None, period, period_later, true),
            (None, period, "2019-05-09T01:00:00Z", false),
            (None, "2019-02-02", "2019-02-03", false),
            (Some(Message), &before, &before_later, true),
        ] {
            let found = check_moved(how, Some(&timeline), recorded, live);
            assert_eq!(found.is_ok(), equal, "{how:?} {recorded} {live}: {found:?}");
            let is_same = check_moved(how, None, recorded, live).is_ok();
            assert!(!is_same, "{how:?} {recorded} {live}");
        }
    }

    use How::{
        Bound, Challenge, Date, EntityType, Exists, MediaType, Message, NameSet, Seconds, Url,
    };

    const S_10: &str = "Thu, 09 May 2019 00:57:10 GMT";
    const S_12: &str = "Thu, 09 May 2019 00:57:12 GMT";
    const S_13: &str = "Thu, 09 May 2019 00:57:13 GMT";
    const ISO: &str = "2019-05-09T00:57:59.1234567Z";
    const STAMPED: &str = "No.\nRequestId:1\nTime:2";
    const STAMPED_LATER: &str = "No.\nRequestId:3\nTime:4";
    const TABLES: &str = "recorder.Tables";
    const BEARER: &str = "Bearer authorization_uri=https://a/1 resource_id=b";
    const BEARER_B: &str = "Bearer authorization_uri=c resource_id=b";
    const BEARER_D: &str = "Bearer authorization_uri=c resource_id=d";
    const PARTS: &str = "multipart/mixed; boundary=batchresponse_70c5-a";
    const PARTS_AGAIN: &str = "multipart/mixed; boundary=batchresponse_01ab-c";
    const OTHER_PARTS: &str = "multipart/mixed; boundary=batch_70c5-a";

    /// A rule, a recorded value, live values that agree with it, and live values that do not.
    type Limits = (
        How,
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    );

    const LIMITS: &[Limits] = &[
        (Date, S_10, &[S_12], &[S_13, ISO]),
        (Date, "", &[], &[S_13]),
        (Seconds, "10", &["12"], &["13"]),
        (Bound(Kind::Snapshot), ISO, &[], &["2019-05-09T00:57:59Z"]),
        (Exists, "a", &["b"], &[""]),
        (Bound(Kind::ETag), "\"0x1\"", &["\"0x2\""], &["0x2"]),
        (Bound(Kind::ETag), "\"0x1\"", &[], &["\"datetime'2'\""]),
        (Bound(Kind::Marker), "", &[], &["x"]),
        (MediaType, "a/b; c=d", &["a/b;c=d"], &["a/b"]),
        (MediaType, PARTS, &[PARTS_AGAIN], &[OTHER_PARTS]),
        (NameSet, "A,B,Content-Length", &["b, a"], &[]),
        (NameSet, "A,B", &[], &["a"]),
        (EntityType, TABLES, &["account.Tables"], &["Tables"]),
        (EntityType, TABLES, &[], &["account.tables"]),
        (Url, "/c?sig=R&sp=r", &["/c?sig=x%3D&sp=r"], &[]),
        (Url, "/c?sig=R&sp=r", &[], &["/c?sig=x%3D&sp=w"]),
        (Challenge, BEARER, &[BEARER_B], &[BEARER_D]),
        (Message, STAMPED, &[STAMPED_LATER], &["No.\nRequestId:3"]),
        (Message, STAMPED, &[], &["Yes.\nRequestId:1\nTime:2"]),
    ];

    #[test]
    fn each_rule_has_its_limits() {
        for (how, recorded, right, wrong) in LIMITS {
            let check = |live: &str| check_moved(Some(*how), None, recorded, live);
            for live in *right {
                assert_eq!(check(live), Ok(()), "{how:?} {recorded:?} {live:?}");
            }
            for live in *wrong {
                assert!(check(live).is_err(), "{how:?} {recorded:?} {live:?}");
            }
        }
    }
}
