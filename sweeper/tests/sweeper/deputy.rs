//! Tests that an attacker who can write blobs to a swept container, or to one for dead blobs,
//! cannot misuse the sweeper's credential: nothing is written, created or deleted that the operator
//! has not allowed.

use std::sync::Arc;

use smalt_sleeve::port::Metadata;
use smalt_sweeper::decide::Policy;
use smalt_sweeper::undo::{Undo, Undone};
use smalt_sweeper::{Collision, DeadConfig, Outcome, Prices, SweeperConfig, settings};

use crate::fake::{World, key};
use crate::support::*;

/// The attacker's blobs in `events`: names and destinations.
const PLANTED: [(&str, &str); 6] = [
    ("a", "$web/index.html"),
    ("b", "smalt-sweeper/TimeToLiveBlobs"),
    ("c", "smalt-sweeper/evil"),
    ("d", "con1/one"),
    ("e", "con2/chosen"),
    ("f", "brandnew/x"),
];

/// A world with the attacker's blobs, one of the website and one of another user.
fn world() -> Arc<World> {
    let world = World::new();
    for (name, dead) in PLANTED {
        let place = format!("acct/events/{name}");
        world.put(&place, &[DUE, ("DeadBlobContainer", dead)]);
    }
    world.put("acct/$web/index.html", &[("Owner", "site")]);
    world.put("acct/con1/one", &[("Owner", "somebody")]);
    world
}

/// A sweep of `events` and `logs` whose dead blobs stay in the same account.
fn within(policy: Policy) -> SweeperConfig {
    SweeperConfig {
        dead: DeadConfig {
            account: Some("default".into()),
            ..DeadConfig::default()
        },
        policy,
        ..config("one")
    }
}

fn allowing(patterns: &[&str]) -> Policy {
    Policy {
        allow: patterns.iter().map(|p| (*p).to_owned()).collect(),
        ..Policy::default()
    }
}

/// Returns the writer of the blob at a place.
fn owner(world: &World, place: &str) -> Option<String> {
    world.get(place)?.metadata.get("Owner").cloned()
}

/// By default nothing is moved or created. Every blob is reported with the flag that would allow
/// its destination, and `plan` reports the same in advance.
#[test]
fn writers_cannot_choose_destinations_by_default() {
    let world = world();
    let one = worker(&world, within(Policy::default()), Vec::new(), 1);
    let plan = paused(one.plan(Prices::default(), 100, |_| {})).unwrap();
    let sweep = || paused(once_with(&world, within(Policy::default()), Vec::new()));
    let (finished, log) = logged(sweep);
    assert_eq!(
        finished.report.count(Outcome::DbcNotAllowed),
        PLANTED.len() as u64
    );
    assert_eq!(world.calls_of("start_copy"), 0);
    assert_eq!(world.names("acct", "events").len(), PLANTED.len());
    assert_eq!(
        owner(&world, "acct/$web/index.html").as_deref(),
        Some("site")
    );
    assert_eq!(owner(&world, "acct/con1/one").as_deref(), Some("somebody"));
    for made in ["brandnew", "con2"] {
        assert!(
            !world
                .lock()
                .containers
                .contains(&("acct".into(), made.into()))
        );
    }
    let failures = &finished.report.failures;
    let detail = |name: &str| {
        let of = failures.iter().find(|record| record.blob == name).unwrap();
        of.detail.clone().unwrap()
    };
    for (name, says) in [
        ("a", "never a destination"),
        ("b", "the container of the state document is never"),
        ("d", "--dead-allow con1 (sweeper.dead.allow) allows it"),
    ] {
        assert!(detail(name).contains(says), "{}", detail(name));
        let row = plan.rows.iter().find(|row| row.blob == name).unwrap();
        assert_eq!(
            (row.action.as_str(), &row.detail),
            ("dbc_not_allowed", &Some(detail(name)))
        );
    }
    let lines = log.lines().filter(|line| line.contains("dbc_not_allowed"));
    let warned = lines.filter(|line| line.contains(r#""level":"WARN""#));
    assert_eq!(warned.count(), PLANTED.len(), "{log}");
}

/// Allowed destinations work; `$web` and the container of the state document stay closed under
/// every pattern, and `explain` names the reason.
#[tokio::test(start_paused = true)]
async fn no_pattern_allows_the_website_or_the_state() {
    let world = world();
    let policy = || allowing(&["*", "$web", "smalt-sweeper"]);
    let one = worker(&world, within(policy()), Vec::new(), 1);
    let told = one.explain(&"events/b".parse().unwrap()).await.unwrap();
    assert_eq!(told.outcome, Outcome::DbcNotAllowed);
    let found = &told.deciding().unwrap().found;
    assert!(
        found.contains("state document is never a destination"),
        "{found}"
    );
    let finished = once_with(&world, within(policy()), Vec::new()).await;
    assert_eq!(finished.report.count(Outcome::DbcNotAllowed), 3);
    assert_eq!(finished.report.count(Outcome::Moved), 2);
    assert_eq!(
        finished.report.count(Outcome::Collision),
        1,
        "con1/one is taken"
    );
    assert_eq!(owner(&world, "acct/con1/one").as_deref(), Some("somebody"));
    assert_eq!(world.state().cycle, 1, "the state document is its own");
}

/// `--profile compat` allows every destination as originally, except for the website and the state
/// document.
#[tokio::test(start_paused = true)]
async fn compat_allows_all_except_the_website_and_the_state() {
    let said = [
        ("sweeper.profile", toml::Value::from("compat")),
        ("sweeper.dead.account", toml::Value::from("default")),
    ];
    let compat = settings::gather(None, [], said).unwrap().sweeper;
    assert_eq!(compat.dead.on_collision, Collision::Overwrite);
    let world = world();
    world.lock().allow_overwrite = true;
    let config = SweeperConfig {
        containers: config("one").containers,
        create_state: true,
        ..compat
    };
    let finished = once_with(&world, config, Vec::new()).await;
    assert_eq!(finished.report.count(Outcome::Moved), 3);
    assert_eq!(finished.report.count(Outcome::DbcNotAllowed), 3);
    assert_eq!(
        owner(&world, "acct/$web/index.html").as_deref(),
        Some("site")
    );
}

/// Metadata alone do not make a blob a copy; believing them would delete the source.
#[tokio::test(start_paused = true)]
async fn forged_copy_is_not_trusted() {
    let world = World::new();
    world.put_bytes(
        "acct/events/a",
        b"treasure".to_vec(),
        &[DUE, ("DeadBlobContainer", "dbc")],
    );
    let etag = world.get("acct/events/a").unwrap().etag;
    let forged = [
        ("SourceUri", "fake://acct/events/a"),
        ("SourceETag", &format!("0x{etag:X}")),
    ];
    world.put_bytes("archive/dbc/a", b"rubbish!".to_vec(), &forged);
    let finished = sweep(&world).await;
    assert_eq!(finished.report.count(Outcome::Collision), 1);
    assert!(world.has("acct/events/a"));
}

/// A dead blob cannot choose where an undo writes: forged metadata are ignored, and nothing is
/// written to a container outside any sweep or to that of the state document.
#[tokio::test(start_paused = true)]
async fn forged_provenance_does_not_redirect_undo() {
    let forged = |uri: &str| -> Metadata {
        let pairs = [
            ("SourceUri", uri),
            ("SourceETag", "0x1"),
            ("SweepId", "0/events/1"),
        ];
        let pairs = pairs.iter();
        pairs
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    };
    let asked = |trust_metadata| Undo {
        from: vec![("dbc".to_owned(), String::new())],
        trust_metadata,
        on_collision: Collision::Overwrite,
        ..Undo::default()
    };
    for (uri, by_default, trusting) in [
        (
            "fake://acct/$web/index.html",
            Undone::NotSwept,
            Undone::NotSwept,
        ),
        ("fake://acct/payroll/x", Undone::NotSwept, Undone::NotSwept),
        (
            "fake://acct/smalt-sweeper/TimeToLiveBlobs",
            Undone::NotSwept,
            Undone::NotSwept,
        ),
        (
            "fake://other/events/x",
            Undone::Elsewhere,
            Undone::Elsewhere,
        ),
        ("fake://acct/events/x", Undone::Unproven, Undone::Restored),
    ] {
        let world = World::new();
        world.put("acct/events/other", &[("TimeToLive", FUTURE)]);
        sweep(&world).await;
        world.put("archive/dbc/forged", &[]);
        world.change("archive/dbc/forged", |blob| blob.metadata = forged(uri));
        let state = world.state();
        for (trust, expected) in [(false, by_default), (true, trusting)] {
            let undoing = worker(&world, config("one"), Vec::new(), 7);
            let report = undoing.undo(&asked(trust), |_| {}).await.unwrap();
            assert_eq!(report.count(expected), 1, "{uri} {report:?}");
        }
        assert_eq!(world.state(), state);
        let copied = key(uri.strip_prefix("fake://").unwrap());
        let brought = trusting == Undone::Restored;
        assert_eq!(
            world.lock().blobs.contains_key(&copied),
            brought || copied.1 == "smalt-sweeper"
        );
    }
}
