//! Tests of explanations by tables, and of their agreement with the decision by properties.

use std::time::Duration;

use proptest::prelude::*;
use smalt_sleeve::port::CopyState;

use super::*;
use crate::decide::tests::{NOW, at, blob, scene};
use crate::destination::SweptPlace;
use crate::ttl::TtlFormat;

fn rule(prefix: &str, days: u64, exclude: &[&str]) -> Rule {
    Rule {
        container: "events".to_owned(),
        prefix: prefix.to_owned(),
        older_than: Duration::from_secs(days * 86_400),
        exclude: exclude.iter().map(|p| (*p).to_owned()).collect(),
        dead: None,
        ..Rule::default()
    }
}

/// The finding of the deciding check, and the earliest removal time.
#[test]
fn the_deciding_check_says_why() {
    let policy = Policy {
        grace: Duration::from_secs(3_600),
        protect: vec!["legal/**".to_owned()],
        rules: vec![rule("x/", 1, &[]), rule("logs/", 10, &["**/keep"])],
        ..Policy::default()
    };
    let due = ("TimeToLive", "2026-11-20T00:00:00Z");
    for (name, metadata, said, from) in [
        (
            "a",
            &[][..],
            "no metadata TimeToLive, and none of 2 rules matches",
            None,
        ),
        (
            "a",
            &[("TimeToLive", "soon")],
            "TimeToLive is \"soon\", which no format reads; such as `P7D`, `2026-11-2",
            None,
        ),
        (
            "a",
            &[("timetolive", "P20D")],
            "due in 59m59s",
            Some("2026-11-21T10:59:59Z"),
        ),
        ("a", &[due], "", Some("2026-11-20T01:00:00Z")),
        (
            "legal/a",
            &[due],
            "protected by legal/**",
            Some("2026-11-20T01:00:00Z"),
        ),
        ("logs/a", &[], "", Some("2026-11-11T01:00:00Z")),
        (
            "logs/keep",
            &[],
            "rule 2 (events/logs/ older than 10d) matches, but excludes",
            None,
        ),
        (
            "a",
            &[due, ("DeadBlobContainer", "A")],
            "that is not a valid place",
            Some("2026-11-20T01:00:00Z"),
        ),
    ] {
        let mut seen = blob(metadata);
        if metadata.first().is_some_and(|(_, v)| *v == "P20D") {
            seen.last_modified = at("2026-11-01T09:59:59Z");
        }
        let told = explain(&policy, &scene(Some("archive"), &[]), name, &seen, at(NOW));
        let found = told.deciding().map_or("", |check| check.found.as_str());
        assert!(
            found.contains(said) && found.is_empty() == said.is_empty(),
            "{name}: {found}"
        );
        assert_eq!(
            told.goes_from.map(Timestamp::iso_s).as_deref(),
            from,
            "{name}"
        );
    }
}

/// All obstacles are reported, not only the first.
#[test]
fn later_obstacles_are_reported() {
    let mut seen = blob(&[("TimeToLive", "P30D")]);
    seen.lease = LeaseState::Locked;
    let told = explain(&Policy::default(), &scene(None, &[]), "a", &seen, at(NOW));
    let keeps: Vec<_> = told.checks.iter().filter_map(|check| check.keeps).collect();
    assert_eq!(keeps, [Outcome::NotDue, Outcome::Leased]);
    assert_eq!(told.decision, Decision::Keep(Outcome::NotDue));
}

fn some<T: Clone + std::fmt::Debug + 'static>(of: &[T]) -> impl Strategy<Value = T> + use<T> {
    prop::sample::select(of.to_vec())
}

prop_compose! {
    fn policies()(
        grace_s in some(&[0u64, 3_600]), age_days in some(&[0u64, 5, 40]),
        protect in some(&["", "a/**", "events/b"]), dead in some(&["", "dbc", "BAD", "events"]),
        rules in some(&[0usize, 1, 2]), allow in any::<bool>(),
        tagged in any::<bool>(), sized in any::<bool>(),
    ) -> Policy {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let mut known = vec![rule("a/", 5, &["**/keep"]), rule("", 30, &[])];
        known[0].tag = tagged.then(|| ("kind".to_owned(), "tmp".to_owned()));
        known[0].larger_than = sized.then_some(5);
        known.truncate(rules);
        Policy {
            grace: Duration::from_secs(grace_s),
            min_age: Duration::from_secs(age_days * 86_400),
            protect: given(protect).into_iter().collect(),
            dead: given(dead),
            rules: known,
            allow_swept_destination: allow,
            ttl_formats: vec![TtlFormat::Rfc3339],
            ..Policy::default()
        }
    }
}

prop_compose! {
    fn blobs()(
        ttl in some(&["", "P7D", "P21D", NOW, "2026-11-21T10:00:01Z", "soon", "P999999999D",
            "9999-12-31T23:59:59Z"]),
        dbc in some(&["", "dbc", "dbc/x/", "events", "events/dead/", "Bad", "dbc/.."]),
        leased: bool, pending: bool, archived: bool, changed_days_ago in 0u64..60,
        tag in some(&["", "tmp", "log"]), tags_known: bool, length in 4u64..8,
    ) -> BlobProperties {
        let given = [("TimeToLive", ttl), ("DeadBlobContainer", dbc)];
        let given: Vec<_> = given.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let mut seen = blob(&given);
        let tags = [("kind", tag)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        seen.tag_count = u32::from(!tag.is_empty());
        seen.tags = (tags_known && !tag.is_empty()).then(|| tags.into());
        seen.length = length;
        seen.last_modified = at(NOW).minus(Duration::from_secs(changed_days_ago * 86_400));
        seen.lease = if leased { LeaseState::Locked } else { LeaseState::Unlocked };
        seen.access_tier = archived.then(|| "Archive".to_owned());
        seen.copy = pending.then(|| CopyState {
            id: String::new(), status: CopyStatus::Pending, source: None, description: None,
        });
        seen
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The first check that keeps a blob is the decision; no check keeps a removed blob.
    #[test]
    fn an_explanation_never_disagrees_with_the_decision(
        policy in policies(), seen in blobs(), account in some(&[None, Some("acct"), Some("arc")]),
        name in some(&["a/x", "b", "a/keep", "a/../b"]), swept: bool,
    ) {
        let places = [SweptPlace {
            account: "acct".to_owned(), container: "events".to_owned(), prefix: String::new(),
        }];
        let scene = scene(account, if swept { &places } else { &[] });
        let told = explain(&policy, &scene, name, &seen, at(NOW));
        let decision = decide::decide(&policy, &scene, name, &seen, at(NOW));
        prop_assert_eq!(&told.decision, &decision);
        let kept = told.deciding().and_then(|check| check.keeps);
        match decision {
            Decision::Keep(outcome) => prop_assert_eq!(kept, Some(outcome), "{:?}", told.checks),
            _ => prop_assert_eq!(kept, None, "{:?}", told.checks),
        }
        if told.decision.removes() {
            prop_assert!(told.goes_from.is_some_and(|from| from <= at(NOW)));
        }
        if kept == Some(Outcome::NotDue) {
            prop_assert!(told.goes_from.is_none_or(|from| from > at(NOW)));
        }
    }
}
