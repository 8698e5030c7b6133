//! Faults of the wire: what is planned, and at what it is aimed.
//!
//! A fault is aimed at the n-th request of a kind, about a resource, whoever of the workers sends
//! it. Each run draws which mishaps it has and how dense they are: of many runs some are calm, some
//! know one kind of trouble only, some all of it at once.

use bytes::Bytes;
use proptest::prelude::*;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Any request.
    Any,
    /// Any that removes, copies or settles something.
    Change,
    /// Lists blobs.
    List,
    /// Properties of a blob.
    Head,
    /// Content of a blob.
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
    /// Takes messages.
    Take,
    /// Changes text or visibility of a message.
    Renew,
    /// Deletes a message.
    Settle,
    /// Puts a message.
    Send,
    /// Anything else.
    Other,
}

impl Operation {
    /// The kind that a request is of.
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

    /// Whether a request of the kind `of` is meant.
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

/// What a fault is aimed at: the n-th request of a kind about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The kind.
    pub operation: Operation,
    /// Part of the path as sent; empty for any.
    pub resource: &'static str,
    /// Which such request, counted from 1 over all workers. Where another fault takes it, the next.
    pub nth: u16,
}

impl Aim {
    /// Whether such a request is meant.
    pub fn means(&self, operation: Operation, path: &str) -> bool {
        self.operation.means(operation) && path.contains(self.resource)
    }
}

/// Kind of a fault: the answer's body breaks off.
pub const CUT: &str = "answer cut";
/// Kind of [`Mishap::Outage`], and of what is sent while it lasts.
pub const AWAY: &str = "service away";
/// Kind of a fault: the answer's body is damaged.
pub const GARBLED: &str = "answer garbled";

/// What happens to one request of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It never arrives.
    Unreachable,
    /// It is executed, and the connection breaks before the answer.
    AnswerLost,
    /// It is executed, and the connection breaks after so many bytes of the answer's body. Of a
    /// refusal the head still counts.
    AnswerCut(u16),
    /// It is executed, and a byte of the answer's body, counted round and round, arrives as one
    /// that stands in no text.
    AnswerGarbled(u16),
    /// It arrives twice, and the second answer is the one that comes back.
    Twice,
    /// The service refuses it: 500 or 503, with this `Retry-After` in seconds.
    Refused(u16, Option<u16>),
    /// It is on its way for so many seconds: others overtake it.
    LateRequest(u16),
    /// It is executed, and the answer is on its way for so many seconds.
    LateAnswer(u16),
    /// Its worker stands still for so many seconds: nothing goes out and nothing comes in.
    Pause(u16),
    /// The service is away for so many seconds. What is on its way is executed or not.
    Outage(u16),
    /// Its worker dies before it is sent.
    CrashBefore,
    /// It is executed, and its worker dies.
    CrashAfter,
    /// Its worker dies so many milliseconds after it was executed, wherever it is then.
    CrashLater(u16),
    /// Its worker is asked to stop when it was executed.
    Stop,
    /// The owner does something just before it is executed, to what it is about: the act of this
    /// number.
    OwnerBefore(u8),
    /// The owner does something right after it was executed.
    OwnerAfter(u8),
}

impl Mishap {
    /// Its kind, for the account.
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
            Mishap::LateAnswer(_) => "answer late",
            Mishap::Pause(_) => "worker paused",
            Mishap::Outage(_) => AWAY,
            Mishap::CrashBefore => "crash before",
            Mishap::CrashAfter => "crash after",
            Mishap::CrashLater(_) => "crash later",
            Mishap::Stop => "asked to stop",
            Mishap::OwnerBefore(_) => "owner before",
            Mishap::OwnerAfter(_) => "owner after",
        }
    }
}

/// One planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it is aimed at.
    pub aim: Aim,
    /// What happens.
    pub mishap: Mishap,
}

/// What a scenario's faults may be.
#[derive(Clone, Debug)]
pub struct Menu {
    /// Aims, and the largest n of each.
    pub aims: &'static [(Operation, &'static str, u16)],
    /// Acts of the owner below this number; 0 for no owner.
    pub acts: u8,
    /// Longest delay and pause, in seconds.
    pub late_s: u16,
    /// Most faults of one run.
    pub most: usize,
}

/// Faults from a menu. A run has each kind of mishap or not, by the toss of a coin.
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

/// A kind of mishap: [`Mishap`] without its figures.
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

/// All of them.
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

/// Kinds of a run: each by its coin; all of them where every coin says no.
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
    // Owners have many ways of their own to come between.
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
            // Shorter or longer than a client is patient.
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
    fn requests_are_told_apart() {
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

    /// Each run has faults of its own: some none, some few kinds, together all kinds.
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
