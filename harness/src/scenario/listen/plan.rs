//! The plan of a listener's run: its messages, settings, acts and faults, all drawn at random.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use smalt_listener::config::Policy;
use smalt_listener::payload::Compression;

use super::shape::{Resize, Shape, shapes};
use crate::scenario::faults::{self, Aim, Fault, Menu, Mishap, Operation};
use crate::scenario::world::{self, Trouble};

/// Timeout of a handler in seconds; a handler that hangs is cancelled after it.
pub(super) const HANDLER_TIMEOUT_S: u16 = 40;
/// Longest time to live of a message, in seconds.
pub(super) const TTL_MAX_S: u16 = 400;
/// Largest number of a request that a fault may be aimed at.
const REQUESTS_MAX: u16 = 60;
/// Largest number of the request at which the service becomes busy: the messages come early.
const BUSY_FROM_MAX: u16 = 20;
/// Faults on the wire.
const MENU: Menu = Menu {
    aims: &[
        (Operation::Any, "", REQUESTS_MAX),
        (Operation::Change, "", 20),
        (Operation::Take, "", 20),
        (Operation::Renew, "", 8),
        (Operation::Settle, "", 8),
        (Operation::Send, "", 4),
        (Operation::Lease, "", 6),
    ],
    acts: 0,
    late_s: 90,
    most: 10,
};

/// Number of the first message of the wave; messages of the plan have smaller numbers.
pub(super) const WAVE_FIRST: usize = 1_000;

/// Operations of the queue service that fault rules may fail.
const OPERATIONS: [&str; 5] = [
    "Messages_Dequeue",
    "MessageId_Delete",
    "MessageId_Update",
    "Messages_Enqueue",
    "Queue_Create",
];

/// Path of the payload blobs.
const PAYLOADS_PATH: &str = "/devstoreaccount1/payloads/";
/// Time in seconds that a straggler takes.
const STRAGGLER_S: u16 = 25;

/// Repetitions that make a payload long enough to be stored in a blob.
const PAYLOAD_REPEATS: usize = 20;

/// Path of the poison queue.
const POISON_PATH: &str = "/devstoreaccount1/orders-poison";

/// How the handler treats one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Succeeds after this many milliseconds.
    Ok(u32),
    /// Succeeds after this many seconds, which is longer than the visibility timeout.
    Slow(u16),
    /// Fails this many times, then succeeds.
    FailFirst(u32),
    /// Asks this many times for a retry after this many seconds, then succeeds.
    RetryAfter(u32, u16),
    /// Panics this many times, then succeeds.
    PanicFirst(u32),
    /// Rejects the message.
    Reject,
    /// Hangs at every attempt.
    Hang,
    /// The text is invalid in the queue's encoding, so that no handler ever gets it.
    Undecodable,
}

impl Behaviour {
    /// Returns the number of attempts that fail before one succeeds; `None` when none does.
    pub fn failures(self) -> Option<u32> {
        match self {
            Behaviour::Ok(_) | Behaviour::Slow(_) => Some(0),
            Behaviour::FailFirst(n) | Behaviour::RetryAfter(n, _) | Behaviour::PanicFirst(n) => {
                Some(n)
            }
            Behaviour::Reject | Behaviour::Hang | Behaviour::Undecodable => None,
        }
    }

    /// Returns the delay in seconds that the handler asks for with its retries.
    pub fn asks_for_s(self) -> Option<u16> {
        match self {
            Behaviour::RetryAfter(_, seconds) => Some(seconds),
            _ => None,
        }
    }
}

/// When and how a message is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At the start.
    First,
    /// At the start, hidden for this many seconds.
    Hidden(u16),
    /// After this many seconds; the flag says whether a trigger follows.
    Later(u16, bool),
}

/// The plan of one message.
#[derive(Clone, Debug)]
pub struct MessagePlan {
    /// How the handler treats it.
    pub behaviour: Behaviour,
    /// When it is put.
    pub arrival: Arrival,
    /// Time to live in seconds; `None` for a message that never expires.
    pub ttl_s: Option<u16>,
}

/// An act that disturbs the listeners during the trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The owner deletes the queue, and creates it again after this many seconds.
    DeleteQueue(u16),
    /// A stranger gets the visible messages with this visibility timeout in seconds, and forgets
    /// them.
    Steal(u16),
    /// The listeners' machine sleeps for this many seconds; a stranger takes what becomes visible.
    Sleep(u16),
    /// The listener with this number is told to stop, and its successor starts.
    Stop(u8),
}

/// The messages after the trouble, once the queue is empty and has been idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wave {
    /// No messages.
    None,
    /// This many messages at once, each with this many milliseconds of work; after the second
    /// number of milliseconds one listener is told to stop.
    Burst(u16, u32, u32),
    /// This many messages per second, each with this many milliseconds of work, for this many
    /// seconds.
    Steady(u8, u32, u16),
}

/// The plan of a complete run.
#[derive(Clone, Debug)]
pub struct ListenPlan {
    /// Seed of the service and the workers.
    pub seed: u64,
    /// Messages that the owner puts.
    pub messages: Vec<MessagePlan>,
    /// Settings of the listeners and of their surroundings.
    pub shape: Shape,
    /// Acts during the trouble, with their times in seconds.
    pub acts: Vec<(u16, Act)>,
    /// Messages after the trouble.
    pub wave: Wave,
    /// Number of messages at the beginning of the wave that take long.
    pub stragglers: usize,
    /// Faults.
    pub trouble: Trouble,
}

impl ListenPlan {
    /// Returns the plan of one listener, messages of different behaviours, and one fault. Every
    /// second message has its payload in a blob.
    pub fn of_fault(fault: Fault) -> Self {
        let message = |behaviour| MessagePlan {
            behaviour,
            arrival: Arrival::First,
            ttl_s: None,
        };
        let behaviours = [
            Behaviour::Ok(500),
            Behaviour::FailFirst(1),
            Behaviour::Reject,
            Behaviour::Slow(15),
            Behaviour::RetryAfter(1, 3),
            Behaviour::Undecodable,
        ];
        let (faults, rules) = (vec![fault], Vec::new());
        ListenPlan {
            seed: 1,
            messages: behaviours.map(message).to_vec(),
            shape: Shape::small(),
            acts: Vec::new(),
            wave: Wave::None,
            stragglers: 0,
            trouble: Trouble { faults, rules },
        }
    }

    /// Returns the body of a message, which its handler must get.
    pub fn body(&self, number: usize) -> String {
        let body = format!("m{number:04} <&> \u{e9}");
        match self.travels_apart(number) {
            true => body + &format!(" and {number} more").repeat(PAYLOAD_REPEATS),
            false => body,
        }
    }

    /// Whether the body is stored in a blob.
    pub fn travels_apart(&self, number: usize) -> bool {
        let is_apart = self.shape.payloads.is_some() && number.is_multiple_of(2);
        is_apart && self.behaviour(number) != Some(Behaviour::Undecodable)
    }

    /// Returns how the handler treats a message.
    pub fn behaviour(&self, number: usize) -> Option<Behaviour> {
        if number < WAVE_FIRST {
            return self.messages.get(number).map(|message| message.behaviour);
        }
        Some(match self.wave {
            _ if number < WAVE_FIRST + self.stragglers => Behaviour::Slow(STRAGGLER_S),
            Wave::None => Behaviour::Ok(0),
            Wave::Burst(_, work_ms, _) | Wave::Steady(_, work_ms, _) => Behaviour::Ok(work_ms),
        })
    }

    /// Returns how the handler treats the message with this body.
    pub fn behaviour_of(&self, body: &str) -> Option<Behaviour> {
        let number = number_of(body)?;
        self.behaviour(number).filter(|_| self.body(number) == body)
    }

    /// Returns the text as stored, unless the body is in a blob. Undecodable texts end in white
    /// space, which must survive as well.
    pub fn stored_text(&self, number: usize) -> String {
        let body = self.body(number);
        match (self.shape.base64, self.behaviour(number)) {
            (true, Some(Behaviour::Undecodable)) => format!("m{number:04} is *no* base64 \n"),
            (true, _) => STANDARD.encode(body),
            (false, _) => body,
        }
    }

    /// Returns the number of the message that is stored as `text`.
    pub fn number_of_stored(&self, text: &str) -> Option<usize> {
        let decoded = STANDARD.decode(text).ok().filter(|_| self.shape.base64);
        match decoded {
            Some(bytes) => number_of(std::str::from_utf8(&bytes).ok()?),
            None => number_of(text),
        }
    }

    /// Whether requests may be delayed or lost, so that the history does not show when or whether
    /// they were sent.
    pub fn hides_requests(&self) -> bool {
        let late =
            |rule: &smalt::faults::Rule| matches!(rule.fault, smalt::faults::Fault::Latency { .. });
        let faults = &self.trouble.faults;
        faults.iter().any(|fault| fault.mishap.hides()) || self.trouble.rules.iter().any(late)
    }

    /// Whether a request for a lease may be sent without being seen when it is sent.
    pub fn hides_leases(&self) -> bool {
        let aimed = [Operation::Lease, Operation::Any];
        let mut faults = self.trouble.faults.iter();
        faults.any(|fault| match fault.mishap {
            // Whatever they aim at, they stop all requests for a while.
            Mishap::Pause(_) | Mishap::Outage(_) => true,
            mishap => mishap.hides() && aimed.contains(&fault.aim.operation),
        })
    }

    /// Whether the plan contains neither faults nor acts.
    pub fn is_calm(&self) -> bool {
        let faults = !self.trouble.faults.is_empty() || !self.trouble.rules.is_empty();
        let acts = !self.acts.is_empty() || self.shape.partitions.is_some();
        !faults && !acts && self.shape.skew_s == [0; 3]
    }
}

fn number_of(text: &str) -> Option<usize> {
    text.strip_prefix('m')?.get(..4)?.parse().ok()
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        6 => (0u32..3_000).prop_map(Behaviour::Ok),
        3 => (5u16..35).prop_map(Behaviour::Slow),
        2 => (1u32..4).prop_map(Behaviour::FailFirst),
        2 => (1u32..3, 0u16..60).prop_map(|(n, s)| Behaviour::RetryAfter(n, s)),
        1 => (1u32..3).prop_map(Behaviour::PanicFirst),
        1 => Just(Behaviour::Reject),
        1 => Just(Behaviour::Hang),
        1 => Just(Behaviour::Undecodable),
    ]
}

fn messages() -> impl Strategy<Value = Vec<MessagePlan>> {
    let arrival = prop_oneof![
        5 => Just(Arrival::First),
        1 => (1u16..60).prop_map(Arrival::Hidden),
        3 => (1u16..140, any::<bool>()).prop_map(|(s, told)| Arrival::Later(s, told)),
    ];
    let ttl = prop_oneof![6 => Just(None), 1 => (70..TTL_MAX_S).prop_map(Some)];
    let message =
        (behaviours(), arrival, ttl).prop_map(|(behaviour, arrival, ttl_s)| MessagePlan {
            behaviour,
            arrival,
            ttl_s,
        });
    proptest::collection::vec(message, 1..14)
}

fn acts() -> impl Strategy<Value = Vec<(u16, Act)>> {
    let act = prop_oneof![
        1 => (0u16..40).prop_map(Act::DeleteQueue),
        2 => (1u16..40).prop_map(Act::Steal),
        3 => (1u16..90).prop_map(Act::Sleep),
        3 => (0u8..3).prop_map(Act::Stop),
    ];
    let dense = prop_oneof![2 => Just(0usize), 2 => Just(1), 1 => Just(4)];
    dense.prop_flat_map(move |most| proptest::collection::vec((1u16..140, act.clone()), 0..=most))
}

fn waves() -> impl Strategy<Value = Wave> {
    prop_oneof![
        2 => Just(Wave::None),
        5 => (1u16..40, 0u32..3_000, 0u32..5_000)
            .prop_map(|(n, ms, stop)| Wave::Burst(n, ms, stop)),
        1 => (1u8..5, 100u32..1_500, 40u16..55).prop_map(|(n, ms, s)| Wave::Steady(n, ms, s)),
    ]
}

/// Extra settings of some runs. They are drawn after everything else, so that a seed keeps its run.
#[derive(Clone, Debug, Default)]
struct Extras {
    payloads: Option<Compression>,
    partitions: Option<Resize>,
    swept: bool,
    wakes_apart: bool,
    /// Which request about a message arrives just before the end of its lock, if one does: a delete
    /// (else a renewal), and its number.
    at_the_end: Option<(bool, u16)>,
    /// Faults of requests for payloads.
    faults: Vec<Fault>,
    /// A period in which the service is busy.
    busy: Option<Fault>,
    drift_s: Option<u16>,
    /// Number of tasks that stragglers fill while single messages arrive.
    filled: Option<u32>,
    /// Seconds after which a resize is taken back.
    back_after_s: Option<u16>,
}

impl Extras {
    /// Adds these settings to a plan.
    fn applied(self, mut plan: ListenPlan) -> ListenPlan {
        let shape = &mut plan.shape;
        (shape.payloads, shape.partitions) = (self.payloads, self.partitions);
        if let Some(resize) = &mut shape.partitions {
            resize.back_after_s = self.back_after_s;
        }
        shape.swept = self.swept && self.payloads.is_some();
        shape.wakes_apart = self.wakes_apart;
        shape.drift_s = self.drift_s;
        if let Some(filled) = self.filled {
            shape.tasks_max = shape.tasks_max.max(filled + 1);
            plan.stragglers = (filled * shape.slots) as usize;
            plan.wave = Wave::Steady(1, 100, 45);
            shape.can_bear(1, 100);
            // A task that rests must not be what a message waits for until the pool gives up.
            shape.cooldown_s = shape.cooldown_s.max(15);
            shape.idle_ms.1 = shape.idle_ms.1.min(3_000);
        }
        let late = self.at_the_end.map(|(is_delete, nth)| {
            // A renewal is sent when half of the lock's time is over.
            let (operation, left_s) = match is_delete {
                true => (Operation::Settle, shape.visibility_s),
                false => (Operation::Renew, shape.visibility_s / 2),
            };
            Fault {
                aim: Aim {
                    operation,
                    resource: "",
                    nth,
                },
                mishap: Mishap::LateAndLost(left_s.saturating_sub(2).max(1)),
            }
        });
        plan.trouble
            .faults
            .extend(self.faults.into_iter().chain(late).chain(self.busy));
        plan
    }
}

/// Faults of requests for payloads.
const PAYLOAD_MENU: Menu = Menu {
    aims: &[
        (Operation::Get, PAYLOADS_PATH, 8),
        (Operation::Other, PAYLOADS_PATH, 6),
        (Operation::Delete, PAYLOADS_PATH, 6),
        (Operation::Head, PAYLOADS_PATH, 4),
    ],
    acts: 0,
    late_s: 90,
    most: 5,
};

fn extras() -> impl Strategy<Value = Extras> {
    let enc = prop_oneof![
        Just(Compression::Zstd),
        Just(Compression::Gzip),
        Just(Compression::None)
    ];
    let payloads = prop_oneof![2 => Just(None), 1 => enc.prop_map(Some)];
    let resize = (1u32..5, 1u32..5, 3u16..100);
    let resize = resize.prop_map(|(from, to, at_s)| Resize {
        from,
        to,
        at_s,
        back_after_s: None,
    });
    let partitions = prop_oneof![3 => Just(None), 1 => resize.prop_map(Some)];
    let late = prop_oneof![3 => Just(None), 1 => (any::<bool>(), 1u16..5).prop_map(Some)];
    let newer = (any::<bool>(), any::<bool>(), late);
    let drift_s = proptest::option::weighted(0.25, 60u16..600);
    let filled = proptest::option::weighted(0.15, 1u32..3);
    let back_after_s = proptest::option::weighted(0.5, 5u16..40);
    let newest = (faults::busy(BUSY_FROM_MAX), drift_s, filled, back_after_s);
    let parts = (
        payloads,
        faults::swarm(PAYLOAD_MENU),
        partitions,
        newer,
        newest,
    );
    parts.prop_map(|(payloads, faults, partitions, newer, newest)| Extras {
        faults: payloads.map(|_| faults).unwrap_or_default(),
        payloads,
        partitions,
        swept: newer.0,
        wakes_apart: newer.1,
        at_the_end: newer.2,
        busy: newest.0,
        drift_s: newest.1,
        filled: newest.2,
        back_after_s: newest.3,
    })
}

/// Generates all plans.
pub(super) fn plans() -> impl Strategy<Value = ListenPlan> {
    let rules = world::rules(&OPERATIONS).prop_map(|mut rules| {
        // The owner puts messages and creates queues too, and no fault may hit it.
        for rule in &mut rules {
            if ["Messages_Enqueue", "Queue_Create"].contains(&rule.operation.as_str()) {
                rule.resource = POISON_PATH.to_owned();
            }
        }
        rules
    });
    let trouble =
        (faults::swarm(MENU), rules).prop_map(|(faults, rules)| Trouble { faults, rules });
    let parts = (
        any::<u64>(),
        messages(),
        shapes(),
        acts(),
        waves(),
        trouble,
        extras(),
    );
    parts.prop_map(
        |(seed, mut messages, mut shape, mut acts, wave, trouble, extras)| {
            for message in &mut messages {
                // Any text can be decoded when bodies are stored as text.
                if !shape.base64 && message.behaviour == Behaviour::Undecodable {
                    message.behaviour = Behaviour::Reject;
                }
            }
            if let Wave::Steady(per_s, work_ms, _) = wave {
                shape.can_bear(per_s, work_ms);
            }
            acts.sort_by_key(|(at, _)| *at);
            extras.applied(ListenPlan {
                seed,
                messages,
                shape,
                acts,
                wave,
                stragglers: 0,
                trouble,
            })
        },
    )
}

/// The policies, each of which is used in turn.
pub(super) const POLICIES: [Policy; 4] =
    [Policy::Little, Policy::Seed, Policy::Fixed, Policy::Aimd];
