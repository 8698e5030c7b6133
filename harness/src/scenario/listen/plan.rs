//! What a listener's run is made of.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use crate::scenario::faults::{self, Kind, Menu, Operation};
use crate::scenario::world::{self, Trouble};

/// Time that a handler has; a hanging one is cancelled after it.
pub(super) const HANDLER_TIMEOUT_S: u16 = 40;
/// Requests of the workers among which mishaps are planned.
const REQUESTS_MAX: u16 = 60;

/// What goes wrong on the wire.
const MENU: Menu = Menu {
    aims: &[
        (Operation::Any, "", REQUESTS_MAX),
        (Operation::Change, "", 20),
        (Operation::Take, "", 20),
    ],
    acts: 0,
    kinds: &[
        Kind::AnswerLost,
        Kind::Unreachable,
        Kind::LateRequest,
        Kind::LateAnswer,
        Kind::CrashBefore,
        Kind::CrashAfter,
    ],
    late_s: 60,
    most: 8,
};
/// Operations of the queue service that fail by rule.
const OPERATIONS: [&str; 5] = [
    "Messages_Dequeue",
    "MessageId_Delete",
    "MessageId_Update",
    "Messages_Enqueue",
    "Queue_Create",
];

/// How the handler treats one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Done after so many milliseconds.
    Ok(u32),
    /// Done after so many seconds, longer than one visibility.
    Slow(u16),
    /// Fails so many times, then is done.
    FailFirst(u32),
    /// Asks so many times for a retry after some seconds, then is done.
    RetryAfter(u32, u16),
    /// Panics so many times, then is done.
    PanicFirst(u32),
    /// Is rejected.
    Reject,
    /// Hangs at every attempt.
    Hang,
    /// Its text is not what the encoding says: no handler ever sees it.
    Undecodable,
}

impl Behaviour {
    /// Attempts that fail before it is done; `None` when it never is.
    pub fn failures(self) -> Option<u32> {
        match self {
            Behaviour::Ok(_) | Behaviour::Slow(_) => Some(0),
            Behaviour::FailFirst(n) | Behaviour::RetryAfter(n, _) | Behaviour::PanicFirst(n) => {
                Some(n)
            }
            Behaviour::Reject | Behaviour::Hang | Behaviour::Undecodable => None,
        }
    }
}

/// One message.
#[derive(Clone, Debug)]
pub struct MessagePlan {
    /// What its handler does.
    pub behaviour: Behaviour,
    /// Visible after this long.
    pub delay_s: u16,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct ListenPlan {
    /// Seed of service and workers.
    pub seed: u64,
    /// Messages.
    pub messages: Vec<MessagePlan>,
    /// Workers.
    pub workers: u8,
    /// Visibility timeout.
    pub visibility_s: u16,
    /// Whether locks are renewed.
    pub renew: bool,
    /// Attempts before the poison queue.
    pub max_dequeue: u32,
    /// Messages that one task handles at once.
    pub slots: u32,
    /// Whether bodies are written in Base64.
    pub base64: bool,
    /// What goes wrong.
    pub trouble: Trouble,
}

impl ListenPlan {
    /// The body of a message: what its handler must be given.
    pub fn body(&self, number: usize) -> String {
        format!("m{number:02} <&> \u{e9}")
    }

    /// Its text as stored.
    pub fn stored_text(&self, number: usize) -> String {
        let body = self.body(number);
        match (self.base64, self.messages[number].behaviour) {
            (true, Behaviour::Undecodable) => format!("m{number:02} is *no* base64"),
            (true, _) => STANDARD.encode(body),
            (false, _) => body,
        }
    }

    /// The message that a handler was given.
    pub fn number_of(&self, body: &str) -> Option<usize> {
        (0..self.messages.len()).find(|number| self.body(*number) == body)
    }
}

fn behaviours() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        6 => (0u32..3_000).prop_map(Behaviour::Ok),
        2 => (5u16..35).prop_map(Behaviour::Slow),
        2 => (1u32..4).prop_map(Behaviour::FailFirst),
        1 => (1u32..3, 0u16..60).prop_map(|(n, s)| Behaviour::RetryAfter(n, s)),
        1 => (1u32..3).prop_map(Behaviour::PanicFirst),
        1 => Just(Behaviour::Reject),
        1 => Just(Behaviour::Hang),
        1 => Just(Behaviour::Undecodable),
    ]
}

/// All plans.
pub(super) fn plans() -> impl Strategy<Value = ListenPlan> {
    let message = (behaviours(), prop_oneof![4 => Just(0u16), 1 => 1u16..60])
        .prop_map(|(behaviour, delay_s)| MessagePlan { behaviour, delay_s });
    let messages = proptest::collection::vec(message, 1..14);
    let trouble = (faults::swarm(MENU), world::rules(&OPERATIONS))
        .prop_map(|(faults, rules)| Trouble { faults, rules });
    let shape = (1u8..3, 4u16..30, 1u32..5, 1u32..9);
    let flags = (
        any::<bool>(),
        prop_oneof![3 => Just(true), 1 => Just(false)],
    );
    (any::<u64>(), messages, shape, flags, trouble).prop_map(
        |(seed, mut messages, (workers, visibility_s, max_dequeue, slots), flags, trouble)| {
            let (base64, renew) = flags;
            for message in &mut messages {
                // As text everything can be decoded.
                if !base64 && message.behaviour == Behaviour::Undecodable {
                    message.behaviour = Behaviour::Reject;
                }
            }
            ListenPlan {
                seed,
                messages,
                workers,
                visibility_s,
                renew,
                max_dequeue,
                slots,
                base64,
                trouble,
            }
        },
    )
}
