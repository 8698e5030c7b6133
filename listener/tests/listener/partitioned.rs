//! A model of resizes of a partitioned queue: senders, consumers, and processes that resize and
//! retire interleave at every point, and no message that counts as sent is stranded.
//!
//! Each read and write of the map, each put and each look at a queue is a separate step, so that
//! anything may happen in between. A sender may stall for any time at any point.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use smalt_listener::partition::Map;
use smalt_protocol::Timestamp;

const SENDERS: usize = 3;
const CONSUMERS: usize = 2;
const MAX_AGE_S: u32 = 10;

/// The next step. The actor whose turn it is takes its own next step.
#[derive(Clone, Copy, Debug)]
enum Step {
    Time(u8),
    Send(usize, u8),
    Consume(usize),
    Resize(u8),
    Retire,
}

/// Rules that can be switched off, to show that the check notices.
#[derive(Clone, Copy, Debug)]
struct Rules {
    settles: bool,
    verifies: bool,
    reads_draining: bool,
}

const ALL: Rules = Rules {
    settles: true,
    verifies: true,
    reads_draining: true,
};

#[derive(Default)]
struct Queues(BTreeMap<String, Vec<u32>>);

#[derive(Clone)]
struct Read {
    map: Map,
    modified_s: u64,
    now_s: u64,
    asked_s: u64,
}

#[derive(Clone)]
enum Sending {
    Idle,
    Asking {
        key: u8,
        asked_s: u64,
    },
    Putting {
        key: u8,
        queue: String,
    },
    Put {
        key: u8,
        queue: String,
    },
    Verifying {
        key: u8,
        queue: String,
        asked_s: u64,
    },
}

struct World {
    rules: Rules,
    now_s: u64,
    map: Map,
    modified_s: u64,
    queues: Queues,
    next: u32,
    /// Numbers of the messages that count as sent; each may have been put several times.
    sent: BTreeSet<u32>,
    consumed: BTreeSet<u32>,
    senders: Vec<(Sending, Option<Read>, u32)>,
    consumers: Vec<Map>,
    resizing: Option<(Map, Map)>,
    retiring: Option<(Read, Vec<String>, usize)>,
}

impl World {
    fn new(rules: Rules) -> Self {
        let map = Map::first("orders", 4, MAX_AGE_S, true);
        World {
            rules,
            now_s: 1000,
            modified_s: 1000,
            queues: Queues::default(),
            next: 0,
            sent: BTreeSet::new(),
            consumed: BTreeSet::new(),
            senders: vec![(Sending::Idle, None, 0); SENDERS],
            consumers: vec![map.clone(); CONSUMERS],
            resizing: None,
            retiring: None,
            map,
        }
    }

    fn read(&self, asked_s: u64) -> Read {
        Read {
            map: self.map.clone(),
            modified_s: self.modified_s,
            now_s: self.now_s,
            asked_s,
        }
    }

    fn write(&mut self, over: &Map, next: Map) {
        if self.map == *over {
            self.map = next;
            self.modified_s = self.now_s;
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Time(s) => self.now_s += u64::from(s),
            Step::Send(who, key) => self.send(who, key),
            Step::Consume(who) => self.consume(who),
            Step::Resize(partitions) => self.resize(u32::from(partitions)),
            Step::Retire => self.retire(),
        }
    }

    fn trusts(&self, read: &Read) -> bool {
        Duration::from_secs(self.now_s - read.asked_s) < read.map.max_age()
    }

    fn send(&mut self, who: usize, key: u8) {
        let (sending, kept, number) = self.senders[who].clone();
        let (sending, kept, number) = match (sending, kept) {
            (Sending::Idle, kept) => {
                self.next += 1;
                let number = self.next;
                match kept.filter(|read| self.trusts(read)) {
                    Some(read) => (putting(&read, key), Some(read), number),
                    None => (self.asking(key), None, number),
                }
            }
            (Sending::Asking { key, asked_s }, _) => {
                let read = self.read(asked_s);
                match self.trusts(&read) {
                    true => (putting(&read, key), Some(read), number),
                    false => (self.asking(key), None, number),
                }
            }
            (Sending::Putting { key, queue }, kept) => {
                self.queues.0.entry(queue.clone()).or_default().push(number);
                (Sending::Put { key, queue }, kept, number)
            }
            (Sending::Put { key, queue }, kept) => {
                if !self.rules.verifies || kept.as_ref().is_some_and(|read| self.trusts(read)) {
                    self.sent.insert(number);
                    (Sending::Idle, kept, number)
                } else {
                    let asked_s = self.now_s;
                    (
                        Sending::Verifying {
                            key,
                            queue,
                            asked_s,
                        },
                        kept,
                        number,
                    )
                }
            }
            (
                Sending::Verifying {
                    key,
                    queue,
                    asked_s,
                },
                _,
            ) => {
                let read = self.read(asked_s);
                if read.map.is_current(&queue) {
                    self.sent.insert(number);
                    (Sending::Idle, Some(read), number)
                } else {
                    (self.asking(key), None, number)
                }
            }
        };
        self.senders[who] = (sending, kept, number);
    }

    fn asking(&self, key: u8) -> Sending {
        let asked_s = self.now_s;
        Sending::Asking { key, asked_s }
    }

    /// A consumer reads the map, or receives from a queue that its map names.
    fn consume(&mut self, who: usize) {
        if self.consumers[who] != self.map {
            self.consumers[who] = self.map.clone();
            return;
        }
        let queues = match self.rules.reads_draining {
            true => self.map.read(),
            false => self.map.current(),
        };
        for queue in queues {
            if let Some(number) = self.queues.0.get_mut(&queue).and_then(Vec::pop) {
                self.consumed.insert(number);
                return;
            }
        }
    }

    fn resize(&mut self, partitions: u32) {
        self.resizing = match self.resizing.take() {
            None => self
                .map
                .resized(partitions)
                .map(|next| (self.map.clone(), next)),
            Some((over, next)) => {
                self.write(&over, next);
                None
            }
        };
    }

    /// Reads the map, then looks at one queue after the other, then writes.
    fn retire(&mut self) {
        self.retiring = match self.retiring.take() {
            None => {
                let read = self.read(self.now_s);
                let at = Timestamp::from_unix_s;
                let is_settled = read.map.is_settled(at(read.modified_s), at(read.now_s));
                let waits = self.rules.settles && !is_settled;
                (!waits).then(|| (read, Vec::new(), 0))
            }
            Some((read, mut empty, looked)) => match read.map.draining.get(looked) {
                Some(queue) => {
                    if self.queues.0.get(queue).is_none_or(Vec::is_empty) {
                        empty.push(queue.clone());
                    }
                    Some((read, empty, looked + 1))
                }
                None => {
                    if let Some(next) = read.map.without(&empty) {
                        self.write(&read.map, next);
                    }
                    None
                }
            },
        };
    }

    /// Lets the consumers finish with the last map; returns the sent messages that never arrive.
    fn stranded(mut self) -> Vec<u32> {
        for _ in 0..=self.next * 4 {
            self.consume(0);
        }
        self.sent.difference(&self.consumed).copied().collect()
    }
}

fn putting(read: &Read, key: u8) -> Sending {
    let queue = read.map.queue_of(&[key]);
    Sending::Putting { key, queue }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => prop_oneof![0u8..4, 0u8..40].prop_map(Step::Time),
        8 => (0..SENDERS, any::<u8>()).prop_map(|(who, key)| Step::Send(who, key)),
        3 => (0..CONSUMERS).prop_map(Step::Consume),
        1 => (1u8..8).prop_map(Step::Resize),
        4 => Just(Step::Retire),
    ];
    proptest::collection::vec(step, 1..250)
}

fn stranded(rules: Rules, steps: &[Step]) -> Vec<u32> {
    let mut world = World::new(rules);
    for step in steps {
        world.step(*step);
    }
    world.stranded()
}

proptest! {
    #![proptest_config(Config::with_cases(500))]

    /// Every sent message is consumed, whatever is resized and retired at whatever point.
    #[test]
    fn no_message_is_stranded(steps in steps()) {
        prop_assert_eq!(stranded(ALL, &steps), Vec::<u32>::new());
    }
}

/// Without any one of the rules, the same search finds a stranded message.
#[test]
fn every_rule_is_needed() {
    let without = [
        Rules {
            settles: false,
            ..ALL
        },
        Rules {
            verifies: false,
            ..ALL
        },
        Rules {
            reads_draining: false,
            ..ALL
        },
    ];
    for rules in without {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let found = (0..3_000).any(|_| {
            let steps = steps().new_tree(&mut runner).unwrap().current();
            !stranded(rules, &steps).is_empty()
        });
        assert!(found, "{rules:?} strands nothing");
    }
}
