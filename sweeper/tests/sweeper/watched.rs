//! Tests of status and metrics, of rules that change during a run, and of tags and tiers of copies.

use std::sync::Arc;
use std::time::Duration;

use smalt_sleeve::port::{ErrorKind, Metadata};
use smalt_sweeper::decide::{Policy, Rule};
use smalt_sweeper::summary::LogSummary;
use smalt_sweeper::{Class, DeadConfig, Outcome, Prices, SweeperConfig, TagPolicy};
use smalt_worker::exit;
use smalt_worker::face::Face;

use crate::fake::{Act, World, fault};
use crate::support::*;

const DBC: (&str, &str) = ("DeadBlobContainer", "dbc");

/// A worker is not ready before the first response, ready during the run, and not after it has
/// stopped; the counters match the report.
#[tokio::test(start_paused = true)]
async fn status_and_metrics_of_a_run() {
    let world = World::new();
    world.put(
        "acct/events/a\"b",
        &[("TimeToLive", "2026-11-21T09:30:00Z")],
    );
    world.put("acct/events/c", &[DUE, DBC]);
    let sweeper = worker(&world, config("one"), Vec::new(), 1);
    let monitor = sweeper.monitor();
    assert!(monitor.readiness().is_err());
    let shutdown = async {
        sleep(60).await;
        assert_eq!(monitor.readiness(), Ok(()));
        let status = monitor.status();
        assert_eq!(status["phase"]["state"], "idle");
        assert_eq!(status["phase"]["until"], "2026-11-21T10:10:00Z");
        assert_eq!(status["containers"]["events"]["outcomes"]["moved"], 1);
        let text = monitor.metrics();
        for line in [
            "sweeper_blobs_total{container=\"events\",outcome=\"deleted\"} 1",
            "sweeper_blobs_total{container=\"events\",outcome=\"moved\"} 1",
            "sweeper_tx_total{op=\"start_copy\"} 1",
            "sweeper_ready 1",
            "sweeper_cycles_total 1",
            "sweeper_inflight_pages 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        let far = monitor.progress();
        let counts = [far.seen, far.due, far.gone, far.failed, far.containers];
        assert_eq!(counts, [2, 2, 2, 0, 2], "{far:?}");
    };
    sweeper.run_until(shutdown).await;
    assert_eq!(monitor.readiness(), Err("stopped".to_owned()));
}

/// Returns the sample of a metric without labels.
fn sample(text: &str, name: &str) -> f64 {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect("the metric is there").parse().unwrap()
}

/// The metrics of the design exist: duration of cycles, waits for the lease, work in progress and
/// its age, and the lag of the fleet.
#[tokio::test(start_paused = true)]
async fn times_are_reported_as_metrics() {
    let world = World::new();
    world.put("acct/events/a", &[("TimeToLive", "2026-11-21T09:30:00Z")]);
    let until = world.now().plus_s(4);
    world.put_state("<Containers><Container name=\"events\" prefix=\"\"/></Containers>");
    world.change("acct/smalt-sweeper/TimeToLiveBlobs", |blob| {
        blob.lease = Some(("other".into(), until));
    });
    let stall = fault("delete_blob", 1, Act::Stall(Duration::from_secs(30)));
    let sweeper = worker(&world, by_document("one"), vec![stall], 1);
    let monitor = sweeper.monitor();
    let shutdown = async {
        sleep(20).await;
        let text = monitor.metrics();
        assert_eq!(sample(&text, "sweeper_inflight_pages"), 1.0, "{text}");
        let age = sample(&text, "sweeper_page_age_s");
        assert!((10.0..17.0).contains(&age), "{age}");
        let lag = sample(&text, "sweeper_lag_s");
        assert!((1_804.0..1_810.0).contains(&lag), "{lag}");
        assert_eq!(sample(&text, "sweeper_cycle_seconds_count"), 0.0);
        let wait = sample(&text, "sweeper_lease_wait_s_sum");
        assert!((4.0..8.0).contains(&wait), "{wait}");
        let far = monitor.progress();
        let counts = [far.containers, far.containers_done, far.due, far.gone];
        assert_eq!(counts, [1, 0, 1, 0], "{far:?}");
        sleep(40).await;
        let text = monitor.metrics();
        assert_eq!(sample(&text, "sweeper_inflight_pages"), 0.0, "{text}");
        assert_eq!(sample(&text, "sweeper_page_age_s"), 0.0);
        assert_eq!(sample(&text, "sweeper_cycle_seconds_count"), 1.0);
        let cycle = sample(&text, "sweeper_cycle_seconds_sum");
        assert!((34.0..40.0).contains(&cycle), "{cycle}");
        assert!(sample(&text, "sweeper_lease_wait_s_count") >= 2.0);
    };
    sweeper.run_until(shutdown).await;
}

/// While the state document is unreachable, the worker is not ready and gives the reason.
#[tokio::test(start_paused = true)]
async fn outage_is_visible_in_readiness() {
    let world = World::new();
    let busy = (1..=400).map(|n| fault("acquire_lease", n, Act::Refuse(ErrorKind::Busy)));
    let sweeper = worker(&world, config("one"), busy.collect(), 1);
    let monitor = sweeper.monitor();
    let shutdown = async {
        sleep(20).await;
        let why = monitor.readiness().unwrap_err();
        assert!(why.contains("acquire_lease"), "{why}");
        assert_eq!(monitor.status()["phase"]["state"], "out_of_reach");
    };
    sweeper.run_until(shutdown).await;
}

/// New rules apply from the next page on; invalid rules change nothing.
#[tokio::test(start_paused = true)]
async fn rules_are_reloaded_while_it_runs() {
    let world = World::new();
    world.put("acct/events/a", &[DUE]);
    let protecting = |pattern: &str| Policy {
        protect: vec![pattern.to_owned()],
        ..Policy::default()
    };
    let first = changed(|c| c.policy = protecting("a"));
    let sweeper = worker(&world, first, Vec::new(), 1);
    let shutdown = async {
        sleep(60).await;
        assert!(world.has("acct/events/a"));
        let broken = Policy {
            ttl_key: String::new(),
            ..Policy::default()
        };
        assert_eq!(sweeper.reload(broken).unwrap_err().exit_code(), 2);
        sweeper.reload(protecting("b")).unwrap();
        world.put("acct/events/b", &[DUE]);
        sleep(700).await;
    };
    sweeper.run_until(shutdown).await;
    world.assert_safe();
    assert_eq!(world.names("acct", "events"), ["b"]);
}

fn with_tags(policy: TagPolicy) -> SweeperConfig {
    SweeperConfig {
        dead: DeadConfig {
            account: Some("archive".into()),
            index_tags: policy,
            ..DeadConfig::default()
        },
        ..config("one")
    }
}

/// DS23: index tags are copied according to policy and permission; a cooler tier is kept.
#[tokio::test(start_paused = true)]
async fn tags_and_tier_are_copied() {
    let tags = Metadata::from([("project".to_owned(), "a b".to_owned())]);
    for (policy, denied, outcome, carried) in [
        (TagPolicy::Keep, false, Outcome::Moved, true),
        (TagPolicy::Keep, true, Outcome::TagsDenied, false),
        (TagPolicy::Try, false, Outcome::Moved, true),
        (TagPolicy::Try, true, Outcome::Moved, false),
        (TagPolicy::Drop, true, Outcome::Moved, false),
    ] {
        let world = World::new();
        world.put("acct/events/a", &[DUE, DBC]);
        world.change("acct/events/a", |blob| {
            blob.tags = tags.clone();
            blob.tier = Some("Cool".into());
        });
        let refuse = denied.then(|| fault("blob_tags", 1, Act::Refuse(ErrorKind::Denied)));
        let faults = refuse.into_iter().collect();
        let finished = once_with(&world, with_tags(policy), faults).await;
        assert_eq!(finished.report.count(outcome), 1, "{policy:?} {denied}");
        assert_eq!(world.has("acct/events/a"), outcome != Outcome::Moved);
        let Some(copy) = world.get("archive/dbc/a") else {
            assert_eq!(outcome, Outcome::TagsDenied);
            continue;
        };
        assert_eq!(copy.tags == tags, carried, "{policy:?} {denied}");
        assert_eq!(copy.tier.as_deref(), Some("Cool"));
    }
}

/// A blob without tags causes no call to read them.
#[tokio::test(start_paused = true)]
async fn blobs_without_tags_cost_no_extra_call() {
    let world = World::new();
    world.put("acct/events/a", &[DUE, DBC]);
    sweep(&world).await;
    assert_eq!(world.calls_of("blob_tags"), 0);
    assert!(world.get("archive/dbc/a").unwrap().tier.is_none());
}

/// Every decision worth reporting is one log line at info, whether or not anything was done.
/// Failures in the log match those in the report, including the invalid value.
#[test]
fn log_reports_failed_blobs() {
    let long = "x".repeat(300);
    let world = World::new();
    world.put("acct/events/bad", &[("TimeToLive", "tomorrow")]);
    world.put("acct/events/long", &[("TimeToLive", &long)]);
    world.put("acct/events/self", &[DUE, ("DeadBlobContainer", "logs/")]);
    world.put("acct/events/stays", &[("TimeToLive", FUTURE)]);
    world.put(
        "acct/logs/place",
        &[DUE, ("DeadBlobContainer", "No?sig=SECRET")],
    );
    world.put("acct/logs/due", &[DUE]);
    let same = SweeperConfig {
        dead: DeadConfig {
            account: Some("default".into()),
            ..DeadConfig::default()
        },
        ..config("one")
    };
    let (finished, text) = logged(|| paused(once_with(&world, same, Vec::new())));
    let mut summary = LogSummary::default();
    text.lines().for_each(|line| summary.line(line));
    assert_eq!(summary.failed(), 4, "{text}");
    assert_eq!(summary.blobs, 5, "{text}");
    assert_eq!(finished.report.count_class(Class::Failed), 4);
    let reason = |name: &str| {
        let mut all = summary.failures.iter();
        all.find(|f| f.0.ends_with(name)).unwrap().2.clone()
    };
    let why = "TimeToLive is \"tomorrow\"; such as `P7D`, `2026-11-21T10:00:00Z` would do";
    assert_eq!(reason("bad"), why);
    assert!(reason("long").len() < 180, "{}", reason("long"));
    assert_eq!(reason("self"), "to \"logs/\"");
    assert!(reason("place").contains("No?") && !text.contains("SECRET"));
}

/// S25, S31: the log has each read and write of the state document, each copy and delete, the
/// number of retries of the lease and of calls, and each sleep, with their times.
#[test]
fn s25_s31_retries_sleeps_and_state_are_logged() {
    let world = World::new();
    world.put("acct/events/due", &[DUE]);
    world.put("acct/events/moved", &[DUE, DBC]);
    let taken = |n| fault("acquire_lease", n, Act::Refuse(ErrorKind::LeaseTaken));
    let busy = fault("list_blobs", 1, Act::Refuse(ErrorKind::Busy));
    let faults = vec![taken(2), taken(3), busy];
    let sweeper = worker(&world, config("one"), faults, 1);
    let (finished, text) = logged(|| paused(sweeper.run_until(sleep(700))));
    assert_eq!(finished.exit_code(), exit::OK);
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |op: &str| {
        lines
            .iter()
            .filter(|line| line["op"] == op)
            .collect::<Vec<_>>()
    };
    for action in ["create", "get", "put"] {
        let state = of("state")
            .into_iter()
            .find(|line| line["action"] == action);
        assert!(
            state.is_some_and(|line| line["ms"].is_u64()),
            "{action}: {text}"
        );
    }
    for outcome in ["deleted", "moved"] {
        let mut blobs = of("blob").into_iter();
        let blob = blobs.find(|line| line["outcome"] == outcome);
        assert!(blob.is_some_and(|line| line["ms"].is_u64()), "{text}");
    }
    assert_eq!(of("lease")[0]["retries"], 2, "{text}");
    assert_eq!(of("retry")[0]["operation"], "list_blobs", "{text}");
    assert!(
        of("retry")[0]["ms"].is_u64() && of("sleep")[0]["s"].is_u64(),
        "{text}"
    );
}

/// A rule by tag: the listing includes the tags, `explain` names the rule, and without permission
/// to read tags no blob is removed.
#[tokio::test(start_paused = true)]
async fn rule_by_tag_removes_tagged_blobs() {
    let world = World::new();
    for (name, kind) in [("a", "tmp"), ("b", "log"), ("c", "")] {
        let place = format!("acct/events/{name}");
        world.put(&place, &[]);
        let tags = Metadata::from([("kind".to_owned(), kind.to_owned())]);
        let tags = if kind.is_empty() {
            Metadata::new()
        } else {
            tags
        };
        world.change(&place, |blob| blob.tags = tags.clone());
    }
    let ruled = || by_tag(None);
    let sweeper = worker(&world, ruled(), Vec::new(), 1);
    let told = sweeper.explain(&"events/a".parse().unwrap()).await.unwrap();
    assert_eq!(told.outcome, Outcome::Deleted);
    let which = "rule 1 (events/ tagged kind=tmp) matches";
    assert!(told.checks.iter().any(|c| c.found == which), "{told:?}");
    let refused = vec![fault("blob_tags", 1, Act::Refuse(ErrorKind::Denied))];
    let blind = worker(&world, ruled(), refused, 1);
    let told = blind.explain(&"events/b".parse().unwrap()).await.unwrap();
    assert_eq!(told.outcome, Outcome::TagsDenied);
    let plan = sweeper.plan(Prices::default(), 9, |_| {}).await.unwrap();
    assert_eq!(plan.total.delete, 1);
    world.lock().operator = true;
    let finished = sweeper.once().await;
    assert_eq!(finished.report.count(Outcome::Deleted), 1);
    assert_eq!(world.names("acct", "events"), ["b", "c"]);
}

/// Tags change without the ETag: a blob whose tag has changed before its delete stays.
#[tokio::test(start_paused = true)]
async fn blob_with_changed_tag_stays() {
    for dead in [None, Some("dbc")] {
        let world = World::new();
        world.put("acct/events/a", &[]);
        let tagged = |kind: &str| Metadata::from([("kind".to_owned(), kind.to_owned())]);
        world.change("acct/events/a", |blob| blob.tags = tagged("tmp"));
        let retag = Act::Meanwhile(Arc::new(move |world: &World| {
            world.change("acct/events/a", |blob| blob.tags = tagged("keep"));
        }));
        let sweeper = worker(
            &world,
            by_tag(dead),
            vec![fault("delete_blob", 1, retag)],
            1,
        );
        world.lock().operator = true;
        let finished = sweeper.once().await;
        assert!(world.has("acct/events/a"), "{dead:?}");
        assert_eq!(finished.report.count(Outcome::Changed), 1, "{dead:?}");
    }
}

/// Returns a configuration that removes blobs of `events` tagged as temporary.
fn by_tag(dead: Option<&str>) -> SweeperConfig {
    let rule = Rule {
        container: "events".into(),
        tag: Some(("kind".into(), "tmp".into())),
        dead: dead.map(str::to_owned),
        ..Rule::default()
    };
    let base = config("one");
    SweeperConfig {
        policy: Policy {
            rules: vec![rule],
            ..base.policy.clone()
        },
        ..base
    }
}
