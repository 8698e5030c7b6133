//! Several listeners with one idle poller and one request limit for all of them.

use std::sync::Arc;

use smalt_listener::metrics::Metrics;
use smalt_listener::partition::{PartitionSettings, Partitions};
use smalt_listener::{
    AccountLimit, ListenerConfig, Observer, QueueListener, SentinelConfig, Waker,
};
use smalt_sleeve::ErrorKind;
use smalt_sleeve::port::Storage;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use crate::support::handlers::Obey;
use crate::support::*;

struct Fleet {
    storage: Arc<FakeStorage>,
    obey: Obey,
    crew: JoinSet<()>,
    members: Vec<(AbortHandle, Waker)>,
}

impl Fleet {
    fn start(size: usize) -> Self {
        let mut fleet = Fleet {
            storage: Arc::new(FakeStorage::new(&[QUEUE, POISON])),
            obey: Obey::default(),
            crew: JoinSet::new(),
            members: Vec::new(),
        };
        for number in 0..size {
            let config = ListenerConfig {
                worker: format!("w{number}"),
                sentinel: Some(SentinelConfig::default()),
                cooldown: s(10),
                idle: smalt_listener::config::Idle {
                    min: ms(100),
                    max: s(1),
                },
                ..config()
            };
            let storage = Arc::clone(&fleet.storage) as Arc<dyn Storage>;
            let handler = Arc::new(fleet.obey.clone());
            let listener = QueueListener::new(config, storage, handler, 7 + number as u64).unwrap();
            let waker = listener.waker();
            let task = async move {
                listener.run_until(std::future::pending()).await.unwrap();
            };
            fleet.members.push((fleet.crew.spawn(task), waker));
        }
        fleet
    }

    /// Returns the workers that poll within this time from now.
    async fn pollers(&self, within: std::time::Duration) -> Vec<String> {
        let now = Instant::now();
        sleep(within).await;
        self.storage.getters_since(now)
    }

    fn kill(&self, worker: &str) {
        let number: usize = worker[1..].parse().unwrap();
        self.members[number].0.abort();
    }
}

/// DL3: a whole idle fleet has one poller with one task, and its polling cost does not grow with
/// the number of listeners. When the poller dies, another one takes over, and no message is
/// stranded.
#[tokio::test(start_paused = true)]
async fn dl3_one_idle_poller_for_the_whole_fleet() {
    let fleet = Fleet::start(5);
    sleep(s(60)).await;
    let first = fleet.pollers(s(600)).await;
    assert_eq!(first.len(), 1, "{first:?}");
    let (gets, leases) = (fleet.storage.calls(Op::Get), fleet.storage.calls(Op::Lease));
    sleep(s(600)).await;
    let gets = fleet.storage.calls(Op::Get) - gets;
    assert!((590..680).contains(&gets), "{gets} gets in ten minutes");
    let leases = fleet.storage.calls(Op::Lease) - leases;
    // Four listeners ask once per lease length, one renews three times: 600 / 30 * 7.
    assert!(
        (120..160).contains(&leases),
        "{leases} requests for the lease"
    );
    fleet.kill(&first[0]);
    fleet.storage.put(QUEUE, "ok");
    sleep(s(68)).await;
    assert_eq!(fleet.obey.runs().len(), 1, "taken within a gap");
    let second = fleet.pollers(s(600)).await;
    assert!(second.len() == 1 && second != first, "{second:?}");
}

/// Starts a successor and returns its tasks after 17 s, and the requests for the lease until then.
async fn succeed(config: &ListenerConfig, storage: &Arc<FakeStorage>) -> (u32, u64) {
    let before = storage.calls(Op::Lease);
    let config = ListenerConfig {
        worker: "successor".to_owned(),
        ..config.clone()
    };
    let (listener, _) = listener(config, storage, Obey::default());
    let mut seen = (0, 0);
    let story = async {
        sleep(s(17)).await;
        let tasks = listener.status().borrow().tasks;
        seen = (tasks, storage.calls(Op::Lease) - before);
    };
    listener.run_until(story).await.unwrap();
    seen
}

/// A sentinel that stops releases its lease, so that the fleet need not wait until it expires.
#[tokio::test(start_paused = true)]
async fn a_sentinel_that_leaves_gives_up_its_lease() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let config = with(|c| c.sentinel = Some(SentinelConfig::default()));
    let (first, _) = listener(config.clone(), &storage, Obey::default());
    run_for(&first, s(100)).await;
    let (tasks, leases) = succeed(&config, &storage).await;
    assert_eq!((tasks, leases), (1, 1), "at the first attempt");
}

/// A listener that stops while it waits for the lease's answer releases what it may have acquired.
#[tokio::test(start_paused = true)]
async fn a_lease_in_doubt_is_given_up() {
    for stop in (0..80).map(|step| ms(500 * step)) {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        storage.fault(Op::Lease, 0..u64::MAX, Fault::Slow(s(2)));
        let config = with(|c| c.sentinel = Some(SentinelConfig::default()));
        let (first, _) = listener(config.clone(), &storage, Obey::default());
        run_for(&first, stop).await;
        storage.heal();
        assert_eq!(succeed(&config, &storage).await.0, 1, "after {stop:?}");
    }
}

/// More work than one listener can do wakes the fleet without a trigger: the sentinel releases its
/// lease, and so does the next one.
#[tokio::test(start_paused = true)]
async fn a_backlog_wakes_the_fleet() {
    let fleet = Fleet::start(3);
    sleep(s(100)).await;
    assert_eq!(fleet.pollers(s(60)).await.len(), 1);
    for _ in 0..10_000 {
        fleet.storage.put(QUEUE, "sleep 1000");
    }
    let helpers = fleet.pollers(s(120)).await;
    assert_eq!(helpers.len(), 3, "{helpers:?}");
    sleep(s(600)).await;
    assert!(fleet.storage.stored(QUEUE).is_empty());
    assert_eq!(fleet.pollers(s(60)).await.len(), 1, "idle again");
}

/// A trigger also wakes a follower, which becomes idle again afterwards.
#[tokio::test(start_paused = true)]
async fn a_trigger_wakes_a_follower() {
    let fleet = Fleet::start(3);
    sleep(s(100)).await;
    let one = fleet.pollers(s(60)).await;
    for (_, waker) in &fleet.members {
        waker.wake();
    }
    assert_eq!(fleet.pollers(s(5)).await.len(), 3);
    sleep(s(60)).await;
    assert_eq!(fleet.pollers(s(60)).await, one);
}

/// LL1: if the lease requests fail, every listener looks at its watchdog's interval, so that a
/// failure of the blob service strands no message.
#[tokio::test(start_paused = true)]
async fn without_the_blob_service_the_watchdog_looks() {
    let fleet = Fleet::start(3);
    sleep(s(100)).await;
    let sentinel = fleet.pollers(s(10)).await;
    let refused = Fault::Before(ErrorKind::Denied);
    fleet.storage.fault(Op::Lease, 0..u64::MAX, refused);
    fleet.kill(&sentinel[0]);
    sleep(s(40)).await;
    fleet.storage.put(QUEUE, "ok");
    sleep(s(62)).await;
    assert_eq!(fleet.obey.runs().len(), 1);
}

/// LS9: listeners on two queues of one account share its request limit.
#[tokio::test(start_paused = true)]
async fn ls9_two_queues_share_the_accounts_budget() {
    let storage = Arc::new(FakeStorage::new(&["orders", "bills"]));
    let account = AccountLimit::new(50);
    let mut crew = JoinSet::new();
    for queue in ["orders", "bills"] {
        for _ in 0..400 {
            storage.put(queue, "ok");
        }
        let port = Arc::clone(&storage) as Arc<dyn Storage>;
        let listener = QueueListener::builder(queue, port)
            .rate_per_s(2000)
            .within(account.clone())
            .handler(Obey::default())
            .build()
            .unwrap();
        crew.spawn(async move { listener.once().await.unwrap() });
    }
    while let Some(report) = crew.join_next().await {
        assert_eq!(report.unwrap().received, 400);
    }
    let mut sent: Vec<Instant> = storage.requests().into_iter().map(|r| r.0).collect();
    sent.sort();
    assert!(sent.len() > 800);
    assert_eq!(account.requests(), sent.len() as u64);
    for (first, at) in sent.iter().enumerate() {
        let within = sent[first..].iter().take_while(|t| **t - *at < s(1));
        let count = within.count();
        assert!(count <= 56, "{count} requests in a second");
    }
}

/// LS9: requests for the map of a partitioned queue wait for the account's tokens and are counted.
#[tokio::test(start_paused = true)]
async fn ls9_looks_at_a_map_are_within_the_accounts_budget() {
    let storage = Arc::new(FakeStorage::new(&[])) as Arc<dyn Storage>;
    let account = AccountLimit::new(10);
    let settings = PartitionSettings::new(QUEUE, 2, "maps");
    let set = Partitions::new(storage, settings).unwrap();
    let shown = Arc::new(Metrics::new(QUEUE));
    let set = set.within(account.clone());
    let set = set.observed_by(Arc::clone(&shown) as Arc<dyn Observer>);
    let begin = Instant::now();
    for _ in 0..21 {
        // This fake has no such blobs; the answer does not matter.
        let _ = set.known_map().await;
    }
    assert_eq!(account.requests(), 21);
    assert_eq!(shown.counts().requests.get("Get Blob"), Some(&21));
    assert!(begin.elapsed() >= s(2), "{:?}", begin.elapsed());
}

/// 503s of one queue slow that queue down; simultaneous 503s of two queues slow the account down.
#[tokio::test(start_paused = true)]
async fn two_throttled_queues_mean_a_throttled_account() {
    for (queues, slowed) in [(&["orders"][..], false), (&["orders", "bills"], true)] {
        let storage = Arc::new(FakeStorage::new(queues));
        storage.fault(Op::Get, 0..8, Fault::Before(ErrorKind::Busy));
        let account = AccountLimit::new(1000);
        let mut crew = JoinSet::new();
        for queue in queues {
            let port = Arc::clone(&storage) as Arc<dyn Storage>;
            let listener = QueueListener::builder(queue, port)
                .within(account.clone())
                .handler(Obey::default())
                .build()
                .unwrap();
            crew.spawn(async move { listener.run_until(sleep(s(2))).await.unwrap() });
        }
        sleep(s(1)).await;
        assert_eq!(account.rate_per_s() < 1000.0, slowed, "{queues:?}");
        while crew.join_next().await.is_some() {}
    }
}
