//! Tests of the decision by tables, and of its safety by properties.

use proptest::prelude::*;
use smalt_sleeve::port::{BlobKind, Metadata, Tag};

use super::*;

pub(crate) const NOW: &str = "2026-11-21T10:00:00Z";

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse_iso(text).unwrap()
}

pub(crate) fn blob(metadata: &[(&str, &str)]) -> BlobProperties {
    BlobProperties {
        etag: Tag("\"0x1\"".to_owned()),
        last_modified: at("2026-11-01T00:00:00Z"),
        length: 1,
        content_md5: None,
        content_type: None,
        metadata: metadata
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        lease: LeaseState::Unlocked,
        kind: BlobKind::Block,
        copy: None,
        access_tier: None,
        tag_count: 0,
        tags: None,
    }
}

pub(crate) fn scene<'a>(dead_account: Option<&'a str>, swept: &'a [SweptPlace]) -> Scene<'a> {
    Scene {
        account: "acct",
        container: "events",
        dead_account,
        state: Some(("acct", "smalt-sweeper")),
        swept,
    }
}

fn allowing(container: &str) -> Policy {
    Policy {
        allow: vec![container.to_owned()],
        ..Policy::default()
    }
}

fn outcome(policy: &Policy, seen: &BlobProperties) -> Decision {
    decide(policy, &scene(Some("archive"), &[]), "a/b", seen, at(NOW))
}

const DUE: (&str, &str) = ("TimeToLive", "2026-11-21T10:00:00Z");

/// A directory stays, with a time to live and under a rule.
#[test]
fn a_directory_is_never_removed() {
    let by_rule = Policy {
        rules: vec![Rule {
            container: "events".to_owned(),
            ..Rule::default()
        }],
        ..Policy::default()
    };
    let removed = |seen: &BlobProperties| outcome(&by_rule, seen).removes();
    for (marker, is_directory) in [
        (("hdi_isfolder", "true"), true),
        (("HDI_isFolder", "True"), true),
        (("hdi_isfolder", "false"), false),
        (("isfolder", "true"), false),
    ] {
        let [due, bare] = [blob(&[DUE, marker]), blob(&[marker])];
        assert_eq!(removed(&due), !is_directory, "{marker:?}");
        assert_eq!(removed(&bare), !is_directory, "{marker:?}");
        let kept = Decision::Keep(Outcome::Directory);
        assert_eq!(outcome(&by_rule, &due) == kept, is_directory);
    }
}

/// S5, S6, S7, DS14, DS26: the time to live alone.
#[test]
fn the_time_to_live_decides_inclusively_and_ignores_case() {
    let policy = Policy::default();
    for (key, value, expected) in [
        ("TimeToLive", NOW, None),
        ("timetolive", "2026-11-21T09:59:59Z", None),
        ("TimeToLive", "2026-11-21T10:00:01Z", Some(Outcome::NotDue)),
        ("TimeToLive", "P20D", None),
        ("TimeToLive", "P21D", Some(Outcome::NotDue)),
        ("TimeToLive", "21.11.2026 09:00", Some(Outcome::InvalidTtl)),
        ("TimeToLive", "", Some(Outcome::InvalidTtl)),
        ("TTL", NOW, Some(Outcome::NoTtl)),
        ("DeadBlobContainer", "dbc", Some(Outcome::NoTtl)),
    ] {
        let decision = outcome(&policy, &blob(&[(key, value)]));
        match expected {
            Some(kept) => assert_eq!(decision, Decision::Keep(kept), "{key}={value}"),
            None => assert!(matches!(decision, Decision::Delete { .. }), "{key}={value}"),
        }
    }
}

#[test]
fn grace_age_protection_and_leases_keep_a_due_blob() {
    let policy = Policy {
        grace: Duration::from_secs(1),
        ..Policy::default()
    };
    assert_eq!(
        outcome(&policy, &blob(&[DUE])),
        Decision::Keep(Outcome::NotDue)
    );
    let policy = Policy {
        min_age: Duration::from_secs(30 * 86_400),
        ..Policy::default()
    };
    assert_eq!(
        outcome(&policy, &blob(&[DUE])),
        Decision::Keep(Outcome::TooYoung)
    );
    let policy = Policy {
        protect: vec!["events/a/**".to_owned()],
        ..Policy::default()
    };
    assert_eq!(
        outcome(&policy, &blob(&[DUE])),
        Decision::Keep(Outcome::Protected)
    );
    let mut leased = blob(&[DUE]);
    leased.lease = LeaseState::Locked;
    assert_eq!(
        outcome(&Policy::default(), &leased),
        Decision::Keep(Outcome::Leased)
    );
}

/// DS4, DS5: a blob with an invalid, unconfigured, swept or identical destination stays.
#[test]
fn a_blob_with_a_dead_blob_container_is_never_deleted_instead() {
    let swept = [SweptPlace {
        account: "acct".to_owned(),
        container: "events".to_owned(),
        prefix: "a/".to_owned(),
    }];
    for (value, account, expected) in [
        ("dbc", None, Outcome::DbcUnconfigured),
        ("events", Some("acct"), Outcome::DbcSelf),
        ("events", Some("ACCT-secondary"), Outcome::DbcSelf),
        ("events/a/b", Some("acct"), Outcome::DbcSelf),
        ("events/a/c", Some("acct"), Outcome::DbcSwept),
        ("", Some("archive"), Outcome::BadName),
        ("DBC", Some("archive"), Outcome::BadName),
    ] {
        let seen = blob(&[DUE, ("DeadBlobContainer", value)]);
        let decision = decide(
            &Policy::default(),
            &scene(account, &swept),
            "a/b",
            &seen,
            at(NOW),
        );
        assert_eq!(decision, Decision::Keep(expected), "{value} {account:?}");
    }
    let elsewhere = blob(&[DUE, ("deadblobcontainer", "events/dead/")]);
    let decision = decide(
        &allowing("events"),
        &scene(Some("acct"), &swept),
        "a/b",
        &elsewhere,
        at(NOW),
    );
    assert!(
        matches!(decision, Decision::Move { destination, .. } if destination.name == "dead/a/b")
    );
}

/// A blob may choose the operator's own destinations and containers that match a pattern. No
/// pattern allows a `$` container or the container of the state document.
#[test]
fn a_blob_chooses_among_allowed_destinations_only() {
    let allow = |patterns: &[&str]| Policy {
        allow: patterns.iter().map(|p| (*p).to_owned()).collect(),
        ..Policy::default()
    };
    let by_default = Policy {
        dead: Some("archive/old/".to_owned()),
        rules: vec![Rule {
            dead: Some(" large ".to_owned()),
            ..Rule::default()
        }],
        ..Policy::default()
    };
    let (listed, any) = (allow(&["dbc", "con?", "x-*"]), allow(&["*", "**", "$web"]));
    for (policy, value, allowed) in [
        (&Policy::default(), "dbc", false),
        (&by_default, "archive", true),
        (&by_default, "archive/any/", true),
        (&by_default, "large/exact", true),
        (&by_default, "archive2", false),
        (&by_default, "$web/index.html", false),
        (&by_default, "smalt-sweeper/TimeToLiveBlobs", false),
        (&listed, "dbc/", true),
        (&listed, "con1/x", true),
        (&listed, "con10/x", false),
        (&listed, "x-2026", true),
        (&listed, "dbcs", false),
        (&any, "brandnew/x", true),
        (&any, "$web/index.html", false),
        (&any, "$root/x", false),
        (&any, "smalt-sweeper", false),
        (&any, "smalt-sweeper/other", false),
    ] {
        let seen = blob(&[DUE, ("DeadBlobContainer", value)]);
        let here = scene(Some("ACCT"), &[]);
        let decision = decide(policy, &here, "b", &seen, at(NOW));
        let kept = Decision::Keep(Outcome::DbcNotAllowed);
        assert_eq!(decision == kept, !allowed, "{value} {decision:?}");
        assert_eq!(decision.removes(), allowed, "{value} {decision:?}");
        let told = detail(policy, &here, "b", &seen, Outcome::DbcNotAllowed);
        assert_eq!(told.is_none(), allowed, "{value} {told:?}");
    }
    let seen = blob(&[DUE, ("DeadBlobContainer", "smalt-sweeper/x")]);
    let elsewhere = decide(&any, &scene(Some("other"), &[]), "b", &seen, at(NOW));
    assert!(elsewhere.removes(), "the state is in another account");
}

/// A hostile name or time to live never removes the blob.
#[test]
fn hostile_names_and_times_keep_the_blob() {
    let policy = allowing("dbc");
    let here = scene(Some("archive"), &[]);
    let moved = ("DeadBlobContainer", "dbc/");
    for name in [
        "..",
        ".",
        "../events2/x",
        "a/../../other/x",
        "a\\..\\x",
        "a\u{1b}[31m",
        "a\u{9b}",
        "a\nb",
    ] {
        let decision = decide(&policy, &here, name, &blob(&[DUE, moved]), at(NOW));
        assert_eq!(decision, Decision::Keep(Outcome::BadName), "{name:?}");
    }
    for ttl in [
        "P99999999999999999999Y",
        "PT18446744073709551615S",
        "P1000000000D",
        "-P1D",
        "P-1D",
        "PT-1S",
        "-2026-11-21T10:00:00Z",
        "+99999-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0000-00-00T00:00:00Z",
        "2026-11-21T10:00:00.99999999999999999999Z",
    ] {
        let decision = decide(&policy, &here, "b", &blob(&[("TimeToLive", ttl)]), at(NOW));
        assert!(!decision.removes(), "{ttl} {decision:?}");
    }
}

/// An archived blob cannot be copied, so it is not moved; it can be deleted.
#[test]
fn archived_blob_is_deleted_but_not_moved() {
    let moved = ("DeadBlobContainer", "dbc");
    for (tier, metadata, kept) in [
        (Some("Archive"), &[DUE, moved][..], true),
        (Some("archive"), &[DUE, moved], true),
        (Some("Cool"), &[DUE, moved], false),
        (None, &[DUE, moved], false),
        (Some("Archive"), &[DUE], false),
    ] {
        let seen = BlobProperties {
            access_tier: tier.map(str::to_owned),
            ..blob(metadata)
        };
        let decision = outcome(&allowing("dbc"), &seen);
        let is_kept = decision == Decision::Keep(Outcome::Archived);
        assert_eq!(is_kept, kept, "{tier:?} {decision:?}");
        assert_eq!(decision.removes(), !kept, "{tier:?} {decision:?}");
    }
}

/// Each check that keeps a due blob, at its boundary.
#[test]
fn checks_that_keep_a_due_blob() {
    let age = |days: u64| Policy {
        min_age: Duration::from_secs(days * 86_400),
        protect: vec!["logs/**".to_owned()],
        ..Policy::default()
    };
    let copying = |status| BlobProperties {
        copy: Some(smalt_sleeve::port::CopyState {
            id: String::new(),
            status,
            source: None,
            description: None,
        }),
        ..blob(&[DUE])
    };
    // The blob was written on the first of the month at midnight; now is the 21st, 10:00.
    let written_later = BlobProperties {
        last_modified: at("2026-11-21T10:00:01Z"),
        ..blob(&[DUE])
    };
    let written_at = |text| BlobProperties {
        last_modified: at(text),
        ..blob(&[DUE])
    };
    for (policy, seen, kept) in [
        (age(0), blob(&[DUE]), None),
        (age(0), written_later, None),
        (age(20), written_at("2026-11-01T10:00:00Z"), None),
        (
            age(20),
            written_at("2026-11-01T10:00:01Z"),
            Some(Outcome::TooYoung),
        ),
        (age(0), copying(CopyStatus::Pending), Some(Outcome::Changed)),
        (age(0), copying(CopyStatus::Success), None),
    ] {
        let decision = outcome(&policy, &seen);
        assert_eq!(decision.removes(), kept.is_none(), "{decision:?}");
        if let Some(kept) = kept {
            assert_eq!(decision, Decision::Keep(kept));
        }
    }
}

#[test]
fn rules_cover_blobs_without_a_time_to_live_and_only_those() {
    let policy = Policy {
        rules: vec![Rule {
            container: "events".to_owned(),
            prefix: "a/".to_owned(),
            older_than: Duration::from_secs(86_400),
            exclude: vec!["**/keep".to_owned()],
            dead: Some("dbc".to_owned()),
            ..Rule::default()
        }],
        ..Policy::default()
    };
    let here = scene(Some("archive"), &[]);
    let bare = blob(&[]);
    assert!(matches!(
        decide(&policy, &here, "a/b", &bare, at(NOW)),
        Decision::Move { .. }
    ));
    for (name, seen, expected) in [
        ("a/keep", &bare, Outcome::Protected),
        ("b/b", &bare, Outcome::NoTtl),
        ("a/b", &blob(&[("TimeToLive", "soon")]), Outcome::InvalidTtl),
        ("a/b", &blob(&[("TimeToLive", "P99D")]), Outcome::NotDue),
    ] {
        assert_eq!(
            decide(&policy, &here, name, seen, at(NOW)),
            Decision::Keep(expected)
        );
    }
}

/// Rules by tag and size: every bound must match, the first matching rule applies, and unknown tags
/// are never guessed.
#[test]
fn rules_match_tags_and_sizes() {
    let rule = |tag: Option<&str>, larger_than, smaller_than, dead: &str| Rule {
        container: "events".to_owned(),
        tag: tag.map(|value| ("kind".to_owned(), value.to_owned())),
        larger_than,
        smaller_than,
        dead: Some(dead.to_owned()),
        ..Rule::default()
    };
    let policy = Policy {
        rules: vec![
            rule(None, Some(1_000), None, "large"),
            rule(Some("tmp"), None, Some(10), "small-tmp"),
            rule(Some("log"), None, None, "log"),
        ],
        ..Policy::default()
    };
    let here = scene(Some("archive"), &[]);
    let to = |name: &str| Ok(name.to_owned());
    for (tags, known, length, expected) in [
        ("", true, 1_001, to("large")),
        ("tmp", true, 1_001, to("large")),
        ("tmp", false, 1_001, to("large")),
        ("", true, 1_000, Err(Outcome::NoTtl)),
        ("", false, 5, Err(Outcome::NoTtl)),
        ("tmp", true, 9, to("small-tmp")),
        ("tmp", true, 10, Err(Outcome::NoTtl)),
        ("Tmp", true, 9, Err(Outcome::NoTtl)),
        ("log", true, 9, to("log")),
        ("log", false, 9, Err(Outcome::TagsDenied)),
        ("log", false, 500, Err(Outcome::TagsDenied)),
    ] {
        let mut seen = blob(&[]);
        seen.length = length;
        seen.tag_count = u32::from(!tags.is_empty());
        let map = [("kind".to_owned(), tags.to_owned())];
        seen.tags = (known && !tags.is_empty()).then(|| Metadata::from(map));
        let decision = decide(&policy, &here, "b", &seen, at(NOW));
        let found = match decision {
            Decision::Move { destination, .. } => Ok(destination.container),
            Decision::Keep(outcome) => Err(outcome),
            Decision::Delete { .. } => panic!("no rule deletes"),
        };
        assert_eq!(found, expected, "{tags} {known} {length}");
    }
}

proptest! {
    /// SS1, SS4 and SS5, checked on the decision.
    #[test]
    fn nothing_is_removed_early_or_against_its_owner(
        ttl in proptest::option::of(prop_oneof![
            "[ -~]{0,25}", Just(NOW.to_owned()), Just("P1D".to_owned()),
        ]),
        dbc in proptest::option::of("[ -~]{0,12}"),
        account in proptest::option::of("[a-z]{3,4}"),
        name in "[a-z./]{1,8}",
        now_s in 1_790_000_000u64..1_800_000_000,
        grace_s in 0u64..1_000,
    ) {
        let mut seen = blob(&[]);
        let mut metadata = Metadata::new();
        metadata.extend(ttl.clone().map(|v| ("TimeToLive".to_owned(), v)));
        metadata.extend(dbc.clone().map(|v| ("DeadBlobContainer".to_owned(), v)));
        seen.metadata = metadata;
        let policy = Policy { grace: Duration::from_secs(grace_s), ..Policy::default() };
        let now = Timestamp::from_unix_s(now_s);
        let decision = decide(&policy, &scene(account.as_deref(), &[]), &name, &seen, now);
        if decision.removes() {
            let text = ttl.expect("SS5: untagged blobs stay");
            let due = ttl::parse(&text, &policy.ttl_formats).unwrap().due(seen.last_modified);
            prop_assert!(due.plus(policy.grace) <= now, "SS1");
            prop_assert_eq!(matches!(decision, Decision::Delete { .. }), dbc.is_none(), "SS4");
        }
    }
}
