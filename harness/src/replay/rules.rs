//! The one table of relaxed comparisons. What is not named here is compared exactly.

use super::bindings::Kind;

/// Seconds that two recorded dates of one event lie apart: the front end writes `Date` before the
/// partition server stamps `Last-Modified` with its own clock (0 to 2 s in the corpus).
pub const DATE_TOLERANCE_S: u64 = 2;

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Not at all, neither its presence nor its value.
    Ignore,
    /// Presence only.
    Exists,
    /// As an invented value: same form, and paired one to one.
    Bound(Kind),
    /// As a date in the same format, at most [`DATE_TOLERANCE_S`] away.
    Date,
    /// As a whole number, at most [`DATE_TOLERANCE_S`] away.
    Seconds,
    /// As a URL: account and invented values as the target writes them.
    Url,
    /// As the text of an error: lines with the request's id and time left out.
    Message,
    /// As a media type: neither white space nor the id in the boundary of a batch counts.
    MediaType,
    /// As a set of header names, those of the transport left out.
    NameSet,
    /// Exactly for HEAD; elsewhere its presence is free and its value must fit the body.
    Length,
    /// As `Bearer` parameters with the tenant left out.
    Challenge,
    /// As `account.Table`, the account left out.
    EntityType,
}

/// Where a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A response header, also of a batch's part.
    Header,
    /// An element's text.
    Element,
    /// An element's attribute.
    Attribute,
    /// A member of a JSON object.
    Member,
}

/// One relaxed comparison.
#[derive(Debug)]
pub struct Rule {
    /// Where.
    pub place: Place,
    /// The name there in lower case, `parent/name` when it means something else elsewhere.
    pub field: &'static str,
    /// How it is compared.
    pub how: How,
    /// Why that is right.
    pub reason: &'static str,
}

const INVENTED: &str = "the service invents it; form and identity are compared";
const CLOCK: &str = "front end and partition server have own clocks";
const TRANSPORT: &str = "belongs to the connection; recorders and in-process calls have none";
const STAMPED: &str = "ends with the request's id and time";
const ACCOUNT: &str = "holds the account's address; compared after mapping it";

const UNNAMED: &str = "starts with the account's own name, which recorders left as it was";

const fn rule(place: Place, field: &'static str, how: How, reason: &'static str) -> Rule {
    Rule {
        place,
        field,
        how,
        reason,
    }
}

/// Every relaxed comparison.
pub const RULES: &[Rule] = &[
    rule(Place::Header, "transfer-encoding", How::Ignore, TRANSPORT),
    rule(Place::Header, "connection", How::Ignore, TRANSPORT),
    rule(Place::Header, "keep-alive", How::Ignore, TRANSPORT),
    rule(
        Place::Header,
        "content-length",
        How::Length,
        "chunked or counted is the transport's choice",
    ),
    rule(
        Place::Header,
        "server",
        How::Exists,
        "names the software, not the protocol",
    ),
    rule(
        Place::Header,
        "x-ms-request-id",
        How::Exists,
        "unique for each request by definition",
    ),
    rule(Place::Header, "date", How::Date, CLOCK),
    rule(Place::Header, "etag", How::Bound(Kind::ETag), INVENTED),
    rule(Place::Header, "last-modified", How::Date, CLOCK),
    rule(Place::Header, "x-ms-creation-time", How::Date, CLOCK),
    rule(Place::Header, "x-ms-copy-completion-time", How::Date, CLOCK),
    rule(
        Place::Header,
        "x-ms-access-tier-change-time",
        How::Date,
        CLOCK,
    ),
    rule(Place::Header, "x-ms-last-access-time", How::Date, CLOCK),
    rule(Place::Header, "x-ms-time-next-visible", How::Date, CLOCK),
    rule(Place::Header, "x-ms-lease-time", How::Seconds, CLOCK),
    rule(
        Place::Header,
        "x-ms-lease-id",
        How::Bound(Kind::LeaseId),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-snapshot",
        How::Bound(Kind::Snapshot),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-copy-destination-snapshot",
        How::Bound(Kind::Snapshot),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-version-id",
        How::Bound(Kind::VersionId),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-copy-id",
        How::Bound(Kind::CopyId),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-popreceipt",
        How::Bound(Kind::PopReceipt),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-continuation-nexttablename",
        How::Bound(Kind::Marker),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-continuation-nextpartitionkey",
        How::Bound(Kind::Marker),
        INVENTED,
    ),
    rule(
        Place::Header,
        "x-ms-continuation-nextrowkey",
        How::Bound(Kind::Marker),
        INVENTED,
    ),
    rule(Place::Header, "location", How::Url, ACCOUNT),
    rule(Place::Header, "dataserviceid", How::Url, ACCOUNT),
    rule(Place::Header, "x-ms-copy-source", How::Url, ACCOUNT),
    rule(
        Place::Header,
        "content-type",
        How::MediaType,
        "one recorder writes media types anew; each answer has a boundary of its own",
    ),
    rule(
        Place::Header,
        "access-control-expose-headers",
        How::NameSet,
        "names the answer's headers, whose order is no evidence",
    ),
    rule(
        Place::Header,
        "www-authenticate",
        How::Challenge,
        "the tenant is the account's own",
    ),
    rule(Place::Element, "etag", How::Bound(Kind::ETag), INVENTED),
    rule(Place::Element, "last-modified", How::Date, CLOCK),
    rule(Place::Element, "creation-time", How::Date, CLOCK),
    rule(Place::Element, "copycompletiontime", How::Date, CLOCK),
    rule(Place::Element, "accesstierchangetime", How::Date, CLOCK),
    rule(Place::Element, "lastaccesstime", How::Date, CLOCK),
    rule(Place::Element, "deletedtime", How::Date, CLOCK),
    rule(Place::Element, "insertiontime", How::Date, CLOCK),
    rule(Place::Element, "expirationtime", How::Date, CLOCK),
    rule(Place::Element, "timenextvisible", How::Date, CLOCK),
    rule(Place::Element, "updated", How::Date, CLOCK),
    rule(Place::Element, "d:timestamp", How::Date, CLOCK),
    rule(Place::Element, "lastsynctime", How::Date, CLOCK),
    rule(
        Place::Element,
        "snapshot",
        How::Bound(Kind::Snapshot),
        INVENTED,
    ),
    rule(
        Place::Element,
        "copydestinationsnapshot",
        How::Bound(Kind::Snapshot),
        INVENTED,
    ),
    rule(
        Place::Element,
        "versionid",
        How::Bound(Kind::VersionId),
        INVENTED,
    ),
    rule(Place::Element, "copyid", How::Bound(Kind::CopyId), INVENTED),
    rule(
        Place::Element,
        "messageid",
        How::Bound(Kind::MessageId),
        INVENTED,
    ),
    rule(
        Place::Element,
        "popreceipt",
        How::Bound(Kind::PopReceipt),
        INVENTED,
    ),
    rule(
        Place::Element,
        "nextmarker",
        How::Bound(Kind::Marker),
        INVENTED,
    ),
    rule(
        Place::Element,
        "marker",
        How::Url,
        "echoes the request's marker",
    ),
    rule(
        Place::Element,
        "container/version",
        How::Bound(Kind::DeletedVersion),
        INVENTED,
    ),
    rule(Place::Element, "copysource", How::Url, ACCOUNT),
    rule(Place::Element, "id", How::Url, ACCOUNT),
    rule(
        Place::Element,
        "userdelegationkey/value",
        How::Bound(Kind::DelegationKey),
        INVENTED,
    ),
    rule(
        Place::Element,
        "signedoid",
        How::Bound(Kind::DelegationKey),
        INVENTED,
    ),
    rule(
        Place::Element,
        "signedtid",
        How::Bound(Kind::DelegationKey),
        INVENTED,
    ),
    rule(Place::Element, "error/message", How::Message, STAMPED),
    rule(Place::Element, "m:error/m:message", How::Message, STAMPED),
    rule(
        Place::Element,
        "authenticationerrordetail",
        How::Exists,
        "quotes redacted signatures",
    ),
    rule(Place::Attribute, "serviceendpoint", How::Url, ACCOUNT),
    rule(Place::Attribute, "containername", How::Url, ACCOUNT),
    rule(Place::Attribute, "xml:base", How::Url, ACCOUNT),
    rule(Place::Attribute, "href", How::Url, ACCOUNT),
    rule(Place::Attribute, "m:etag", How::Bound(Kind::ETag), INVENTED),
    rule(
        Place::Member,
        "odata.etag",
        How::Bound(Kind::ETag),
        INVENTED,
    ),
    rule(Place::Member, "timestamp", How::Date, CLOCK),
    rule(Place::Attribute, "category/term", How::EntityType, UNNAMED),
    rule(Place::Member, "odata.type", How::EntityType, UNNAMED),
    rule(Place::Member, "odata.metadata", How::Url, ACCOUNT),
    rule(Place::Member, "odata.id", How::Url, ACCOUNT),
    rule(Place::Member, "odata.editlink", How::Url, ACCOUNT),
    rule(Place::Member, "message/value", How::Message, STAMPED),
];

/// Relaxed comparisons that the project's corpus, a part of what was recorded, does not use, by
/// their fields; and what uses them.
const USED_ELSEWHERE: &[(&str, &str)] = &[
    (
        "connection",
        "production closes connections, Azurite keeps them",
    ),
    ("keep-alive", "Azurite says how long"),
    ("lastsynctime", "Get Service Stats of a secondary"),
    ("userdelegationkey/value", "Get User Delegation Key"),
    ("signedoid", "Get User Delegation Key"),
    ("signedtid", "Get User Delegation Key"),
    (
        "authenticationerrordetail",
        "refused signatures: `harness record` redacts it",
    ),
];

/// What uses a rule that the project's corpus does not use.
pub fn used_elsewhere(rule: &Rule) -> Option<&'static str> {
    let mut known = USED_ELSEWHERE.iter();
    known
        .find(|(field, _)| *field == rule.field)
        .map(|(_, user)| *user)
}

/// Headers that some recorders dropped from every answer, and how that is recognised: a recording
/// without a single one says nothing about them.
pub const DROPPED_BY_RECORDERS: &[&str] = &[
    "x-ms-copy-source",
    "x-ms-request-id",
    "x-ms-client-request-id",
    "server",
];

/// The rule for a value, and its index in [`RULES`]; `None` means exact. Names in any case.
///
/// What stands below `Metadata` is the client's own and always exact.
pub fn find(place: Place, parent: &str, field: &str) -> Option<(usize, &'static Rule)> {
    if parent.eq_ignore_ascii_case("metadata") {
        return None;
    }
    let same = |rule: &Rule| match rule.field.split_once('/') {
        Some((above, name)) => {
            above.eq_ignore_ascii_case(parent) && name.eq_ignore_ascii_case(field)
        }
        None => rule.field.eq_ignore_ascii_case(field),
    };
    RULES
        .iter()
        .enumerate()
        .find(|(_, rule)| rule.place == place && same(rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_stands_twice_and_all_give_reasons() {
        for (index, rule) in RULES.iter().enumerate() {
            let (parent, name) = rule.field.split_once('/').unwrap_or(("", rule.field));
            assert_eq!(
                find(rule.place, parent, name).map(|(i, _)| i),
                Some(index),
                "{rule:?}"
            );
            assert!(rule.reason.len() > 15 && rule.field == rule.field.to_ascii_lowercase());
        }
        for (field, user) in USED_ELSEWHERE {
            let mut of_field = RULES.iter().filter(|rule| rule.field == *field);
            assert_eq!(of_field.next().and_then(used_elsewhere), Some(*user));
            assert!(of_field.next().is_none(), "{field} stands in two places");
        }
        assert!(find(Place::Header, "", "ETag").is_some());
        assert!(find(Place::Header, "", "content-md5").is_none());
        assert!(find(Place::Element, "Metadata", "ETag").is_none());
        assert!(find(Place::Element, "Logging", "Version").is_none());
    }
}
