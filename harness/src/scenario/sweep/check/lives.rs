//! Checks what each life of a worker owes: patience with an outage of the state document (D4), its
//! lease given back (D1), no page left behind (SL5), its request rate and its share of the budget.

use std::collections::BTreeMap;
use std::time::Duration;

use smalt_protocol::Timestamp;

use super::super::ledger::attribute;
use super::super::plan::SweepPlan;
use crate::scenario::history::{Event, Exchange, Fate};

/// Shortest outage of the state document after which a worker ends.
const STATE_PATIENCE: Duration = Duration::from_secs(60);
/// Kinds of errors on which a worker has patience, as its messages name them.
const TRANSIENT: [&str; 3] = [": Busy: ", ": OutcomeUnknown: ", ": Unreachable: "];
/// How the error begins with which a worker ends in the middle of its work.
const CUT_SHORT: &str = "the stop took too long";

#[derive(Default)]
struct Life {
    /// Since when it has failed to reach the state document, after its last write.
    outage: Option<Timestamp>,
    /// Whether it was asked to stop.
    stops: bool,
    /// Until when it has the lease of the state document, as far as it knows, and has not tried to
    /// give it back.
    leased_until: Option<Timestamp>,
    /// Whether it could not read the document under that lease.
    unread: bool,
    /// Number of its charged calls since its last write of the document.
    calls: u64,
    /// When it sent the requests of its last second without faults.
    sent: Vec<Timestamp>,
}

/// All lives.
pub(super) struct Lives {
    lives: BTreeMap<String, Life>,
    lease_s: u64,
    rate_per_s: Option<u32>,
    has_budget: bool,
    /// Day and number of the charged calls that the document names.
    spent: (String, u64),
}

type Found = Vec<(&'static str, String)>;

impl Lives {
    pub(super) fn new(plan: &SweepPlan) -> Self {
        Lives {
            lives: BTreeMap::new(),
            lease_s: u64::from(plan.lease_s),
            rate_per_s: plan.extras.rate_per_s,
            has_budget: plan.extras.has_budget,
            spent: (String::new(), 0),
        }
    }

    fn life(&mut self, actor: &str) -> &mut Life {
        self.lives.entry(actor.to_owned()).or_default()
    }

    pub(super) fn told_to_stop(&mut self, actor: &str) {
        self.life(actor).stops = true;
    }

    /// Checks an accepted write of the state document, whose step may still fail if it `creates`
    /// it. The budget: the calls of the day in the document include those of its writer.
    pub(super) fn wrote(&mut self, event: &Event, exchange: &Exchange, creates: bool) -> Found {
        let text = String::from_utf8_lossy(&exchange.body);
        let new = text.split_once('>').map_or("", |(_, rest)| rest);
        let new = new.split('>').next().unwrap_or_default();
        let day = attribute(new, "spentDay").unwrap_or_default().to_owned();
        let calls = attribute(new, "spentCalls").and_then(|calls| calls.parse().ok());
        let (spent_day, spent) = std::mem::replace(&mut self.spent, (day, calls.unwrap_or(0)));
        let (has_budget, total) = (self.has_budget && !creates, self.spent.1);
        let is_same_day = spent_day == self.spent.0;
        let life = self.life(&event.actor);
        if exchange.delivered && !creates {
            life.outage = None;
        }
        let own = std::mem::take(&mut life.calls);
        let forgot = has_budget && is_same_day && total < spent + own;
        let what = || {
            let actor = &event.actor;
            format!("{spent} calls, then {own} of {actor}, and the document says {total}")
        };
        forgot.then(|| ("SS10", what())).into_iter().collect()
    }

    /// Checks a request.
    pub(super) fn sent(
        &mut self,
        event: &Event,
        exchange: &Exchange,
        is_state: bool,
        is_calm: bool,
    ) -> Found {
        let (lease_s, rate_per_s) = (self.lease_s, self.rate_per_s);
        let life = self.life(&event.actor);
        let mut wrong = Vec::new();
        let told = match &exchange.fate {
            Fate::Answered(answer) if exchange.is_told() => Some(answer.status),
            _ => None,
        };
        let is_write = is_state && exchange.method == "PUT" && exchange.done().is_some();
        if is_charged(exchange, told) && !(is_write && exchange.parameter("comp").is_none()) {
            life.calls += 1;
        }
        if let Some(rate_per_s) = rate_per_s.filter(|_| is_calm) {
            wrong.extend(life.too_fast(exchange, rate_per_s));
        }
        if !is_state {
            // The extension of a page ends with the work on it, and leaves the lease to the next
            // step.
            life.leased_until = None;
            return wrong;
        }
        if told.is_none_or(|status| status >= 500) {
            life.outage.get_or_insert(exchange.sent);
        }
        let has_lease = life.leased_until.is_some_and(|until| exchange.sent < until);
        match exchange.header("x-ms-lease-action") {
            Some("acquire") if has_lease && life.unread => {
                let what = format!(
                    "{} could not read the document and kept the lease",
                    event.actor
                );
                wrong.push(("D1", what));
            }
            Some("acquire") if told == Some(201) => {
                life.leased_until = Some(exchange.sent.plus_s(lease_s));
                life.unread = false;
            }
            Some("release") => life.leased_until = None,
            None if exchange.method == "GET" => {
                life.unread = told.is_none_or(|status| status >= 400);
            }
            _ => {}
        }
        wrong
    }

    /// Checks the end of a life that has these pages.
    pub(super) fn ended(&mut self, event: &Event, why: Option<&str>, pages: &[String]) -> Found {
        let life = self.life(&event.actor);
        let mut wrong = Vec::new();
        let has_lease = life.leased_until.is_some_and(|until| event.at < until);
        if has_lease && why.is_none_or(|why| !why.starts_with(CUT_SHORT)) {
            let what = format!("{} has ended and kept the lease", event.actor);
            wrong.push(("D1", what));
        }
        match why {
            Some(why) if !life.stops && TRANSIENT.iter().any(|kind| why.contains(kind)) => {
                let early = |since: &Timestamp| event.at.since(*since) < STATE_PATIENCE;
                if let Some(since) = life.outage.filter(early) {
                    let since = since.iso_s();
                    let what =
                        format!("{} ended after an outage since {since}: {why}", event.actor);
                    wrong.push(("D4", what));
                }
            }
            None if !pages.is_empty() && life.outage.is_none() => {
                let what = format!("{} has ended and left {pages:?}", event.actor);
                wrong.push(("SL5", what));
            }
            _ => {}
        }
        wrong
    }
}

/// Whether a request is certainly one of its sender's charged calls, and its last attempt.
fn is_charged(exchange: &Exchange, told: Option<u16>) -> bool {
    exchange.method != "DELETE" && told.is_some_and(|status| status < 500)
}

impl Life {
    /// D4: checks that no second has more requests than the rate allows.
    fn too_fast(&mut self, exchange: &Exchange, rate_per_s: u32) -> Option<(&'static str, String)> {
        let second = Duration::from_secs(1);
        self.sent.retain(|sent| exchange.sent.since(*sent) < second);
        self.sent.push(exchange.sent);
        let count = self.sent.len();
        let is_fast = count > rate_per_s as usize + 1;
        is_fast.then(|| {
            (
                "D4",
                format!("{count} requests in a second, {rate_per_s} allowed"),
            )
        })
    }
}
