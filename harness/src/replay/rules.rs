//! The table of all relaxed comparisons. Everything else is compared exactly.

use super::bindings::Kind;

/// Most seconds between two recorded dates of one event: the front end writes `Date` before the
/// partition server writes `Last-Modified` with its own clock (0 to 2 s in the corpus).
pub const DATE_TOLERANCE_S: u64 = 2;

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Neither presence nor value are compared.
    Ignore,
    /// Only the presence is compared.
    Exists,
    /// An invented value: the same form, and paired one to one.
    Bound(Kind),
    /// A date in the same format, at most [`DATE_TOLERANCE_S`] away.
    Date,
    /// A whole number, at most [`DATE_TOLERANCE_S`] away.
    Seconds,
    /// A URL, with the account and invented values as the target writes them.
    Url,
    /// The text of an error, without the lines of the request's id and time.
    Message,
    /// A media type, without white space and without the id in the boundary of a batch.
    MediaType,
    /// A set of header names, without those of the transport.
    NameSet,
    /// Exact for HEAD; elsewhere it may be missing, and its value must fit the body.
    Length,
    /// `Bearer` parameters, without the tenant.
    Challenge,
    /// `account.Table`, without the account.
    EntityType,
}

/// Where a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A response header, including those of a batch's part.
    Header,
    /// The text of an element.
    Element,
    /// An attribute of an element.
    Attribute,
    /// A member of a JSON object.
    Member,
}

/// One relaxed comparison.
#[derive(Debug)]
pub struct Rule {
    /// The place of the value.
    pub place: Place,
    /// Name in lower case; `parent/name` when the name means something else elsewhere.
    pub field: &'static str,
    /// How it is compared.
    pub how: How,
    /// Why that is right.
    pub reason: &'static str,
    /// What uses the rule where the project's corpus, which is only part of the recordings, does
    /// not.
    pub elsewhere: Option<&'static str>,
}

impl Rule {
    const fn used_by(self, user: &'static str) -> Rule {
        Rule {
            elsewhere: Some(user),
            ..self
        }
    }
}

const INVENTED: &str = "the service invents it; form and identity are compared";
const CLOCK: &str = "front end and partition server have own clocks";
const TRANSPORT: &str = "belongs to the connection; recorders and in-process calls have none";
const STAMPED: &str = "ends with the request's id and time";
const ACCOUNT: &str = "holds the account's address; compared after mapping it";

const UNNAMED: &str = "starts with the account's own name, which recorders left as it was";

/// What uses the rules of the Data Lake interface.
const DATA_LAKE: &str = "recordings of hierarchical accounts";
const DELEGATION: &str = "Get User Delegation Key";

/// How a value is compared, and why that is right.
type Relaxed = (How, &'static str);

const DATED: Relaxed = (How::Date, CLOCK);
const ADDRESSED: Relaxed = (How::Url, ACCOUNT);

const fn invented(kind: Kind) -> Relaxed {
    (How::Bound(kind), INVENTED)
}

const fn rule(place: Place, field: &'static str, (how, reason): Relaxed) -> Rule {
    Rule {
        place,
        field,
        how,
        reason,
        elsewhere: None,
    }
}

const fn header(field: &'static str, relaxed: Relaxed) -> Rule {
    rule(Place::Header, field, relaxed)
}

const fn element(field: &'static str, relaxed: Relaxed) -> Rule {
    rule(Place::Element, field, relaxed)
}

const fn attribute(field: &'static str, relaxed: Relaxed) -> Rule {
    rule(Place::Attribute, field, relaxed)
}

const fn member(field: &'static str, relaxed: Relaxed) -> Rule {
    rule(Place::Member, field, relaxed)
}

/// All relaxed comparisons.
pub const RULES: &[Rule] = &[
    header("transfer-encoding", (How::Ignore, TRANSPORT)),
    header("connection", (How::Ignore, TRANSPORT))
        .used_by("production closes connections, Azurite keeps them"),
    header("keep-alive", (How::Ignore, TRANSPORT)).used_by("Azurite says how long"),
    header(
        "content-length",
        (How::Length, "chunked or counted is the transport's choice"),
    ),
    header(
        "server",
        (How::Exists, "names the software, not the protocol"),
    ),
    header(
        "x-ms-request-id",
        (How::Exists, "unique for each request by definition"),
    ),
    header("date", DATED),
    header("etag", invented(Kind::ETag)),
    header("last-modified", DATED),
    header("x-ms-creation-time", DATED),
    header("x-ms-copy-completion-time", DATED),
    header("x-ms-access-tier-change-time", DATED),
    header("x-ms-last-access-time", DATED),
    header("x-ms-time-next-visible", DATED),
    header("x-ms-lease-time", (How::Seconds, CLOCK)),
    header("x-ms-lease-id", invented(Kind::LeaseId)),
    header("x-ms-snapshot", invented(Kind::Snapshot)),
    header("x-ms-copy-destination-snapshot", invented(Kind::Snapshot)),
    header("x-ms-version-id", invented(Kind::VersionId)),
    header("x-ms-copy-id", invented(Kind::CopyId)),
    header("x-ms-popreceipt", invented(Kind::PopReceipt)),
    header("x-ms-continuation-nexttablename", invented(Kind::Marker)),
    header("x-ms-continuation-nextpartitionkey", invented(Kind::Marker)),
    header("x-ms-continuation-nextrowkey", invented(Kind::Marker)),
    header("x-ms-continuation", invented(Kind::Marker)).used_by(DATA_LAKE),
    header("x-ms-deletion-id", invented(Kind::DeletedVersion)).used_by(DATA_LAKE),
    header("x-ms-expiry-time", DATED).used_by(DATA_LAKE),
    header("location", ADDRESSED),
    header("dataserviceid", ADDRESSED),
    header("x-ms-copy-source", ADDRESSED),
    header(
        "content-type",
        (
            How::MediaType,
            "one recorder writes media types anew; each answer has a boundary of its own",
        ),
    ),
    header(
        "access-control-expose-headers",
        (
            How::NameSet,
            "names the answer's headers, whose order is no evidence",
        ),
    ),
    header(
        "www-authenticate",
        (How::Challenge, "the tenant is the account's own"),
    ),
    element("etag", invented(Kind::ETag)),
    element("last-modified", DATED),
    element("creation-time", DATED),
    element("copycompletiontime", DATED),
    element("accesstierchangetime", DATED),
    element("lastaccesstime", DATED),
    element("deletedtime", DATED),
    element("insertiontime", DATED),
    element("expirationtime", DATED),
    element("timenextvisible", DATED),
    element("updated", DATED),
    element("d:timestamp", DATED),
    element("lastsynctime", DATED).used_by("Get Service Stats of a secondary"),
    element("snapshot", invented(Kind::Snapshot)),
    element("copydestinationsnapshot", invented(Kind::Snapshot)),
    element("versionid", invented(Kind::VersionId)),
    element("copyid", invented(Kind::CopyId)),
    element("messageid", invented(Kind::MessageId)),
    element("popreceipt", invented(Kind::PopReceipt)),
    element("nextmarker", invented(Kind::Marker)),
    element("marker", (How::Url, "echoes the request's marker")),
    element("container/version", invented(Kind::DeletedVersion)),
    element("deletionid", invented(Kind::DeletedVersion)).used_by(DATA_LAKE),
    element("expiry-time", DATED).used_by(DATA_LAKE),
    element("copysource", ADDRESSED),
    element("id", ADDRESSED),
    element("userdelegationkey/value", invented(Kind::DelegationKey)).used_by(DELEGATION),
    element("signedoid", invented(Kind::DelegationKey)).used_by(DELEGATION),
    element("signedtid", invented(Kind::DelegationKey)).used_by(DELEGATION),
    element("error/message", (How::Message, STAMPED)),
    element("m:error/m:message", (How::Message, STAMPED)),
    element(
        "authenticationerrordetail",
        (How::Exists, "quotes redacted signatures"),
    )
    .used_by("refused signatures: `harness record` redacts it"),
    attribute("serviceendpoint", ADDRESSED),
    attribute("containername", ADDRESSED),
    attribute("xml:base", ADDRESSED),
    attribute("href", ADDRESSED),
    attribute("m:etag", invented(Kind::ETag)),
    member("odata.etag", invented(Kind::ETag)),
    member("timestamp", DATED),
    attribute("category/term", (How::EntityType, UNNAMED)),
    member("odata.type", (How::EntityType, UNNAMED)),
    member("odata.metadata", ADDRESSED),
    member("odata.id", ADDRESSED),
    member("odata.editlink", ADDRESSED),
    member("message/value", (How::Message, STAMPED)),
    member("error/message", (How::Message, STAMPED)).used_by(DATA_LAKE),
    member("paths/etag", invented(Kind::ETag)).used_by(DATA_LAKE),
    member("paths/lastmodified", DATED).used_by(DATA_LAKE),
    member("paths/creationtime", (How::Exists, CLOCK)).used_by(DATA_LAKE),
];

/// Headers that some recorders dropped from every answer. A recording in which one never occurs
/// proves nothing about it.
pub const DROPPED_BY_RECORDERS: &[&str] = &[
    "x-ms-copy-source",
    "x-ms-request-id",
    "x-ms-client-request-id",
    "server",
];

/// Returns the index in [`RULES`] of the rule for a value, and how it is compared; `None` means an
/// exact comparison. The case of names does not matter.
///
/// Everything below `Metadata` comes from the client and is always compared exactly.
pub fn find(place: Place, parent: &str, field: &str) -> Option<(usize, How)> {
    if parent.eq_ignore_ascii_case("metadata") {
        return None;
    }
    let same = |rule: &Rule| match rule.field.split_once('/') {
        Some((above, name)) => {
            above.eq_ignore_ascii_case(parent) && name.eq_ignore_ascii_case(field)
        }
        None => rule.field.eq_ignore_ascii_case(field),
    };
    let index = RULES
        .iter()
        .position(|rule| rule.place == place && same(rule))?;
    Some((index, RULES[index].how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_unique_and_have_reasons() {
        for (index, rule) in RULES.iter().enumerate() {
            let (parent, name) = rule.field.split_once('/').unwrap_or(("", rule.field));
            assert_eq!(
                find(rule.place, parent, name).map(|(i, _)| i),
                Some(index),
                "{rule:?}"
            );
            assert!(rule.reason.len() > 15 && rule.field == rule.field.to_ascii_lowercase());
        }
        assert!(find(Place::Header, "", "ETag").is_some());
        assert!(find(Place::Header, "", "content-md5").is_none());
        assert!(find(Place::Element, "Metadata", "ETag").is_none());
        assert!(find(Place::Element, "Logging", "Version").is_none());
    }
}
