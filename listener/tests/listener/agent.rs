//! Fewer requests and instances: bundles of bodies, and the agent that scales instances through an
//! hour of load on the virtual clock. Each instance is a listener that needs a while to start.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::agent::{Agent, Instances};
use smalt_listener::config::{Encoding, Tasks};
use smalt_listener::handler::{Message, Verdict, each, function, json, typed_function};
use smalt_listener::payload::Sender;
use smalt_listener::rules::instances::Bounds;
use smalt_listener::{ListenerConfig, QueueListener};
use smalt_sleeve::port::Storage;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::*;

/// Time from the order of an instance to its first get.
const STARTS_IN: Duration = Duration::from_secs(90);
/// Messages that an instance handles at once, and time that each takes: 4 messages a second.
const SLOTS: u32 = 16;
const WORK: Duration = Duration::from_secs(4);
/// The load: so many messages a second from this second on. The middle needs five full instances.
const LOAD: [(u64, u64); 3] = [(0, 1), (900, 20), (1_800, 1)];
const HOUR_S: u64 = 3_600;

/// An instance: when it works, how many handlers run, and what stops it.
struct Instance {
    ready_at: Instant,
    running: Arc<AtomicU32>,
    stop: watch::Sender<bool>,
    _task: JoinHandle<()>,
}

struct Fleet {
    storage: Arc<FakeStorage>,
    waits: Arc<Mutex<Vec<Duration>>>,
    instances: Vec<Instance>,
    started: u32,
    sizes: Vec<usize>,
}

impl Fleet {
    fn new(storage: &Arc<FakeStorage>) -> Self {
        Fleet {
            storage: Arc::clone(storage),
            waits: Arc::default(),
            instances: Vec::new(),
            started: 0,
            sizes: Vec::new(),
        }
    }

    fn start(&mut self) {
        self.started += 1;
        let config = ListenerConfig {
            slots: SLOTS,
            tasks: Tasks { min: 1, max: 1 },
            visibility: s(60),
            ..ListenerConfig::new(QUEUE)
        };
        let running = Arc::new(AtomicU32::new(0));
        let (storage, waits) = (Arc::clone(&self.storage), Arc::clone(&self.waits));
        let (clock, count) = (Arc::clone(&self.storage), Arc::clone(&running));
        let handler = Arc::new(function(move |message: Message, _| {
            waits
                .lock()
                .unwrap()
                .push(clock.now().since(message.inserted));
            let count = Arc::clone(&count);
            async move {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(WORK).await;
                count.fetch_sub(1, Ordering::Relaxed);
                Verdict::Ok
            }
        }));
        let seed = u64::from(self.started);
        let listener = QueueListener::new(config, storage, handler, seed).unwrap();
        let (stop, mut told) = watch::channel(false);
        let task = async move {
            tokio::select! {
                () = tokio::time::sleep(STARTS_IN) => {}
                _ = told.wait_for(|told| *told) => return,
            }
            let stopped = async { drop(told.wait_for(|told| *told).await) };
            listener.run_until(stopped).await.unwrap();
        };
        self.instances.push(Instance {
            ready_at: Instant::now() + STARTS_IN,
            running,
            stop,
            _task: tokio::spawn(task),
        });
    }
}

#[async_trait]
impl Instances for Fleet {
    async fn look(&mut self) -> (u32, u32, f64) {
        let is_ready = |instance: &&Instance| instance.ready_at <= Instant::now();
        let ready: Vec<_> = self.instances.iter().filter(is_ready).collect();
        let running = ready.iter().map(|i| i.running.load(Ordering::Relaxed));
        let running: u32 = running.sum();
        let count = u32::try_from(ready.len()).unwrap();
        let starting = u32::try_from(self.instances.len()).unwrap() - count;
        let processor = f64::from(running) / f64::from((count * SLOTS).max(1));
        (count, starting, processor)
    }

    async fn set(&mut self, wanted: u32) {
        let wanted = usize::try_from(wanted).unwrap();
        while self.instances.len() < wanted {
            self.start();
        }
        for stopped in self.instances.split_off(wanted) {
            stopped.stop.send(true).unwrap();
        }
        self.sizes.push(wanted);
    }
}

async fn load(storage: &FakeStorage) {
    for second in 0..HOUR_S {
        let (_, per_s) = LOAD.iter().rev().find(|(from, _)| second >= *from).unwrap();
        for _ in 0..*per_s {
            storage.put(QUEUE, "work");
        }
        tokio::time::sleep(s(1)).await;
    }
}

/// L5, L10, L11, L12: an hour of load. The agent starts instances when the load rises, and stops
/// them after it fell; no message waits for long, and the hour takes less than half of the fleet
/// that the peak needs.
#[tokio::test(start_paused = true)]
async fn l12_an_agent_follows_an_hour_of_load() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let mut fleet = Fleet::new(&storage);
    let bounds = Bounds {
        max: 10,
        depth_per_instance: 240,
        ..Bounds::default()
    };
    let port = Arc::clone(&storage) as Arc<dyn Storage>;
    let every = s(15);
    let mut agent = Agent::new(port, QUEUE, every, bounds);
    agent.run_until(&mut fleet, load(&storage)).await;
    let mut waits = fleet.waits.lock().unwrap().clone();
    waits.sort();
    let sent: u64 = [900, 900 * 20, 1_800].iter().sum();
    assert!(
        waits.len() as u64 >= sent - 10,
        "{} of {sent} handled",
        waits.len()
    );
    let (median, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    let most = *fleet.sizes.iter().max().unwrap();
    let looks = fleet.sizes.len();
    let hours = fleet.sizes.iter().sum::<usize>() as f64 * every.as_secs_f64() / 3_600.0;
    println!(
        "{sent} messages: median wait {median:?}, p99 {p99:?}; {hours:.1} instance hours, at most \
         {most} instances, {} started; {looks} looks",
        fleet.started
    );
    assert!((6..=10).contains(&most), "{:?}", fleet.sizes);
    assert_eq!(fleet.sizes.last(), Some(&1), "{:?}", fleet.sizes);
    assert!(p99 < s(240), "{p99:?}");
    assert!(hours < most as f64 / 2.0, "{hours} of {most}");
    assert!(fleet.started <= 14, "{} started", fleet.started);
}

/// L5: a bundle of a hundred bodies costs the requests of one message; a part that fails fails its
/// bundle, and each part has an id of its own.
#[tokio::test(start_paused = true)]
async fn l5_a_bundle_costs_one_message() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let sender = Sender::new(
        Arc::clone(&storage) as Arc<dyn Storage>,
        QUEUE,
        Encoding::Text,
        None,
        1,
    )
    .unwrap();
    let bodies: Vec<u64> = (0..100).collect();
    let bundle = serde_json::to_vec(&bodies).unwrap();
    sender.send(&bundle, Default::default()).await.unwrap();
    let seen: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let parts = Arc::clone(&seen);
    let handler = json(each(typed_function(move |part: Message<u64>, _| {
        parts.lock().unwrap().push((part.body, part.id));
        let failed = part.body == 1 && part.dequeue_count == 1;
        async move {
            match failed {
                true => Verdict::retry("not yet"),
                false => Verdict::Ok,
            }
        }
    })));
    let (listener, _) = listener(config(), &storage, handler);
    run_for(&listener, s(30)).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 102, "0 and 1, and then all");
    let ids: std::collections::BTreeSet<_> = seen.iter().map(|(_, id)| id).collect();
    assert_eq!(ids.len(), 100);
    assert!(seen[2].1.ends_with("/0"), "{}", seen[2].1);
    let used = [Op::Put, Op::Update, Op::Delete].map(|op| storage.calls(op));
    assert_eq!(used, [1, 1, 1]);
}
