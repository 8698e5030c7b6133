//! LS1-LS10 over random messages, faults and crashes, with two listeners on one queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use smalt_listener::{ListenerConfig, Outcome};
use smalt_sleeve::port::{ErrorKind, MessageTtl};

use crate::support::handlers::Obey;
use crate::support::*;

#[derive(Clone, Debug)]
struct Story {
    texts: Vec<String>,
    ttls_s: Vec<Option<u64>>,
    faults: Vec<(Op, u64, u64, Fault)>,
    /// When the first listener is dropped: after a time, or in its request of this number, before
    /// or after the request reached the service.
    crash_after_ms: u64,
    crash_in: Option<(u64, bool)>,
    slots: u32,
    seed: u64,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("ok".to_owned()),
        4 => (1_u64..25_000).prop_map(|ms| format!("sleep {ms}")),
        1 => Just("panic".to_owned()),
        1 => Just("hang".to_owned()),
        1 => Just("reject".to_owned()),
        1 => Just("retry".to_owned()),
        1 => (0_u64..8).prop_map(|s| format!("retry {s}")),
        1 => (1_u64..4).prop_map(|n| format!("fail {n}")),
    ]
}

fn fault() -> impl Strategy<Value = (Op, u64, u64, Fault)> {
    let op = prop::sample::select(vec![Op::Get, Op::Update, Op::Delete, Op::Put, Op::Depth]);
    let kind = prop::sample::select(vec![
        ErrorKind::Busy,
        ErrorKind::Unreachable,
        ErrorKind::OutcomeUnknown,
        ErrorKind::Refused,
    ]);
    let what = prop_oneof![
        3 => kind.prop_map(Fault::Before),
        2 => Just(Fault::LostAnswer),
        1 => (1_u64..20_000).prop_map(|ms| Fault::Slow(Duration::from_millis(ms))),
        1 => (1_u64..20_000).prop_map(|ms| Fault::Late(Duration::from_millis(ms))),
    ];
    (op, 0_u64..40, 1_u64..6, what)
}

fn story() -> impl Strategy<Value = Story> {
    let ttl = prop::option::weighted(0.2, 15_u64..200);
    (
        prop::collection::vec(text(), 1..30),
        prop::collection::vec(ttl, 30),
        prop::collection::vec(fault(), 0..8),
        (0_u64..40_000, prop::option::of((0_u64..60, any::<bool>()))),
        1_u32..10,
        any::<u64>(),
    )
        .prop_map(|(texts, ttls_s, faults, crash, slots, seed)| Story {
            texts,
            ttls_s,
            faults,
            crash_after_ms: crash.0,
            crash_in: crash.1,
            slots,
            seed,
        })
}

struct CaseResult {
    storage: Arc<FakeStorage>,
    obey: Obey,
    log: Vec<smalt_listener::Decision>,
    messages: usize,
    crashed: bool,
    expired: bool,
}

async fn tell(story: &Story) -> CaseResult {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    for (text, ttl_s) in story.texts.iter().zip(&story.ttls_s) {
        let ttl = ttl_s.map_or(MessageTtl::Never, |s| {
            MessageTtl::After(Duration::from_secs(s))
        });
        storage.put_for(QUEUE, text, ttl);
    }
    for (op, from, calls, fault) in &story.faults {
        storage.fault(*op, *from..from + calls, *fault);
    }
    let obey = Obey::default();
    let config = ListenerConfig {
        slots: story.slots,
        handler_timeout: s(30),
        ..config()
    };
    let first_config = ListenerConfig {
        worker: "doomed".to_owned(),
        ..config.clone()
    };
    if let Some((requests, after)) = story.crash_in {
        storage.crash("doomed", requests, after);
    }
    let (first, first_log) = seeded(story.seed, first_config, &storage, &obey);
    let (second, second_log) = seeded(story.seed ^ 1, config, &storage, &obey);
    let crash = tokio::time::sleep(Duration::from_millis(story.crash_after_ms));
    let doomed = tokio::time::timeout(s(3600), async {
        tokio::select! {
            biased;
            () = storage.crashed() => true,
            () = crash => true,
            _ = first.run_until(tokio::time::sleep(s(39))) => false,
        }
    });
    let (crashed, _) = tokio::join!(doomed, run_for(&second, s(900)));
    let mut log = first_log.all();
    log.extend(second_log.all());
    CaseResult {
        storage,
        obey,
        log,
        messages: story.texts.len(),
        crashed: crashed.unwrap(),
        expired: story
            .ttls_s
            .iter()
            .take(story.texts.len())
            .any(Option::is_some),
    }
}

fn seeded(
    seed: u64,
    config: ListenerConfig,
    storage: &Arc<FakeStorage>,
    obey: &Obey,
) -> (smalt_listener::QueueListener, Arc<Log>) {
    let log = Arc::new(Log::default());
    let port = Arc::clone(storage) as Arc<dyn smalt_sleeve::port::Storage>;
    let listener =
        smalt_listener::QueueListener::new(config, port, Arc::new(obey.clone()), seed).unwrap();
    (
        listener.observed_by(Arc::clone(&log) as Arc<dyn smalt_listener::Observer>),
        log,
    )
}

fn poisoned_ids(told: &CaseResult) -> BTreeMap<String, u32> {
    let mut ids = BTreeMap::new();
    for message in told.storage.stored(POISON) {
        let envelope: serde_json::Value = serde_json::from_str(&message.text).unwrap();
        let id = envelope["id"].as_str().unwrap().to_owned();
        *ids.entry(id).or_insert(0) += 1;
    }
    ids
}

/// Checks the safety properties over everything that happened.
fn check_safety(story: &Story, told: &CaseResult) {
    let poisoned = poisoned_ids(told);
    for (id, at) in told.storage.deleted() {
        // LS1: deleted only after a success or with a durable copy in the poison queue.
        let succeeded = told
            .obey
            .runs()
            .iter()
            .any(|r| r.id == id && r.ok_at.is_some_and(|ok| ok <= at));
        assert!(succeeded || poisoned.contains_key(&id), "LS1: {id}");
    }
    for run in told.obey.runs() {
        assert!(run.dequeue_count <= 3, "LS5: {run:?}");
    }
    for size in told.storage.batch_sizes() {
        assert!(
            (1..=32).contains(&size) && size <= story.slots,
            "LS7: {size}"
        );
    }
    for visibility in told.storage.visibilities() {
        assert!(
            visibility <= s(7 * 24 * 3600) && visibility.subsec_nanos() == 0,
            "LS7"
        );
    }
    // LS3: a message that never fails by itself is never poisoned before it had all its attempts.
    for id in poisoned.keys() {
        let index: usize = id[1..].parse::<usize>().unwrap() - 1;
        let failed = told
            .log
            .iter()
            .any(|d| &d.id == id && (d.dequeue_count >= 3 || story.texts[index] == "reject"));
        assert!(failed || told.crashed, "LS3: {id} {}", story.texts[index]);
    }
    if story.faults.is_empty() && !told.crashed {
        // LS2, and LS4: no other listener received a message while its lock was valid.
        assert_eq!(told.storage.stale_receipts(), 0, "LS2");
    }
    for decision in &told.log {
        let terminal = matches!(decision.outcome, Outcome::Done | Outcome::DuplicateDeleted);
        let still_there = told
            .storage
            .stored(QUEUE)
            .iter()
            .any(|m| m.id == decision.id);
        assert!(
            !(terminal && still_there),
            "said to be deleted: {decision:?}"
        );
    }
}

/// LL2: in the end each message is deleted, in the poison queue, or expired.
fn check_liveness(told: &CaseResult) {
    let left = told.storage.stored(QUEUE);
    assert!(left.is_empty(), "left over: {left:?}");
    let mut deleted: Vec<String> = told.storage.deleted().into_iter().map(|d| d.0).collect();
    deleted.sort();
    let every = deleted.len();
    deleted.dedup();
    assert_eq!(deleted.len(), every, "no message is deleted twice");
    if !told.expired {
        assert_eq!(every, told.messages, "each message has left by a delete");
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(cases(96))]

    /// LS1-LS7, LL2: two listeners, faults, a crash at any moment.
    #[test]
    fn ls_all_over_random_stories(story in story()) {
        let told = runtime().block_on(tell(&story));
        check_safety(&story, &told);
        check_liveness(&told);
    }

}

proptest! {
    #![proptest_config(cases(24))]

    /// The same seed leads to the same requests at the same times.
    #[test]
    fn the_same_seed_repeats_the_run(story in story()) {
        let trace = || {
            let told = runtime().block_on(tell(&story));
            let requests = told.storage.requests();
            let start = requests[0].0;
            let requests: Vec<_> = requests.iter().map(|r| (r.0 - start, r.1)).collect();
            (requests, told.log)
        };
        prop_assert_eq!(trace(), trace());
    }
}
