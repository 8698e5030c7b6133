//! Planned faults of the wire: what happens, and to which request.
//!
//! A fault is aimed at the n-th request of a kind for a resource, whichever worker sends it. Each
//! run chooses its kinds of mishap and their density at random: some runs are calm, some have only
//! one kind of trouble, some have all kinds at once.

use bytes::Bytes;
use proptest::prelude::*;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Any request.
    Any,
    /// Any request that removes, copies or settles something.
    Change,
    /// Lists blobs.
    List,
    /// Reads the properties of a blob.
    Head,
    /// Reads the content of a blob.
    Get,
    /// Writes a blob.
    Put,
    /// Deletes a blob.
    Delete,
    /// Starts a copy.
    Copy,
    /// Takes, renews or releases a lease.
    Lease,
    /// Creates a container or queue.
    Create,
    /// Gets messages.
    Take,
    /// Updates the text or visibility timeout of a message.
    Renew,
    /// Deletes a message.
    Settle,
    /// Puts a message.
    Send,
    /// Any other request.
    Other,
}

impl Operation {
    /// Returns the kind of a request.
    pub fn of(request: &http::Request<Bytes>) -> Self {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let has = |part: &str| query.split('&').any(|given| given == part);
        if path.ends_with("/messages") || path.contains("/messages/") {
            return match *request.method() {
                http::Method::GET => Operation::Take,
                http::Method::PUT => Operation::Renew,
                http::Method::DELETE => Operation::Settle,
                _ => Operation::Send,
            };
        }
        match *request.method() {
            http::Method::GET if has("comp=list") => Operation::List,
            http::Method::GET if has("restype=container") => Operation::Other,
            http::Method::GET => Operation::Get,
            http::Method::HEAD => Operation::Head,
            http::Method::DELETE => Operation::Delete,
            http::Method::PUT if has("comp=lease") => Operation::Lease,
            http::Method::PUT if request.headers().contains_key("x-ms-copy-source") => {
                Operation::Copy
            }
            http::Method::PUT if path.matches('/').count() < 3 => Operation::Create,
            http::Method::PUT if !query.contains("comp=") => Operation::Put,
            _ => Operation::Other,
        }
    }

    /// Whether this kind includes `of`.
    pub fn means(self, of: Operation) -> bool {
        let changes = [
            Operation::Delete,
            Operation::Copy,
            Operation::Renew,
            Operation::Settle,
            Operation::Send,
        ];
        self == of || self == Operation::Any || (self == Operation::Change && changes.contains(&of))
    }
}

/// The target of a fault: the n-th request of a kind for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Kind of the request.
    pub operation: Operation,
    /// Part of the path as sent; empty matches every path.
    pub resource: &'static str,
    /// Number of the matching request, counted from 1 over all workers. When another fault takes
    /// that request, this one takes the next.
    pub nth: u16,
}

impl Aim {
    /// Whether it matches such a request.
    pub fn means(&self, operation: Operation, path: &str) -> bool {
        self.operation.means(operation) && path.contains(self.resource)
    }
}

/// Kind of the fault in which the answer's body breaks off.
pub const CUT: &str = "answer cut";
/// Kind of [`Mishap::Outage`], and of requests that are sent while it lasts.
pub const AWAY: &str = "service away";
/// Kind of [`Mishap::Busy`], and of requests that are refused while it lasts.
pub const BUSY: &str = "service busy";
/// Kind of the fault that damages the answer's body.
pub const GARBLED: &str = "answer garbled";

/// A fault that happens to one request of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The request never arrives.
    Unreachable,
    /// The service executes the request, and the connection breaks before the answer.
    AnswerLost,
    /// The service executes the request, and the connection breaks after this many bytes of the
    /// answer's body. The head of an error answer still arrives.
    AnswerCut(u16),
    /// The service executes the request, and one byte of the answer's body, at this position modulo
    /// its length, arrives as a byte that is invalid in any text.
    AnswerGarbled(u16),
    /// The request arrives twice, and the sender gets the second answer.
    Twice,
    /// The service rejects the request with this status, 500 or 503, and this `Retry-After` in
    /// seconds.
    Refused(u16, Option<u16>),
    /// The request takes this many seconds to arrive, so that others overtake it.
    LateRequest(u16),
    /// The request takes this many seconds to arrive, and the connection breaks before the answer.
    LateAndLost(u16),
    /// The service executes the request, and the answer takes this many seconds to arrive.
    LateAnswer(u16),
    /// The worker pauses for this many seconds: it sends and receives nothing.
    Pause(u16),
    /// The service is unavailable for this many seconds. Requests in flight may or may not be
    /// executed.
    Outage(u16),
    /// For this many seconds, the service refuses this percentage of the requests of all workers
    /// with 503 and this `Retry-After` in seconds; this request is the first of them.
    Busy(u16, u8, u16),
    /// The worker dies before the request is sent.
    CrashBefore,
    /// The service executes the request, and the worker dies.
    CrashAfter,
    /// The worker dies this many milliseconds after the request was executed, whatever it does
    /// then.
    CrashLater(u16),
    /// The worker is asked to stop after the request was executed.
    Stop,
    /// The owner performs the act of this number on the request's resource just before the request
    /// is executed.
    OwnerBefore(u8),
    /// The owner performs the act of this number right after the request was executed.
    OwnerAfter(u8),
}

impl Mishap {
    /// Whether the request may reach the service late or never.
    pub fn hides(self) -> bool {
        matches!(
            self,
            Mishap::Unreachable
                | Mishap::LateRequest(_)
                | Mishap::LateAndLost(_)
                | Mishap::Pause(_)
                | Mishap::Outage(_)
        )
    }

    /// Returns the kind, as the account and the table name it.
    pub fn kind(self) -> &'static str {
        match self {
            Mishap::Unreachable => "request lost",
            Mishap::AnswerLost => "answer lost",
            Mishap::AnswerCut(_) => CUT,
            Mishap::AnswerGarbled(_) => GARBLED,
            Mishap::Twice => "delivered twice",
            Mishap::Refused(503, Some(_)) => "503 with Retry-After",
            Mishap::Refused(..) => "refused",
            Mishap::LateRequest(_) => "request late",
            Mishap::LateAndLost(_) => "request late, answer lost",
            Mishap::LateAnswer(_) => "answer late",
            Mishap::Pause(_) => "worker paused",
            Mishap::Outage(_) => AWAY,
            Mishap::Busy(..) => BUSY,
            Mishap::CrashBefore => "crash before",
            Mishap::CrashAfter => "crash after",
            Mishap::CrashLater(_) => "crash later",
            Mishap::Stop => "asked to stop",
            Mishap::OwnerBefore(_) => "owner before",
            Mishap::OwnerAfter(_) => "owner after",
        }
    }

    /// Whether the answer reaches the sender at once.
    pub fn is_delivered(self) -> bool {
        !matches!(
            self,
            Mishap::AnswerLost
                | Mishap::CrashAfter
                | Mishap::LateAndLost(_)
                | Mishap::LateAnswer(_)
        )
    }
}

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The request that it happens to.
    pub aim: Aim,
    /// What happens to it.
    pub mishap: Mishap,
}

/// The faults that a scenario may plan.
#[derive(Clone, Debug)]
pub struct Menu {
    /// Kind of request, part of the path, and the largest n of each target.
    pub aims: &'static [(Operation, &'static str, u16)],
    /// Number of acts of the owner; 0 without an owner.
    pub acts: u8,
    /// Longest delay and pause, in seconds.
    pub late_s: u16,
    /// Most faults of one run.
    pub most: usize,
}

/// Generates faults from a menu. Each run includes each kind of mishap with a probability of one
/// half.
pub fn swarm(menu: Menu) -> BoxedStrategy<Vec<Fault>> {
    let aims = (0..menu.aims.len(), 0u32..1_000_000);
    let fault = (aims, 0usize..KINDS.len() * 3, any::<u16>());
    let dense = prop_oneof![1 => Just(0usize), 2 => 1..4usize, 5 => 4..=menu.most.max(4)];
    let drawn = proptest::collection::vec(fault, 0..=menu.most);
    (any::<u32>(), dense, drawn)
        .prop_map(move |(coins, dense, drawn)| {
            let kinds = kinds(&menu, coins);
            let faults = drawn
                .into_iter()
                .take(dense)
                .filter_map(|((aim, part), kind, value)| {
                    let (operation, resource, most) = *menu.aims.get(aim)?;
                    let nth = 1 + (u64::from(part) * u64::from(most) / 1_000_000) as u16;
                    let kind = *kinds.get(kind % kinds.len().max(1))?;
                    let aim = Aim {
                        operation,
                        resource,
                        nth,
                    };
                    let mishap = kind.mishap(value, &menu);
                    Some(Fault { aim, mishap })
                });
            faults.collect()
        })
        .boxed()
}

/// Generates, for one run of four, a period in which the service is busy. It begins at one of the
/// first `requests_max` requests.
pub fn busy(requests_max: u16) -> impl Strategy<Value = Option<Fault>> {
    let numbers = (1..=requests_max, 20u16..140, 30u8..=100, 0u16..20);
    let busy = numbers.prop_map(|(nth, for_s, percent, retry_after_s)| Fault {
        aim: Aim {
            operation: Operation::Any,
            resource: "",
            nth,
        },
        mishap: Mishap::Busy(for_s, percent, retry_after_s),
    });
    proptest::option::weighted(0.25, busy)
}

/// A kind of mishap that a [`Menu`] draws: [`Mishap`] without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the mishap of the same name")]
pub enum Kind {
    Unreachable,
    AnswerLost,
    AnswerCut,
    AnswerGarbled,
    Twice,
    Refused,
    LateRequest,
    LateAnswer,
    Pause,
    Outage,
    CrashBefore,
    CrashAfter,
    CrashLater,
    Stop,
    OwnerBefore,
    OwnerAfter,
}

/// All kinds, in the order of their coins.
pub const KINDS: [Kind; 16] = [
    Kind::Unreachable,
    Kind::AnswerLost,
    Kind::AnswerCut,
    Kind::AnswerGarbled,
    Kind::Twice,
    Kind::Refused,
    Kind::LateRequest,
    Kind::LateAnswer,
    Kind::Pause,
    Kind::Outage,
    Kind::CrashBefore,
    Kind::CrashAfter,
    Kind::CrashLater,
    Kind::Stop,
    Kind::OwnerBefore,
    Kind::OwnerAfter,
];

/// Returns the kinds of a run, one coin for each; all kinds when every coin says no.
fn kinds(menu: &Menu, coins: u32) -> Vec<Kind> {
    let owners = [Kind::OwnerBefore, Kind::OwnerAfter];
    let allowed = |kind: &Kind| menu.acts > 0 || !owners.contains(kind);
    let all: Vec<Kind> = KINDS.into_iter().filter(allowed).collect();
    let tossed = all
        .iter()
        .enumerate()
        .filter(|(at, _)| coins >> at & 1 == 1);
    let tossed: Vec<Kind> = tossed.map(|(_, kind)| *kind).collect();
    let mut kinds = if tossed.is_empty() { all } else { tossed };
    // The owner can interfere in many ways, so its kinds count three times.
    let acts: Vec<Kind> = kinds
        .iter()
        .copied()
        .filter(|k| owners.contains(k))
        .collect();
    kinds.extend(acts.repeat(2));
    kinds
}

impl Kind {
    fn mishap(self, value: u16, menu: &Menu) -> Mishap {
        let late = 1 + value % menu.late_s.max(1);
        let act = (value % u16::from(menu.acts.max(1))) as u8;
        match self {
            Kind::Unreachable => Mishap::Unreachable,
            Kind::AnswerLost => Mishap::AnswerLost,
            Kind::AnswerCut => Mishap::AnswerCut(value),
            Kind::AnswerGarbled => Mishap::AnswerGarbled(value),
            Kind::Twice => Mishap::Twice,
            Kind::Refused => match value % 3 {
                0 => Mishap::Refused(500, None),
                1 => Mishap::Refused(503, None),
                _ => Mishap::Refused(503, Some(value % 40)),
            },
            Kind::LateRequest => Mishap::LateRequest(late),
            Kind::LateAnswer => Mishap::LateAnswer(late),
            Kind::Pause => Mishap::Pause(late),
            // Shorter or longer than a client waits.
            Kind::Outage if value % 4 < 2 => Mishap::Outage(1 + value % 25),
            Kind::Outage => Mishap::Outage(1 + value % 120),
            Kind::CrashBefore => Mishap::CrashBefore,
            Kind::CrashAfter => Mishap::CrashAfter,
            Kind::CrashLater => Mishap::CrashLater(value % 20_000),
            Kind::Stop => Mishap::Stop,
            Kind::OwnerBefore => Mishap::OwnerBefore(act),
            Kind::OwnerAfter => Mishap::OwnerAfter(act),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn request(method: &str, path: &str) -> http::Request<Bytes> {
        let uri = format!("http://localhost{path}");
        let request = http::Request::builder().method(method).uri(uri);
        request.body(Bytes::new()).unwrap()
    }

    #[test]
    fn requests_are_classified() {
        for (method, path, expected) in [
            ("GET", "/a/c?restype=container&comp=list", Operation::List),
            ("GET", "/a/c/b", Operation::Get),
            ("PUT", "/a/c/b?comp=lease", Operation::Lease),
            ("PUT", "/a/c/d/b", Operation::Put),
            ("PUT", "/a/c?restype=container", Operation::Create),
            ("DELETE", "/a/c/b", Operation::Delete),
            ("GET", "/a/q/messages?numofmessages=1", Operation::Take),
            ("DELETE", "/a/q/messages/id?popreceipt=x", Operation::Settle),
            ("POST", "/a/q/messages", Operation::Send),
        ] {
            assert_eq!(
                Operation::of(&request(method, path)),
                expected,
                "{method} {path}"
            );
        }
    }

    /// Runs differ in their kinds of fault, some have none, and together they have all.
    #[test]
    fn swarms_differ() {
        use proptest::strategy::ValueTree as _;
        use proptest::test_runner::TestRunner;
        let menu = Menu {
            aims: &[(Operation::Any, "", 50)],
            acts: 3,
            late_s: 60,
            most: 16,
        };
        let (mut runner, strategy) = (TestRunner::deterministic(), swarm(menu));
        let mut kinds = BTreeMap::<&str, u32>::new();
        let mut calm = 0;
        for _ in 0..300 {
            let faults = strategy.new_tree(&mut runner).unwrap().current();
            calm += u32::from(faults.is_empty());
            for fault in faults {
                *kinds.entry(fault.mishap.kind()).or_default() += 1;
            }
        }
        assert!(calm > 10 && calm < 150, "{calm}");
        assert_eq!(kinds.len(), KINDS.len() + 1, "{kinds:?}");
    }
}
